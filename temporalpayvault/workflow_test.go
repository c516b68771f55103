package temporalpayvault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// newWorkflows gives a test environment with skipped time, in which the heartbeats of activities are kept.
func newWorkflows(a *Activities) *testsuite.TestWorkflowEnvironment {
	return loggedWorkflows(a, quiet())
}

func loggedWorkflows(a *Activities, logger log.Logger) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(logger)
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // for machines that are busy
	own := *a
	own.record = (&heartbeats{}).record
	Register(env, &own)
	return env
}

func summary(t *testing.T, env *testsuite.TestWorkflowEnvironment) (s Summary) {
	t.Helper()
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&s))
	return s
}

func progressOf(t *testing.T, env *testsuite.TestWorkflowEnvironment) Summary {
	t.Helper()
	return progressAs[Summary](t, env)
}

func progressAs[S any](t *testing.T, env *testsuite.TestWorkflowEnvironment) (s S) {
	t.Helper()
	value, err := env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	require.NoError(t, value.Get(&s))
	return s
}

func TestSubmitCards(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 12_345}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit, Times: 2})
	const tenHours = "36000"
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit, RetryAfter: tenHours, Times: 3})
	refusal := payvaulttest.Fault{Operation: op, Kind: payvaulttest.OtherCode, Code: 7, Message: "declined", Times: 1}
	inject(t, srv, refusal)
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: d})
	began := env.Now()
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 20, Concurrency: 3, InFlight: 2})
	s := summary(t, env)
	assert.Equal(t, []int{12_345, 124, 121, 1, 2}, []int{s.Cards, s.Batches, s.Accepted, s.Refused, s.Unknown})
	assert.Len(t, s.UnknownBatches, 2)
	require.Len(t, s.RefusedBatches, 1)
	assert.Equal(t, "7", s.RefusedBatches[0].Code)
	assert.Empty(t, audit(t, s.Batches, performed(t, srv), s.statuses()))
	assert.GreaterOrEqual(t, env.Now().Sub(began), 10*time.Hour)
}

func TestSubmitCards_noCards(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{}})
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	assert.Equal(t, Summary{}, summary(t, env))
}

// accepting stands in for the activity.
func accepting(env *testsuite.TestWorkflowEnvironment) *testsuite.MockCallWrapper {
	return env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o order) (*report, error) { return accept(o.Span), nil })
}

func accept(s span) *report {
	var r report
	for i := s.From; i < s.To; i++ {
		r.Outcomes = append(r.Outcomes, Outcome{Batch: i, Status: payvault.BatchAccepted})
	}
	return &r
}

// The next run goes on where this one ends.
func TestSubmitCards_continueAsNew(t *testing.T) {
	t.Parallel()
	job := Job{Source: "deck", BatchesPerActivity: 4, Concurrency: 2, ActivitiesPerRun: 3, Name: "n"}
	for runs := 1; ; runs++ {
		env := newWorkflows(&Activities{Cards: deck{n: 2500}})
		accepting(env)
		env.ExecuteWorkflow(SubmitCards, job)
		var next *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &next) {
			assert.Equal(t, 25, summary(t, env).Accepted)
			assert.Equal(t, 3, runs)
			return
		}
		job = decodeJob(t, next)
		assert.Equal(t, 12*runs, job.State.Summary.Accepted)
		assert.Equal(t, "n", job.Name)
	}
}

func TestSubmitCards_continueAsNewWhenSuggested(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 2500}})
	accepting(env)
	env.SetContinueAsNewSuggested(true)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	assert.True(t, workflow.IsContinueAsNewError(env.GetWorkflowError()))
}

func TestSubmitCards_pauseAndResume(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 10_000}})
	accepting(env).After(time.Minute)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalControl, Pause) }, 90*time.Second)
	var paused Summary
	env.RegisterDelayedCallback(func() {
		paused = progressOf(t, env)
		env.SignalWorkflow(SignalControl, Resume)
	}, 5*time.Hour)
	began := env.Now()
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 10, Concurrency: 2})
	s := summary(t, env)
	assert.Equal(t, 100, s.Accepted)
	assert.Empty(t, s.Paused)
	assert.Equal(t, bySignal, paused.Paused)
	assert.Equal(t, 40, paused.Accepted, "what was in flight has ended")
	assert.Equal(t, 5*time.Hour+3*time.Minute, env.Now().Sub(began).Round(time.Second))
}

// Signals that come while no worker is up count in their order.
func TestSubmitCards_signalsInOrder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signals []any
		paused  string
	}{
		"paused, resumed": {[]any{Pause, Resume}, ""},
		"resumed, paused": {[]any{Resume, Pause}, bySignal},
		"neither":         {[]any{Pause, "stop", "", 5, nil, []byte(Resume)}, bySignal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newWorkflows(&Activities{Cards: deck{n: 3000}})
			accepting(env).After(time.Minute)
			env.RegisterDelayedCallback(func() {
				for _, signal := range test.signals {
					env.SignalWorkflow(SignalControl, signal)
				}
			}, time.Second)
			env.RegisterDelayedCallback(func() {
				assert.Equal(t, test.paused, progressOf(t, env).Paused)
				env.SignalWorkflow(SignalControl, Resume)
			}, 90*time.Second)
			env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 10, Concurrency: 1})
			assert.Equal(t, 30, summary(t, env).Accepted)
		})
	}
}

// It does not send the whole job into a service that refuses the key.
func TestSubmitCards_keyRefused(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 10_000}
	mend := inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.Respond, Status: http.StatusUnauthorized})
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: d})
	var paused Summary
	env.RegisterDelayedCallback(func() {
		paused = progressOf(t, env)
		mend()
		env.SignalWorkflow(SignalControl, Resume)
	}, 24*time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 10})
	assert.Contains(t, paused.Paused, "401")
	assert.Zero(t, paused.Refused)
	assert.Equal(t, 100, summary(t, env).Accepted)
	assert.Equal(t, 100, srv.Commits(op))
}

func TestSubmitCards_unknownLimit(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 10_000}
	mend := inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit})
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: d})
	var paused Summary
	env.RegisterDelayedCallback(func() {
		paused = progressOf(t, env)
		mend()
		env.SignalWorkflow(SignalControl, Resume)
	}, 24*time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{
		Source: "deck", BatchesPerActivity: 10, Concurrency: 1, InFlight: 1, MaxUnknown: 4,
	})
	assert.Equal(t, stopUnknown, paused.Paused)
	assert.Less(t, paused.Unknown, 8)
	s := summary(t, env)
	assert.Equal(t, 100, s.Accepted+s.Unknown)
	assert.Equal(t, paused.Unknown, s.Unknown)
	assert.Equal(t, 100, srv.Commits(op))
}

// However few batches an activity has: a service that refuses whatever comes does not get the whole job.
func TestSubmitCards_allRefused(t *testing.T) {
	t.Parallel()
	for _, per := range []int{1, 5, 9} {
		t.Run(strconv.Itoa(per), func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 10_000}
			mend := inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.Respond, Status: http.StatusNotFound})
			env := newWorkflows(&Activities{Client: srv.Client(), Cards: d})
			var paused []Summary
			for i := range 2 {
				env.RegisterDelayedCallback(func() {
					if paused = append(paused, progressOf(t, env)); i == 1 {
						mend()
					}
					env.SignalWorkflow(SignalControl, Resume)
				}, time.Duration(i+1)*time.Hour)
			}
			env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: per, Concurrency: 4})
			s := summary(t, env)
			for i, p := range paused {
				assert.Equal(t, stopRefused, p.Paused)
				assert.GreaterOrEqual(t, p.Refused, maxRefused*(i+1))
				assert.LessOrEqual(t, p.Refused, (i+1)*(maxRefused+per+4*per), "what was in flight")
			}
			require.Len(t, paused, 2)
			assert.Equal(t, []int{paused[1].Refused, 100}, []int{s.Refused, s.Refused + s.Accepted})
		})
	}
}

// Refusals here and there are those of the cards, whatever has been refused before a pause.
func TestRefusedInRow(t *testing.T) {
	t.Parallel()
	refused, accepted := Outcome{Status: payvault.BatchRefused}, Outcome{Status: payvault.BatchAccepted}
	unknown, earlier := Outcome{Status: payvault.BatchUnknown}, Outcome{Status: payvault.BatchRefused, Earlier: true}
	assert.Equal(t, 5, refusedInRow(3, []Outcome{refused, earlier, unknown, refused}))
	assert.Equal(t, 1, refusedInRow(3, []Outcome{refused, accepted, refused}))
}

// An activity that was at work before the job was resumed does not pause it again.
func TestSubmitCards_staleStop(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 5000}})
	var calls atomic.Int32
	activity := func(_ context.Context, o order) (*report, error) {
		r, call := accept(o.Span), calls.Add(1)
		for i := range r.Outcomes {
			if call <= 2 || call == 3 && i < maxRefused-1 { // too few of them to pause
				r.Outcomes[i].Status = payvault.BatchRefused
			}
		}
		if call <= 2 {
			r.Stop = "the key is refused"
		} else if call == 3 {
			r.Outcomes[maxRefused-1].Status = payvault.BatchUnknown
		}
		return r, nil
	}
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(activity).After(time.Minute).Once()
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(activity).After(time.Hour)
	env.RegisterDelayedCallback(func() {
		assert.NotEmpty(t, progressOf(t, env).Paused)
		env.SignalWorkflow(SignalControl, Resume)
	}, 2*time.Minute)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 10, Concurrency: 2})
	s := summary(t, env)
	assert.Equal(t, []int{20, 29, 1}, []int{s.Accepted, s.Refused, s.Unknown})
}

// An activity that has failed without a report is not done again as if nothing had been sent.
func TestSubmitCards_failedForGood(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"without a report": temporal.NewNonRetryableApplicationError("failed by an operator", "Operator", nil),
		"with another":     temporal.NewNonRetryableApplicationError("failed by an operator", "Operator", nil, "because"),
		"lost":             nil,
	} {
		for _, journal := range []payvault.Journal{nil, newBook()} {
			t.Run(fmt.Sprintf("%s, %T", name, journal), func(t *testing.T) {
				t.Parallel()
				env := newWorkflows(&Activities{Cards: deck{n: 3000}, Journal: journal})
				var orders []span
				env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
					func(ctx context.Context, o order) (*report, error) {
						if orders = append(orders, o.Span); len(orders) == 2 && failure == nil {
							return lose(ctx, env, "a heartbeat of an operator")
						} else if len(orders) == 2 {
							return nil, failure
						}
						return accept(o.Span), nil
					})
				env.RegisterDelayedCallback(func() {
					assert.Contains(t, progressOf(t, env).Paused, "an activity has failed")
					env.SignalWorkflow(SignalControl, Resume)
				}, time.Hour)
				env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 10, Concurrency: 1})
				s := summary(t, env)
				if journal == nil {
					assert.Equal(t, []int{20, 10, 3}, []int{s.Accepted, s.Unknown, len(orders)})
					return
				}
				assert.Equal(t, []int{30, 4}, []int{s.Accepted, len(orders)})
				assert.Equal(t, span{From: 10, To: 20, Lost: true}, orders[2])
			})
		}
	}
}

// A canceled activity is waited for: only it knows what it has sent. One that was lost is not started again.
func TestWithActivities(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{})
	options := func(ctx workflow.Context) error {
		ctx = withActivities(ctx, 0, 0)
		assert.True(t, workflow.GetActivityOptions(ctx).WaitForCancellation)
		lost := []string{"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"}
		assert.Equal(t, lost, workflow.GetActivityOptions(startedOnce(ctx)).RetryPolicy.NonRetryableErrorTypes)
		return nil
	}
	env.RegisterWorkflow(options)
	env.ExecuteWorkflow(options)
	require.NoError(t, env.GetWorkflowError())
}

func TestSubmitCards_reset(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 3000}})
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(nil,
		temporal.NewNonRetryableApplicationError("reset", TypeReset, nil))
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	app, ok := errors.AsType[*temporal.ApplicationError](env.GetWorkflowError())
	require.True(t, ok)
	assert.Equal(t, TypeReset, app.Type())
}

// Canceled, it waits for what is in flight, and says what it has done.
func TestSubmitCards_cancel(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 10_000}})
	var calls int
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(func(_ context.Context, o order) (*report, error) {
		if calls++; calls == 3 {
			env.CancelWorkflow()
		}
		return accept(o.Span), nil
	})
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 10, Concurrency: 1})
	canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
	require.True(t, ok)
	var s Summary
	require.NoError(t, canceled.Details(&s))
	assert.GreaterOrEqual(t, s.Accepted, 20)
	assert.Less(t, s.Accepted, 50)
	assert.Equal(t, 100, s.Batches)
	require.NotEmpty(t, s.Left)
	assert.Equal(t, s.Accepted, s.Left[0].From)
	assert.Equal(t, 100, s.Left[len(s.Left)-1].To)
}

func TestDispatch_left(t *testing.T) {
	t.Parallel()
	d := dispatch{carried: &carried{Next: 7, Redo: []span{{From: 1, To: 2}, {From: 4, To: 6, Lost: true}}}, total: 9}
	assert.Equal(t, []Range{{From: 1, To: 2}, {From: 4, To: 6, Lost: true}, {From: 7, To: 9}}, d.left())
	assert.Empty(t, (&dispatch{carried: &carried{Next: 9}, total: 9}).left())
}

// The server cancels an activity that waits for its next attempt without a word of what the last one has sent.
func TestSubmitCards_canceledBetweenAttempts(t *testing.T) {
	t.Parallel()
	for _, journal := range []payvault.Journal{nil, newBook()} {
		srv := newServer(t)
		a := &Activities{Cards: deck{n: 1000}, Journal: journal, record: (&heartbeats{}).record}
		a.Client = srv.Client(payvault.WithHTTPClient(&http.Client{Transport: roundTripper(
			func(r *http.Request) (*http.Response, error) {
				res, err := http.DefaultTransport.RoundTrip(r)
				if srv.Commits(op) == 3 {
					assert.NoError(t, res.Body.Close())
					panic("a bug of a transport")
				}
				return res, err
			})}))
		env := newWorkflows(a)
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
			func(ctx context.Context, o order) (_ *report, err error) {
				defer func() {
					assert.NotNil(t, recover())
					env.CancelWorkflow()
					err = temporal.NewCanceledError("ACTIVITY_ID_NOT_STARTED") // what the server says then
				}()
				return a.submit(ctx, o)
			})
		env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", InFlight: 1})
		canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
		require.True(t, ok)
		var s Summary
		require.NoError(t, canceled.Details(&s))
		assert.Equal(t, []Range{{To: 10, Lost: true}}, s.Left)
		assert.Equal(t, 3, srv.Commits(op))
	}
}

// Spans that fail each time do not hold up the others, however many they are.
func TestSubmitCards_someFailEachTime(t *testing.T) {
	t.Parallel()
	for _, bad := range []int{1, 30} {
		env := newWorkflows(&Activities{Cards: deck{n: 10_000}})
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
			func(_ context.Context, o order) (*report, error) {
				if o.Span.From < bad {
					err := temporal.NewApplicationError("no such range", TypeSource)
					return nil, failed(err, report{Left: []span{o.Span}})
				}
				return accept(o.Span), nil
			})
		env.RegisterDelayedCallback(func() {
			s := progressOf(t, env)
			assert.Equal(t, []any{100 - bad, ""}, []any{s.Accepted, s.Paused})
			env.CancelWorkflow()
		}, time.Duration(bad)*125*time.Second)
		env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", Concurrency: 1, BatchesPerActivity: 1})
		assert.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	}
}

// What waits is no more than a run can hand to the next one: then somebody has to look.
func TestSubmitCards_manyFailEachTime(t *testing.T) {
	t.Parallel()
	state := &JobState{Summary: Summary{Cards: 300_000, Batches: 3000}}
	for i := range maxRedo {
		state.Redo = append(state.Redo, span{From: i, To: i + 1, Tries: fewTries + 1})
	}
	state.Next = maxRedo
	env := newWorkflows(&Activities{Cards: deck{n: 300_000}})
	failing := temporal.NewApplicationError("no such range", TypeSource)
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o order) (*report, error) {
			return nil, failed(failing, report{Left: []span{o.Span}})
		}).Times(1 + fewTries)
	accepting(env)
	var paused Summary
	env.RegisterDelayedCallback(func() {
		paused = progressOf(t, env)
		env.SignalWorkflow(SignalControl, Resume)
	}, time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", Concurrency: 1, BatchesPerActivity: 500, State: state})
	assert.Equal(t, 3000, summary(t, env).Accepted)
	assert.Equal(t, []any{stopFailing, "no such range", 0}, []any{paused.Paused, paused.LastFailure, paused.Accepted})
}

func TestDispatch_take(t *testing.T) {
	t.Parallel()
	d := &dispatch{
		carried: &carried{Redo: []span{{From: 0, Tries: fewTries + 1}, {From: 1, Tries: fewTries}, {From: 2}}, Next: 3},
		total:   4, per: 1,
	}
	var taken []int
	for d.hasWork() {
		taken = append(taken, d.take().From)
	}
	assert.Equal(t, []int{1, 2, 3, 0}, taken)
}

// A try that made progress is none that failed.
func TestSpan_progress(t *testing.T) {
	t.Parallel()
	s := span{From: 2, To: 9, Page: 3}
	for _, left := range [][]span{
		nil, {{From: 3, To: 9}}, {{From: 2, To: 4}, {From: 5, To: 9}}, {{From: 2, To: 9, Page: 4}},
	} {
		assert.True(t, s.progress(left), left)
	}
	for _, left := range [][]span{{s}, {{From: 3, To: 9}, {From: 2, To: 3, Lost: true}}} {
		assert.False(t, s.progress(left), left)
	}
}

// What a server keeps for a workflow is no more than it takes.
func TestPerActivity(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []int{50, 2500, 20, 5000, 7}, []int{
		perActivity(0, 50, 8), perActivity(5000, 50, 8), perActivity(0, 50, 1000), perActivity(9999, 50, 1),
		perActivity(7, 50, 8),
	})
}

// A heartbeat, and a payload, hold only so much.
func TestJob_bounded(t *testing.T) {
	t.Parallel()
	job := Job{BatchesPerActivity: 1 << 16, Concurrency: 1 << 16}
	job.setDefaults()
	assert.Equal(t, []int{maxConcurrency, maxPending / maxConcurrency}, []int{job.Concurrency, job.BatchesPerActivity})
	job = Job{BatchesPerActivity: 1 << 16, Concurrency: 1}
	job.setDefaults()
	for _, char := range []string{"a", `"`, "<", "\x01", "ü", "\xff"} {
		var p report
		long := strings.Repeat(char, 1000)
		one := outcomeOf(1e6, payvault.BatchOutcome{
			Status: payvault.BatchRefused, StatusCode: http.StatusOK, Code: long, Message: long,
		})
		for range job.BatchesPerActivity {
			p.Outcomes = append(p.Outcomes, *one)
		}
		payload, err := converter.GetDefaultDataConverter().ToPayload(p)
		require.NoError(t, err)
		assert.Less(t, len(payload.GetData()), 2<<20, char)
	}
}

// Whoever looks at the logs is told of a pause.
func TestSubmitCards_logsPauses(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	warnings := slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn})
	env := loggedWorkflows(&Activities{Cards: deck{n: 1000}}, log.NewStructuredLogger(slog.New(warnings)))
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		&report{Left: []span{{To: 10}}, Stop: "the key is refused"}, nil).Once()
	accepting(env)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalControl, Resume) }, time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	assert.Equal(t, 10, summary(t, env).Accepted)
	assert.Equal(t, 1, strings.Count(logged.String(), "level=WARN"), logged.String())
	assert.Contains(t, logged.String(), "the key is refused")
}

// What a job says is what its activities are told.
func TestSubmitCards_orders(t *testing.T) {
	t.Parallel()
	told := order{
		Job: "deck@sum", Source: "deck", Snapshot: Snapshot{Cards: 1000, Checksum: "sum"}, Span: span{To: 10}, Run: testRun,
		InFlight: defaultInFlight, MaxUnknown: 13,
	}
	named := told
	named.Job, named.InFlight, named.MaxUnknown, named.Interval = "n@sum", 3, 2, 50*time.Millisecond
	for name, test := range map[string]struct {
		job       Job
		want      order
		heartbeat time.Duration
		atLeast   time.Duration
	}{
		"by default": {Job{Source: "deck"}, told, 30 * time.Second, day},
		"set": {Job{
			Source: "deck", Name: "n", InFlight: 3, MaxUnknown: 9, RequestsPerSecond: 20, Concurrency: 5,
			BatchesPerActivity: 1000, HeartbeatTimeout: 7 * time.Second,
		}, named, 7 * time.Second, day + 50*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newWorkflows(&Activities{Cards: deck{n: 1000, checksum: "sum"}})
			var got order
			var info activity.Info
			env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
				func(ctx context.Context, o order) (*report, error) {
					got, info = o, activity.GetInfo(ctx)
					return accept(o.Span), nil
				})
			env.ExecuteWorkflow(SubmitCards, test.job)
			assert.Equal(t, 10, summary(t, env).Accepted)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.heartbeat, info.HeartbeatTimeout)
			assert.Equal(t, test.atLeast, info.StartToCloseTimeout)
		})
	}
}

func TestJob_interval(t *testing.T) {
	t.Parallel()
	job := Job{RequestsPerSecond: 20, Concurrency: 5, BatchesPerActivity: 10, State: &JobState{}}
	for batches, want := range map[int]time.Duration{
		1000: 250 * time.Millisecond, 41: 250 * time.Millisecond, 40: 200 * time.Millisecond, 1: 50 * time.Millisecond,
	} {
		job.State.Summary.Batches = batches
		assert.Equal(t, want, job.interval(), batches)
	}
	job.RequestsPerSecond = 1e-300
	assert.Equal(t, day, job.interval())
	job.RequestsPerSecond = 0
	assert.Zero(t, job.interval())
}

func TestSummary_bounded(t *testing.T) {
	t.Parallel()
	var s Summary
	for i := range 3000 {
		s.add([]Outcome{{Batch: i, Status: payvault.BatchUnknown}, {Batch: i, Status: payvault.BatchRefused}})
	}
	assert.Equal(t, []int{3000, 3000, maxListed, maxListed},
		[]int{s.Unknown, s.Refused, len(s.UnknownBatches), len(s.RefusedBatches)})
}

// A reference whose cards are others than last night's is not taken for done; the same cards are, and it is said.
func TestSubmitCards_otherNight(t *testing.T) {
	t.Parallel()
	srv, b := newServer(t), newBook()
	night := func(d deck) Summary {
		env := newWorkflows(&Activities{Client: srv.Client(), Cards: d, Journal: b})
		env.ExecuteWorkflow(SubmitCards, Job{Source: "cards.csv", Name: "november"})
		return summary(t, env)
	}
	first := night(deck{n: 1050, checksum: "first"})
	assert.Equal(t, []int{11, 0}, []int{first.Accepted, first.Earlier})
	assert.Equal(t, 11, srv.Commits(op))
	second := night(deck{n: 1050, checksum: "second"})
	assert.Equal(t, []int{11, 0}, []int{second.Accepted, second.Earlier})
	assert.Equal(t, 22, srv.Commits(op))
	again := night(deck{n: 1050, checksum: "second"})
	assert.Equal(t, []int{11, 11}, []int{again.Accepted, again.Earlier})
	assert.Equal(t, 22, srv.Commits(op))
}

// A job that is done is not paused, whatever came at its end.
func TestSubmitCards_pausedAtTheEnd(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 1000}})
	accepting(env).After(time.Minute)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalControl, Pause) }, time.Second)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	assert.Empty(t, summary(t, env).Paused)
}

func TestSubmitCards_leastHeartbeat(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 1000}})
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, o order) (*report, error) {
			assert.Equal(t, leastHeartbeat, activity.GetInfo(ctx).HeartbeatTimeout)
			return accept(o.Span), nil
		})
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", HeartbeatTimeout: 2})
	assert.Equal(t, 10, summary(t, env).Accepted)
}

// Whether there was a journal in the beginning goes with the job.
func TestSubmitCards_journal(t *testing.T) {
	t.Parallel()
	for _, journal := range []payvault.Journal{nil, newBook()} {
		env := newWorkflows(&Activities{Cards: deck{n: 1000, checksum: "sum"}, Journal: journal})
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
			func(_ context.Context, o order) (*report, error) {
				assert.Equal(t, journal != nil, o.Journal)
				return accept(o.Span), nil
			})
		env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", BatchesPerActivity: 1, ActivitiesPerRun: 5})
		var next *workflow.ContinueAsNewError
		require.ErrorAs(t, env.GetWorkflowError(), &next)
		assert.Equal(t, journal != nil, decodeJob(t, next).State.Journal)
	}
}

// A job whose snapshot cannot be had, or is none, waits until it is mended, and its ID is not used up.
func TestSubmitCards_badSnapshot(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]*described{
		"no checksum":  {s: Snapshot{Cards: 100}}, // nobody could tell the cards of two nights apart
		"ambiguous":    {s: Snapshot{Cards: 100, Checksum: "b@c"}},
		"less than no": {s: Snapshot{Cards: -5, Checksum: "sum"}},
		"failed":       {err: temporal.NewNonRetryableApplicationError("no checksum of such a file", "File", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			env := newWorkflows(&Activities{Client: srv.Client(), Cards: bad})
			var paused string
			env.RegisterDelayedCallback(func() {
				paused = progressOf(t, env).Paused
				bad.s, bad.err = Snapshot{Cards: 100, Checksum: "sum"}, nil
				env.SignalWorkflow(SignalControl, Resume)
			}, time.Hour)
			env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
			assert.Equal(t, Summary{Cards: 100, Batches: 1, Accepted: 1}, summary(t, env))
			assert.Contains(t, paused, "checksum")
		})
	}
	env := newWorkflows(&Activities{})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
	require.True(t, ok)
	var s Summary
	require.NoError(t, canceled.Details(&s))
	assert.Contains(t, s.Paused, stopCards)
}

// described says what it is told to.
type described struct {
	s   Snapshot
	err error
}

func (d *described) Snapshot(context.Context, string) (Snapshot, error) { return d.s, d.err }

func (d *described) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	return deck{n: d.s.Cards}.Cards(ctx, ref, start, end)
}

// When the service is gone, all activities together stop where the limit is.
func TestSubmitCards_unknownLimitOfAll(t *testing.T) {
	t.Parallel()
	for _, job := range []Job{{}, {Concurrency: 32}, {MaxUnknown: 10}, {MaxUnknown: 1}} {
		t.Run(fmt.Sprint(job.MaxUnknown, " by ", job.Concurrency), func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 300_000}
			inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit})
			env := newWorkflows(&Activities{Client: srv.Client(), Cards: d})
			var paused Summary
			env.RegisterDelayedCallback(func() {
				paused = progressOf(t, env)
				env.CancelWorkflow()
			}, 24*time.Hour)
			job.Source = "deck"
			env.ExecuteWorkflow(SubmitCards, job)
			assert.Equal(t, stopUnknown, paused.Paused)
			job.setDefaults()
			assert.LessOrEqual(t, paused.Unknown, job.MaxUnknown+job.Concurrency*(1+2*job.InFlight))
		})
	}
}

// What another job left unknown is known already, and is no reason to pause.
func TestSubmitCards_unknownOfAnotherJob(t *testing.T) {
	t.Parallel()
	srv, b := newServer(t), newBook()
	for i := range 5 {
		_, err := b.Begin(t.Context(), "deck@sum", i)
		require.NoError(t, err)
	}
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: deck{n: 1000, checksum: "sum"}, Journal: b})
	env.RegisterDelayedCallback(func() { assert.Fail(t, "it has paused") }, time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", MaxUnknown: 2, Concurrency: 1, BatchesPerActivity: 6})
	s := summary(t, env)
	assert.Equal(t, []int{5, 5, 5}, []int{s.Accepted, s.Unknown, s.Earlier})
}

// What an activity does not report is not sent again, whoever has reported in its place.
func TestSubmitCards_emptyReport(t *testing.T) {
	t.Parallel()
	for _, result := range []*report{nil, {}} {
		srv, d := newServer(t), deck{n: 2000}
		env := newWorkflows(&Activities{Client: srv.Client(), Cards: d})
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(result, nil).Once()
		real := (&Activities{Client: srv.Client(), Cards: d, record: (&heartbeats{}).record}).submit
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(real)
		env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", Concurrency: 1, BatchesPerActivity: 10})
		s := summary(t, env)
		assert.Equal(t, []int{10, 10}, []int{s.Accepted, s.Unknown})
		assert.Equal(t, 10, srv.Commits(op))
	}
}

// What a lost worker had announced and not reported is unknown, or the journal says what came of it; what it had
// reported counts, and the rest is done by another activity.
func TestSubmitCards_lostWorker(t *testing.T) {
	t.Parallel()
	accepted, unknown := payvault.BatchAccepted, payvault.BatchUnknown
	known := []Outcome{{Batch: 1, Status: accepted, RequestID: "r"}}
	for name, test := range map[string]struct {
		last     []any
		journal  bool
		statuses map[int]payvault.BatchStatus
		spans    []span
	}{
		"nothing announced": {nil, false, map[int]payvault.BatchStatus{}, []span{{To: 4}}},
		"all announced": {
			[]any{report{Sending: []int{0, 1, 2, 3}}},
			false,
			map[int]payvault.BatchStatus{0: unknown, 1: unknown, 2: unknown, 3: unknown},
			nil,
		},
		"announced": {
			[]any{report{Outcomes: known, Sending: []int{2}}},
			false,
			map[int]payvault.BatchStatus{1: accepted, 2: unknown},
			[]span{{To: 1}, {From: 3, To: 4}},
		},
		"announced, with a journal": {
			[]any{report{Outcomes: known, Sending: []int{1, 2}}},
			true,
			map[int]payvault.BatchStatus{1: accepted},
			[]span{{To: 1}, {From: 3, To: 4}, {From: 2, To: 3, Lost: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook()
			a := &Activities{Cards: deck{n: 400, checksum: "sum"}}
			if test.journal {
				a.Journal = b
			}
			env := newWorkflows(a)
			var spans []span
			ids := map[string]bool{}
			env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
				func(ctx context.Context, o order) (*report, error) {
					info := activity.GetInfo(ctx)
					assert.EqualValues(t, 1, info.Attempt)
					assert.False(t, activity.HasHeartbeatDetails(ctx))
					if ids[info.ActivityID] = true; len(ids) == 1 {
						return lose(ctx, env, test.last...)
					}
					if len(spans) == 0 {
						assert.Equal(t, "a worker was lost", progressOf(t, env).LastFailure)
					} else {
						assert.Empty(t, progressOf(t, env).LastFailure)
					}
					assert.Equal(t, len(test.statuses) == 0, o.Span.Tries == 1, "without progress")
					o.Span.Tries, o.Span.Due = 0, time.Time{}
					spans = append(spans, o.Span)
					return accept(o.Span), nil
				})
			env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", Concurrency: 1})
			s := summary(t, env)
			assert.Equal(t, test.spans, spans)
			assert.Len(t, ids, 1+len(spans), "the server has to tell them apart")
			assert.Equal(t, 4, s.Accepted+s.Unknown)
			assert.Empty(t, s.LastFailure)
			for i, status := range test.statuses {
				assert.Equal(t, status, s.statuses()[i], i)
			}
			if test.journal {
				assert.Equal(t, map[string]*payvault.BatchOutcome{
					"deck@sum 1": {Status: accepted, Cards: 100, RequestID: "r"},
				}, b.rows, "it has what was reported")
			}
		})
	}
}

// What fails is tried again, ever more seldom, or when the service says; what it has done counts.
func TestSubmitCards_backOff(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 1000}})
	var waits []time.Duration
	last := env.Now()
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o order) (*report, error) {
			waits, last = append(waits, env.Now().Sub(last)), env.Now()
			left := o.Span
			delay := temporal.ApplicationErrorOptions{}
			switch len(waits) {
			case 12:
				return accept(o.Span), nil
			case 10:
				left.From++ // it makes progress
			case 9:
				delay.NextRetryDelay = time.Hour
			}
			err := temporal.NewApplicationErrorWithOptions("the disk is full", TypeSource, delay)
			done := accept(span{From: o.Span.From, To: left.From})
			return nil, failed(err, report{Outcomes: done.Outcomes, Left: []span{left}})
		})
	env.RegisterDelayedCallback(func() {
		s := progressOf(t, env)
		assert.Equal(t, []any{"the disk is full", ""}, []any{s.LastFailure, s.Paused})
	}, 30*time.Minute)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	s := summary(t, env)
	assert.Equal(t, 10, s.Accepted)
	assert.Empty(t, s.LastFailure)
	seconds := make([]int, len(waits))
	for i, wait := range waits {
		seconds[i] = int(wait.Round(time.Second).Seconds())
	}
	assert.Equal(t, []int{0, 1, 2, 4, 8, 16, 32, 60, 60, 3600, 60, 1}, seconds)
}

// failing stands in for an activity that sends nothing, since the service asks to wait for a day.
func failing(env *testsuite.TestWorkflowEnvironment) *testsuite.MockCallWrapper {
	return env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o order) (*report, error) {
			err := temporal.NewApplicationErrorWithOptions("wait", TypeSafeToRetry,
				temporal.ApplicationErrorOptions{NextRetryDelay: day})
			return nil, failed(err, report{Left: []span{o.Span}})
		})
}

// What waits is paused and canceled with the job, and goes on with it in its next run, not sooner than it was due.
func TestSubmitCards_whileWaiting(t *testing.T) {
	t.Parallel()
	job := Job{Source: "deck", BatchesPerActivity: 1, Concurrency: 2}
	t.Run("paused", func(t *testing.T) {
		t.Parallel()
		env := newWorkflows(&Activities{Cards: deck{n: 200}})
		began := env.Now()
		failing(env).Twice()
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
			func(_ context.Context, o order) (*report, error) {
				assert.Equal(t, 48*time.Hour, env.Now().Sub(began).Round(time.Hour))
				return accept(o.Span), nil
			})
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalControl, Pause) }, time.Hour)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalControl, Resume) }, 48*time.Hour)
		env.ExecuteWorkflow(SubmitCards, job)
		assert.Equal(t, 2, summary(t, env).Accepted)
	})
	t.Run("in one place", func(t *testing.T) {
		t.Parallel()
		env := newWorkflows(&Activities{Cards: deck{n: 1200}})
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(nil, failed(
			temporal.NewApplicationErrorWithOptions("wait", TypeSafeToRetry,
				temporal.ApplicationErrorOptions{NextRetryDelay: day}),
			report{Outcomes: []Outcome{{Batch: 1}}, Left: []span{{To: 1}, {From: 2, To: 3}}})).Once()
		accepting(env)
		env.RegisterDelayedCallback(func() { assert.Equal(t, 9, progressOf(t, env).Accepted) }, time.Hour)
		job := job
		job.BatchesPerActivity = 3
		env.ExecuteWorkflow(SubmitCards, job)
		assert.Equal(t, 11, summary(t, env).Accepted)
	})
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		env := newWorkflows(&Activities{Cards: deck{n: 300}})
		began := env.Now()
		failing(env)
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
		env.ExecuteWorkflow(SubmitCards, job)
		canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
		require.True(t, ok)
		var s Summary
		require.NoError(t, canceled.Details(&s))
		assert.ElementsMatch(t, []Range{{To: 1}, {From: 1, To: 2}, {From: 2, To: 3}}, s.Left)
		assert.Equal(t, time.Hour, env.Now().Sub(began).Round(time.Minute))
	})
	t.Run("continued", func(t *testing.T) {
		t.Parallel()
		env := newWorkflows(&Activities{Cards: deck{n: 300}})
		began := env.Now()
		failing(env)
		env.RegisterDelayedCallback(func() {
			env.SetContinueAsNewSuggested(true)
			env.SignalWorkflow(SignalControl, "none") // for a task of the workflow
		}, time.Hour)
		env.ExecuteWorkflow(SubmitCards, job)
		var next *workflow.ContinueAsNewError
		require.ErrorAs(t, env.GetWorkflowError(), &next)
		assert.Equal(t, time.Hour, env.Now().Sub(began).Round(time.Minute))
		again := decodeJob(t, next)
		require.Len(t, again.State.Redo, 2)
		for _, s := range again.State.Redo {
			assert.Equal(t, 1, s.Tries)
			assert.Equal(t, day, s.Due.Sub(began).Round(time.Minute))
		}
		env = newWorkflows(&Activities{Cards: deck{n: 300}})
		env.SetStartTime(began.Add(time.Hour))
		env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
			func(_ context.Context, o order) (*report, error) {
				assert.Equal(t, day, env.Now().Sub(began).Round(time.Minute))
				return accept(o.Span), nil
			})
		env.ExecuteWorkflow(SubmitCards, again)
		assert.Equal(t, 3, summary(t, env).Accepted)
	})
	t.Run("continued after some", func(t *testing.T) {
		t.Parallel()
		env := newWorkflows(&Activities{Cards: deck{n: 300}})
		failing(env).Twice()
		accepting(env)
		job := job
		job.ActivitiesPerRun = 3
		env.ExecuteWorkflow(SubmitCards, job)
		var next *workflow.ContinueAsNewError
		require.ErrorAs(t, env.GetWorkflowError(), &next)
		again := decodeJob(t, next)
		assert.Equal(t, 1, again.State.Summary.Accepted, "each that was tried counts, and none that waits")
		assert.Len(t, again.State.Redo, 1)
	})
}

// A job does not pause before the journal has what it has decided.
func TestSubmitCards_journalFailsAtPause(t *testing.T) {
	t.Parallel()
	srv, b := newServer(t), newBook()
	b.fail = func(n int) bool { return n <= 4 }
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit})
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: deck{n: 100, checksum: "sum"}, Journal: b})
	env.RegisterDelayedCallback(func() { assert.Empty(t, progressOf(t, env).Paused) }, time.Second)
	env.RegisterDelayedCallback(func() {
		assert.Equal(t, payvault.BatchUnknown, b.rows["deck@sum 0"].Status)
	}, time.Hour)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", MaxUnknown: 1})
	assert.Equal(t, 1, summary(t, env).Unknown)
	assert.Equal(t, 1, srv.Commits(op))
	assert.Equal(t, 5, b.ends)
}

// What panics is tried again.
func TestSubmitCards_sourcePanics(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: &panics{deck: deck{n: 1000}}})
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck"})
	assert.Equal(t, 10, summary(t, env).Accepted)
	assert.Equal(t, 10, srv.Commits(op))
}

// panics does so once.
type panics struct {
	deck

	once sync.Once
}

func (d *panics) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	d.once.Do(func() { panic("out of range") })
	return d.deck.Cards(ctx, ref, start, end)
}

package temporalpayvault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestSubmitCards checks that every batch is performed at most once and reported, even if two answers are lost, the
// service asks for a wait of ten hours, and one batch is refused.
func TestSubmitCards(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 12_345}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit, Times: 2})
	const tenHours = "36000"
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit, RetryAfter: tenHours, Times: 3})
	refusal := payvaulttest.Fault{Operation: op, Kind: payvaulttest.OtherCode, Code: 7, Message: "declined", Times: 1}
	inject(t, srv, refusal)
	env := newWorkflows(newActivities(srv, d))
	began := env.Now()
	job := d.job()
	job.BatchesPerActivity, job.Concurrency, job.InFlight = 20, 3, 2
	env.ExecuteWorkflow(SubmitCards, job)
	s := result[Summary](t, env)
	assert.Equal(t, []int{12_345, 124, 121, 1, 2}, []int{s.Cards, s.Batches, s.Accepted, s.Refused, s.Unknown})
	assert.Len(t, s.UnknownBatches, 2)
	require.Len(t, s.RefusedBatches, 1)
	assert.Contains(t, s.RefusedBatches[0].Reason, "code 7: declined")
	assert.Empty(t, audit(performed(t, srv), s.statuses()))
	assert.GreaterOrEqual(t, env.Now().Sub(began), 10*time.Hour)
}

// TestSubmitCards_again checks that a second job with the same cards sends nothing, and that a job with another name
// sends the cards again.
func TestSubmitCards_again(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 3000}
	a := newActivities(srv, d)
	for _, run := range []struct {
		name             string
		known, performed int
	}{{"", 0, 30}, {"", 30, 30}, {"once more", 0, 60}} {
		env, job := newWorkflows(a), d.job()
		job.Name = run.name
		env.ExecuteWorkflow(SubmitCards, job)
		want := Summary{Cards: 3000, Batches: 30, Accepted: 30, FromJournal: run.known}
		assert.Equal(t, want, result[Summary](t, env))
		assert.Equal(t, run.performed, srv.Commits(op))
	}
}

// TestSubmitCards_noCards checks that a job without cards ends at once.
func TestSubmitCards_noCards(t *testing.T) {
	t.Parallel()
	env := newWorkflows(newActivities(newServer(t), deck{}))
	env.ExecuteWorkflow(SubmitCards, deck{}.job())
	assert.Equal(t, Summary{}, result[Summary](t, env))
}

// TestSubmitCards_noChecksum checks that a job without a checksum fails.
func TestSubmitCards_noChecksum(t *testing.T) {
	t.Parallel()
	env := newWorkflows(newActivities(newServer(t), deck{n: 5}))
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", Snapshot: Snapshot{Cards: 5}})
	assert.ErrorContains(t, env.GetWorkflowError(), "checksum")
}

// TestSubmitCards_badInput checks that a job fails at once if a field of its input has the wrong type.
func TestSubmitCards_badInput(t *testing.T) {
	t.Parallel()
	env := newWorkflows(newActivities(newServer(t), deck{n: 5}))
	env.ExecuteWorkflow(workflowSubmit, map[string]any{"Source": 5})
	_, failed := errors.AsType[*temporal.ApplicationError](env.GetWorkflowError())
	assert.True(t, failed)
	assert.ErrorContains(t, env.GetWorkflowError(), "cannot be read")
}

// TestRegister_noJournal checks that Register panics if there is a CardSource and no Journal.
func TestRegister_noJournal(t *testing.T) {
	t.Parallel()
	assert.PanicsWithValue(t, "temporalpayvault: Cards need a Journal, because nothing else knows which of them were sent",
		func() { newWorkflows(&Activities{Cards: deck{}}) })
}

// accepting replaces the activity that submits batches by a mock that reports every batch as accepted.
func accepting(env *testsuite.TestWorkflowEnvironment) *testsuite.MockCallWrapper {
	return env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o order) (*report, error) {
			return &report{Done: o.To, Accepted: o.To - o.From}, nil
		})
}

// TestSubmitCards_continueAsNew checks that a job continues as new after three activities, and that the next run keeps
// the results so far, the name of the job and the ID of the journal.
func TestSubmitCards_continueAsNew(t *testing.T) {
	t.Parallel()
	job := deck{n: 2500}.job()
	job.BatchesPerActivity, job.Concurrency, job.ActivitiesPerRun, job.Name = 4, 2, 3, "n"
	in := jobInput{Job: job}
	for runs := 1; ; runs++ {
		env := newWorkflows(newActivities(newServer(t), deck{n: 2500}))
		accepting(env)
		env.ExecuteWorkflow(workflowSubmit, in)
		var next *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &next) {
			assert.Equal(t, 25, result[Summary](t, env).Accepted)
			assert.Equal(t, 3, runs)
			return
		}
		in = jobInput{}
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
		assert.Equal(t, 12*runs, in.State.Summary.Accepted)
		assert.Equal(t, []string{"n", "book"}, []string{in.Name, in.State.Journal})
	}
}

// TestSubmitCards_pausedAcrossRuns checks that a job continues as new when Temporal suggests it, even during a pause.
// The job must still be paused in the next run.
func TestSubmitCards_pausedAcrossRuns(t *testing.T) {
	t.Parallel()
	d := deck{n: 3000}
	env := newWorkflows(newActivities(newServer(t), d))
	accepting(env).After(time.Minute)
	env.RegisterDelayedCallback(func() {
		update(env, UpdatePause, func(err error) { assert.NoError(t, err) })
	}, time.Second)
	env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, time.Hour)
	env.ExecuteWorkflow(SubmitCards, d.job())
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	var in jobInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	env = newWorkflows(newActivities(newServer(t), d))
	accepting(env)
	stopped := paused(t, env, time.Hour, func() {})
	env.ExecuteWorkflow(workflowSubmit, in)
	assert.Equal(t, reasonOperator, stopped.Paused)
	assert.Equal(t, 30, result[Summary](t, env).Accepted)
}

// paused registers a callback that runs after the given time. The callback stores the progress of the workflow in the
// returned Summary, calls the function mend, and resumes the workflow.
func paused(t *testing.T, env *testsuite.TestWorkflowEnvironment, after time.Duration, mend func()) *Summary {
	t.Helper()
	s := &Summary{}
	env.RegisterDelayedCallback(func() {
		*s = query[Summary](t, env)
		mend()
		resume(t, env)
	}, after)
	return s
}

// TestSubmitCards_pauseAndResume checks that no batch is accepted during a pause, and that the remaining batches are
// accepted after the pause. The pause is logged and written to the memo of the job, and a resume removes it from the
// memo.
func TestSubmitCards_pauseAndResume(t *testing.T) {
	t.Parallel()
	d := deck{n: 10_000}
	var logged bytes.Buffer
	logger := log.NewStructuredLogger(slog.New(slog.NewTextHandler(&logged, nil)))
	env := loggedWorkflows(newActivities(newServer(t), d), logger)
	accepting(env).After(time.Minute)
	var marks []any
	env.OnUpsertMemo(mock.Anything).Return(nil).Run(func(args mock.Arguments) {
		memo, _ := args.Get(0).(map[string]any)
		marks = append(marks, memo[MemoPaused])
	})
	env.RegisterDelayedCallback(func() {
		update(env, UpdatePause, func(err error) { assert.NoError(t, err) })
	}, 90*time.Second)
	stopped := paused(t, env, 5*time.Hour, func() {})
	began := env.Now()
	job := d.job()
	job.BatchesPerActivity, job.Concurrency = 10, 2 // 20 batches are accepted per minute
	env.ExecuteWorkflow(SubmitCards, job)
	assert.Equal(t, []any{reasonOperator, 20}, []any{stopped.Paused, stopped.Accepted})
	s := result[Summary](t, env)
	assert.Equal(t, []any{"", 100}, []any{s.Paused, s.Accepted})
	// the pause of five hours ended the second round of activities, and four minutes are left for 80 batches
	assert.Equal(t, 5*time.Hour+4*time.Minute, env.Now().Sub(began).Round(time.Second))
	assert.Equal(t, []any{reasonOperator, nil}, marks)
	assert.Contains(t, logged.String(), `level=WARN msg="payvault: the job has paused"`)
}

// TestDealer_waits checks that a job that is resumed waits for the activities at work. The test environment does
// not show that a canceled activity finishes its requests in flight, so the test reads the option WaitForCancellation.
func TestDealer_waits(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{})
	resumed := func(ctx workflow.Context) ([]any, error) {
		d := &dealer{dealt: &dealt{Paused: "why"}, resumed: func() {}, working: 1}
		if err := d.begin(ctx, 0, func() (int, error) { return 0, nil }); err != nil {
			return nil, err
		}
		workflow.Go(ctx, func(ctx workflow.Context) {
			_ = workflow.Sleep(ctx, time.Hour)
			d.working--
		})
		err := d.resume(ctx)
		return []any{d.working, d.Paused, workflow.GetActivityOptions(d.acts).WaitForCancellation}, err
	}
	env.RegisterWorkflowWithOptions(resumed, workflow.RegisterOptions{Name: "resumed"})
	env.ExecuteWorkflow("resumed")
	assert.Equal(t, []any{0.0, "", true}, result[[]any](t, env))
}

// asIs is a converter that passes raw values unchanged.
type asIs struct{ converter.DataConverter }

func (c asIs) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	if len(values) == 1 {
		if raw, ok := values[0].(converter.RawValue); ok {
			return &commonpb.Payloads{Payloads: []*commonpb.Payload{raw.Payload()}}, nil
		}
	}
	return c.DataConverter.ToPayloads(values...)
}

// TestSubmitCards_refusedUpdates checks that an update is refused and changes nothing if its name is unknown, if its
// argument cannot be decrypted, or if it is a resume without a pause.
func TestSubmitCards_refusedUpdates(t *testing.T) {
	t.Parallel()
	d := deck{n: 3000}
	env := newWorkflows(newActivities(newServer(t), d))
	keyed, _ := NewConverters(newCodec(t, "a", "a"))
	env.SetDataConverter(asIs{keyed})
	other, _ := NewConverters(newCodec(t, "b", "b"))
	unreadable, err := other.ToPayload("because")
	require.NoError(t, err)
	accepting(env).After(time.Minute)
	refused := map[string]string{}
	send := func(name string, args ...any) {
		update(env, name, func(err error) {
			if assert.Error(t, err, name) {
				refused[name] = err.Error()
			}
		}, args...)
	}
	env.RegisterDelayedCallback(func() {
		send("pasue")      // misspelled
		send(UpdateResume) // without a pause
		send(UpdatePause, converter.NewRawValue(unreadable))
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		assert.Empty(t, query[Summary](t, env).Paused, "a refused update changes nothing")
		update(env, UpdatePause, func(err error) { assert.NoError(t, err) })
		send("unknown during a pause")
	}, 10*time.Second)
	stopped := paused(t, env, time.Hour, func() {}) // resumes the job after an hour
	env.ExecuteWorkflow(SubmitCards, d.job())
	assert.Equal(t, 30, result[Summary](t, env).Accepted)
	assert.Equal(t, reasonOperator, stopped.Paused)
	assert.Contains(t, refused["pasue"], "KnownUpdates")
	assert.Contains(t, refused[UpdateResume], "it is not paused")
	assert.Contains(t, refused[UpdatePause], `no key "b"`)
}

// TestSubmitCards_brake checks that the job pauses after 20 batches if every batch is refused or every answer is lost,
// and that it sends the other batches after the pause.
func TestSubmitCards_brake(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]payvaulttest.Fault{
		"refused": {Operation: op, Kind: payvaulttest.OtherCode, Code: 7, Message: "no"},
		"lost":    {Operation: op, Kind: payvaulttest.DropAfterCommit},
	} {
		for _, cut := range []Job{
			{},
			{BatchesPerActivity: 1, Concurrency: 3, InFlight: 1},
			{BatchesPerActivity: 7, Concurrency: 20, InFlight: 1},
			{BatchesPerActivity: 1000, Concurrency: 1, InFlight: 20},
			{Concurrency: 20, InFlight: 20, MaxBad: 20},
		} {
			name := fmt.Sprintf("%s, %d, %d, %d", name, cut.BatchesPerActivity, cut.Concurrency, cut.InFlight)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				srv, d := newServer(t), deck{n: 20_000}
				a := newActivities(srv, d)
				a.Client = once(srv)
				mend := inject(t, srv, fault)
				env := newWorkflows(a)
				stopped := paused(t, env, 24*time.Hour, mend)
				job := cut
				job.Source, job.Snapshot = "deck", d.snapshot()
				env.ExecuteWorkflow(SubmitCards, job)
				s := result[Summary](t, env)
				assert.Equal(t, reasonBad, stopped.Paused)
				assert.Equal(t, 20, stopped.Refused+stopped.Unknown, "they are counted")
				assert.Equal(t, 180, s.Accepted)
				assert.Equal(t, 20, s.Refused+s.Unknown)
				assert.Empty(t, audit(performed(t, srv), s.statuses()))
			})
		}
	}
}

// refused returns a client. The service refuses one request for each request number, from 1 on, for which isRefused
// returns true.
func refused(t *testing.T, srv *payvaulttest.Server, isRefused func(request int64) bool) *payvault.Client {
	t.Helper()
	var sent atomic.Int64
	return through(srv, func(r *http.Request) (*http.Response, error) {
		if isRefused(sent.Add(1)) {
			inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.OtherCode, Code: 7, Times: 1})
		}
		return http.DefaultTransport.RoundTrip(r)
	})
}

// TestSubmitCards_regained checks that ten accepted batches offset only one refused batch. The first activity leaves
// one of its two refused batches without an offset. The second activity offsets only its own refused batch. So the job
// pauses after the two refused batches of the third activity. The fourth activity is like the first. The fifth has no
// refused batch and offsets that of the fourth. So the two refused batches of the sixth do not pause the job.
func TestSubmitCards_regained(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 7200}
	a := newActivities(srv, d)
	bad := []int64{1, 2, 13, 25, 26, 37, 38, 61, 62} // each activity sends twelve requests
	a.Client = refused(t, srv, func(request int64) bool { return slices.Contains(bad, request) })
	env := newWorkflows(a)
	stopped := paused(t, env, 24*time.Hour, func() {})
	job := d.job()
	job.BatchesPerActivity, job.Concurrency, job.InFlight, job.MaxBad = 12, 1, 1, 3
	env.ExecuteWorkflow(SubmitCards, job)
	s := result[Summary](t, env)
	assert.Equal(t, []any{reasonBad, 5}, []any{stopped.Paused, stopped.Refused})
	assert.Equal(t, []int{63, 9}, []int{s.Accepted, s.Refused})
}

// TestSubmitCards_scatteredRefusals checks that the job does not pause if the service refuses one batch in every 15.
func TestSubmitCards_scatteredRefusals(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 60_000}
	a := newActivities(srv, d)
	a.Client = refused(t, srv, func(request int64) bool { return request%15 == 0 })
	env := newWorkflows(a)
	env.ExecuteWorkflow(SubmitCards, d.job())
	s := result[Summary](t, env)
	assert.Equal(t, []int{560, 40}, []int{s.Accepted, s.Refused})
}

// TestSubmitCards_noDecision checks that the job pauses if the service refuses the key, or if an answer 400, 403 or 404
// has no code of the service. After the pause, the job must send the batches again, except those with a 403 without a
// code: they are of unknown outcome.
func TestSubmitCards_noDecision(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  payvaulttest.Fault
		reason string
	}{
		"key":       {payvaulttest.Fault{Status: http.StatusUnauthorized}, "key: unauthorized"},
		"forbidden": {payvaulttest.Fault{Status: http.StatusForbidden, Body: `{"code":403}`}, "key: forbidden"},
		"firewall":  {payvaulttest.Fault{Status: http.StatusForbidden}, "no code: a request was refused with status 403"},
		"firewall, few permits": {
			payvaulttest.Fault{Status: http.StatusForbidden}, "no code: a request was refused with status 403",
		},
		"wrong path": {
			payvaulttest.Fault{
				Status: http.StatusNotFound, Body: "<h1>Not Found</h1>", Header: http.Header{"Content-Type": {"text/html"}},
			},
			"status 404 and no code",
		},
		"no body": {payvaulttest.Fault{Status: http.StatusBadRequest, Body: " "}, "status 400 and no code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 5000}
			test.fault.Operation, test.fault.Kind = op, payvaulttest.Respond
			mend := inject(t, srv, test.fault)
			env := newWorkflows(newActivities(srv, d))
			stopped := paused(t, env, 24*time.Hour, mend)
			job := d.job()
			if name == "firewall, few permits" {
				job.Concurrency, job.InFlight, job.MaxBad = 1, 4, 3
			}
			env.ExecuteWorkflow(SubmitCards, job)
			s := result[Summary](t, env)
			assert.Contains(t, stopped.Paused, test.reason)
			assert.Zero(t, stopped.Refused)
			assert.Equal(t, 50, s.Accepted+s.Unknown)
			assert.Equal(t, s.Accepted, srv.Commits(op))
			assert.Equal(t, test.fault.Status == http.StatusForbidden && test.fault.Body == "", s.Unknown > 0)
		})
	}
}

// identified is a journal whose method ID calls a function, and counts its calls.
type identified struct {
	*book

	calls atomic.Int64
	id    func(call int64) (string, error)
}

func (j *identified) ID(context.Context) (string, error) { return j.id(j.calls.Add(1)) }

// TestSubmitCards_otherJournal checks that a worker with another journal than the job sends nothing, that its error has
// the IDs of both journals, and that Temporal tries other workers.
func TestSubmitCards_otherJournal(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 1000}
	a := newActivities(srv, d)
	o := orderOf(d)
	o.JournalID = "another"
	_, err := submit(a, o)
	require.ErrorContains(t, err, `this worker has the journal "book", and the job has "another"`)
	assert.Zero(t, srv.Commits(op))

	journal := &identified{book: newBook(), id: func(call int64) (string, error) {
		if call > 1 && call < 5 {
			return "another", nil
		}
		return bookID, nil
	}}
	a.Journal = journal
	env := newWorkflows(a)
	env.ExecuteWorkflow(SubmitCards, d.job())
	assert.Equal(t, 10, result[Summary](t, env).Accepted)
	assert.EqualValues(t, 5, journal.calls.Load(), "for the ID of the job, in three wrong workers, and in the right one")
}

// TestSubmitCards_staleWorker checks that a job does not pause if some workers have another file, because Temporal
// tries other workers.
func TestSubmitCards_staleWorker(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 1000}
	var looks atomic.Int64
	env := newWorkflows(newActivities(srv, source{deck: d, snapshots: func(context.Context) (Snapshot, error) {
		if looks.Add(1) < maxStale {
			return deck{n: 1000, checksum: "of yesterday"}.snapshot(), nil
		}
		return d.snapshot(), nil
	}}))
	env.ExecuteWorkflow(SubmitCards, d.job())
	assert.Equal(t, 10, result[Summary](t, env).Accepted)
	assert.EqualValues(t, maxStale, looks.Load())
}

// TestSubmitCards_awayAtTheStart checks that a job pauses if the database is away for the first hour of the job. After
// each pause the job must ask for the journal again, and it must send nothing before it knows the journal.
func TestSubmitCards_awayAtTheStart(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 1000}
	var isBack atomic.Bool
	journal := &identified{book: newBook(), id: func(int64) (string, error) {
		if isBack.Load() {
			return bookID, nil
		}
		return "", errCut
	}}
	env := newWorkflows(&Activities{Client: srv.Client(), Cards: d, Journal: journal})
	first := paused(t, env, 2*time.Hour, func() {})
	second := paused(t, env, 4*time.Hour, func() {
		assert.Zero(t, srv.Commits(op))
		isBack.Store(true)
	})
	env.ExecuteWorkflow(SubmitCards, d.job())
	assert.Equal(t, 10, result[Summary](t, env).Accepted)
	assert.Contains(t, first.Paused, "cut")
	assert.Contains(t, second.Paused, "cut")
	assert.EqualValues(t, 2*maxAttempts+2, journal.calls.Load())
}

// TestSubmitCards_canceledAtTheStart checks that a job can be canceled before it knows its journal: while a worker asks
// for the journal, and during the pause after the database was away for an hour.
func TestSubmitCards_canceledAtTheStart(t *testing.T) {
	t.Parallel()
	for _, isPaused := range []bool{false, true} {
		d := deck{n: 1000}
		a := newActivities(newServer(t), d)
		a.Journal = &identified{book: newBook(), id: func(int64) (string, error) { return "", errCut }}
		env := newWorkflows(a)
		ended := make(chan struct{})
		if isPaused {
			env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Hour)
		} else {
			env.OnActivity(activityJournal, mock.Anything).Return(func(context.Context) (string, error) {
				env.CancelWorkflow()
				<-ended
				return bookID, nil
			})
		}
		env.ExecuteWorkflow(SubmitCards, d.job())
		close(ended)
		canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
		require.True(t, ok, "%v", env.GetWorkflowError())
		var s Summary
		require.NoError(t, canceled.Details(&s))
		assert.Equal(t, []Range{{0, 10}}, s.NotDone)
	}
}

// spoiled is a CardSource in which some cards have an invalid number. The function bad selects these cards by their
// position.
type spoiled struct {
	deck
	bad func(i int) bool
}

func (s spoiled) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	cards, err := s.deck.Cards(ctx, ref, start, end)
	for i := range cards {
		if s.bad(start + i) {
			cards[i].CardNumber = payvault.NewSecret("4111")
		}
	}
	return cards, err
}

// TestSubmitCards_invalidCards checks that an invalid card is reported by its position, and that the other cards of its
// batch are sent.
func TestSubmitCards_invalidCards(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 5000}
	env := newWorkflows(newActivities(srv, spoiled{d, func(i int) bool { return i == 0 || i == 2345 || i >= 4900 }}))
	job := d.job()
	job.BatchesPerActivity = 7
	env.ExecuteWorkflow(SubmitCards, job)
	s := result[Summary](t, env)
	assert.Equal(t, []int{49, 1, 102}, []int{s.Accepted, s.Refused, s.LeftOut})
	var at []int
	for _, card := range s.InvalidCards {
		assert.Contains(t, card.Reason, "card_number is not 12 to 19 digits")
		at = append(at, card.Card)
	}
	slices.Sort(at)
	assert.Equal(t, []int{0, 2345, 4900, 4901}, at[:4])
	require.Len(t, s.RefusedBatches, 1)
	assert.Equal(t, 49, s.RefusedBatches[0].Batch)
	assert.Contains(t, s.RefusedBatches[0].Reason, "no card that can be sent")
	sent := 0
	for _, r := range srv.AccountUpdaterRequests.All() {
		sent += len(r.Cards)
	}
	assert.Equal(t, 5000-102, sent)
}

// TestSubmitCards_wrongFile checks that the job pauses if no card of a file is valid. The default of MaxBad is
// Concurrency × InFlight here, because that is more than 20.
func TestSubmitCards_wrongFile(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 50_000}
	env := newWorkflows(newActivities(srv, spoiled{d, func(int) bool { return true }}))
	stopped := &Summary{}
	env.RegisterDelayedCallback(func() {
		*stopped = query[Summary](t, env)
		env.CancelWorkflow()
	}, time.Hour)
	job := d.job()
	job.Concurrency, job.InFlight = 5, 6
	env.ExecuteWorkflow(SubmitCards, job)
	assert.Equal(t, []any{reasonBad, 30, maxListed}, []any{stopped.Paused, stopped.Refused, len(stopped.InvalidCards)})
	assert.Zero(t, srv.Commits(op))
}

// TestSubmitCards_canceled checks that a canceled job reports the batches that are not done.
func TestSubmitCards_canceled(t *testing.T) {
	t.Parallel()
	d := deck{n: 10_000}
	env := newWorkflows(newActivities(newServer(t), d))
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o order) (*report, error) {
			if o.From == 20 {
				return &report{Done: 23, Accepted: 3, ending: ending{Stop: "why"}}, nil
			}
			return &report{Done: o.To, Accepted: o.To - o.From}, nil
		})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	job := d.job()
	job.BatchesPerActivity, job.Concurrency = 10, 1
	env.ExecuteWorkflow(SubmitCards, job)
	canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
	require.True(t, ok, "%v", env.GetWorkflowError())
	var s Summary
	require.NoError(t, canceled.Details(&s))
	assert.Equal(t, []any{23, "why", []Range{{23, 30}, {30, 100}}}, []any{s.Accepted, s.Paused, s.NotDone})
}

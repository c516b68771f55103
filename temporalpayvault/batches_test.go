package temporalpayvault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// death kills a worker at one of its steps. A step is a request to the service or a call of the journal. The step at
// which the worker dies may or may not arrive at its destination. Later steps do not arrive.
type death struct {
	left   atomic.Int64 // number of steps until the death
	halves *rand.Rand
}

// step counts a step. It reports whether the worker survives the step, and whether the step arrives.
func (d *death) step() (lives, arrives bool) {
	switch n := d.left.Add(-1); {
	case n > 0:
		return true, true
	case n == 0:
		return false, d.halves.IntN(2) == 0
	}
	return false, false
}

// worker returns the activities of a worker that d kills.
func (d *death) worker(srv *payvaulttest.Server, cards CardSource, journal Journal) *Activities {
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		lives, arrives := d.step()
		if !arrives {
			return nil, errCut
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && !lives {
			_ = res.Body.Close()
			return nil, errCut
		}
		return res, err
	})
	client := srv.Client(payvault.WithHTTPClient(&http.Client{Transport: transport}),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
	return &Activities{Client: client, Cards: cards, Journal: &dyingJournal{journal, d}}
}

// dyingJournal is the journal of a worker that is killed.
type dyingJournal struct {
	Journal
	*death
}

func (j *dyingJournal) Begin(ctx context.Context, job string, batch int) (s payvault.BatchState, err error) {
	lives, arrives := j.step()
	if arrives {
		s, err = j.Journal.Begin(ctx, job, batch)
	}
	if !lives {
		err = errCut
	}
	return s, err
}

// End returns no error if the worker dies before the call arrives: after an error, the worker would call End again
// until the end of the test.
func (j *dyingJournal) End(ctx context.Context, job string, batch int, o payvault.BatchOutcome) error {
	if _, arrives := j.step(); arrives {
		return j.Journal.End(ctx, job, batch, o)
	}
	return nil
}

// someFaults makes two to five requests fail, each before or after the service has performed the request.
func someFaults(t *testing.T, srv *payvaulttest.Server, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a seed that can be replayed
	kinds := []payvaulttest.Fault{
		{Kind: payvaulttest.DropAfterCommit},
		{Kind: payvaulttest.DropBeforeCommit},
		{Kind: payvaulttest.RateLimit, RetryAfter: "0"},
		{Kind: payvaulttest.Respond, Status: 503},
		{Kind: payvaulttest.Respond, Status: 503, AfterCommit: true},
	}
	for range 2 + random.IntN(4) {
		fault := kinds[random.IntN(len(kinds))]
		fault.Operation, fault.Times = op, 1
		inject(t, srv, fault)
	}
}

// attempts calls the function attempt until it returns nil and its worker was not killed. In each of the first six
// calls, the worker is killed at one of its first 60 steps, if the call takes so many.
func attempts(seed uint64, attempt func(d *death) error) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a seed that can be replayed
	for n := 0; ; n++ {
		d := &death{halves: random}
		d.left.Store(1 << 40)
		if n < 6 {
			d.left.Store(1 + random.Int64N(60))
		}
		err := attempt(d)
		if d.left.Load() > 0 && err == nil {
			return
		}
	}
}

// TestSubmit_killedAtAnyStep checks that no batch is performed twice if workers are killed at random steps, and that
// the summary counts as many accepted and unknown batches as the journal.
func TestSubmit_killedAtAnyStep(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			srv, d, journal := newServer(t), deck{n: 2950}, newBook()
			someFaults(t, srv, seed)
			o := orderOf(d)
			sum := Summary{Batches: 30}
			attempts(seed, func(killed *death) error {
				r, err := submit(killed.worker(srv, d, journal), o)
				if err != nil || killed.left.Load() <= 0 {
					return errCut // the result of the attempt did not arrive
				}
				sum.add(r)
				if o.From = r.Done; o.From < o.To {
					return errCut
				}
				return nil
			})
			assert.Empty(t, audit(performed(t, srv), sum.statuses()))
			assert.Equal(t, 30, sum.Accepted+sum.Refused+sum.Unknown)
			counts := journal.count()
			assert.Equal(t, sum.Accepted, counts[payvault.BatchAccepted])
			assert.Equal(t, sum.Unknown, counts[payvault.BatchUnknown]+counts[""])
		})
	}
}

// source is a CardSource whose methods call functions that a test can set.
type source struct {
	deck
	snapshots func(context.Context) (Snapshot, error)
	cards     func(context.Context) error
}

func (s source) Snapshot(ctx context.Context, _ string) (Snapshot, error) {
	if s.snapshots != nil {
		return s.snapshots(ctx)
	}
	return s.snapshot(), nil
}

func (s source) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	if s.cards != nil {
		if err := s.cards(ctx); err != nil {
			return nil, err
		}
	}
	return s.deck.Cards(ctx, ref, start, end)
}

// TestSubmit_sourceHangs checks that the job pauses if the source hangs, even if the source ignores the end of its
// context.
func TestSubmit_sourceHangs(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(context.Context) error{
		"ignores its context": func(context.Context) error {
			<-t.Context().Done()
			return nil
		},
		"honours its context": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		for call, s := range map[string]source{
			"cards":    {cards: hang},
			"snapshot": {snapshots: func(ctx context.Context) (Snapshot, error) { return Snapshot{}, hang(ctx) }},
		} {
			t.Run(name+", "+call, func(t *testing.T) {
				t.Parallel()
				s.deck = deck{n: 200}
				srv := newServer(t)
				o := orderOf(s.deck)
				o.Limit = 20 * time.Millisecond
				r, err := submit(newActivities(srv, s), o)
				require.NoError(t, err)
				assert.Equal(t, report{ending: ending{Stop: "the source of cards has not answered for 20ms"}}, r)
				assert.Zero(t, srv.Commits(op))
			})
		}
	}
}

// TestSubmit_sourceIsSlow checks that the worker sends heartbeats in time while the source reads. Otherwise the server
// would count the worker as lost.
func TestSubmit_sourceIsSlow(t *testing.T) {
	t.Parallel()
	job, heartbeats := deck{n: 200}.job(), make(chan struct{}, 1)
	job.HeartbeatTimeout = 4 * time.Second
	env := newWorkflows(newActivities(newServer(t), source{deck: deck{n: 200}, cards: func(context.Context) error {
		select {
		case <-heartbeats:
		case <-time.After(job.HeartbeatTimeout):
			assert.Fail(t, "no heartbeat")
		}
		return nil
	}}))
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
		select {
		case heartbeats <- struct{}{}:
		default:
		}
	})
	env.ExecuteWorkflow(SubmitCards, job)
	assert.Equal(t, 2, result[Summary](t, env).Accepted)
}

// TestSubmit_heartbeatTimeout checks that an activity has the HeartbeatTimeout of its job, but at least 1 s. If the job
// has none, the activity has 30 s.
func TestSubmit_heartbeatTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 2 * time.Minute: 2 * time.Minute, time.Millisecond: time.Second,
	} {
		job := deck{n: 100}.job()
		job.HeartbeatTimeout = timeout
		env := newWorkflows(newActivities(newServer(t), source{deck: deck{n: 100}, cards: func(ctx context.Context) error {
			assert.Equal(t, want, activity.GetInfo(ctx).HeartbeatTimeout)
			return nil
		}}))
		env.ExecuteWorkflow(SubmitCards, job)
		assert.Equal(t, 1, result[Summary](t, env).Accepted)
	}
}

// TestSubmit_sourceFails checks what the activity reports of an application error of its source: the message, the type
// and the settings for retries, but not the cause or the details. A long message is cut, and not within a letter. If
// Temporal may not retry, the job pauses.
func TestSubmit_sourceFails(t *testing.T) {
	t.Parallel()
	const secret = "4111111111111111"
	options := temporal.ApplicationErrorOptions{
		Cause: errors.New(secret), Details: []any{secret}, NextRetryDelay: time.Hour,
	}
	var failure error
	d := deck{n: 200}
	a := newActivities(newServer(t), source{deck: d, cards: func(context.Context) error { return failure }})
	failure = temporal.NewApplicationErrorWithOptions("a"+strings.Repeat("é", maxReason), "Disk", options)
	_, err := submit(a, orderOf(d))
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok, "%v", err)
	text := "a" + strings.Repeat("é", (maxReason-1)/2) + "…"
	assert.Equal(t, []any{text, "Disk", time.Hour}, []any{app.Message(), app.Type(), app.NextRetryDelay()})
	assert.NotContains(t, fmt.Sprintf("%+v", err), secret)

	options.NonRetryable = true
	failure = temporal.NewApplicationErrorWithOptions("line 7", "File", options)
	r, err := submit(a, orderOf(d))
	require.NoError(t, err)
	assert.Equal(t, report{ending: ending{Stop: "line 7"}}, r)
}

// TestSubmit_otherCards checks that nothing is sent if the checksum or the number of the cards differs from the
// snapshot of the job. Other workers must get a try before the job pauses.
func TestSubmit_otherCards(t *testing.T) {
	t.Parallel()
	announced := func(context.Context) (Snapshot, error) { return deck{n: 200}.snapshot(), nil }
	for name, cards := range map[string]CardSource{
		"checksum":             deck{n: 200, checksum: "another"},
		"number":               deck{n: 201},
		"fewer than announced": source{deck: deck{n: 150}, snapshots: announced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			_, err := submit(newActivities(srv, cards), orderOf(deck{n: 200}))
			require.ErrorContains(t, err, reasonChanged)
			assert.Zero(t, srv.Commits(op))

			env := newWorkflows(newActivities(srv, cards))
			stopped := &Summary{}
			env.RegisterDelayedCallback(func() {
				*stopped = query[Summary](t, env)
				env.CancelWorkflow()
			}, 10*time.Minute)
			env.ExecuteWorkflow(SubmitCards, deck{n: 200}.job())
			assert.Equal(t, reasonChanged, stopped.Paused)
			assert.Zero(t, srv.Commits(op))
		})
	}
}

// TestSubmit_otherJob checks that the job pauses if a batch has another number of cards in the journal. Then the
// journal has other cards under the name of the job.
func TestSubmit_otherJob(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	a := newActivities(srv, deck{n: 150})
	_, err := submit(a, orderOf(deck{n: 150}))
	require.NoError(t, err)
	a.Cards = deck{n: 250}
	again := orderOf(deck{n: 250})
	again.InFlight = 1 // batch 0 has been looked up before batch 1 stops the job
	r, err := submit(a, again)
	require.NoError(t, err)
	assert.Contains(t, r.Stop, "another number of cards")
	assert.Equal(t, []int{1, 1, 0}, []int{r.Done, r.Accepted, len(r.Refused)})
	assert.LessOrEqual(t, srv.Commits(op), 3, "the last batch may have begun at the same time")
}

// TestSubmit_ends checks an activity that is canceled, or whose worker stops: it completes its requests in flight and
// reports its progress.
func TestSubmit_ends(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"canceled", "stopped"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 10_000}
			a := newActivities(srv, d)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan struct{})
			var sent atomic.Int64
			a.Client = through(srv, func(r *http.Request) (*http.Response, error) {
				if sent.Add(1) == 10 && how == "canceled" {
					cancel()
				} else if sent.Load() == 10 {
					close(stopped)
				}
				return http.DefaultTransport.RoundTrip(r)
			})
			env := newAttempts(a)
			env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
			env.SetWorkerStopChannel(stopped)
			value, err := env.ExecuteActivity(activitySubmit, orderOf(d))
			require.NoError(t, err)
			var r report
			require.NoError(t, value.Get(&r))
			assert.Equal(t, []any{r.Done, "", 0}, []any{r.Accepted, r.Stop, len(r.Unknown)})
			assert.Less(t, r.Done, 100)
			book, _ := a.Journal.(*book)
			assert.Equal(t, srv.Commits(op), book.count()[payvault.BatchAccepted])
			assert.Zero(t, book.count()[""], "none is left of unknown outcome")
		})
	}
}

// TestSubmit_endsWhileItReads checks that an activity does not fail if its worker stops while the source reads cards.
func TestSubmit_endsWhileItReads(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	d := deck{n: 1000}
	env := newAttempts(newActivities(newServer(t), source{deck: d, cards: func(ctx context.Context) error {
		close(stopped)
		<-ctx.Done()
		return ctx.Err()
	}}))
	env.SetWorkerStopChannel(stopped)
	value, err := env.ExecuteActivity(activitySubmit, orderOf(d))
	require.NoError(t, err)
	var r report
	require.NoError(t, value.Get(&r))
	assert.Equal(t, report{}, r)
}

// TestSubmit_regained checks that Regained counts the lost permits that became free again, and that Lost does not count
// them. Each refused batch loses a permit, and ten accepted batches make a lost permit free again.
func TestSubmit_regained(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 3000}
	a := newActivities(srv, d)
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.OtherCode, Code: 7, Times: 2})
	o := orderOf(d)
	o.InFlight = 1
	r, err := submit(a, o)
	require.NoError(t, err)
	assert.Equal(t, []int{28, 2, 0, 2}, []int{r.Accepted, len(r.Refused), r.Lost, r.Regained})
}

// lateJournal fails to begin the first batch, after another batch has ended.
type lateJournal struct {
	*book

	ended chan struct{}
}

func (j lateJournal) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	if batch == 0 {
		<-j.ended
		return payvault.BatchState{}, errCut
	}
	return j.book.Begin(ctx, job, batch)
}

func (j lateJournal) End(ctx context.Context, job string, batch int, o payvault.BatchOutcome) error {
	defer close(j.ended)
	return j.book.End(ctx, job, batch, o)
}

// TestSubmit_lostWithoutProgress checks that an attempt reports the lost permits of its refused batches even if the
// first batch still has to be sent. The next attempt finds the refused batches in the journal, and loses no permits for
// them.
func TestSubmit_lostWithoutProgress(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 200}
	a := newActivities(srv, d)
	a.Journal = lateJournal{newBook(), make(chan struct{})}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.OtherCode, Code: 7})
	r, err := submit(a, orderOf(d))
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1}, []int{r.Done, r.Lost})
}

// TestSubmit_triedAgain checks an attempt that ends because the service asks for a wait. After progress, the attempt
// returns its report. Otherwise it returns an error with the wait.
func TestSubmit_triedAgain(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 1000}
	a := newActivities(srv, d)
	wait := payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit, RetryAfter: "36000", Skip: 4}
	inject(t, srv, wait)
	o := orderOf(d)
	o.InFlight = 1
	r, err := submit(a, o)
	require.NoError(t, err)
	assert.Equal(t, []any{4, 4, ""}, []any{r.Done, r.Accepted, r.Stop})
	o.From = r.Done
	_, err = submit(a, o)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	assert.Equal(t, []any{10 * time.Hour, TypeSafeToRetry}, []any{app.NextRetryDelay(), app.Type()})
}

// TestSubmit_journalFails checks that an attempt sends nothing if Begin fails.
func TestSubmit_journalFails(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 1000}
	a := newActivities(srv, d)
	a.Journal.(*book).fail = func(bool) error { return errCut } //nolint:forcetypeassert // newActivities made it
	_, err := submit(a, orderOf(d))
	require.ErrorContains(t, err, "cut")
	assert.Zero(t, srv.Commits(op))
}

// TestSubmit_databaseAway checks that an attempt records the outcomes of its batches when the database of the journal
// is back.
func TestSubmit_databaseAway(t *testing.T) {
	t.Parallel()
	srv, d, journal, calls := newServer(t), deck{n: 1000}, newBook(), 0
	journal.fail = func(bool) error {
		calls++
		if calls > 4 && calls < 12 { // calls of Begin and of End
			return errCut
		}
		return nil
	}
	a := &Activities{Client: srv.Client(), Cards: d, Journal: journal}
	o, sum := orderOf(d), Summary{}
	for o.From < o.To {
		r, err := submit(a, o)
		if err == nil {
			sum.add(r)
			o.From = r.Done
		}
	}
	assert.Equal(t, Summary{Accepted: 10, FromJournal: sum.FromJournal}, sum)
	for batch, o := range journal.rows {
		assert.NotEmpty(t, o.RequestID, "the request ID of batch %q", batch)
	}
}

// TestSubmit_notSentIsRecordedOnce checks that an attempt tries only once to record that a batch was not sent, and logs
// the failure. A second try could replace what another attempt has recorded: that the batch is begun again.
func TestSubmit_notSentIsRecordedOnce(t *testing.T) {
	t.Parallel()
	srv, d, journal, ends := newServer(t), deck{n: 100}, newBook(), 0
	journal.fail = func(end bool) error {
		if !end {
			return nil
		}
		if ends++; ends > 1 {
			return nil
		}
		return errCut
	}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit})
	var logged bytes.Buffer
	env := loggedAttempts(&Activities{Client: srv.Client(), Cards: d, Journal: journal},
		log.NewStructuredLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	_, err := env.ExecuteActivity(activitySubmit, orderOf(d))
	require.ErrorContains(t, err, "cut")
	assert.Equal(t, 1, ends)
	assert.Regexp(t, `is not recorded" .*batch=0 status="not sent"`, logged.String())
	assert.Zero(t, srv.Commits(op))
}

// TestSubmit_notRecorded checks that an outcome that cannot be recorded is logged with the batch, the status and the
// request ID: at the first failure, and again when the activity ends.
func TestSubmit_notRecorded(t *testing.T) {
	t.Parallel()
	srv, d, journal := newServer(t), deck{n: 100}, newBook()
	ctx, cancel := context.WithCancel(t.Context())
	journal.fail = func(end bool) error {
		if end {
			cancel()
			return errCut
		}
		return nil
	}
	var logged bytes.Buffer
	env := loggedAttempts(&Activities{Client: srv.Client(), Cards: d, Journal: journal},
		log.NewStructuredLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	_, err := env.ExecuteActivity(activitySubmit, orderOf(d))
	require.NoError(t, err)
	id := srv.AccountUpdaterRequests.All()[0].RequestID
	for _, text := range []string{"is tried again", "is not recorded"} {
		assert.Regexp(t, text+`" .*batch=0 status=accepted requestID=`+id, logged.String())
	}
}

// rival is a journal in which another attempt at the same range has begun some batches. That attempt ends them late or
// never.
type rival struct {
	*book

	batches []int
	looks   int                  // number of calls of Begin for these batches until the rival ends them
	ends    payvault.BatchStatus // status by which the rival ends the batches; "" if it never ends them
}

func (r *rival) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	if slices.Contains(r.batches, batch) {
		r.mu.Lock()
		key := fmt.Sprint(job, " ", batch)
		if r.looks--; r.looks >= 0 {
			r.rows[key] = nil
		} else if r.ends != "" && r.rows[key] == nil {
			r.rows[key] = &payvault.BatchOutcome{Status: r.ends, Cards: batchSize}
		}
		r.mu.Unlock()
	}
	return r.book.Begin(ctx, job, batch)
}

// TestSubmitCards_rival checks that a job waits for batches that another attempt has begun, before it reports them as
// unknown. Those that stay unknown count for MaxBad, and the others do not. No batch may be performed twice. An invalid
// card after such a batch is reported by its position in the snapshot.
func TestSubmitCards_rival(t *testing.T) {
	t.Parallel()
	for ends, want := range map[payvault.BatchStatus]Summary{
		payvault.BatchAccepted: {Accepted: 20, FromJournal: 3},
		payvault.BatchNotSent:  {Accepted: 20},
		"":                     {Accepted: 17, Unknown: 3, FromJournal: 3, UnknownBatches: []int{2, 3, 11}},
	} {
		t.Run(fmt.Sprintf("ends as %q", ends), func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 4000}
			a := newActivities(srv, spoiled{d, func(i int) bool { return i == 1205 }})
			a.Journal = &rival{book: newBook(), batches: []int{2, 3, 11}, looks: 3, ends: ends}
			env, job := newWorkflows(a), d.job()
			job.HeartbeatTimeout, job.MaxBad, job.BatchesPerActivity, job.Concurrency = 3*time.Second, 3, 20, 1
			stopped := paused(t, env, time.Hour, func() {})
			env.ExecuteWorkflow(SubmitCards, job)
			s := result[Summary](t, env)
			assert.Equal(t, ends == "", stopped.Paused == reasonBad, "paused: %q", stopped.Paused)
			require.Len(t, s.InvalidCards, 1)
			assert.Equal(t, 1205, s.InvalidCards[0].Card)
			want.LeftOut, want.InvalidCards = 1, s.InvalidCards
			want.Cards, want.Batches, want.Accepted = 4000, 40, want.Accepted+20
			assert.Equal(t, want, s)
			for batch, times := range performed(t, srv) {
				assert.Equal(t, 1, times, "batch %d", batch)
			}
		})
	}
}

// TestSubmitCards_rivalAndNoCard checks that a batch without a valid card gives its permit back while an attempt waits
// for an earlier batch. Otherwise the attempt would wait for the only permit without end.
func TestSubmitCards_rivalAndNoCard(t *testing.T) {
	t.Parallel()
	d := deck{n: 200}
	a := newActivities(newServer(t), spoiled{d, func(i int) bool { return i >= 100 }})
	a.Journal = &rival{book: newBook(), batches: []int{0}, looks: 3}
	env, job := newWorkflows(a), d.job()
	job.HeartbeatTimeout, job.MaxBad = time.Second, 1
	paused(t, env, time.Hour, func() {})
	env.ExecuteWorkflow(SubmitCards, job)
	s := result[Summary](t, env)
	assert.Equal(t, []any{[]int{0}, 1}, []any{s.UnknownBatches, s.Refused})
}

// TestEnding checks what happens after the error of an attempt. Without progress, Temporal starts the activity again,
// and after 60 attempts the job pauses. After progress, the workflow waits if the error asks for a wait. An error of
// pauseFor always pauses the job.
func TestEnding(t *testing.T) {
	t.Parallel()
	options := temporal.ApplicationErrorOptions{NextRetryDelay: time.Hour}
	wait := temporal.NewApplicationErrorWithOptions("later", "", options)
	for name, test := range map[string]struct {
		err      error
		progress bool
		attempt  int32
		want     ending
		again    error
	}{
		"no progress":     {errCut, false, 1, ending{}, errCut},
		"60 attempts":     {errCut, false, maxAttempts, ending{Stop: "failed 60 times: cut"}, nil},
		"progress":        {errCut, true, maxAttempts, ending{}, nil},
		"progress, wait":  {wait, true, 1, ending{Wait: time.Hour}, nil},
		"pause":           {pauseFor("why"), false, 1, ending{Stop: "why"}, nil},
		"progress, pause": {pauseFor("why"), true, 1, ending{Stop: "why"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e ending
			assert.Equal(t, test.again, e.consider(test.err, test.progress, test.attempt))
			assert.Equal(t, test.want, e)
		})
	}
}

// TestSubmission_stream checks that stream waits for the interval at each batch, except at a batch that was sent
// before. The interval is 1 s, because two activities share two requests a second. So 11 batches take 10 s if one of
// them was sent before. With one request in 100 s the interval is 200 s.
func TestSubmission_stream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &cardJob{dealer: dealer{dealt: &dealt{}, total: 22, per: 11, concurrency: 4, working: 1}}
		j.RequestsPerSecond = 2
		s := &submission{order: j.order(span{To: 11}), permits: newPermits(11, nil)}
		s.journal = &rangeJournal{known: map[int]knowledge{4: sent}}
		cards, err := deck{n: 1050}.Cards(t.Context(), "", 0, 1050)
		require.NoError(t, err)
		began, n := time.Now(), 0
		for _, err := range s.stream(t.Context(), cards) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, []any{1050, 10 * time.Second}, []any{n, time.Since(began)})
		j.RequestsPerSecond = 0.01
		assert.Equal(t, 200*time.Second, j.order(span{To: 11}).Interval)
	})
}

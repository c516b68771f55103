package temporalpayvault

import (
	"context"
	"errors"
	"io"
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
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const op = payvault.OpAccountUpdaterSubmit

func once(srv *payvaulttest.Server) *payvault.Client {
	return srv.Client(payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1, IgnoreOverload: true}))
}

// What an attempt before had left to the journal is for the journal to say.
func TestSubmit_lostWithJournal(t *testing.T) {
	t.Parallel()
	srv, d, b := newServer(t), deck{n: 400}, newBook()
	for i := range 2 {
		_, err := b.Begin(t.Context(), "job", i)
		require.NoError(t, err)
	}
	known := payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100, RequestID: "r1"}
	require.NoError(t, b.End(t.Context(), "job", 1, known))
	a := &Activities{Client: srv.Client(), Cards: d, Journal: b}
	o := orderOf(d)
	o.Journal, o.Span.Lost = true, true
	done, err := newAttempt(a).submit(o)
	require.NoError(t, err)
	assert.Equal(t, map[int]payvault.BatchStatus{
		0: payvault.BatchUnknown, 1: payvault.BatchAccepted, 2: payvault.BatchAccepted, 3: payvault.BatchAccepted,
	}, done.statuses())
	assert.Equal(t, map[int]int{2: 1, 3: 1}, performed(t, srv))
	assert.False(t, slices.ContainsFunc(done.Outcomes, func(o Outcome) bool { return o.Earlier }), "all are of this job")
	assert.Len(t, b.rows, 4, "the end of an activity is not that of the cards")

	// The same job under another ID, or after a reset.
	again := orderOf(d)
	again.Journal = true
	again.Run = ""
	done, err = newAttempt(a).submit(again)
	require.NoError(t, err)
	assert.Len(t, done.statuses(), 4)
	assert.True(t, done.Outcomes[0].Earlier)
	assert.Equal(t, 2, srv.Commits(op))
}

// What the journal has of other cards is not taken over.
func TestSubmit_journalOfOtherCards(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]payvault.BatchOutcome{
		"other number": {Status: payvault.BatchAccepted, Cards: 50, RequestID: "r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, b, d := newServer(t), newBook(), deck{n: 100}
			require.NoError(t, b.End(t.Context(), "job", 0, known))
			o := orderOf(d)
			o.Journal = true
			done, err := newAttempt(&Activities{Client: srv.Client(), Cards: d, Journal: b}).submit(o)
			require.NoError(t, err)
			assert.Equal(t, report{Left: []span{o.Span}, Stop: stopOther}, done)
			assert.Empty(t, srv.Requests())
		})
	}
}

// What was turned away while the journal failed is for the journal to say: it may have that, or another workflow may
// have begun the batch since.
func TestSubmit_journalFailsAtUnsent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since  *payvault.BatchOutcome
		status payvault.BatchStatus
		times  int
	}{
		"begun, by either":  {nil, payvault.BatchUnknown, 0},
		"recorded":          {&payvault.BatchOutcome{Status: payvault.BatchNotSent, Cards: 100}, payvault.BatchAccepted, 1},
		"sent by the other": {&payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100}, payvault.BatchAccepted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, b, d := newServer(t), newBook(), deck{n: 50}
			b.fail = func(int) bool { return true }
			inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit, RetryAfter: "7200", Times: 1})
			o := orderOf(d)
			o.Journal = true
			o.Snapshot.Cards = 50
			done, err := newAttempt(&Activities{Client: once(srv), Cards: d, Journal: b}).submit(o)
			require.ErrorContains(t, err, TypeSafeToRetry)
			assert.Equal(t, report{Sending: []int{0}}, done)
			left := done.redo(o.Span, true)
			require.Equal(t, []span{{To: 1, Lost: true}}, left)

			if b.fail = nil; test.since != nil {
				test.since.Cards = 50
			}
			b.rows["job 0"], o.Span = test.since, left[0]
			done, err = newAttempt(&Activities{Client: srv.Client(), Cards: d, Journal: b}).submit(o)
			require.NoError(t, err)
			assert.Equal(t, map[int]payvault.BatchStatus{0: test.status}, done.statuses())
			assert.False(t, done.Outcomes[0].Earlier, "it counts towards MaxUnknown")
			assert.Equal(t, test.times, srv.Commits(op))
			if test.since == nil {
				assert.Nil(t, b.rows["job 0"], "it is not given free")
			}
		})
	}
}

// What the journal is told again is the whole outcome.
func TestEnter(t *testing.T) {
	t.Parallel()
	b, r := newBook(), report{
		Outcomes: []Outcome{
			{Batch: 0, Status: payvault.BatchAccepted, RequestID: "r"},
			{Batch: 1, Status: payvault.BatchAccepted},
			{Batch: 2, Status: payvault.BatchRefused, StatusCode: 422, Code: "7", Reason: "bad"},
		},
		Sending: []int{0, 2, 3},
	}
	o := orderOf(deck{n: 250})
	o.Owed = r.owed()
	_, err := newAttempt(&Activities{Journal: b}).ExecuteActivity(activityRecord, o)
	require.NoError(t, err)
	assert.Equal(t, map[string]*payvault.BatchOutcome{
		"job 0": {Status: payvault.BatchAccepted, Cards: 100, RequestID: "r"},
		"job 2": {Status: payvault.BatchRefused, Cards: 50, StatusCode: 422, Code: "7", Message: "bad"},
	}, b.rows)
	b.fail = func(int) bool { return true }
	for _, a := range []*Activities{{}, {Journal: b}} { // another worker may have one, or it may come back
		_, err = newAttempt(a).ExecuteActivity(activityRecord, o)
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok)
		assert.False(t, app.NonRetryable())
	}
}

// A journal that is added to a job does not know what was sent before.
func TestSubmit_journalAdded(t *testing.T) {
	t.Parallel()
	srv, d, b := newServer(t), deck{n: 300}, newBook()
	a := &Activities{Client: srv.Client(), Cards: d, Journal: b}
	o := orderOf(d)
	o.Journal = false
	done, err := newAttempt(a).submit(o)
	require.NoError(t, err)
	assert.Len(t, done.Outcomes, 3)
	assert.Empty(t, b.rows)

	o.Run = "the run before the reset"
	_, err = newAttempt(a).submit(o)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	assert.Equal(t, TypeReset, app.Type())
	assert.Equal(t, 3, srv.Commits(op))
}

// An attempt that the server starts a second time says what the one before had come to, and sends nothing.
func TestSubmit_startedAgain(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 300}
	r := newAttempt(&Activities{Client: srv.Client(), Cards: d})
	last := report{Outcomes: []Outcome{{Batch: 1, Status: payvault.BatchAccepted, RequestID: "r"}}, Sending: []int{2}}
	r.SetHeartbeatDetails(last)
	done, err := r.submit(orderOf(d))
	_, lost := errors.AsType[*temporal.TimeoutError](err)
	assert.True(t, lost, err)
	assert.Equal(t, last, done)
	assert.Empty(t, srv.Requests())

	r.SetHeartbeatDetails("none of this package")
	_, err = r.submit(orderOf(d))
	_, lost = errors.AsType[*temporal.TimeoutError](err)
	assert.False(t, lost, "nothing is guessed")
	assert.Empty(t, srv.Requests())
}

// Without its journal a job sends nothing.
func TestSubmit_journalTaken(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 300}
	o := orderOf(d)
	o.Journal = true
	o.Span = span{From: 1, To: 3, Lost: true}
	done, err := newAttempt(&Activities{Client: srv.Client(), Cards: d}).submit(o)
	require.NoError(t, err)
	assert.Equal(t, report{Left: []span{o.Span}, Stop: stopJournal}, done)
	assert.Empty(t, srv.Requests())
}

func TestSubmit_resetWithoutJournal(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*order){
		"reset": func(o *order) { o.Run = "the run before" }, "retried": func(o *order) { o.Run = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 100}
			o := orderOf(d)
			change(&o)
			_, err := newAttempt(&Activities{Client: srv.Client(), Cards: d}).submit(o)
			app, ok := errors.AsType[*temporal.ApplicationError](err)
			require.True(t, ok)
			assert.Equal(t, TypeReset, app.Type())
			assert.True(t, app.NonRetryable())
			assert.Empty(t, srv.Requests())
		})
	}
}

// A batch whose announcement has failed is not sent, and nobody takes it for unknown. One that the journal has failed
// to begin stays announced, since it may have it.
func TestSubmit_announcementFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*Activities, *heartbeats){
		"heartbeat": func(_ *Activities, h *heartbeats) {
			h.refuse = func(report) error {
				h.refuse = nil
				return errCut
			}
		},
		"journal": func(a *Activities, _ *heartbeats) { a.Journal = brokenBook{} },
		"heartbeat was not recorded": func(a *Activities, h *heartbeats) {
			a.Journal = newBook()
			h.refuse = func(report) error { return errCut }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 1000}
			a := &Activities{Client: srv.Client(), Cards: d}
			h := &heartbeats{}
			fail(a, h)
			r := newAttempt(a)
			r.refuse = h.refuse
			o := orderOf(d)
			o.Journal = a.Journal != nil
			done, err := r.submit(o)
			assert.ErrorContains(t, err, name)
			assert.Equal(t, name == "journal", len(done.Sending) > 0)
			assert.Len(t, done.Outcomes, srv.Commits(op))
			for _, s := range done.redo(o.Span, true) {
				assert.Equal(t, s.Lost, slices.Contains(done.Sending, s.From))
			}
			if b, ok := a.Journal.(*book); ok {
				assert.Empty(t, b.rows)
				assert.Empty(t, srv.Requests())
			}
		})
	}
}

type brokenBook struct{ *book }

func (brokenBook) Begin(context.Context, string, int) (payvault.BatchState, error) {
	return payvault.BatchState{}, errors.New("disk full")
}

// While a source is slow, the server knows that the worker lives.
func TestSubmit_slowSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := deck{n: 300, checksum: "other"}
		c, err := payvault.NewClient("https://payvault.example", "key")
		require.NoError(t, err)
		r := newAttempt(&Activities{Client: c, Cards: slow{d}})
		done, err := r.submit(orderOf(deck{n: 300}))
		require.NoError(t, err)
		assert.Equal(t, stopChanged, done.Stop)
		assert.Equal(t, 6, r.count, "three in each heartbeat timeout")
	})
}

// So it is in the other activities.
func TestActivities_slow(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]any{
		activitySnapshot: "deck", activityCount: "all", activityExport: exportOrder{Subscriptions: "all", Span: span{To: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := payvault.NewClient("https://payvault.example", "key")
				require.NoError(t, err)
				r := newAttempt(&Activities{Client: c, Cards: slow{}, Subscriptions: slow{}, Sink: newShelf()})
				beats := 0
				r.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { beats++ })
				_, err = r.ExecuteActivity(name, input)
				require.Equal(t, name == activityExport, err != nil, err) // it has no subscription
				assert.Positive(t, beats)
			})
		})
	}
}

type slow struct{ deck }

func (d slow) Count(context.Context, string) (int, error) {
	<-time.After(2*defaultHeartbeat + time.Second) // of a bubble
	return 0, nil
}

func (d slow) Subscriptions(ctx context.Context, ref string, _, _ int) ([]payvault.SubscriptionID, error) {
	_, err := d.Count(ctx, ref)
	return nil, err
}

func (d slow) Snapshot(ctx context.Context, ref string) (Snapshot, error) {
	<-time.After(2*defaultHeartbeat + time.Second) // of a bubble
	return d.deck.Snapshot(ctx, ref)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What the service has turned away is left to another attempt, which is due when the service says.
func TestSubmit_rateLimited(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 500}
	a := &Activities{Client: once(srv), Cards: d}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit, RetryAfter: "7200", Times: 1})
	o := orderOf(d)
	o.InFlight = 1
	done, err := newAttempt(a).submit(o)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	assert.Equal(t, TypeSafeToRetry, app.Type())
	assert.True(t, app.NonRetryable(), "by the server")
	assert.Equal(t, 2*time.Hour, app.NextRetryDelay())
	assert.Equal(t, report{Left: []span{{To: 5}}}, done)
	assert.Zero(t, srv.Commits(op))
}

func TestSubmit_keyRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 2000}
			inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.Respond, Status: status})
			o := orderOf(d)
			done, err := newAttempt(&Activities{Client: srv.Client(), Cards: d}).submit(o)
			require.NoError(t, err)
			assert.Contains(t, done.Stop, strconv.Itoa(status))
			assert.Empty(t, done.Outcomes, "nothing was performed")
			assert.Equal(t, []span{{From: 0, To: 20}}, done.Left)
			assert.Less(t, len(srv.Requests()), 10, "and little was asked")
		})
	}
}

// Refusals that have nothing to do with the cards do not go through the whole job.
func TestSubmit_allRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest, http.StatusConflict} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			srv, d := newServer(t), deck{n: 10_000}
			inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.Respond, Status: status})
			o := orderOf(d)
			done, err := newAttempt(&Activities{Client: srv.Client(), Cards: d}).submit(o)
			require.NoError(t, err)
			assert.Equal(t, stopRefused, done.Stop)
			assert.GreaterOrEqual(t, len(done.Outcomes), maxRefused)
			assert.Less(t, len(done.Outcomes), maxRefused+3*o.InFlight)
		})
	}
}

// Refusals here and there are those of the cards.
func TestSubmit_someRefused(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 4000}
	var requests atomic.Int32
	c := srv.Client(payvault.WithHTTPClient(&http.Client{Transport: roundTripper(
		func(req *http.Request) (*http.Response, error) {
			if requests.Add(1)%2 == 0 {
				inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.OtherCode, Code: 7, Times: 1})
			}
			return http.DefaultTransport.RoundTrip(req)
		})}))
	o := orderOf(d)
	o.InFlight = 1
	done, err := newAttempt(&Activities{Client: c, Cards: d}).submit(o)
	require.NoError(t, err)
	assert.Empty(t, done.Stop)
	assert.Len(t, done.Outcomes, 40)
	assert.Equal(t, 20, srv.Commits(op))
}

func TestSubmit_unknownLimit(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 5000}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit})
	o := orderOf(d)
	o.MaxUnknown = 4
	done, err := newAttempt(&Activities{Client: srv.Client(), Cards: d}).submit(o)
	require.NoError(t, err)
	assert.Equal(t, stopUnknown, done.Stop)
	assert.GreaterOrEqual(t, len(done.Outcomes), 4)
	assert.Less(t, len(done.Outcomes), 4+3*o.InFlight)
	for _, outcome := range done.Outcomes {
		assert.Equal(t, payvault.BatchUnknown, outcome.Status)
	}
}

// badCard has a batch of cards that no service would take.
type badCard struct{ deck }

func (d badCard) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	cards, err := d.deck.Cards(ctx, ref, start, end)
	for i := range cards[100:200] {
		cards[100+i].ExpDate = "13/99"
	}
	return cards, err
}

func TestSubmit_localCheck(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 300}
	done, err := newAttempt(&Activities{Client: srv.Client(), Cards: badCard{d}}).submit(orderOf(d))
	require.NoError(t, err)
	assert.Equal(t, map[int]payvault.BatchStatus{
		0: payvault.BatchAccepted, 1: payvault.BatchRefused, 2: payvault.BatchAccepted,
	}, done.statuses())
	assert.Contains(t, done.Outcomes[1].Reason, "no card that can be sent")
}

func TestSubmit_snapshotChanged(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]CardSource{
		"another checksum": deck{n: 300, checksum: "other"}, "fewer cards": shrunk{deck{n: 300}},
		"while it is read": &replaced{deck: deck{n: 300}}, "and not read": &replaced{deck: deck{n: 300, err: errCut}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			o := orderOf(deck{n: 300})
			done, err := newAttempt(&Activities{Client: srv.Client(), Cards: source}).submit(o)
			require.NoError(t, err)
			assert.Equal(t, stopChanged, done.Stop)
			assert.Equal(t, []span{o.Span}, done.Left)
			assert.Empty(t, srv.Requests())
		})
	}
}

// replaced is other cards once it was read.
type replaced struct{ deck }

func (d *replaced) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	defer func() { d.checksum = "other" }()
	return d.deck.Cards(ctx, ref, start, end)
}

type shrunk struct{ deck }

func (d shrunk) Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	return d.deck.Cards(ctx, ref, start, end-1)
}

// What a source says may quote a card.
func TestSubmit_sourceFails(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	failing := deck{n: 300, err: errors.New("line 7: 4111111111111111 is odd")}
	_, err := newAttempt(&Activities{Client: srv.Client(), Cards: failing}).submit(orderOf(failing))
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	assert.Equal(t, TypeSource, app.Type())
	assert.NotContains(t, err.Error(), "4111")

	failing.err = temporal.NewNonRetryableApplicationError("no such file", "File", nil)
	done, err := newAttempt(&Activities{Client: srv.Client(), Cards: failing}).submit(orderOf(failing))
	require.NoError(t, err)
	assert.Contains(t, done.Stop, "no such file")
	assert.Empty(t, srv.Requests())
}

// A worker that stops ends what is in flight and leaves the rest to another one.
func TestSubmit_workerStops(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 10_000}
	var requests atomic.Int32
	stopping := make(chan struct{})
	c := srv.Client(payvault.WithHTTPClient(&http.Client{Transport: roundTripper(
		func(req *http.Request) (*http.Response, error) {
			if requests.Add(1) == 5 {
				close(stopping)
			}
			return http.DefaultTransport.RoundTrip(req)
		})}))
	r := newAttempt(&Activities{Client: c, Cards: d})
	r.SetWorkerStopChannel(stopping)
	done, err := r.submit(orderOf(d))
	assert.ErrorContains(t, err, "WorkerStops")
	assert.Empty(t, done.Sending)
	assert.Len(t, done.Outcomes, srv.Commits(op))
	assert.NotEmpty(t, done.Left)
	assert.Less(t, srv.Commits(op), 20)
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping := make(chan struct{})
		s := &submission{
			order: order{Interval: 100 * time.Millisecond}, halted: make(chan struct{}), stopping: stopping, due: time.Now(),
		}
		began := time.Now()
		for range 20 {
			assert.True(t, s.pace(t.Context()))
		}
		assert.Equal(t, 2*time.Second, time.Since(began))
		time.AfterFunc(time.Millisecond, func() { s.halt("", nil) })
		assert.False(t, s.pace(t.Context()))
		assert.Equal(t, 2*time.Second+time.Millisecond, time.Since(began))

		s.halted, began = make(chan struct{}), time.Now()
		time.AfterFunc(time.Millisecond, func() { close(stopping) })
		assert.False(t, s.pace(t.Context()))
		assert.Equal(t, time.Millisecond, time.Since(began))

		s.stopping, began = nil, time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.False(t, s.pace(ctx))
		assert.Equal(t, time.Millisecond, time.Since(began))
	})
}

// An attempt keeps InFlight requests in flight, and its pace.
func TestSubmit_paceAndInFlight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ interval, want time.Duration }{
		"as fast as they go": {0, 4 * time.Second}, "a pace": {2 * time.Second, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := payvault.NewClient("https://payvault.example", "key",
					payvault.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
						<-time.After(time.Second) // of a bubble
						body := io.NopCloser(strings.NewReader(`{"code":0,"data":{"request_id":"r"}}`))
						return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
					})}))
				require.NoError(t, err)
				o, began := orderOf(deck{n: 1200}), time.Now()
				o.Interval = test.interval
				done, err := newAttempt(&Activities{Client: c, Cards: deck{n: 1200}}).submit(o)
				require.NoError(t, err)
				assert.Len(t, done.Outcomes, 12)
				assert.Equal(t, test.want, time.Since(began))
			})
		})
	}
}

// What a report does not mention may have been sent.
func TestReport_redo(t *testing.T) {
	t.Parallel()
	r := report{Outcomes: []Outcome{{Batch: 3}, {Batch: 5}, {Batch: 6}}, Left: []span{{From: 2, To: 3}, {From: 7, To: 8}}}
	assert.Equal(t, append(r.Left, span{From: 4, To: 5, Lost: true}, span{From: 8, To: 10, Lost: true}),
		r.redo(span{From: 2, To: 10}, true))
	assert.Equal(t, []span{{From: 2, To: 10, Lost: true}}, new(report).redo(span{From: 2, To: 10}, true))
	assert.Equal(t, r.Left, r.redo(span{From: 2, To: 10}, false))
	unknown := payvault.BatchUnknown
	assert.Equal(t, []Outcome{{Batch: 4, Status: unknown}, {Batch: 8, Status: unknown}, {Batch: 9, Status: unknown}},
		r.Outcomes[3:])
	r.Left = nil
	assert.Empty(t, r.redo(span{From: 5, To: 7}, true))
}

// A client that cannot submit has the job pause, and decides nothing.
func TestActivity_clientOfAnotherMerchant(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 300}
	done, err := newAttempt(&Activities{Client: srv.Client().ForMerchant(7), Cards: d}).submit(orderOf(d))
	require.NoError(t, err)
	assert.Contains(t, done.Stop, "cannot act for another merchant")
	assert.Empty(t, done.Outcomes)
}

// Whatever the server says no with, what waits is not sent: an attempt that is canceled ends with what it has done, the
// others fail with it.
func TestSubmit_refusedWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"superseded": errSuperseded, "no answer": context.DeadlineExceeded, "canceled": temporal.NewCanceledError(),
		"no answer of the server": serviceerror.NewDeadlineExceeded("late"),
		"paused":                  activity.ErrActivityPaused, "reset": activity.ErrActivityReset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				waiting := newWaiting(t, nil, 0)
				waiting.refuse = func(report) error {
					if time.Since(waiting.began) > time.Second {
						return refusal
					}
					return nil
				}
				done, err := waiting.submit(orderOf(deck{n: 100}))
				if !temporal.IsCanceledError(refusal) {
					assert.ErrorContains(t, err, "a heartbeat was not recorded")
				}
				assert.Equal(t, report{Left: []span{{To: 1}}}, done)
				assert.Equal(t, 1, waiting.requests)
				assert.Equal(t, defaultHeartbeat/3, time.Since(waiting.began), "it did not wait any longer")
			})
		})
	}
}

// An attempt that does not reach the server ends its requests, before the server has taken it for lost twice.
func TestHeartbeat_unreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused error
		h := &heartbeat{timeout: defaultHeartbeat, refused: func(err error) { refused = err }}
		h.record = func(ctx context.Context, _ any) error {
			<-ctx.Done()
			return ctx.Err()
		}
		l, began := &ledger{h, map[int]Outcome{}, map[int]bool{}}, time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what is to be told is told all the same
		require.Error(t, l.announce(ctx, 0))
		assert.ErrorIs(t, refused, context.DeadlineExceeded)
		assert.Equal(t, defaultHeartbeat, time.Since(began))
		assert.Empty(t, l.progress().Sending)
	})
}

// What the journal has as begun is not reported as not sent.
func TestSubmit_canceledWhileJournalFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, o := newBook(), orderOf(deck{n: 100})
		b.fail = func(int) bool { return true }
		o.Journal = true
		waiting := newWaiting(t, b, defaultHeartbeat/2)
		waiting.refuse = func(report) error {
			if time.Since(waiting.began) > time.Second {
				return temporal.NewCanceledError()
			}
			return nil
		}
		done, err := waiting.submit(o)
		require.NoError(t, err)
		assert.Equal(t, report{Sending: []int{0}}, done)
		assert.Equal(t, []span{{To: 1, Lost: true}}, done.redo(o.Span, true))
		b.rows = map[string]*payvault.BatchOutcome{}
		waiting = newWaiting(t, b, 0) // the journal fails when the batch is to wait
		done, err = waiting.submit(o)
		require.ErrorContains(t, err, "the journal has not recorded a batch: cut")
		assert.Equal(t, []int{0}, done.Sending)
	})
}

// A worker that stops does not wait for the service.
func TestSubmit_workerStopsWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waiting, stopping := newWaiting(t, nil, 0), make(chan struct{})
		waiting.SetWorkerStopChannel(stopping)
		time.AfterFunc(time.Second, func() { close(stopping) })
		done, err := waiting.submit(orderOf(deck{n: 100}))
		assert.ErrorContains(t, err, "WorkerStops")
		assert.Equal(t, 1, waiting.requests)
		assert.Equal(t, time.Second, time.Since(waiting.began))
		assert.Equal(t, report{Left: []span{{To: 1}}}, done)
	})
}

// waiting is an attempt that the service asks to wait for 25 s.
type waiting struct {
	*attempt

	began    time.Time
	requests int
}

func newWaiting(t *testing.T, journal payvault.Journal, answer time.Duration) *waiting {
	t.Helper()
	w := &waiting{began: time.Now()}
	c, err := payvault.NewClient("https://payvault.example", "key",
		payvault.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			w.requests++
			<-time.After(answer)
			return &http.Response{
				StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"25"}}, Body: http.NoBody,
			}, nil
		})}))
	require.NoError(t, err)
	w.attempt = newAttempt(&Activities{Client: c, Cards: deck{n: 100}, Journal: journal})
	return w
}

// Without what it needs a worker sends nothing.
func TestSubmit_noSource(t *testing.T) {
	t.Parallel()
	c, err := payvault.NewClient("https://payvault.example", "key")
	require.NoError(t, err)
	for stop, a := range map[string]*Activities{stopCards: {Client: c}, stopClient: {Cards: deck{n: 400}}} {
		done, err := newAttempt(a).submit(orderOf(deck{n: 400}))
		require.NoError(t, err)
		assert.Equal(t, report{Left: []span{{To: 4}}, Stop: stop}, done)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "short", bounded("short", 5))
	assert.Equal(t, "shor…", bounded("shorü", 5))
	assert.Equal(t, "<<…", bounded("<<<", 17), "each is six bytes of JSON")
}

// A service may call a request what it likes, but not by the number of a card.
func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"id-4111-1111-1111-1111": "id-[REDACTED]", "r4111 1111.1111 - 111": "r[REDACTED]",
		"Amex: 3782 822463 10005": "Amex: [REDACTED]",
		"4111111100000001":        "[REDACTED]", "4111 1111-0000 0001": "[REDACTED]", "r41111111000000012": "r[REDACTED]",
		"12345678901":                          "12345678901",
		"id-1234-5678-901":                     "id-1234-5678-901",
		"0f8fad5b-d9cb-469f-a165-70867728950e": "0f8fad5b-d9cb-469f-a165-70867728950e",
	} {
		outcome := outcomeOf(7, payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: id})
		assert.Equal(t, &Outcome{Batch: 7, Status: payvault.BatchAccepted, RequestID: want}, outcome)
	}
}

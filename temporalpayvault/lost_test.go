package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// death is a worker that is killed at one of its steps: from then on nothing of it arrives anywhere. What was under
// way at that time may or may not have arrived.
type death struct {
	left   atomic.Int64 // steps
	halves *rand.Rand
}

// step reports whether the worker lives, and if not, whether the step arrives all the same.
func (d *death) step() (lives, arrives bool) {
	switch n := d.left.Add(-1); {
	case n > 0:
		return true, true
	case n == 0:
		return false, d.halves.IntN(2) == 0
	default:
		return false, false
	}
}

func (d *death) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		lives, arrives := d.step()
		if !arrives {
			return nil, errCut
		}
		res, err := next.RoundTrip(r)
		if err == nil && !lives {
			_ = res.Body.Close()
			return nil, errCut
		}
		return res, err
	})
}

// activityFunc is submit, or the naive activity.
type activityFunc func(*Activities) func(context.Context, order) (*report, error)

// untilDone runs attempts of an activity whose workers die, as Temporal does: the next one gets the last heartbeat.
func untilDone(
	t *testing.T, srv *payvaulttest.Server, a Activities, o order, seed uint64, f activityFunc,
) report {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a seed that can be replayed
	var last *progress
	for deaths := 0; ; deaths++ {
		d := &death{halves: random}
		d.left.Store(1 << 40)
		if deaths < 6 {
			d.left.Store(1 + random.Int64N(40))
		}
		own := a
		own.Client = srv.Client(payvault.WithHTTPClient(&http.Client{Transport: d.transport(http.DefaultTransport)}),
			payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1, IgnoreOverload: true}))
		r := newAttempt(&own, last)
		own.record = func(_ context.Context, details any) error {
			p, ok := details.(progress)
			require.True(t, ok)
			lives, arrives := d.step()
			if arrives {
				last = &p
			}
			if !lives {
				return errCut
			}
			return nil
		}
		r.RegisterActivityWithOptions(f(&own), activityOptions("under test"))
		value, err := r.ExecuteActivity("under test", o)
		if d.left.Load() <= 0 {
			continue // whatever it has returned did not arrive
		}
		if err == nil {
			var done report
			require.NoError(t, value.Get(&done))
			return done
		}
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok, "%v", err)
		require.False(t, app.NonRetryable(), "%v", err)
	}
}

// someFaults makes one request in ten fail, mostly after it was performed.
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

// Whatever is lost, and whenever: no batch is performed twice, and each is accounted for.
func TestSubmit_lostAtAnyStep(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		failing := newBook()
		failing.fail = func(n int) bool { return n%7 == 0 }
		for _, journal := range []payvault.Journal{nil, failing} {
			t.Run(fmt.Sprintf("%d/%T", seed, journal), func(t *testing.T) {
				t.Parallel()
				srv, d := newServer(t), deck{n: 2950}
				someFaults(t, srv, seed)
				a := Activities{Cards: d, Journal: journal}
				o := orderOf(d)
				o.Journal = journal != nil
				done := untilDone(t, srv, a, o, seed, func(a *Activities) func(context.Context, order) (*report, error) {
					return a.submit
				})
				assert.Empty(t, audit(t, 30, performed(t, srv), done.statuses()))
				if journal != nil { // it has all of them, and another workflow sends nothing
					for i, status := range done.statuses() {
						state, err := journal.Begin(t.Context(), "job", i)
						require.NoError(t, err)
						assert.True(t, state.Begun, i)
						assert.True(t, state.Outcome == nil && status == payvault.BatchUnknown ||
							state.Outcome != nil && state.Outcome.Status == status, "%d is %s, and %+v", i, status, state.Outcome)
					}
					before := srv.Commits(op)
					o.Run = "another"
					again := untilDone(t, srv, a, o, seed, func(a *Activities) func(context.Context, order) (*report, error) {
						return a.submit
					})
					assert.Equal(t, before, srv.Commits(op))
					assert.Empty(t, audit(t, 30, performed(t, srv), again.statuses()))
				}
			})
		}
	}
}

// naive is the activity that one writes first: the heartbeat tells how far it has come, and what has failed in a way
// that may pass is tried again.
type naive struct{ *Activities }

func (n naive) submit(ctx context.Context, o order) (*report, error) {
	var p progress
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &p); err != nil {
			return nil, err
		}
	}
	for i := len(p.Outcomes); i < o.Span.To; i++ {
		cards, err := n.Cards.Cards(ctx, o.Source, i*batchSize, min((i+1)*batchSize, o.Snapshot.Cards))
		if err != nil {
			return nil, err
		}
		accepted, err := n.Client.AccountUpdater.Submit(ctx, cards)
		if err != nil {
			return nil, err // Temporal's default retries
		}
		p.Outcomes = append(p.Outcomes, Outcome{Batch: i, Status: payvault.BatchAccepted, RequestID: accepted.RequestID})
		_ = n.record(ctx, p)
	}
	return &report{Outcomes: p.Outcomes}, nil
}

// The audit sees what the naive activity does.
func TestNaive(t *testing.T) {
	t.Parallel()
	twice := 0
	for seed := range uint64(10) {
		srv, d := newServer(t), deck{n: 2950}
		someFaults(t, srv, seed)
		done := untilDone(t, srv, Activities{Cards: d}, orderOf(d), seed,
			func(a *Activities) func(context.Context, order) (*report, error) { return naive{a}.submit })
		twice += len(audit(t, 30, performed(t, srv), done.statuses()))
	}
	t.Logf("of 300 batches, %d were performed twice or more", twice)
	assert.Positive(t, twice)
}

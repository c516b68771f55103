package temporalpayvault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

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

// amidDeaths runs a job whose workers die: what they had told the server is in the error that the workflow gets.
func amidDeaths(t *testing.T, srv *payvaulttest.Server, a Activities, seed uint64) Summary {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a seed that can be replayed
	env, deaths := newWorkflows(&a), 0
	submit := func(ctx context.Context, o order) (*report, error) {
		d := &death{halves: random}
		d.left.Store(1 << 40)
		if deaths++; deaths <= 6 {
			d.left.Store(1 + random.Int64N(40))
		}
		var last []any
		own := d.own(srv, a, func(heard any) { last = []any{heard} })
		done, err := own.submit(ctx, o)
		if d.left.Load() <= 0 {
			return lose(ctx, env, last...) // whatever it has returned did not arrive
		}
		return done, err
	}
	env.OnActivity(activitySubmit, mock.Anything, mock.Anything).Return(submit)
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", Concurrency: 1, MaxUnknown: 1000})
	return summary(t, env)
}

// own gives the worker that dies.
func (d *death) own(srv *payvaulttest.Server, a Activities, heard func(any)) *Activities {
	a.Client = srv.Client(payvault.WithHTTPClient(&http.Client{Transport: d.transport(http.DefaultTransport)}),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1, IgnoreOverload: true}))
	a.record = func(_ context.Context, details any) error {
		lives, arrives := d.step()
		if arrives {
			heard(details)
		}
		if !lives {
			return errCut
		}
		return nil
	}
	return &a
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
func TestSubmitCards_lostAtAnyStep(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		failing := newBook()
		failing.fail = func(n int) bool { return n%7 == 0 }
		for _, journal := range []payvault.Journal{nil, failing} {
			t.Run(fmt.Sprintf("%d/%T", seed, journal), func(t *testing.T) {
				t.Parallel()
				srv := newServer(t)
				someFaults(t, srv, seed)
				a := Activities{Cards: deck{n: 2950}, Journal: journal}
				s := amidDeaths(t, srv, a, seed)
				assert.Empty(t, audit(t, 30, performed(t, srv), s.statuses()))
				assert.Equal(t, 30, s.Accepted+s.Refused+s.Unknown)
				if journal != nil { // it has all of them, and another workflow sends nothing
					for i, status := range s.statuses() {
						state, err := journal.Begin(t.Context(), "deck@sum", i)
						require.NoError(t, err)
						assert.True(t, state.Begun, i)
						assert.True(t, state.Outcome == nil && status == payvault.BatchUnknown ||
							state.Outcome != nil && state.Outcome.Status == status, "%d is %s, and %+v", i, status, state.Outcome)
					}
					before := srv.Commits(op)
					again := amidDeaths(t, srv, a, seed)
					assert.Equal(t, before, srv.Commits(op))
					assert.Equal(t, s.statuses(), again.statuses())
				}
			})
		}
	}
}

// naive is the activity that one writes first: the heartbeat tells how far it has come, and what has failed in a way
// that may pass is tried again.
func naive(ctx context.Context, a *Activities, o order, known report) (*report, error) {
	for i := len(known.Outcomes); i < o.Span.To; i++ {
		cards, err := a.Cards.Cards(ctx, o.Source, i*batchSize, min((i+1)*batchSize, o.Snapshot.Cards))
		if err != nil {
			return nil, err
		}
		accepted, err := a.Client.AccountUpdater.Submit(ctx, cards)
		if err != nil {
			return nil, err // Temporal's default retries
		}
		done := Outcome{Batch: i, Status: payvault.BatchAccepted, RequestID: accepted.RequestID}
		known.Outcomes = append(known.Outcomes, done)
		_ = a.record(ctx, known)
	}
	return &known, nil
}

// The audit sees what the naive activity does.
func TestNaive(t *testing.T) {
	t.Parallel()
	twice := 0
	for seed := range uint64(10) {
		srv, cards := newServer(t), deck{n: 2950}
		someFaults(t, srv, seed)
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a seed that can be replayed
		var done *report
		for last, err, deaths := (report{}), error(nil), 0; done == nil || err != nil; deaths++ {
			d := &death{halves: random}
			d.left.Store(1 << 40)
			if deaths < 6 {
				d.left.Store(1 + random.Int64N(40))
			}
			own := d.own(srv, Activities{Cards: cards}, func(heard any) { last, _ = heard.(report) })
			if done, err = naive(t.Context(), own, orderOf(cards), last); d.left.Load() <= 0 {
				done = nil // whatever it has returned did not arrive
			}
		}
		twice += len(audit(t, 30, performed(t, srv), done.statuses()))
	}
	t.Logf("of 300 batches, %d were performed twice or more", twice)
	assert.Positive(t, twice)
}

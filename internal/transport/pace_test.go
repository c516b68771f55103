package transport

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/overload"
)

// limited returns a rate limit to which a 429 was reported.
func limited() *overload.Pace {
	p := overload.NewPace()
	p.Refused(overload.Place{}, 0)
	return p
}

// TestWhatCountsForThePace checks which outcomes raise the rate that the first 429 sets. The test makes 100 calls with
// one outcome. Then the next call gets a 429, and its retry waits for the rate limit. The wait is short if the 100
// outcomes count.
func TestWhatCountsForThePace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		step  step
		count bool
	}{
		"200": {answer(200, ""), true}, "404": {answer(404, ""), true}, "500": {answer(500, ""), false},
		"lost": {lost(errLost), false}, "cut off": {cut(200), false},
		"429 for too long": {answer(429, "", "Retry-After", "2"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			const before = 100
			c := New(testConfig(&script{steps: append(times(before, test.step), answer(429, ""), answer(200, ""))}))
			pace, waited := overload.NewPace(), time.Duration(0)
			for range before + 1 {
				request := post(false)
				request.Pace = pace
				request.Observe = func(a Attempt) { waited = a.Waited }
				_, _ = c.Do(t.Context(), request)
			}
			assert.Equal(t, test.count, waited < time.Second/10, "%s: %v", name, waited)
			assert.Positive(t, waited)
		})
	}
}

// TestRetryWithoutTurn checks the retry of a single call after a 429. A retry that waits for its turn costs nothing. If
// the turn comes after half of the time until the deadline, the retry has a backoff instead, and the retry budget has
// to pay for it. The 429 sets the rate to one request in 1.25 seconds. So the turn comes too late for a deadline after
// 2 seconds, and for a deadline after 10 seconds if the caller's limit takes 8 of them.
func TestRetryWithoutTurn(t *testing.T) {
	t.Parallel()
	const backoff = 100 * time.Millisecond
	for _, test := range []struct {
		within      time.Duration
		limit       *overload.Limit
		budgetIsOut bool
		status      int
		wait        [2]time.Duration // shortest and longest wait before the retry
	}{
		{2 * time.Second, nil, false, 200, [2]time.Duration{0, backoff}},
		{2 * time.Second, nil, true, 429, [2]time.Duration{0, 0}},
		{10 * time.Second, overload.NewLimit(0.125, 1), true, 429, [2]time.Duration{0, 0}},
		{10 * time.Second, nil, true, 200, [2]time.Duration{1249 * time.Millisecond, 1876 * time.Millisecond}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(429, ""), answer(200, "")}}
			config := testConfig(s)
			config.Policy.MinBackoff, config.Policy.MaxBackoff = backoff, backoff
			config.Budget, config.Limit = new(overload.Budget), test.limit
			for test.budgetIsOut && config.Budget.Take(false) > 0 {
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.within)
			defer cancel()
			request, start := post(false), time.Now()
			request.Pace = overload.NewPace()
			result, err := New(config).Do(ctx, request)
			require.NoError(t, err)
			assert.Equal(t, test.status, result.Status)
			assert.Equal(t, map[int]Final{200: "", 429: FinalBudget}[test.status], result.Final)
			assert.GreaterOrEqual(t, time.Since(start), test.wait[0])
			assert.LessOrEqual(t, time.Since(start), test.wait[1])
		})
	}
}

// TestRetriesOfCallsRefusedTogether checks 20 calls that get a 429 at the same time. Only one of them has a free retry,
// because the turn of a second one would come too late for the deadline of the calls. The other calls have no retry,
// because the budget is empty.
func TestRetriesOfCallsRefusedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 20
		s := &script{steps: times(2*calls, answer(429, ""))}
		config := testConfig(s)
		config.Budget = new(overload.Budget)
		for config.Budget.Take(false) > 0 {
		}
		c, pace := New(config), overload.NewPace()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				request := post(false)
				request.Pace, request.MaxAttempts = pace, 2
				result, err := c.Do(ctx, request)
				assert.NoError(t, err)
				assert.Equal(t, 429, result.Status)
			})
		}
		all.Wait()
		assert.Len(t, s.sent, calls+1)
	})
}

// TestRetryThatDoesNotBegin checks a call that ends between a 429 and its free retry, because its context ends, or
// because the caller's code panics. The retry must leave the queue, and the call must put nothing into the budget.
func TestRetryThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.CancelFunc){
		"context": func(cancel context.CancelFunc) { cancel() },
		"panic":   func(context.CancelFunc) { panic("observer") },
	} {
		synctest.Test(t, func(t *testing.T) {
			config := testConfig(&script{steps: times(10, answer(429, ""))})
			config.Budget = new(overload.Budget)
			for config.Budget.Take(false) > 0 {
			}
			for range 5 {
				request := post(false)
				request.Pace = overload.NewPace()
				ctx, cancel := context.WithCancel(t.Context())
				request.Observe = func(Attempt) { end(cancel) }
				func() {
					defer func() { _ = recover() }()
					_, _ = New(config).Do(ctx, request)
				}()
				cancel()
				// A retry joins the queue only if its turn comes within half of these 4 seconds. The rate is one request in 1.25
				// seconds. So only an empty queue is fast enough.
				next, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				assert.NotNil(t, request.Pace.JoinForRetry(next, time.Hour, nil), name)
				cancel()
			}
			assert.Zero(t, config.Budget.Take(false), name)
		})
	}
}

// TestLimit checks that every attempt waits for the limit that the caller has set, with or without a Gate. The field
// Waited of an Attempt must have this wait.
func TestLimit(t *testing.T) {
	t.Parallel()
	for _, gate := range []*Gate{nil, {Patience: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(503, ""), refused(errRefused), answer(200, "")}}
			config := testConfig(s)
			config.Limit = overload.NewLimit(0.1, 1)
			var waited []float64
			request := post(true)
			request.Gate, request.Observe = gate, func(a Attempt) { waited = append(waited, a.Waited.Seconds()) }
			_, err := New(config).Do(t.Context(), request)
			require.NoError(t, err)
			assert.InDeltaSlice(t, []float64{0, 10, 10}, waited, 0.01)
			assert.InDelta(t, 20, s.sent[2].at.Sub(s.sent[0].at).Seconds(), 0.01)
		})
	}
}

// TestLimitThatEndsACall checks that nothing is sent if the turn in the limit comes after the deadline, or if Stop ends
// during the wait.
func TestLimitThatEndsACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: times(1, answer(200, ""))}
		config := testConfig(s)
		config.Limit = overload.NewLimit(0.1, 1)
		c := New(config)
		_, err := c.Do(t.Context(), post(false))
		require.NoError(t, err)

		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		result, err := c.Do(ctx, post(false))
		require.ErrorAs(t, err, new(*overload.HeldError))
		assert.Zero(t, result.Attempts)
		assert.Zero(t, time.Since(start))

		stop, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		request := post(false)
		request.Gate = &Gate{Stop: stop}
		_, err = c.Do(t.Context(), request)
		require.ErrorIs(t, err, ErrStopped)
		assert.Equal(t, time.Second, time.Since(start))
		assert.Len(t, s.sent, 1)
	})
}

// TestLimitBesideLearnedRate checks that 15 calls at once succeed if the caller has set a limit of 10 requests a
// second, and the learned rate is one request in 1.25 seconds. A refusal has just confirmed this rate, so the calls
// wait for it. Each call must end this wait early enough to wait for the limit, behind the other calls, before its
// deadline.
func TestLimitBesideLearnedRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := testConfig(forgetful(answer(200, "")))
		config.Limit = overload.NewLimit(10, 1)
		pace := limited()
		pace.Refused(overload.Place{}, 0)
		for range 10 {
			go func() { _, _ = pace.Wait(t.Context(), time.Hour, nil) }()
		}
		_, err := config.Limit.Wait(t.Context(), nil)
		require.NoError(t, err)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 15 {
			all.Go(func() {
				request := post(false)
				request.Pace = pace
				_, err := New(config).Do(ctx, request)
				assert.NoError(t, err)
			})
		}
		all.Wait()
	})
}

// TestLimitWhileHeld checks a call that waits for the caller's limit of one request in ten seconds. During this wait
// the service asks for a wait of 12 seconds. The call must be sent after both waits, and take only one token of the
// limit: with a second token it would be sent after 20 seconds.
func TestLimitWhileHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := testConfig(&script{steps: times(2, answer(200, ""))})
		config.Limit, config.Policy.MaxRetryAfter = overload.NewLimit(0.1, 1), time.Minute
		c, request, start := New(config), post(false), time.Now()
		request.Pace = overload.NewPace()
		_, err := c.Do(t.Context(), request)
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { request.Pace.Refused(overload.Place{}, 12*time.Second) })
		_, err = c.Do(t.Context(), request)
		require.NoError(t, err)
		assert.InDelta(t, 13.6, time.Since(start).Seconds(), 0.61, "with a jitter of a tenth")
	})
}

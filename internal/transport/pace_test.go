package transport

import (
	"context"
	"net/http"
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

// TestRefusalBeyondTheCap checks that a 429 sets no rate limit if its Retry-After is above MaxRetryAfter, because the
// limit would delay other calls.
func TestRefusalBeyondTheCap(t *testing.T) {
	t.Parallel()
	for after, held := range map[string]bool{"1": true, "2": false} {
		request := post(false)
		request.Pace, request.MaxAttempts = overload.NewPace(), 1
		_, err := New(testConfig(&script{steps: times(1, answer(429, "", "Retry-After", after))})).Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, held, request.Pace.IsLimited())
	}
}

// TestWaitedIsThatOfTheAttempt checks that the field Waited of an attempt does not include the wait of an earlier
// attempt.
func TestWaitedIsThatOfTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		request := post(true)
		request.Pace = limited()
		slow := func(req *http.Request) (*http.Response, error) {
			<-time.After(time.Hour)
			request.Pace.Answered(overload.Place{})
			assert.False(t, request.Pace.IsLimited())
			return answer(503, "")(req)
		}
		var waited []bool
		request.Observe = func(a Attempt) { waited = append(waited, a.Waited > 0) }
		_, err := New(testConfig(&script{steps: []step{slow, answer(200, "")}})).Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, []bool{true, false}, waited)
	})
}

// TestHeldBack checks that a call fails at once with a HeldError if a 429 asks for a wait beyond the deadline of the
// context Stop.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		request, start := post(false), time.Now()
		request.Pace, request.Gate = overload.NewPace(), &Gate{Patience: time.Minute, Stop: stop}
		steps := []step{answer(429, "", "Retry-After", "1")}
		result, err := New(testConfig(&script{steps: steps})).Do(t.Context(), request)
		require.ErrorAs(t, err, new(*overload.HeldError))
		assert.Zero(t, time.Since(start))
		assert.Equal(t, 1, result.Attempts)
	})
}

// TestCauseOfTheContext checks that Do returns context.Canceled and not the cause of the context, which may be the
// error of another call.
func TestCauseOfTheContext(t *testing.T) {
	t.Parallel()
	returnsCause := func(req *http.Request) (*http.Response, error) { return nil, context.Cause(req.Context()) }
	for _, cause := range []error{&overload.HeldError{After: time.Minute}, &KeyError{errNoKey}, ErrTooLarge, ErrStopped} {
		for _, end := range []step{returnsCause, answer(503, "")} {
			ctx, cancel := context.WithCancelCause(t.Context())
			config := testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
				cancel(cause)
				return end(req)
			}))
			config.Policy.MinBackoff, config.Policy.MaxBackoff = time.Hour, time.Hour
			_, err := New(config).Do(ctx, post(true))
			require.Equal(t, context.Canceled, err)
		}
	}
}

// TestBudgetOfACallThatHasEnded checks that a call takes nothing from the retry budget if its context or Stop
// ends before the retry.
func TestBudgetOfACallThatHasEnded(t *testing.T) {
	t.Parallel()
	const retriesInBudget = 100
	synctest.Test(t, func(t *testing.T) {
		config := testConfig(nil)
		config.Budget = new(overload.Budget)
		for name, end := range map[string]func(ctx context.Context, r *Request) (context.Context, context.CancelFunc){
			"deadline": func(ctx context.Context, _ *Request) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Millisecond)
			},
			"stopped": func(ctx context.Context, r *Request) (context.Context, context.CancelFunc) {
				stop, cancel := context.WithTimeout(ctx, time.Millisecond)
				r.Gate = &Gate{Patience: time.Minute, Stop: stop}
				return ctx, cancel
			},
		} {
			for _, lost := range []step{hang, func(req *http.Request) (*http.Response, error) {
				<-time.After(time.Second)
				return answer(503, "")(req)
			}, answer(503, ""), answer(503, "", "Retry-After", "5")} {
				for range retriesInBudget + 20 {
					config.HTTP = &http.Client{Transport: &script{steps: times(1, lost)}}
					config.Policy.MinBackoff, config.Policy.MaxBackoff = time.Hour, time.Hour
					request := post(true)
					ctx, cancel := end(t.Context(), request)
					result, err := New(config).Do(ctx, request)
					require.True(t, err != nil || result.Status == 503, name)
					cancel()
				}
			}
		}
		for range retriesInBudget {
			require.Positive(t, config.Budget.Take(false), "the budget is still full")
		}
	})
}

// TestBudgetOfACall checks what calls take from the retry budget, and what they put back into it. A call makes at most
// two attempts.
func TestBudgetOfACall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spent int // how much of the budget of 500 is taken before the calls
		step  step
		calls int
		want  bool // whether the budget permits another retry after the calls
	}{
		"lost":                 {400, lost(errLost), 19, true},
		"lost, once more":      {400, lost(errLost), 20, false},
		"timeout":              {400, hang, 9, true},
		"timeout, once more":   {400, hang, 10, false},
		"success":              {500, answer(200, ""), 5, true},
		"success, fewer":       {500, answer(200, ""), 4, false},
		"refusal":              {500, answer(404, ""), 50, false},
		"failure":              {500, lost(errLost), 50, false},
		"stopped, no attempts": {495, nil, 50, true},
		"refused by the rate":  {495, answer(429, ""), 9, true}, // a retry after a 429 costs nothing
	} {
		synctest.Test(t, func(t *testing.T) {
			config := testConfig(&script{steps: times(2*test.calls, test.step)})
			config.Budget = new(overload.Budget)
			for range test.spent / 5 {
				config.Budget.Take(false)
			}
			for range test.calls {
				request := post(true)
				request.MaxAttempts, request.Pace = 2, limited()
				c := New(config)
				if test.step == nil {
					stop, cancel := context.WithCancel(t.Context())
					request.Gate = &Gate{Stop: stop}
					c.config.Authorization = func(context.Context) (string, error) {
						cancel()
						return "Basic key", nil
					}
				}
				_, err := c.Do(t.Context(), request)
				if test.step == nil {
					require.ErrorIs(t, err, ErrStopped)
				}
			}
			assert.Equal(t, test.want, config.Budget.Take(false) > 0, name)
		})
	}
}

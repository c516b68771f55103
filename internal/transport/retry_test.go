package transport

import (
	"context"
	"crypto/x509"
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/overload"
)

// waits makes a call whose attempts all get status 503 and the given header. It returns the times between the attempts.
func waits(t *testing.T, policy Policy, header ...string) []time.Duration {
	t.Helper()
	s := &script{steps: times(policy.MaxAttempts, answer(http.StatusServiceUnavailable, "", header...))}
	config := testConfig(s)
	config.Policy = policy
	result, err := New(config).Do(t.Context(), post(true))
	require.NoError(t, err)
	require.Equal(t, policy.MaxAttempts, result.Attempts)
	require.Len(t, s.sent, policy.MaxAttempts)
	var waits []time.Duration
	for i := range len(s.sent) - 1 {
		waits = append(waits, s.sent[i+1].at.Sub(s.sent[i].at))
	}
	return waits
}

// TestBackoffIsExponentialWithFullJitter checks that each wait between two attempts is random, from 0 to a ceiling that
// doubles from MinBackoff up to MaxBackoff.
func TestBackoffIsExponentialWithFullJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := Policy{
			MaxAttempts: 7, MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, MaxRetryAfter: time.Minute,
		}
		ceilings := []time.Duration{
			100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second,
			time.Second,
		}
		shortest := make([]time.Duration, len(ceilings))
		longest := make([]time.Duration, len(ceilings))
		for i := range 400 {
			for n, wait := range waits(t, policy) {
				require.LessOrEqual(t, wait, ceilings[n], "wait %d", n)
				longest[n] = max(longest[n], wait)
				if i == 0 || wait < shortest[n] {
					shortest[n] = wait
				}
			}
		}
		// The waits must use the whole range. Of 400 random waits, almost certainly one lies in the first tenth of the range
		// and another in the last tenth.
		for n, ceiling := range ceilings {
			assert.Greater(t, longest[n], ceiling*9/10, "wait %d", n)
			assert.Less(t, shortest[n], ceiling/10, "wait %d", n)
		}
	})
}

// TestBackoffOfManyAttempts checks that the ceiling of the backoff stays at MaxBackoff after so many attempts that
// doubling MinBackoff would overflow.
func TestBackoffOfManyAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := time.Duration(0)
		for _, wait := range waits(t, Policy{MaxAttempts: 100, MinBackoff: time.Millisecond, MaxBackoff: time.Second})[40:] {
			require.LessOrEqual(t, wait, time.Second)
			late += wait
		}
		assert.Greater(t, late, 10*time.Second, "59 waits of half a second on average")
	})
}

// TestWaitOfRetryAfter checks how long the client waits before its next attempt if a 429 has a Retry-After. It makes no
// other attempt if the Retry-After is longer than MaxRetryAfter.
func TestWaitOfRetryAfter(t *testing.T) {
	t.Parallel()
	const (
		none  = -1 // the header asks for no wait, so the client uses its backoff
		never = -2 // the client makes no further attempt
	)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "30": 30 * time.Second, "31": never, "99999999999999999999": never,
		"Sat, 01 Jan 2000 00:00:09 GMT": 9 * time.Second, // 9 seconds after the start of the bubble
		"0":                             none, "": none,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := testConfig(&script{steps: []step{
					answer(http.StatusTooManyRequests, "", "Retry-After", header), answer(http.StatusOK, ""),
				}})
				config.Policy = Policy{
					MaxAttempts: 2, MinBackoff: time.Second, MaxBackoff: time.Second, MaxRetryAfter: 30 * time.Second,
				}
				start := time.Now()
				result, err := New(config).Do(t.Context(), post(false))
				require.NoError(t, err)
				switch want {
				case never:
					assert.Equal(t, http.StatusTooManyRequests, result.Status)
					assert.Equal(t, 1, result.Attempts)
					assert.Zero(t, time.Since(start))
					return
				case none:
					assert.LessOrEqual(t, time.Since(start), time.Second)
				default:
					assert.Equal(t, want, time.Since(start))
				}
				assert.Equal(t, http.StatusOK, result.Status)
			})
		})
	}
}

// TestContextEndsBackoffAtOnce checks that the wait before a retry ends when the context ends. If the context has a
// deadline before the end of a Retry-After, the call must return without waiting.
func TestContextEndsBackoffAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first    step
		status   int
		delivery Delivery
	}{
		"503":     {answer(503, "busy", "Retry-After", "20"), 503, Answered},
		"429":     {answer(429, "busy", "Retry-After", "20"), 429, Answered},
		"refused": {refused(errRefused), 0, NotSent},
		"lost":    {lost(errLost), 0, Unknown},
	} {
		for _, hasDeadline := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deadline %t", name, hasDeadline), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &script{steps: []step{test.first}}
					config := testConfig(s)
					// The backoff is random. The chance that it is shorter than 3 s is one in 3 billion.
					config.Policy = Policy{
						MaxAttempts: 5, MinBackoff: math.MaxInt64, MaxBackoff: math.MaxInt64, MaxRetryAfter: time.Hour,
					}
					ctx, cancel := context.WithCancel(t.Context())
					if hasDeadline {
						ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
					}
					defer cancel()
					time.AfterFunc(3*time.Second, cancel)
					start := time.Now()
					result, err := New(config).Do(ctx, post(true))
					if hasDeadline && test.status != 0 {
						require.NoError(t, err)
						assert.Zero(t, time.Since(start))
					} else {
						require.ErrorIs(t, err, ctx.Err())
						assert.Equal(t, 3*time.Second, time.Since(start))
					}
					assert.Len(t, s.sent, 1)
					assert.Equal(t, 1, result.Attempts)
					assert.Equal(t, test.status, result.Status)
					assert.Equal(t, test.status != 0, string(result.Body) == "busy")
					assert.Equal(t, test.delivery, result.Delivery)
				})
			})
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
	sent := 0
	everySecond := func(req *http.Request) (*http.Response, error) {
		sent++
		return answer(map[int]int{0: 200, 1: 503}[sent%2], "")(req)
	}
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
		"success of a retry":   {495, everySecond, 2, true}, // puts back what the retry has cost
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

// TestDeliveryOfAllAttempts checks Delivery, which describes the last attempt, and Unsure, for many sequences of
// attempts.
func TestDeliveryOfAllAttempts(t *testing.T) {
	t.Parallel()
	const noKey = -1
	for name, test := range map[string]struct {
		steps  []step
		keys   int // number of attempts that get a key; 0 means all, noKey means none
		want   Delivery
		status int
		unsure bool // an earlier attempt may have performed the operation
	}{
		// an earlier attempt may have performed the operation
		"lost, refused":          {[]step{lost(errLost), refused(errRefused)}, 0, NotSent, 0, true},
		"timeout, refused":       {[]step{hang, refused(errRefused)}, 0, NotSent, 0, true},
		"cut off, refused":       {[]step{cut(200), refused(errRefused)}, 0, NotSent, 0, true},
		"no hooks, refused":      {[]step{silent(errLost), refused(errRefused)}, 0, NotSent, 0, true},
		"503, 429, refused":      {[]step{answer(503, ""), answer(429, ""), refused(errRefused)}, 0, NotSent, 0, true},
		"lost, refused, refused": {[]step{lost(errLost), refused(errRefused), refused(errRefused)}, 0, NotSent, 0, true},
		"lost, no key":           {[]step{lost(errLost)}, 1, NotSent, 0, true},
		"lost, 429":              {[]step{lost(errLost), answer(429, "")}, 0, Answered, 429, true},
		"503, 429":               {[]step{answer(503, ""), answer(429, "")}, 0, Answered, 429, true},
		"lost, 200":              {[]step{lost(errLost), answer(200, "")}, 0, Answered, 200, true},

		// no earlier attempt can have performed the operation
		"429, refused":          {[]step{answer(429, ""), refused(errRefused)}, 0, NotSent, 0, false},
		"429 cut off, refused":  {[]step{cut(429), refused(errRefused)}, 0, NotSent, 0, false},
		"refused, 429, refused": {[]step{refused(errRefused), answer(429, ""), refused(errRefused)}, 0, NotSent, 0, false},
		"429, no key":           {[]step{answer(429, "")}, 1, NotSent, 0, false},
		"no key":                {nil, noKey, NotSent, 0, false},
		"refused, lost":         {[]step{refused(errRefused), lost(errLost)}, 0, Unknown, 0, false},
		"429, lost":             {[]step{answer(429, ""), lost(errLost)}, 0, Unknown, 0, false},
		"429, 429":              {[]step{answer(429, ""), answer(429, "")}, 0, Answered, 429, false},
		"refused, cut off":      {[]step{refused(errRefused), cut(200)}, 0, Unknown, 200, false},
		"refused, too large":    {[]step{refused(errRefused), answer(200, repeated(101))}, 0, Unknown, 200, false},
		"429, then 500":         {[]step{answer(429, ""), answer(500, "")}, 0, Answered, 500, false},
		"refused, certificate":  {[]step{refused(errRefused), refused(x509.UnknownAuthorityError{})}, 0, NotSent, 0, false},
	} {
		for _, replay := range []bool{false, true} {
			if test.unsure && !replay {
				continue
			}
			t.Run(fmt.Sprintf("%s, replay %t", name, replay), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &script{steps: test.steps}
					config := testConfig(s)
					config.MaxResponseBytes = 100
					keys := 0
					config.Authorization = func(context.Context) (string, error) {
						if keys++; test.keys != 0 && keys > test.keys {
							return "", errNoKey
						}
						return "Basic key", nil
					}
					request := post(replay)
					request.MaxAttempts = len(test.steps)
					if test.keys != 0 {
						request.MaxAttempts++
					}
					result, err := New(config).Do(t.Context(), request)
					require.NotErrorIs(t, err, errUnscripted)
					assert.Len(t, s.sent, len(test.steps))
					assert.Equal(t, request.MaxAttempts, result.Attempts)
					assert.Equal(t, test.want, result.Delivery, "of the last attempt")
					assert.Equal(t, test.unsure, result.Unsure)
					assert.Equal(t, test.status, result.Status)
				})
			})
		}
	}
}

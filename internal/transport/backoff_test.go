package transport

import (
	"context"
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

// TestBackoffDoesNotOverflow checks that a backoff is between 0 and MaxBackoff, even if the durations of the policy or
// the number of attempts are as large as possible.
func TestBackoffDoesNotOverflow(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]Policy{
		"huge maximum":             {MinBackoff: time.Millisecond, MaxBackoff: math.MaxInt64},
		"huge minimum and maximum": {MinBackoff: math.MaxInt64, MaxBackoff: math.MaxInt64},
		"minimum above maximum":    {MinBackoff: math.MaxInt64, MaxBackoff: time.Second},
		"nothing":                  {},
	} {
		c := newCall(t.Context(), &Client{config: Config{Policy: policy}}, post(false))
		for _, n := range []int{1, 2, 30, 31, 32, 63, 64, 65, 66, 1000, math.MaxInt} {
			c.result.Attempts = n
			for range 20 {
				wait := c.backoff(0, 0, 0, nil)
				require.GreaterOrEqual(t, wait, time.Duration(0), "%s, n = %d", name, n)
				require.LessOrEqual(t, wait, policy.MaxBackoff, "%s, n = %d", name, n)
			}
		}
	}
}

// TestRetryAfter checks which wait the client reads from a Retry-After header, and how long it waits before its next
// attempt.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const (
		none  = -1 // the header asks for no wait, so the client uses its backoff
		never = -2 // the client makes no further attempt
	)
	for name, test := range map[string]struct {
		header string
		date   string        // Date header of the answer; the clock of the server may be wrong, or that of the client
		asked  time.Duration // the wait that RetryAfter reads
		wait   time.Duration
	}{
		"seconds":        {"7", "", 7 * time.Second, 7 * time.Second},
		"spaces":         {" 7 ", "", 7 * time.Second, 7 * time.Second},
		"at the cap":     {"30", "", 30 * time.Second, 30 * time.Second},
		"above the cap":  {"31", "", 31 * time.Second, never},
		"a day":          {"86400", "", 24 * time.Hour, never},
		"above a day":    {"86401", "", 24 * time.Hour, never},
		"absurd":         {"99999999999999999999", "", 24 * time.Hour, never},
		"date":           {"Sat, 01 Jan 2000 00:00:09 GMT", "", 9 * time.Second, 9 * time.Second},
		"date, RFC 850":  {"Saturday, 01-Jan-00 00:00:09 GMT", "", 9 * time.Second, 9 * time.Second},
		"far date":       {"Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour, never},
		"past date":      {"Fri, 31 Dec 1999 23:59:59 GMT", "", 0, none},
		"zero":           {"0", "", 0, none},
		"negative":       {"-5", "", 0, none},
		"fraction":       {"1.5", "", 2 * time.Second, 2 * time.Second},
		"small fraction": {"0.001", "", time.Second, time.Second},
		"exponent":       {"1e3", "", 0, none},
		"infinity":       {"Inf", "", 0, none},
		"two points":     {"1.5.0", "", 0, none},
		"point":          {".", "", 0, none},
		"server ahead": {
			"Sat, 01 Jan 2000 00:10:03 GMT", "Sat, 01 Jan 2000 00:10:00 GMT", 3 * time.Second, 3 * time.Second,
		},
		"server behind": {
			"Fri, 31 Dec 1999 23:50:03 GMT", "Fri, 31 Dec 1999 23:50:00 GMT", 3 * time.Second, 3 * time.Second,
		},
		"wrong Date":     {"Sat, 01 Jan 2000 00:00:09 GMT", "yesterday", 9 * time.Second, 9 * time.Second},
		"digits, letter": {"5s", "", 0, none},
		"empty":          {"", "", 0, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the clock of a bubble starts at 2000-01-01 00:00:00 UTC
				var asked []time.Duration
				refuse := func(req *http.Request) (*http.Response, error) {
					resp, err := answer(http.StatusTooManyRequests, "", "Retry-After", test.header, "Date", test.date)(req)
					asked = append(asked, overload.RetryAfter(resp.Header))
					return resp, err
				}
				config := testConfig(&script{steps: []step{refuse, answer(http.StatusOK, "")}})
				config.Policy = Policy{
					MaxAttempts: 2, MinBackoff: time.Second, MaxBackoff: time.Second, MaxRetryAfter: 30 * time.Second,
				}
				start := time.Now()
				result, err := New(config).Do(t.Context(), post(false))
				require.NoError(t, err)
				assert.Equal(t, []time.Duration{test.asked}, asked)
				switch test.wait {
				case never:
					assert.Equal(t, http.StatusTooManyRequests, result.Status)
					assert.Equal(t, 1, result.Attempts)
					assert.Zero(t, time.Since(start))
					return
				case none:
					assert.LessOrEqual(t, time.Since(start), time.Second)
				default:
					assert.Equal(t, test.wait, time.Since(start))
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

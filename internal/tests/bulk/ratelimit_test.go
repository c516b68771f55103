package bulk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// reply429 is a response with status 429, or a success if retryAfter is "success". The field took is the delay before
// the response.
type reply429 struct {
	took       time.Duration
	retryAfter string
}

const succeeds = "success"

// times returns n responses with this Retry-After, without delay.
func times(n int, retryAfter string) []reply429 { return slices.Repeat([]reply429{{0, retryAfter}}, n) }

// refusing returns a service that answers the first requests with the given responses, in order. Later requests
// succeed.
func refusing(first ...reply429) *fake {
	return &fake{answer: func(r asked) (*http.Response, error) {
		if r.nth > len(first) {
			return nil, nil
		}
		one := first[r.nth-1]
		if <-time.After(one.took); one.retryAfter == succeeds {
			return nil, nil
		}
		return refusal(one.retryAfter)
	}}
}

// limited returns a service with a rate limit. The parameter burst is the number of requests that the service permits
// at first, and rate is the number that it permits in each second after that. The service answers all other requests
// with status 429. Every answer takes 50 ms. The result refused counts the 429 responses.
func limited(rate, burst float64, retryAfter string) (s *fake, refused *int) {
	var mu sync.Mutex
	tokens, at, refused := burst, time.Duration(0), new(int)
	return &fake{pages: 200, answer: func(r asked) (*http.Response, error) {
		mu.Lock()
		tokens, at = min(max(rate, 1), tokens+rate*(r.at-at).Seconds()), r.at
		isPermitted := tokens >= 1
		if isPermitted {
			tokens--
		} else {
			*refused++
		}
		mu.Unlock()
		if err := r.sleep(50 * time.Millisecond); err != nil || isPermitted {
			return nil, err
		}
		return refusal(retryAfter)
	}}, refused
}

// addEvent calls Webhooks.AddEvent, which is not retried if it may have been performed.
func addEvent(ctx context.Context, c *payvault.Client) error {
	_, err := c.Webhooks.AddEvent(ctx, "W1", "E1")
	return err
}

// TestWalksWaitOutRefusals checks that walks and SubmitAll repeat a request after each 429, more often than MaxAttempts
// permits. Both must get few 429 responses. SubmitAll must nearly reach the rate that the service permits.
func TestWalksWaitOutRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, refused := limited(20, 20, "")
		ids, err := walk(s.all(t, &payvault.ListOptions{Prefetch: 32}))
		require.NoError(t, err)
		assert.Equal(t, allIDs(0, 200), ids)
		assert.LessOrEqual(t, *refused, 30)

		_, err = walk(refusing(times(10, "")...).all(t, nil))
		require.NoError(t, err)

		s = &fake{answer: func(r asked) (*http.Response, error) { // a walk also accepts a Retry-After above MaxRetryAfter
			if r.nth > 1 {
				return nil, nil
			}
			resp := service.Reply(http.StatusServiceUnavailable, ``)
			resp.Header.Set("Retry-After", "60")
			return resp, nil
		}}
		_, err = walk(s.all(t, nil))
		require.NoError(t, err)

		s = refusing(times(150, "")...)
		assert.Equal(t, batchesOf(1), complete(t, s.submitAll(t, stream(1, nil), nil)))
		assert.Len(t, s.seen, 151)

		for _, retryAfter := range []string{"", "1"} {
			s, refused = limited(20, 20, retryAfter)
			assert.Equal(t, batchesOf(50_000), complete(t, s.submitAll(t, stream(50_000, nil), atATime(32))))
			assert.LessOrEqual(t, time.Since(s.start), 27*time.Second, "480 batches at 20 a second take 24 s")
			assert.LessOrEqual(t, *refused, 62)
		}
	})
}

// TestRateLimitHoldsTheOperation checks that after a 429 all calls of the same operation wait for the Retry-After, even
// if a later 429 has a shorter one. Calls of other operations do not wait. A call whose deadline is before the end of
// the wait fails with ErrRateLimited and is not sent.
func TestRateLimitHoldsTheOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shorter := reply429{time.Second, "1"}
		s := refusing(reply429{time.Millisecond, "20"}, shorter, shorter, shorter)
		c := s.client(t)
		go service.Together(4, func() { assert.NoError(t, addEvent(t.Context(), c)) })
		<-time.After(2 * time.Second)

		brief, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := addEvent(brief, c)
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Equal(t, "rate_limited", payvault.CallResult{Err: err}.ErrorClass())
		e := service.AsError(t, err)
		assert.InDelta(t, 19, e.RetryAfter.Seconds(), 1)
		assert.Zero(t, e.Attempts)
		assert.True(t, payvault.SafeToRetry(err))
		_, err = c.AccountUpdater.Submit(brief, []card{newCard(0)})
		require.NoError(t, err, "another operation")
		assert.Equal(t, 2*time.Second, time.Since(s.start), "nobody has waited")

		<-time.After(time.Hour)
		require.Len(t, s.asked(), 9)
		for _, r := range s.asked()[5:] {
			assert.GreaterOrEqual(t, r.at, 20*time.Second)
		}
	})
}

// TestBurstOfAQuietClient checks a client that makes one call a second and gets status 429 up to three times. Three
// seconds later it makes 100 calls at once, each with a deadline of two seconds. All must succeed.
func TestBurstOfAQuietClient(t *testing.T) {
	t.Parallel()
	for refusals := range 4 {
		synctest.Test(t, func(t *testing.T) {
			s := refusing(append(times(5, succeeds), times(refusals, "")...)...)
			c := s.client(t)
			for range 6 {
				require.NoError(t, addEvent(t.Context(), c))
				<-time.After(time.Second)
			}
			<-time.After(2 * time.Second)
			service.Together(100, func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				assert.NoError(t, addEvent(ctx, c))
			})
			assert.Len(t, s.asked(), 6+refusals+100)
		})
	}
}

// TestOutageWith429 checks that calls with deadlines do not flood a service that refuses all requests. Each call is
// sent at least once, and the budget limits the retries.
func TestOutageWith429(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{2 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const calls, retriesInBudget = 1000, 100
			s := refusing(times(10*calls, "")...)
			c := s.client(t)
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					err := addEvent(ctx, c)
					assert.Equal(t, http.StatusTooManyRequests, service.AsError(t, err).StatusCode)
				})
				<-time.After(100 * time.Millisecond)
			}
			all.Wait()
			retries := len(s.asked()) - calls
			assert.LessOrEqual(t, retries, retriesInBudget+20, "a few retries wait for their turn and cost nothing")
		})
	}
}

// TestOverloadByCallers checks 64 callers with deadlines who call again and again for 60 seconds. The service permits
// 20 requests a second. At least 95 % of the permitted requests must succeed. Refused requests must not outnumber the
// requests that succeed.
func TestOverloadByCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, refused := limited(20, 20, "")
		c := s.client(t)
		start := time.Now()
		service.Together(64, func() {
			for time.Since(start) < 60*time.Second {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				_ = addEvent(ctx, c)
				cancel()
			}
		})
		succeeded := len(s.asked()) - *refused
		assert.GreaterOrEqual(t, succeeded, 60*20*95/100)
		assert.LessOrEqual(t, *refused, succeeded)
	})
}

// TestWithRateLimit checks that all operations, Client.Call, the clients of ForMerchant and every attempt share the
// limit of WithRateLimit. A call whose turn comes after its deadline fails at once and is not sent.
func TestWithRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refusing(reply429{0, ""}) // the first request, which is sent again
		c := s.client(t, payvault.WithRateLimit(0.1, 2))
		for _, call := range []func() error{
			func() error { return addEvent(t.Context(), c) },
			func() error {
				_, err := c.Customers.List(t.Context(), nil)
				return err
			},
			func() error { return c.ForMerchant(7).Payees.Delete(t.Context(), 1) },
			func() error {
				return c.Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"a"}}, nil)
			},
		} {
			require.NoError(t, call())
		}
		var times []float64
		for _, r := range s.asked() {
			times = append(times, r.at.Seconds())
		}
		assert.InDeltaSlice(t, []float64{0, 0, 10, 20, 30}, times, 2, "the retry after the 429 waits for up to 1.9 s")

		start := time.Now()
		brief, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		err := addEvent(brief, c)
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Zero(t, time.Since(start))
		e := service.AsError(t, err)
		assert.Equal(t, []int{0, 0}, []int{e.StatusCode, e.Attempts})
		assert.Equal(t, payvault.DeliveryNotSent, e.Delivery)
		assert.InDelta(t, 10, e.RetryAfter.Seconds(), 0.1)
		assert.True(t, payvault.SafeToRetry(err))
		assert.Len(t, s.asked(), 5)
	})
}

// TestWithRateLimitInWalks checks that the requests of a walk wait for the limit of WithRateLimit, that a single call
// waits for at most one of them, and that SubmitAll ends during such a wait when its context ends.
func TestWithRateLimitInWalks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fake{pages: 1}
		c := s.client(t, payvault.WithRateLimit(1, 1))
		start := time.Now()
		assert.Equal(t, batchesOf(1000), complete(t, c.AccountUpdater.SubmitAll(t.Context(), stream(1000, nil), atATime(8))))
		assert.Equal(t, 9*time.Second, time.Since(start))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() {
			before := time.Now()
			assert.NoError(t, addEvent(t.Context(), c))
			assert.Equal(t, 1500*time.Millisecond, time.Since(before), "one request of the walk goes before it")
			<-time.After(time.Second / 2)
			cancel()
		})
		got, err := collect(c.AccountUpdater.SubmitAll(ctx, stream(1000, nil), atATime(8)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.Canceled)
		accepted := 0
		for _, b := range got {
			if b.Err == nil {
				accepted++
				continue
			}
			assertLeftOut(t, b, false)
		}
		assert.Equal(t, 3, accepted)
		assert.Equal(t, 13500*time.Millisecond, time.Since(start))
	})
}

// TestSubmitAllBeyondTheCap checks that SubmitAll stops after a batch that got a 429 whose Retry-After is more than
// MaxBulkRetryAfter. The last error must have this Retry-After. A later single call must be sent, because such a 429
// must not delay other calls.
func TestSubmitAllBeyondTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refusing(append(times(3, succeeds), times(2, "3600")...)...)
		c := s.client(t)
		got, err := collect(c.AccountUpdater.SubmitAll(t.Context(), stream(1000, nil), atATime(1)))
		stop := assertStopped(t, err, payvault.StopRateLimit, payvault.ErrRateLimited)
		assert.Equal(t, time.Hour, stop.RetryAfter)
		require.EqualError(t, err,
			"payvault: account_updater.submit: rate limit: rate limited: a request has to wait 1h0m0s")
		assert.Equal(t, batchesOf(300), got[:3])
		require.ErrorIs(t, got[3].Err, payvault.ErrRateLimited)
		assert.True(t, payvault.SafeToRetry(got[3].Err))
		for _, b := range got[4:] {
			assertLeftOut(t, b, false)
		}
		assert.Len(t, s.seen, 4)
		_, err = c.AccountUpdater.Submit(t.Context(), []card{newCard(0)})
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Len(t, s.seen, 5, "the call was sent")
	})
}

// TestSubmitAllWaitsAsLongAsACall checks that SubmitAll accepts a Retry-After of 30 minutes if MaxRetryAfter is an
// hour, although MaxBulkRetryAfter is 15 minutes by default.
func TestSubmitAllWaitsAsLongAsACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refusing(times(1, "1800")...)
		c := s.client(t, payvault.WithRetryPolicy(payvault.RetryPolicy{MaxRetryAfter: time.Hour}))
		assert.Equal(t, batchesOf(100), complete(t, c.AccountUpdater.SubmitAll(t.Context(), stream(100, nil), nil)))
		byDefault := refusing(times(1, "60")...).submitAll(t, stream(100, nil), nil)
		assert.Equal(t, batchesOf(100), complete(t, byDefault), "longer than a call waits")
	})
}

// TestSubmitAllOfOneAttempt checks that SubmitAll stops after the first 429 if only one attempt is permitted, by
// RetryPolicy.MaxAttempts or by WithMaxAttempts.
func TestSubmitAllOfOneAttempt(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1}, func(t *testing.T, attemptsOfPolicy int) {
		opts := []payvault.CallOption{payvault.WithMaxAttempts(1)}
		s := refusing(times(9, "")...)
		c := s.client(t, payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: attemptsOfPolicy}))
		seq := c.AccountUpdater.SubmitAll(t.Context(), stream(200, nil), atATime(1), opts[attemptsOfPolicy:]...)
		got, err := collect(seq)
		assert.Len(t, s.seen, 1)
		require.ErrorIs(t, got[0].Err, payvault.ErrRateLimited)
		stop := assertStopped(t, err, payvault.StopRateLimit, payvault.ErrRateLimited)
		assert.Zero(t, stop.RetryAfter)
		assert.EqualError(t, err,
			"payvault: account_updater.submit: rate limit: rate limited: a request was refused with status 429")
	})
}

// TestSubmitAllOf429AfterALostAttempt checks a batch that is sent with WithReplay, and gets a 503 and then a 429. The
// walk waits and sends the batch again. During the wait the journal must not say that the batch was not sent, because
// the first attempt may have been performed. If the walk stops during the wait, the outcome is unknown.
func TestSubmitAllOf429AfterALostAttempt(t *testing.T) {
	t.Parallel()
	forEach(t, []bool{false, true}, func(t *testing.T, isStopped bool) {
		s := &fake{answer: func(r asked) (*http.Response, error) {
			switch r.nth {
			case 1:
				return service.Reply(http.StatusServiceUnavailable, ``), nil
			case 2:
				return refusal("20")
			}
			return nil, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		j := newJournal(t, nil)
		time.AfterFunc(10*time.Second, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			assert.Equal(t, payvault.BatchState{Begun: true}, j.known[0], "while it waits")
			if isStopped {
				cancel()
			}
		})
		seq := s.client(t).AccountUpdater.SubmitAll(ctx, stream(200, nil), j.options(1), payvault.WithReplay())
		if !isStopped {
			assert.Equal(t, batchesOf(200), complete(t, seq))
			assert.Equal(t, []int{0, 0, 0, 1}, s.numbers())
			return
		}
		got, err := collect(seq)
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.Canceled)
		assert.Equal(t, payvault.BatchUnknown, got[0].Status)
		assert.Equal(t, payvault.BatchUnknown, j.outcome(0).Status)
		assert.Len(t, s.seen, 2)
	})
}

// TestSubmitAllBeyondTheDeadline checks that SubmitAll stops at once if a 429 asks for a wait beyond the deadline of
// the context, with and without a journal. Observers get a call only for a batch that is sent.
func TestSubmitAllBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	forEach(t, []bool{false, true}, func(t *testing.T, hasJournal bool) {
		s, start, calls := refusing(times(1, "20")...), time.Now(), 0
		var mu sync.Mutex
		client := s.client(t, payvault.WithObserver(payvault.Observer{
			End: func(context.Context, payvault.CallInfo, payvault.CallResult) {
				mu.Lock()
				defer mu.Unlock()
				calls++
			},
		}))
		options := atATime(2)
		if hasJournal {
			options = newJournal(t, nil).options(2)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got, err := collect(client.AccountUpdater.SubmitAll(ctx, stream(1000, nil), options))
		stop := assertStopped(t, err, payvault.StopRateLimit, payvault.ErrRateLimited)
		assert.InDelta(t, 21, stop.RetryAfter.Seconds(), 1)
		accepted := 0
		for _, b := range got {
			if b.Err == nil { // one of the first two batches, which were sent at the same time
				accepted++
			} else {
				assertLeftOut(t, b, hasJournal)
			}
		}
		assert.Equal(t, len(s.seen)-1, accepted)
		assert.LessOrEqual(t, calls, 2, "a batch that waits is a call")
		assert.Zero(t, time.Since(start))
	})
}

// slowJournal is a journal whose Begin takes i seconds for batch i, even if its context ends.
type slowJournal struct{ *journal }

func (j slowJournal) Begin(ctx context.Context, job string, i int) (payvault.BatchState, error) {
	<-time.After(time.Duration(i) * time.Second)
	return j.journal.Begin(context.WithoutCancel(ctx), job, i)
}

// TestStoppedWalkSendsNothing checks that SubmitAll sends no further batch after the journal has failed to record the
// end of the first batch. At that time the other batches are waiting for their API key or for Begin.
func TestStoppedWalkSendsNothing(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"key", "journal"}, func(t *testing.T, slow string) {
		s := &fake{answer: func(r asked) (*http.Response, error) { // the other batches begin during this time
			return nil, r.sleep(time.Second / 2)
		}}
		keys, j, accepted := atomic.Int32{}, newJournal(t, nil), 0
		j.fail = func(step string, _ int) error { return map[string]error{"end": errDisk}[step] }
		options := j.options(4)
		if slow == "journal" {
			options.Journal = slowJournal{j}
		}
		c := s.client(t, payvault.WithKeySource(func(context.Context) (string, error) {
			if slow == "key" {
				<-time.After(time.Duration(keys.Add(1)) * time.Second)
			}
			return service.APIKey, nil
		}))
		got, err := collect(c.AccountUpdater.SubmitAll(t.Context(), stream(400, nil), options))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopJournal), errDisk)
		for _, b := range got {
			if b.Err == nil {
				accepted++
				continue
			}
			assertLeftOut(t, b, true)
		}
		assert.Equal(t, 1, accepted)
		assert.Len(t, s.seen, 1)
	})
}

// TestBudget checks that all calls of a client share one retry budget. After the budget is spent, a failed attempt is
// not retried, and the log records have not_repeated=budget.
func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, retries, retriesPerCall = 400, 500 / 5, 3 // the budget is 500, and a retry costs 5
		s := &fake{answer: func(asked) (*http.Response, error) {
			return service.Reply(http.StatusServiceUnavailable, ``), nil
		}}
		var log strings.Builder
		c := s.client(t, debug(&log))
		for range calls {
			_, _ = c.Customers.List(t.Context(), nil)
		}
		assert.Len(t, s.asked(), calls+retries)
		withAllRetries := retries / retriesPerCall
		records := 2 * (calls - withAllRetries) // of attempts and of calls
		assert.Equal(t, records, strings.Count(log.String(), " not_repeated=budget"))
	})
}

func debug(log *strings.Builder) payvault.Option {
	return payvault.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// TestWaitInTheRecord checks that observers and the log get the time for which an attempt waited for the rate limit.
func TestWaitInTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var waited []time.Duration
		observer := payvault.Observer{Attempt: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) {
			waited = append(waited, r.Waited)
		}}
		c := refusing(times(1, "20")...).client(t, debug(&log), payvault.WithObserver(observer))
		require.NoError(t, addEvent(t.Context(), c))
		require.Len(t, waited, 2)
		assert.Zero(t, waited[0])
		assert.InDelta(t, 21, waited[1].Seconds(), 1)
		assert.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf(" waited=%v", waited[1])), log.String())
	})
}

// TestWalkInTheRecord checks that a page or a batch is one call for observers, with all its attempts and the waits
// between them. The wait before the first attempt is not a part of the call. A batch whose outcome is in the journal is
// no call. A page that fails a local check is no call either.
func TestWalkInTheRecord(t *testing.T) {
	t.Parallel()
	for name, walk := range map[string]func(t *testing.T, s *fake, c *payvault.Client){
		"list": func(t *testing.T, s *fake, c *payvault.Client) {
			t.Helper()
			s.pages = 2
			for _, err := range c.Customers.All(t.Context(), nil) {
				require.NoError(t, err)
			}
			for _, err := range c.Customers.All(t.Context(), nil, payvault.WithMaxAttempts(0)) {
				require.ErrorIs(t, err, payvault.ErrInvalidRequest)
			}
		},
		"SubmitAll": func(t *testing.T, _ *fake, c *payvault.Client) {
			t.Helper()
			complete(t, c.AccountUpdater.SubmitAll(t.Context(), stream(200, nil), atATime(1)))
		},
		"SubmitAll of a job": func(t *testing.T, _ *fake, c *payvault.Client) {
			t.Helper()
			j := newJournal(t, state{1: {Begun: true, Outcome: &payvault.BatchOutcome{Status: payvault.BatchAccepted}}})
			complete(t, c.AccountUpdater.SubmitAll(t.Context(), stream(300, nil), j.options(1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls, attempts []payvault.CallResult
				s := refusing(times(2, "20")...)
				walk(t, s, s.client(t, payvault.WithObserver(payvault.Observer{
					Attempt: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) { attempts = append(attempts, r) },
					End:     func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) { calls = append(calls, r) },
				})))
				require.Len(t, calls, 2)
				require.Len(t, attempts, 4)
				assert.Equal(t, []int{3, 1}, []int{calls[0].Attempts, calls[1].Attempts})
				assert.Equal(t, attempts[1].Waited+attempts[2].Waited, calls[0].Duration)
				assert.GreaterOrEqual(t, calls[0].Duration, 40*time.Second)
				assert.Positive(t, attempts[3].Waited, "the second call has waited for the rate limit")
				assert.Zero(t, calls[1].Duration)
			})
		})
	}
}

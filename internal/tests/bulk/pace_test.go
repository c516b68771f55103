package bulk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// limited is a service that permits a rate, and takes 50 ms for an answer.
type limited struct {
	rate, burst float64
	retryAfter  string

	mu                 sync.Mutex
	tokens             float64
	at                 time.Time
	performed, refused int
}

func (s *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	now := time.Now()
	if s.at.IsZero() {
		s.at, s.tokens = now, s.burst
	}
	s.tokens = min(s.burst, s.tokens+s.rate*now.Sub(s.at).Seconds())
	s.at = now
	permitted := s.tokens >= 1
	if permitted {
		s.tokens--
		s.performed++
	} else {
		s.refused++
	}
	s.mu.Unlock()
	select {
	case <-time.After(50 * time.Millisecond):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if !permitted {
		return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", s.retryAfter), nil
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	if r.Method == http.MethodGet {
		return jsonAnswer(http.StatusOK, fmt.Sprintf(`{"code":0,"totalPages":200,"data":[{"customer_id":"C%d"}]}`, page)), nil
	}
	return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"R","message":"m"}}`), nil
}

func (s *limited) client(t *testing.T, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	c, err := payvault.NewClient("https://service.test", service.APIKey,
		append(opts, payvault.WithHTTPClient(&http.Client{Transport: s}))...)
	require.NoError(t, err)
	return c
}

// TestPace_bulk: bulk work runs close to a rate that it does not know, and no part of it fails.
func TestPace_bulk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rate       float64
		items      int
		retryAfter string
		share      float64
	}{
		{20, 200, "", 0.85},
		{20, 200, "1", 0.85},
		{20, 2000, "", 0.95},
		{20, 2000, "1", 0.95},
		{200, 2000, "", 0.85},
		{200, 2000, "1", 0.85},
	} {
		t.Run(fmt.Sprintf("%v a second, %d items, Retry-After %q", test.rate, test.items, test.retryAfter),
			func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &limited{rate: test.rate, burst: test.rate, retryAfter: test.retryAfter}
					client := s.client(t)
					start := time.Now()
					cards := slices.Values(slices.Repeat(tableCards(), 100*test.items))
					for batch := range client.AccountUpdater.SubmitAll(t.Context(), cards,
						&payvault.SubmitAllOptions{Concurrency: 32}) {
						require.NoError(t, batch.Err)
					}
					share := (float64(test.items) - s.burst) / s.rate / time.Since(start).Seconds()
					t.Logf("share %.2f, %.3f refusals per success", share, float64(s.refused)/float64(s.performed))
					assert.GreaterOrEqual(t, share, test.share)
					assert.LessOrEqual(t, float64(s.refused), 0.1*float64(s.performed))
				})
			})
	}
}

// TestPace_walk: a walk over pages waits out what is refused, however often.
func TestPace_walk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &limited{rate: 20, burst: 20}
		n := 0
		for _, err := range s.client(t).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: 32}) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 200, n)
		assert.LessOrEqual(t, s.refused, 30)
	})
}

// TestPace_holdsTheOperation: what one call is told holds back all calls of its operation, and no others.
func TestPace_holdsTheOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		client, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithHTTPClient(&http.Client{
			Transport: service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				at = append(at, time.Since(start))
				if strings.HasSuffix(r.URL.Path, "/send") && len(at) == 1 {
					return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", "20"), nil
				}
				return jsonAnswer(http.StatusOK, `{"code":0,"data":{"message":"m"}}`), nil
			}),
		}))
		require.NoError(t, err)
		send := func(ctx context.Context) error {
			return client.Invoices.Send(ctx, "I1", &payvault.InvoiceSendRequest{EmailAddress: []string{"a@example.com"}})
		}
		var first sync.WaitGroup
		first.Go(func() { assert.NoError(t, send(t.Context())) })
		synctest.Wait()

		brief, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = send(brief)
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		e := service.AsError(t, err)
		assert.Equal(t, payvault.NotSent, e.Delivery)
		assert.InDelta(t, 22, e.RetryAfter.Seconds(), 1.1, "behind the first one")
		assert.Zero(t, e.Attempts)
		assert.True(t, payvault.SafeToRetry(err))
		assert.Zero(t, time.Since(start), "at once")

		_, err = client.Webhooks.AddEvent(brief, "W1", "E1")
		require.NoError(t, err, "another operation")
		assert.Zero(t, time.Since(start))

		require.NoError(t, send(t.Context()))
		first.Wait()
		for _, after := range at[2:] {
			assert.GreaterOrEqual(t, after, 20*time.Second)
		}
		assert.Len(t, at, 4)
	})
}

// TestPace_beyondTheCap: a walk that is turned away for longer than it waits sends nothing more, and says so of all the
// rest.
func TestPace_beyondTheCap(t *testing.T) {
	t.Parallel()
	for _, policy := range []payvault.RetryPolicy{{}, {IgnoreOverload: true}} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			client, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithRetryPolicy(policy),
				payvault.WithHTTPClient(&http.Client{Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
					if sent++; sent > 3 {
						return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", "3600"), nil
					}
					return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"R"}}`), nil
				})}))
			require.NoError(t, err)
			cards := slices.Values(slices.Repeat(tableCards(), 1000))
			n := 0
			for batch := range client.AccountUpdater.SubmitAll(t.Context(), cards, &payvault.SubmitAllOptions{Concurrency: 1}) {
				if n++; n <= 3 {
					require.NoError(t, batch.Err)
					continue
				}
				require.ErrorIs(t, batch.Err, payvault.ErrRateLimited)
				assert.Equal(t, time.Hour, service.AsError(t, batch.Err).RetryAfter)
				assert.True(t, payvault.SafeToRetry(batch.Err))
			}
			assert.Equal(t, 10, n)
			assert.Equal(t, 4, sent)
			_, err = client.AccountUpdater.Submit(t.Context(), tableCards())
			require.ErrorIs(t, err, payvault.ErrRateLimited, "the pace is not that of the hour")
			assert.Equal(t, 5, sent)
		})
	}
}

// TestPace_endInShort: a batch that was not sent, or not again, names the refusal that has ended the walk, in short.
func TestPace_endInShort(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		first, second string // Retry-After
		attempts      int
		want          string
	}{
		{"20", "Sat, 01 Jan 2000 01:00:00 GMT", 4, "rate limited: another request was refused for 59m59.999s"},
		{"", "", 1, "rate limited: another request was refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := answering(t, refusesIn{time.Millisecond, test.first}, refusesIn{1100 * time.Microsecond, test.second})
			var texts []string
			for batch := range c.AccountUpdater.SubmitAll(t.Context(), slices.Values(slices.Repeat(tableCards(), 300)),
				&payvault.SubmitAllOptions{Concurrency: 2}, payvault.WithAttempts(test.attempts)) {
				texts = append(texts, batch.Err.Error())
			}
			require.Len(t, texts, 3)
			assert.Equal(t, "payvault: account_updater.submit: "+test.want+" (not sent)", texts[2])
			if test.attempts > 1 {
				slices.Sort(texts)
				assert.Contains(t, texts, "payvault: account_updater.submit: status 429 Too Many Requests: the walk was stopped: "+
					test.want)
			}
		})
	}
}

// TestBudget: when the service is down, calls soon fail after their first attempt, and the record of the attempt says
// why.
func TestBudget(t *testing.T) {
	t.Parallel()
	for _, ignore := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			requests, spent, down := 0, 0, true
			client, err := payvault.NewClient("https://service.test", service.APIKey,
				payvault.WithRetryPolicy(payvault.RetryPolicy{IgnoreOverload: ignore}),
				payvault.WithObserver(payvault.Observer{Attempt: func(_ context.Context, _ payvault.CallInfo,
					r payvault.CallResult,
				) {
					if r.BudgetSpent {
						spent++
					}
				}}),
				payvault.WithHTTPClient(&http.Client{Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
					if requests++; down {
						return jsonAnswer(http.StatusServiceUnavailable, ``), nil
					}
					return jsonAnswer(http.StatusOK, `{"code":0,"data":[]}`), nil
				})}))
			require.NoError(t, err)
			const calls = 400
			for range calls {
				_, err := client.Customers.List(t.Context(), nil)
				require.ErrorIs(t, err, payvault.ErrUnavailable)
			}
			if ignore {
				assert.Equal(t, 4*calls, requests)
				assert.Zero(t, spent)
				return
			}
			assert.LessOrEqual(t, float64(requests), 1.3*calls)
			assert.GreaterOrEqual(t, spent, calls/2)

			down = false // what succeeds fills the budget again
			for range 10 {
				_, err := client.Customers.List(t.Context(), nil)
				require.NoError(t, err)
			}
			down, requests = true, 0
			_, err = client.Customers.List(t.Context(), nil)
			require.Error(t, err)
			assert.Equal(t, 3, requests, "two repetitions for ten successes")
		})
	}
}

// refusing is a client of a service that refuses the first n requests with status 429.
func refusing(t *testing.T, n int, retryAfter string, opts ...payvault.Option) (c *payvault.Client, requests *int) {
	t.Helper()
	var mu sync.Mutex
	requests = new(int)
	c, err := payvault.NewClient("https://service.test", service.APIKey, append(opts, payvault.WithHTTPClient(&http.Client{
		Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if *requests++; *requests <= n {
				return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", retryAfter), nil
			}
			return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"R","message":"m"}}`), nil
		}),
	}))...)
	require.NoError(t, err)
	return c, requests
}

// TestPace_leavingTheLine: service.Callers who give up hold nobody back.
func TestPace_leavingTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := refusing(t, 1, "")
		_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		for range 600 {
			gone.Go(func() { _, _ = c.Webhooks.AddEvent(ctx, "W1", "E1") })
		}
		synctest.Wait()
		cancel()
		gone.Wait()
		start := time.Now()
		_, err = c.Webhooks.AddEvent(t.Context(), "W1", "E1")
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), 2*time.Second)
	})
}

// TestPace_burst: after one refusal a burst does not wait by the rate of that moment.
func TestPace_burst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := refusing(t, 1, "")
		_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
		require.NoError(t, err)
		start := time.Now()
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.LessOrEqual(t, time.Since(start), time.Minute)
	})
}

// TestPace_oneAttempt: who allows one attempt gets no other, in a walk either.
func TestPace_oneAttempt(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]payvault.Option{nil, {payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1})}} {
		synctest.Test(t, func(t *testing.T) {
			c, requests := refusing(t, 100, "", opts...)
			var callOpts []payvault.CallOption
			if opts == nil {
				callOpts = append(callOpts, payvault.WithAttempts(1))
			}
			for batch := range c.AccountUpdater.SubmitAll(t.Context(), slices.Values(tableCards()), nil, callOpts...) {
				require.ErrorIs(t, batch.Err, payvault.ErrRateLimited)
			}
			assert.Equal(t, 1, *requests)
		})
	}
}

// TestPace_deadline: the refused call itself does not wait for what its context does not last for.
func TestPace_deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, requests := refusing(t, 100, "20")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Webhooks.AddEvent(ctx, "W1", "E1")
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.True(t, payvault.SafeToRetry(err))
		assert.Equal(t, 1, service.AsError(t, err).Attempts)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, 1, *requests)
	})
}

// TestPace_beyondTheCapIsNoAnswer: a refusal for an hour raises no rate.
func TestPace_beyondTheCapIsNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var after string
		c, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithHTTPClient(&http.Client{
			Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
				return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", after), nil
			}),
		}))
		require.NoError(t, err)
		_, err = c.Webhooks.AddEvent(t.Context(), "W1", "E1")
		require.Error(t, err)
		after = "3600"
		start := time.Now()
		for range 50 {
			_, err = c.Webhooks.AddEvent(t.Context(), "W1", "E1")
			require.Error(t, err)
		}
		assert.GreaterOrEqual(t, time.Since(start), 45*time.Second)
	})
}

// TestPace_stoppedWalk: when the journal fails, what waits for its turn is not sent.
func TestPace_stoppedWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("disk full")
		var mu sync.Mutex
		requests := 0
		client, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithHTTPClient(&http.Client{
			Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				if requests++; requests == 1 {
					return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"R"}}`), nil
				}
				return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", "20"), nil
			}),
		}))
		require.NoError(t, err)
		j := newJournal(t, nil)
		j.fail = func(step string, _ int) error {
			if step == "end" {
				return failure
			}
			return nil
		}
		cards := slices.Values(slices.Repeat(tableCards(), 800))
		opt := &payvault.SubmitAllOptions{Concurrency: 8, Journal: j, Job: "cards of November"}
		found := false
		for batch := range client.AccountUpdater.SubmitAll(t.Context(), cards, opt) {
			found = found || errors.Is(batch.Err, failure)
		}
		assert.True(t, found, "the walk tells of its journal")
		assert.LessOrEqual(t, requests, 8)
	})
}

// TestPace_stoppedWhileItWaits: what is not sent again, since the walk was stopped, says so.
func TestPace_stoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithHTTPClient(&http.Client{
			Transport: service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !strings.Contains(string(body), "first") {
					return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", "20"), err
				}
				time.Sleep(time.Second) //nolint:forbidigo // in the bubble
				return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"R"}}`), nil
			}),
		}))
		require.NoError(t, err)
		j := newJournal(t, nil)
		j.fail = func(step string, _ int) error {
			if step == "end" {
				return errors.New("disk full")
			}
			return nil
		}
		cards := slices.Repeat(tableCards(), 200)
		cards[0].CardID = "first"
		opt := &payvault.SubmitAllOptions{Concurrency: 2, Journal: j, Job: "cards of November"}
		var texts []string
		for batch := range client.AccountUpdater.SubmitAll(t.Context(), slices.Values(cards), opt) {
			texts = append(texts, fmt.Sprint(batch.Err))
		}
		assert.Contains(t, strings.Join(texts, "\n"),
			"status 429 Too Many Requests: the walk was stopped: journal: disk full")
		assert.NotContains(t, strings.Join(texts, "\n"), "connection failed")
	})
}

// errTimeout is of a request that nobody has answered in time.
type errTimeout struct{ error }

func (errTimeout) Timeout() bool   { return true }
func (errTimeout) Temporary() bool { return true }

// TestBudget_costs: a retry takes 5 of 500, one after a timeout 10; what succeeds gives back what its retry took, or 1.
func TestBudget_costs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail    func() (*http.Response, error)
		retries int
	}{
		"status 503": {func() (*http.Response, error) { return jsonAnswer(http.StatusServiceUnavailable, ``), nil }, 100},
		"timeout":    {func() (*http.Response, error) { return nil, errTimeout{errors.New("late")} }, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				requests := 0
				fails := func(n int) bool { return n == 1 }
				client, err := payvault.NewClient("https://service.test", service.APIKey,
					payvault.WithHTTPClient(&http.Client{Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
						mu.Lock()
						defer mu.Unlock()
						if requests++; fails(requests) {
							return test.fail()
						}
						return jsonAnswer(http.StatusOK, `{"code":0,"data":[]}`), nil
					})}))
				require.NoError(t, err)
				list := func(n int) (failed int) {
					for range n {
						if _, err := client.Customers.List(t.Context(), nil); err != nil {
							failed++
						}
					}
					return failed
				}
				var first sync.WaitGroup
				first.Go(func() { assert.Zero(t, list(1)) })
				synctest.Wait()
				assert.Zero(t, list(1), "while the first call waits to try again")
				first.Wait()
				assert.Zero(t, list(1000), "and the budget is not larger than before")
				requests = 0
				fails = func(n int) bool { return n%2 == 1 }
				assert.Zero(t, list(1000), "each second attempt succeeds")
				assert.Equal(t, 2000, requests)
				fails, requests = func(int) bool { return true }, 0
				assert.Equal(t, 400, list(400))
				assert.Equal(t, 400+test.retries, requests)
			})
		})
	}
}

// TestPace_unlimited: a minute without a refusal lifts the limit.
func TestPace_unlimited(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{30 * time.Second, 61 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := refusing(t, 1, "")
			send := func() {
				_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
				assert.NoError(t, err)
			}
			send()
			<-time.After(pause)
			send()
			start := time.Now()
			var all sync.WaitGroup
			for range 50 {
				all.Go(send)
			}
			all.Wait()
			assert.Equal(t, pause > time.Minute, time.Since(start) == 0)
		})
	}
}

// answering is a client of a service that gives its answers one after the other, then successes, and when it was asked.
func answering(t *testing.T, answers ...refusesIn) (c *payvault.Client, asked func() []time.Duration) {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var at []time.Duration
	c, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithHTTPClient(&http.Client{
		Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			n := len(at)
			at = append(at, time.Since(start))
			mu.Unlock()
			if n < len(answers) {
				<-time.After(answers[n].took)
				return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", answers[n].retryAfter), nil
			}
			return jsonAnswer(http.StatusOK, `{"code":0,"data":{"message":"m"}}`), nil
		}),
	}))
	require.NoError(t, err)
	return c, func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(at)
	}
}

// refusesIn is an answer with status 429 that takes some time.
type refusesIn struct {
	took       time.Duration
	retryAfter string
}

// addEvents makes two calls at a time.
func addEvents(t *testing.T, c *payvault.Client) {
	t.Helper()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
			assert.NoError(t, err)
		})
	}
	all.Wait()
}

// TestPace_longestHold: a refusal that asks for less does not shorten the wait.
func TestPace_longestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := answering(t, refusesIn{time.Millisecond, "20"}, refusesIn{time.Second, "1"})
		var all sync.WaitGroup
		all.Go(func() { addEvents(t, c) })
		<-time.After(2 * time.Second)
		brief, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Webhooks.AddEvent(brief, "W1", "E1")
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Greater(t, service.AsError(t, err).RetryAfter, 18*time.Second)
		all.Wait()
		require.Len(t, asked(), 4)
		assert.GreaterOrEqual(t, asked()[2], 20*time.Second)
	})
}

// TestPace_nextInLine: who waits for its turn already is held back too.
func TestPace_nextInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := answering(t, refusesIn{0, ""}, refusesIn{0, ""}, refusesIn{100 * time.Millisecond, "10"})
		addEvents(t, c)
		require.Len(t, asked(), 5)
		assert.GreaterOrEqual(t, asked()[3]-asked()[2], 10*time.Second, "%v", asked())
	})
}

// TestPace_heldWhileTheyWait: calls that wait already fail at once, too, when they are held back beyond their
// deadline.
func TestPace_heldWhileTheyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := answering(t, refusesIn{0, "1"}, refusesIn{0, "20"})
		send := func(ctx context.Context, patience time.Duration) error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			_, err := c.Webhooks.AddEvent(ctx, "W1", "E1")
			return err
		}
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, send(t.Context(), time.Minute)) })
		synctest.Wait()
		start := time.Now()
		for range 3 {
			all.Go(func() {
				err := send(t.Context(), 6*time.Second)
				assert.ErrorIs(t, err, payvault.ErrRateLimited)
				assert.Less(t, time.Since(start), 1200*time.Millisecond)
				e := service.AsError(t, err)
				assert.Equal(t, payvault.NotSent, e.Delivery)
				assert.InDelta(t, 21, e.RetryAfter.Seconds(), 1)
			})
		}
		all.Wait()
		assert.Len(t, asked(), 3)
	})
}

// TestPace_noTurnInTime: a call that cannot have its turn in time, at the rate of now, fails at once.
func TestPace_noTurnInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, requests := refusing(t, 2, "")
		_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1", payvault.WithAttempts(1))
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err = c.Webhooks.AddEvent(ctx, "W1", "E1")
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, 1, *requests)
	})
}

// TestPace_longHold: an answer to an earlier request does not end a wait of minutes.
func TestPace_longHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, requests := time.Now(), make(chan time.Duration, 10)
		c, err := payvault.NewClient("https://service.test", service.APIKey,
			payvault.WithTimeout(10*time.Minute),
			payvault.WithRetryPolicy(payvault.RetryPolicy{MaxRetryAfter: 10 * time.Minute}),
			payvault.WithHTTPClient(&http.Client{Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
				requests <- time.Since(start)
				switch len(requests) {
				case 1:
					<-time.After(90 * time.Second)
				case 2:
					return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", "300"), nil
				}
				return jsonAnswer(http.StatusOK, `{"code":0,"data":{"message":"m"}}`), nil
			})}))
		require.NoError(t, err)
		var all sync.WaitGroup
		for _, at := range []time.Duration{0, time.Second, 92 * time.Second} {
			all.Go(func() {
				<-time.After(at)
				_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
				assert.NoError(t, err)
			})
		}
		all.Wait()
		close(requests)
		n := 0
		for at := range requests {
			if n++; n > 2 {
				assert.GreaterOrEqual(t, at, 301*time.Second)
			}
		}
		assert.Equal(t, 4, n)
	})
}

// TestPace_firstRepetition: without a Retry-After the call that was refused waits for its turn from the first time on.
func TestPace_firstRepetition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := answering(t, refusesIn{}, refusesIn{}, refusesIn{}, refusesIn{})
		_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		at := asked()
		require.Len(t, at, 4)
		for i := range at[1:] {
			assert.InDelta(t, 1.05, (at[i+1] - at[i]).Seconds(), 0.05)
		}
	})
}

// TestPace_manyClients: clients that are refused at the same time do not come back at the same time.
func TestPace_manyClients(t *testing.T) {
	t.Parallel()
	for _, retryAfter := range []string{"", "1"} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var mu sync.Mutex
			back := map[time.Duration]int{}
			var all sync.WaitGroup
			for range 20 {
				c, asked := answering(t, refusesIn{0, retryAfter})
				all.Go(func() {
					_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
					assert.NoError(t, err)
					mu.Lock()
					defer mu.Unlock()
					assert.Len(t, asked(), 2)
					back[asked()[1].Truncate(time.Millisecond)]++
				})
			}
			all.Wait()
			assert.Greater(t, len(back), 10)
			assert.Less(t, time.Since(start), 1101*time.Millisecond)
		})
	}
}

// TestPace_floor: however often a service refuses, it is asked once a second.
func TestPace_floor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, requests := refusing(t, 100, "")
		start := time.Now()
		for batch := range c.AccountUpdater.SubmitAll(t.Context(), slices.Values(tableCards()), nil) {
			require.NoError(t, batch.Err)
		}
		assert.Equal(t, 101, *requests)
		assert.InDelta(t, 105, time.Since(start).Seconds(), 5)
	})
}

// TestPace_patientWalk: a walk waits out more refusals of a page than a call has attempts.
func TestPace_patientWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c, err := payvault.NewClient("https://service.test", service.APIKey, payvault.WithHTTPClient(&http.Client{
			Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
				if requests++; requests <= 10 {
					return jsonAnswer(http.StatusTooManyRequests, ``), nil
				}
				return jsonAnswer(http.StatusOK, `{"code":0,"totalPages":1,"data":[{"customer_id":"C1"}]}`), nil
			}),
		}))
		require.NoError(t, err)
		n := 0
		for _, err := range c.Customers.All(t.Context(), nil) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 1, n)
		assert.Equal(t, 11, requests)
	})
}

// TestPace_ignored: without it each call goes by its own attempts, and a walk goes on after a batch that was refused.
func TestPace_ignored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, requests := refusing(t, 1000, "20", payvault.WithRetryPolicy(payvault.RetryPolicy{IgnoreOverload: true}))
		start := time.Now()
		var first sync.WaitGroup
		first.Go(func() {
			for batch := range c.AccountUpdater.SubmitAll(t.Context(), slices.Values(slices.Repeat(tableCards(), 300)), nil) {
				assert.ErrorIs(t, batch.Err, payvault.ErrRateLimited)
				assert.Equal(t, 4, service.AsError(t, batch.Err).Attempts)
			}
		})
		synctest.Wait()
		_, err := c.AccountUpdater.Submit(t.Context(), tableCards(), payvault.WithAttempts(1))
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Equal(t, 1, service.AsError(t, err).Attempts, "it is sent")
		assert.Zero(t, time.Since(start), "at once")
		first.Wait()
		assert.Equal(t, 13, *requests)
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

// TestPace_record: the record of an attempt has how long it was held back, and that the budget was spent.
func TestPace_record(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waited []time.Duration
		var log strings.Builder
		c, _ := refusing(t, 1, "20",
			payvault.WithObserver(payvault.Observer{Attempt: func(_ context.Context, _ payvault.CallInfo,
				r payvault.CallResult,
			) {
				waited = append(waited, r.Waited)
			}}),
			payvault.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		_, err := c.Webhooks.AddEvent(t.Context(), "W1", "E1")
		require.NoError(t, err)
		require.Len(t, waited, 2)
		assert.Zero(t, waited[0])
		assert.InDelta(t, 21, waited[1].Seconds(), 1)
		assert.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf(" waited=%v", waited[1])), log.String())
		assert.NotContains(t, log.String(), "budget_spent")

		down, err := payvault.NewClient("https://service.test", service.APIKey,
			payvault.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
			payvault.WithHTTPClient(&http.Client{Transport: service.RoundTripper(func(*http.Request) (*http.Response, error) {
				return jsonAnswer(http.StatusServiceUnavailable, ``), nil
			})}))
		require.NoError(t, err)
		for range 35 {
			_, err := down.Customers.List(t.Context(), nil)
			require.Error(t, err)
		}
		assert.Equal(t, 2, strings.Count(log.String(), " budget_spent=true"), "33 calls and a third have spent it")
	})
}

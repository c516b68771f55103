package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/benchmarks/internal/rig"
)

// These tests run in virtual time, because with a slow or failing service they would take minutes of real time. Each
// case prints a line that looks like the result of a benchmark. The command in the directory "report" evaluates these
// lines.

// limited is a service with a rate limit. It answers each request after 50 ms.
type limited struct {
	rate       float64 // number of requests that are permitted per second; 0 if the service is down
	burst      float64 // number of requests that are permitted at once
	retryAfter string
	jitter     time.Duration // the longest random delay of a request on its way to the service
	refusing   atomic.Int64  // number of requests that are refused first, whatever the rate is

	mu                  sync.Mutex
	tokens              float64
	last                time.Time
	performed, requests float64
}

// perMinute is a value of limited.retryAfter. With this value, the service permits limited.burst requests in each
// minute. The Retry-After header of a refusal has the seconds until the next minute.
const perMinute = "honest"

var errRefused, errDown = errors.New("429"), errors.New("503")

// serve receives one request. If it refuses the request, it returns the Retry-After header of the answer and
// errRefused. If the service is down, it returns errDown.
func (s *limited) serve() (retryAfter string, err error) {
	<-time.After(rand.N(s.jitter + 1)) //nolint:gosec // it need not be unpredictable
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch passed := now.Sub(s.last); {
	case s.last.IsZero():
		s.last, s.tokens = now, s.burst
	case s.retryAfter != perMinute:
		s.last, s.tokens = now, min(s.burst, s.tokens+s.rate*passed.Seconds())
	case passed >= time.Minute:
		s.last, s.tokens = s.last.Add(passed.Truncate(time.Minute)), s.burst
	}
	switch s.requests++; {
	case s.refusing.Add(-1) >= 0:
		return "", errRefused
	case s.rate == 0:
		return "", errDown
	case s.tokens >= 1:
		s.tokens--
		s.performed++
		return "", nil
	case s.retryAfter == perMinute:
		left := s.last.Add(time.Minute).Sub(now)
		return strconv.Itoa(int(math.Ceil(left.Seconds()))), errRefused
	}
	return s.retryAfter, errRefused
}

func (s *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, header := rig.NewCanned(`{"code":0,"data":{"request_id":"R"}}`), http.Header{}
	resp, err := answer.RoundTrip(req)
	switch retryAfter, refusal := s.serve(); {
	case errors.Is(refusal, errRefused):
		header.Set("Retry-After", retryAfter)
		resp.StatusCode, resp.Header = http.StatusTooManyRequests, header
	case errors.Is(refusal, errDown):
		resp.StatusCode = http.StatusServiceUnavailable
	}
	<-time.After(50 * time.Millisecond)
	return resp, err
}

// bulk sends items to the service, 32 at a time, and returns how many items failed. An item is a batch of SubmitAll if
// impl is payvault, or else a call with the retryer of the AWS SDK.
func bulk(t *testing.T, impl string, s *limited, items int) (failed int) {
	t.Helper()
	if impl == "payvault" {
		c := newPayvault(t, "http://127.0.0.1", s)
		cards := withoutError(count(items*payvault.MaxAccountUpdaterCards, func(int) payvault.AccountUpdaterCard {
			return payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}
		}))
		for batch, err := range c.AccountUpdater.SubmitAll(t.Context(), cards, &payvault.SubmitAllOptions{Concurrency: 32}) {
			if err != nil || batch.Err != nil {
				failed++
			}
		}
		return failed
	}
	retryer := newAWS()
	call := func(ctx context.Context, _ int) (int, error) { return 0, retryer.call(ctx, s) }
	for _, err := range inOrder(t.Context(), 32, 63, count(items, func(i int) int { return i }), call) {
		if err != nil {
			failed++
		}
	}
	return failed
}

// singles makes calls from 64 callers without deadlines, and returns how many calls failed. Each caller makes its calls
// one after the other, for 100 seconds.
func singles(t *testing.T, impl string, s *limited) (failed int) {
	t.Helper()
	c, retryer := newPayvault(t, "http://127.0.0.1", s), newAWS()
	call := func() error { return submitOne(t.Context(), c) }
	if impl == "aws-standard" {
		call = func() error { return retryer.call(t.Context(), s) }
	}
	start := time.Now()
	var lost atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for time.Since(start) < 100*time.Second {
				if call() != nil {
					lost.Add(1)
				}
			}
		})
	}
	callers.Wait()
	return int(lost.Load())
}

// TestLimited prints the share of the permitted rate that bulk work or single calls reach, the number of refusals per
// success, and the number of failed items. It checks that payvault reaches the share that the test case requires, and
// that no item of payvault fails. The share of five clients varies much from run to run. So it is the median of nine
// runs. The refusals are those of the last run, and the failed items are the mean of the runs.
//
// Leave it out with -race: the race detector of Go 1.26 crashes in a test of synctest that is as long, see
// https://go.dev/issue/78156.
func TestLimited(t *testing.T) {
	t.Parallel()
	const way = 5 * time.Millisecond
	for name, test := range map[string]struct {
		rate, burst float64
		retryAfter  string
		jitter      time.Duration
		clients     int
		items       int // number of items that each client sends; 0 for single calls
		share       float64
	}{
		"rate=20/items=200/after=":    {20, 20, "", 0, 1, 200, 0.85},
		"rate=20/items=200/after=1":   {20, 20, "1", 0, 1, 200, 0.85},
		"rate=20/items=2000/after=":   {20, 20, "", 0, 1, 2000, 0.85},
		"rate=20/items=2000/after=1":  {20, 20, "1", 0, 1, 2000, 0.85},
		"rate=200/items=2000/after=":  {200, 200, "", 0, 1, 2000, 0.85},
		"rate=200/items=2000/after=1": {200, 200, "1", 0, 1, 2000, 0.85},
		"strict/clients=1":            {20, 1, "", way, 1, 2000, 0.75},
		"strict/clients=5":            {20, 1, "", way, 5, 2000, 0.4},
		"per-minute":                  {20, 1200, perMinute, 0, 1, 13200, 0.9},
		"callers":                     {20, 20, "", 0, 1, 0, 0.9},
	} {
		rounds := 1
		if test.clients > 1 {
			rounds = 9
		}
		for _, impl := range []string{"payvault", "aws-standard"} {
			shares, refusals, failed := make([]float64, rounds), 0.0, int64(0)
			for i := range rounds {
				synctest.Test(t, func(t *testing.T) {
					s := &limited{rate: test.rate, burst: test.burst, retryAfter: test.retryAfter, jitter: test.jitter}
					start := time.Now()
					var lost atomic.Int64
					var clients sync.WaitGroup
					for range test.clients {
						clients.Go(func() {
							if test.items == 0 {
								lost.Add(int64(singles(t, impl, s)))
							} else {
								lost.Add(int64(bulk(t, impl, s, test.items)))
							}
						})
					}
					clients.Wait()
					shares[i] = (s.performed - s.burst) / s.rate / time.Since(start).Seconds()
					refusals = s.requests/s.performed - 1
					failed += lost.Load()
				})
			}
			slices.Sort(shares)
			share := shares[rounds/2]
			_, _ = fmt.Fprintf(os.Stdout, "BenchmarkLimited/%s/impl=%s 1 %.3f share %.3f refusals %d failed\n",
				name, impl, share, refusals, failed/int64(rounds))
			if impl == "payvault" {
				assert.Zero(t, failed, name)
				assert.GreaterOrEqual(t, share, test.share, name)
			}
		}
	}
}

// submitOne submits one card in a single call.
func submitOne(ctx context.Context, c *payvault.Client) error {
	cards := []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}}
	_, err := c.AccountUpdater.Submit(ctx, cards)
	return err
}

// TestBurst prints the number of calls that fail, and how many of these have an unknown outcome. A client makes one
// call a second, and the service refuses the last of them once or twice. Three seconds later the client makes 100 calls
// at once, each with a deadline of two seconds. The service permits all of them, and the test checks that none fails.
func TestBurst(t *testing.T) {
	t.Parallel()
	for _, refusals := range []int64{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			s := &limited{rate: 1000, burst: 1000}
			c := newPayvault(t, "http://127.0.0.1", s)
			for i := range 6 {
				if i == 5 {
					s.refusing.Store(refusals)
				}
				assert.NoError(t, submitOne(t.Context(), c))
				<-time.After(time.Second)
			}
			<-time.After(2 * time.Second)
			var failed, unknown atomic.Int64
			var calls sync.WaitGroup
			for range 100 {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					err := submitOne(ctx, c)
					if err != nil {
						failed.Add(1)
					}
					if errors.Is(err, payvault.ErrOutcomeUnknown) {
						unknown.Add(1)
					}
				})
			}
			calls.Wait()
			_, _ = fmt.Fprintf(os.Stdout, "BenchmarkBurst/refusals=%d/impl=payvault 1 %d failed %d unknown\n",
				refusals, failed.Load(), unknown.Load())
			assert.Zero(t, failed.Load())
		})
	}
}

// TestDown prints the number of requests per call when the service is down, and when it refuses all requests with
// status 429. The client makes 10 calls a second for 100 seconds, each with a deadline of two seconds. The number must
// be at most 1.3, and the error of each call must say why it failed.
func TestDown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusals int64
		want     error
	}{
		"Down": {0, payvault.ErrUnavailable}, "Outage": {math.MaxInt64, payvault.ErrRateLimited},
	} {
		synctest.Test(t, func(t *testing.T) {
			const calls = 1000
			s := new(limited)
			s.refusing.Store(test.refusals)
			c := newPayvault(t, "http://127.0.0.1", s)
			var running sync.WaitGroup
			for range calls {
				running.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					_, err := c.Customers.List(ctx, nil)
					assert.ErrorIs(t, err, test.want, name)
				})
				<-time.After(100 * time.Millisecond)
			}
			running.Wait()
			_, _ = fmt.Fprintf(os.Stdout, "Benchmark%s/impl=payvault 1 %.3f requests/call\n", name, s.requests/calls)
			assert.LessOrEqual(t, s.requests/calls, 1.3, name)
		})
	}
}

// aws calls the service as the AWS SDK does, with the standard retryer of that SDK.
type aws struct{ retryer *retry.Standard }

func newAWS() *aws {
	return &aws{retry.NewStandard(func(o *retry.StandardOptions) {
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(error) sdk.Ternary { return sdk.TrueTernary }))
	})}
}

func (a *aws) call(ctx context.Context, s *limited) error {
	release := func(error) error { return nil }
	for attempt := 1; ; attempt++ {
		done, err := a.retryer.GetAttemptToken(ctx)
		if err != nil {
			return err
		}
		_, err = s.serve()
		<-time.After(50 * time.Millisecond)
		_ = done(err)
		_ = release(err)
		if err == nil || attempt == a.retryer.MaxAttempts() || !a.retryer.IsErrorRetryable(err) {
			return err
		}
		next, spent := a.retryer.GetRetryToken(ctx, err)
		if spent != nil {
			return err
		}
		release = next
		delay, none := a.retryer.RetryDelay(attempt, err)
		if none != nil {
			return none
		}
		<-time.After(delay)
	}
}

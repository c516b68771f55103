package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/stretchr/testify/assert"

	"example.com/payvault"
)

// What happens to a service that is slow or down takes minutes, and costs no processor. So it is played in virtual
// time, and a line is printed for each case in the form of a benchmark, which the report reads like the others.

// limited permits a rate, with a burst of one second, and answers after 50 ms. One of no rate is down.
type limited struct {
	rate       float64
	retryAfter string

	mu                  sync.Mutex
	tokens              float64
	last                time.Time
	performed, requests float64
}

var errRefused, errDown = errors.New("429"), errors.New("503")

func (s *limited) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.last.IsZero() {
		s.last, s.tokens = now, s.rate
	}
	s.tokens, s.last = min(s.rate, s.tokens+s.rate*now.Sub(s.last).Seconds()), now
	switch s.requests++; {
	case s.rate == 0:
		return errDown
	case s.tokens < 1:
		return errRefused
	}
	s.tokens--
	s.performed++
	return nil
}

func (s *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, header := newCanned(`{"code":0,"data":{"request_id":"R"}}`), http.Header{}
	resp, err := answer.RoundTrip(req)
	switch refusal := s.serve(); {
	case errors.Is(refusal, errRefused):
		header.Set("Retry-After", s.retryAfter)
		resp.StatusCode, resp.Header = http.StatusTooManyRequests, header
	case errors.Is(refusal, errDown):
		resp.StatusCode = http.StatusServiceUnavailable
	}
	<-time.After(50 * time.Millisecond)
	return resp, err
}

// bulk sends items with 32 in flight, and counts those that failed.
func bulk(t *testing.T, impl string, s *limited, items int) (failed int) {
	t.Helper()
	if impl == "payvault" {
		c := newPayvault(t, "http://127.0.0.1", s)
		cards := count(items*payvault.MaxAccountUpdaterCards, func(int) payvault.AccountUpdaterCard {
			return payvault.AccountUpdaterCard{CardNumber: secret("4111111111111111"), ExpDate: "1230"}
		})
		for batch := range c.AccountUpdater.SubmitAll(t.Context(), cards, &payvault.SubmitAllOptions{Concurrency: 32}) {
			if batch.Err != nil {
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

// TestLimited prints the share of the permitted rate that bulk work reaches, and the refusals per success.
func TestLimited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rate       float64
		items      int
		retryAfter string
	}{{20, 200, ""}, {20, 200, "1"}, {20, 2000, ""}, {20, 2000, "1"}, {200, 2000, ""}, {200, 2000, "1"}} {
		for _, impl := range []string{"payvault", "aws-standard"} {
			synctest.Test(t, func(t *testing.T) {
				s := &limited{rate: test.rate, retryAfter: test.retryAfter}
				start := time.Now()
				failed := bulk(t, impl, s, test.items)
				share := (s.performed - s.rate) / s.rate / time.Since(start).Seconds()
				_, _ = fmt.Fprintf(os.Stdout,
					"BenchmarkLimited/rate=%v/items=%d/after=%s/impl=%s 1 %.3f share %.3f refusals %d failed\n",
					test.rate, test.items, test.retryAfter, impl, share, s.requests/s.performed-1, failed)
				if impl == "payvault" {
					assert.Zero(t, failed)
					assert.GreaterOrEqual(t, share, 0.85)
				}
			})
		}
	}
}

// TestDown prints how many requests become of a call when the service is down: 10 calls a second for 100 seconds.
func TestDown(t *testing.T) {
	t.Parallel()
	for _, impl := range []string{"payvault", "aws-standard", "no-budget"} {
		synctest.Test(t, func(t *testing.T) {
			const calls = 1000
			s := &limited{}
			c := newPayvault(t, "http://127.0.0.1", s,
				payvault.WithRetryPolicy(payvault.RetryPolicy{IgnoreOverload: impl == "no-budget"}))
			retryer := newAWS()
			var running sync.WaitGroup
			for range calls {
				running.Go(func() {
					var err error
					if impl == "aws-standard" {
						err = retryer.call(t.Context(), s)
					} else {
						_, err = c.Customers.List(t.Context(), nil)
					}
					assert.Error(t, err)
				})
				<-time.After(100 * time.Millisecond)
			}
			running.Wait()
			_, _ = fmt.Fprintf(os.Stdout, "BenchmarkDown/impl=%s 1 %.3f requests/call\n", impl, s.requests/calls)
		})
	}
}

// aws drives the standard retryer of the AWS SDK as that SDK does.
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
		err = s.serve()
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

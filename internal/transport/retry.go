package transport

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/trust"
)

// decide says whether another attempt follows, and reports whether none does only because the budget is spent.
func (c *Client) decide(call *call) (spent bool) {
	after := overload.RetryAfter(call.result.Header)
	bearable := after <= c.config.Policy.MaxRetryAfter
	refused := call.err == nil && call.result.Status == http.StatusTooManyRequests
	switch {
	case refused && bearable:
		call.Pace.Refused(call.place, after)
	case !refused && call.err == nil && call.result.Status < http.StatusInternalServerError:
		call.Pace.Answered(call.place)
	}
	paced := refused && call.Pace != nil // which is what spares the service
	if paced && call.Patient && call.max > 1 {
		call.waited++
	}
	call.again = call.isLeft() && call.retryable() && bearable
	if !call.again || paced {
		return false
	}
	failed, ok := errors.AsType[net.Error](call.err)
	call.cost = c.config.Budget.Take(ok && failed.Timeout())
	call.again = call.cost > 0
	return !call.again
}

// isLeft reports whether the call may make another attempt.
func (c *call) isLeft() bool { return c.result.Attempts-c.waited < c.max }

// retryable reports whether repeating is harmless and may help.
func (c *call) retryable() bool {
	if c.err != nil {
		return !permanent(c.err) && (c.result.Delivery == NotSent || c.Replay)
	}
	return c.mayPass()
}

// mayPass reports whether repeating what has such an answer is harmless and may help.
func (c *call) mayPass() bool {
	switch c.result.Status {
	case http.StatusTooManyRequests:
		return c.Replay || !c.result.Unsure
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return c.Replay
	}
	return c.Replay && c.result.Delivery == Unknown
}

// permanent reports whether the same failure would follow again at once.
func permanent(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrStopped) || is[*KeyError](err) || trust.Failure(err) != nil
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// backoff is what the service asks for, or exponential with full jitter.
func (c *Client) backoff(_, _ time.Duration, n int, resp *http.Response) time.Duration {
	if resp != nil {
		call := callOf(resp.Request.Context())
		if call.result.Status == http.StatusTooManyRequests && call.Pace != nil {
			return 0 // it waits by its pace
		}
		if after := overload.RetryAfter(call.result.Header); after > 0 {
			return after
		}
	}
	ceiling := min(float64(c.config.Policy.MaxBackoff), math.Ldexp(float64(c.config.Policy.MinBackoff), n))
	return time.Duration(rand.Float64() * ceiling) //nolint:gosec // jitter need not be unpredictable
}

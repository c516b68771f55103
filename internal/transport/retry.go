package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// checkRetry is asked by the engine after each attempt, when decide has decided.
func (c *Client) checkRetry(ctx context.Context, _ *http.Response, _ error) (bool, error) {
	return callOf(ctx).again, nil
}

// decide says whether another attempt follows, and reports whether none does only because the budget is spent.
func (c *Client) decide(call *call) (spent bool) {
	if call.err == nil && call.last.status < http.StatusBadRequest {
		call.Pace.answered(call.place)
		return false
	}
	after := RetryAfter(call.last.header)
	refused := call.err == nil && call.last.status == http.StatusTooManyRequests
	bearable := after <= c.config.Policy.MaxRetryAfter
	switch {
	case refused && bearable:
		call.Pace.refused(call.place, after)
	case refused:
	case call.err == nil && call.last.status < http.StatusInternalServerError:
		call.Pace.answered(call.place)
	}
	paced := refused && call.Pace != nil // which is what spares the service
	if paced && call.Patient && call.max > 1 {
		call.waited++
	}
	call.again = call.isLeft() && call.retryable() && bearable
	if !call.again || paced || c.config.Policy.Alone {
		return false
	}
	call.cost = retryCost
	if timeout, ok := errors.AsType[net.Error](call.err); ok && timeout.Timeout() {
		call.cost = timeoutCost
	}
	call.again = c.budget.take(call.cost)
	return !call.again
}

// budget is shared by all calls of a client: when a service is down, they soon fail after their first attempt. Size,
// costs and refunds are those of the standard mode of the AWS SDKs.
type budget struct{ spent atomic.Int64 }

const (
	budgetSize  = 500
	retryCost   = 5
	timeoutCost = 10
	firstRefund = 1
)

// take reports whether there was enough left.
func (b *budget) take(cost int64) bool {
	if b.spent.Add(cost) <= budgetSize {
		return true
	}
	b.spent.Add(-cost)
	return false
}

// refund gives back, down to nothing spent.
func (b *budget) refund(amount int64) {
	for {
		spent := b.spent.Load()
		if spent == 0 || b.spent.CompareAndSwap(spent, max(0, spent-amount)) {
			return
		}
	}
}

// isLeft reports whether the call may make another attempt.
func (c *call) isLeft() bool { return c.attempts-c.waited < c.max }

// retryable reports whether repeating is harmless and may help.
func (c *call) retryable() bool {
	if c.err != nil {
		return !permanent(c.err) && (c.last.delivery == NotSent || c.Replay)
	}
	return c.mayPass(&c.last)
}

// mayPass reports whether repeating what has that answer is harmless and may help.
func (c *call) mayPass(o *outcome) bool {
	switch o.status {
	case http.StatusTooManyRequests:
		return c.Replay || !c.unsure
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return c.Replay
	}
	return c.Replay && o.delivery == Unknown
}

// permanent reports whether the same failure would follow again at once.
func permanent(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrStopped) || is[*KeyError](err) ||
		is[*tls.CertificateVerificationError](err) || is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// backoff is what the service asks for, or exponential with full jitter.
func (c *Client) backoff(_, _ time.Duration, n int, resp *http.Response) time.Duration {
	if resp != nil {
		call := callOf(resp.Request.Context())
		if call.last.status == http.StatusTooManyRequests && call.Pace != nil {
			return 0 // it waits by its pace
		}
		if after := RetryAfter(call.last.header); after > 0 {
			return after
		}
	}
	p := c.config.Policy
	ceiling := p.MaxBackoff
	if shifted := p.MinBackoff << min(n, 30); shifted>>min(n, 30) == p.MinBackoff {
		ceiling = min(ceiling, shifted)
	}
	return rand.N(max(ceiling, 1)) //nolint:gosec // jitter need not be unpredictable
}

// longestRetryAfter bounds what is made of a Retry-After header, so that a caller can wait for it and add to it.
const longestRetryAfter = 24 * time.Hour

// RetryAfter reads the Retry-After header, seconds or a date; 0 if there is none to wait for.
func RetryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), longestRetryAfter)
	}
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(seconds, uint64(longestRetryAfter/time.Second))) * time.Second
}

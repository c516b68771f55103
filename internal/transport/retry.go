package transport

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/trust"
)

// This file decides whether a call makes another attempt. A retry has to be harmless and likely to help. The retry
// budget has to pay for it, unless the retry waits for its turn in the rate limit.
//
// A walk makes one call for each page or batch. After a 429 the call waits and retries; the walk itself does neither.
// payForRetry decides how a retry waits: for its turn in the rate limit, for the Retry-After, or for a backoff. The
// Gate of a walk has the longest wait that the service may ask for.
//
// Of the server errors only 502, 503 and 504 are retried. They come from a proxy that does not reach the service, or
// from a service that is overloaded or restarts. These states soon pass. A 500 comes from the service itself, and would
// probably come again.

// checkRetry reports whether the engine makes another attempt. The engine calls it after each RoundTrip. checkRetry
// also reports the attempt to the rate limit and to Observe.
//
// checkRetry returns an error only if there was no attempt: the wait before the attempt failed, Begin returned false,
// or waitContext ended during Begin. If checkRetry returns false and no error, the engine returns the result of
// RoundTrip.
func (c *call) checkRetry(ctx context.Context, resp *http.Response, err error) (again bool, _ error) {
	failed, attempted := errors.AsType[*attemptError](err)
	if err != nil && !attempted {
		return false, err // there was no attempt
	}
	after := retryAfter(resp)
	c.tellPace(resp, after)
	final := c.whyFinal(resp, failed, after)
	if final == "" {
		final = c.payForRetry(ctx, resp, failed, after)
	}
	again = final == "" // if the context has ended, the engine returns its error instead
	if failed != nil {
		c.result.Failed = failed.Err
		if c.ctx.Err() != nil {
			final = FinalContext
		}
	}
	isSuccess := resp != nil && resp.StatusCode < http.StatusMultipleChoices
	if !isSuccess {
		c.result.Final = final
	}
	c.report(failed)
	if again {
		c.unbegin()
	}
	return again, nil
}

// unbegin calls Unbegin, so that the next attempt calls Begin again. It does nothing if an attempt may have performed
// the operation.
func (c *call) unbegin() {
	if c.Gate == nil || c.Gate.Unbegin == nil || c.mayBePerformed() {
		return
	}
	c.begun = false
	c.Gate.Unbegin(c.result.Status)
}

// whyFinal returns the reason why no attempt may follow, or "". The parameter after is the Retry-After of the response,
// or 0. Exactly one of resp and failed is nil.
func (c *call) whyFinal(resp *http.Response, failed *attemptError, after time.Duration) (final Final) {
	if failed != nil {
		final = c.whyFinalError(failed)
	} else {
		final = c.whyFinalStatus(resp.StatusCode)
	}
	switch {
	case final != "":
		return final
	case !c.hasAttemptLeft():
		return FinalAttempts
	case c.isTooLong(after):
		return FinalRetryAfter
	}
	return ""
}

// hasAttemptLeft reports whether the call has made fewer attempts than allowed.
func (c *call) hasAttemptLeft() bool { return c.counted() < c.max }

// counted returns the number of attempts that count toward max.
func (c *call) counted() int { return c.result.Attempts - c.uncounted }

// isTooLong reports whether the service asks for a longer wait than the call accepts.
func (c *call) isTooLong(after time.Duration) bool { return after > c.longestRetryAfter() }

// longestRetryAfter returns the longest wait that the service may ask for.
func (c *call) longestRetryAfter() time.Duration {
	if c.Gate != nil {
		return c.Gate.Patience
	}
	return c.client.config.Policy.MaxRetryAfter
}

// isUncounted reports whether an attempt does not count toward max. In a walk, an attempt that got a 429 does not
// count, unless only one attempt is allowed or the call has no rate limit.
func (c *call) isUncounted(resp *http.Response) bool {
	return c.Gate != nil && isRefused(resp) && c.Pace != nil && c.max > 1
}

// isRefused reports whether the service refused the request with status 429.
func isRefused(resp *http.Response) bool {
	return resp != nil && resp.StatusCode == http.StatusTooManyRequests
}

// endsWithin reports whether the deadline of the context comes before the end of a wait.
func endsWithin(ctx context.Context, wait time.Duration) bool {
	deadline, hasDeadline := ctx.Deadline()
	return hasDeadline && time.Until(deadline) < wait
}

// whyFinalError returns the reason why a request that got no complete response must not be repeated, or "" if there is
// none.
func (c *call) whyFinalError(failed *attemptError) Final {
	switch {
	case isPermanent(failed.Err):
		return FinalAnswer
	case failed.Delivery != NotSent && !c.Replay:
		return FinalNotReplayable
	}
	return ""
}

// whyFinalStatus returns the reason why a request that got this status must not be repeated, or "" if there is none.
// A status that this function does not name is final, because a repeat would probably get the same answer.
func (c *call) whyFinalStatus(status int) Final {
	isHarmless := c.Replay
	switch status {
	case http.StatusTooManyRequests:
		isHarmless = c.Replay || !c.result.Unsure // if no earlier attempt can have performed the operation
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	case http.StatusRequestTimeout:
		if c.result.Delivery != Unknown { // see deliveryWithResponse
			return FinalAnswer
		}
	default:
		return FinalAnswer
	}
	if !isHarmless {
		return FinalNotReplayable
	}
	return ""
}

// isPermanent reports whether a retry would fail in the same way, or must not be made because the call was stopped. The
// error of a key source is permanent, because a key source makes its own retries.
func isPermanent(err error) bool {
	_, keyless := errors.AsType[*KeyError](err)
	return keyless || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrStopped) || trust.Failure(err) != nil
}

// payForRetry decides how a retry waits and what it costs. If there must be no retry, it returns the reason.
//
// After a 429, a retry waits for its turn in the rate limit of the operation, if there is one. Such a retry costs
// nothing, because the rate limit already spares the service. The retry of a single call joins the queue here, but only
// if the queue is fast enough. Any other retry waits for the Retry-After or a backoff, and takes its cost from the
// budget.
func (c *call) payForRetry(
	ctx context.Context, resp *http.Response, failed *attemptError, after time.Duration,
) Final {
	c.isPaced = isRefused(resp) && c.Pace != nil
	if c.isPaced && c.Gate == nil {
		c.queued = c.Pace.JoinForRetry(ctx, c.longestRetryAfter(), c.client.config.Limit)
		c.isPaced = c.queued != nil
	}
	switch {
	case c.isPaced: // the Pace compares the longest wait that any response has asked for with the deadline
		return ""
	case after > 0 && endsWithin(ctx, after):
		return FinalDeadline
	}
	c.cost = c.client.config.Budget.Take(failed != nil && isTimeout(failed.Err))
	if c.cost == 0 {
		return FinalBudget
	}
	return ""
}

// isTimeout reports whether an attempt failed because it took too long.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// backoff returns the wait before a retry. If the retry waits for its turn in the rate limit, backoff returns 0.
// Otherwise it returns the Retry-After of the response or, if there is none, an exponential backoff with full jitter.
func (c *call) backoff(_, _ time.Duration, _ int, resp *http.Response) time.Duration {
	if c.isPaced {
		return 0
	}
	after := retryAfter(resp)
	if after > 0 {
		return after
	}
	policy := c.client.config.Policy
	ceiling := min(float64(policy.MaxBackoff), math.Ldexp(float64(policy.MinBackoff), c.counted()-1))
	return time.Duration(rand.Float64() * ceiling) //nolint:gosec // jitter need not be unpredictable
}

// retryAfter returns the wait that a response asks for, or 0.
func retryAfter(resp *http.Response) time.Duration {
	if resp == nil {
		return 0
	}
	return overload.RetryAfter(resp.Header)
}

// tellPace reports a response to the rate limit. It leaves out server errors, and a 429 whose Retry-After is too long:
// this 429 must not delay other calls.
func (c *call) tellPace(resp *http.Response, after time.Duration) {
	switch {
	case resp == nil:
	case isRefused(resp) && !c.isTooLong(after):
		c.Pace.Refused(c.lastPlace, after)
	case !isRefused(resp) && resp.StatusCode < http.StatusInternalServerError:
		c.Pace.Answered(c.lastPlace)
	}
}

// report passes the attempt that has just ended to Observe, if Observe is set.
func (c *call) report(failed *attemptError) {
	if c.Observe == nil {
		return
	}
	r := &c.result
	a := Attempt{
		Number: r.Attempts, Status: r.Status, Delivery: r.Delivery,
		Duration: c.took, Waited: c.lastPlace.Waited, Final: r.Final,
	}
	if failed != nil {
		a.Err = failed.Err
	}
	c.Observe(a)
}

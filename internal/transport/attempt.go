package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"time"

	"example.com/payvault/internal/overload"
)

var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// attemptError is the error of one attempt. Delivery says whether the request of that attempt may have been performed.
type attemptError struct {
	Delivery Delivery
	Err      error
}

func (e *attemptError) Error() string { return fmt.Sprintf("%v (%v)", e.Err, e.Delivery) }

func (e *attemptError) Unwrap() error { return e.Err }

// RoundTrip waits for the rate limits and makes one attempt. The response has no body, because the body is in c.result.
// The error of a failed attempt is an *attemptError. If there is no attempt, RoundTrip returns the error of the wait,
// the error of waitContext, or ErrStopped.
//
// The type call must not have a method CloseIdleConnections. The engine would call it after a failure, and so close the
// idle connections of all callers.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.waitForTurn(); err != nil {
		return nil, err
	}
	if err := c.begin(); err != nil {
		return nil, err
	}
	start := time.Now()
	resp, err := c.attempt(req)
	c.took = time.Since(start)
	if err != nil {
		return nil, &attemptError{c.result.Delivery, orContextError(c.ctx, err)}
	}
	return resp, nil
}

// waitForTurn waits until an attempt may be made: first for the learned rate limit of the operation, and then for the
// limit that the caller has set. If the service has asked for a wait that has not ended by then, waitForTurn begins
// anew.
func (c *call) waitForTurn() error {
	ctx, waited := c.waitContext(), time.Duration(0)
	for {
		place, err := c.waitInPace(ctx)
		waited += place.Waited
		if err == nil {
			var more time.Duration
			more, err = c.waitInLimit(ctx)
			waited += more
		}
		place.Waited = waited
		c.lastPlace = place
		if !errors.Is(err, overload.ErrPostponed) {
			return cmp.Or(err, ctx.Err())
		}
	}
}

// waitInPace waits for the learned rate limit of the operation.
func (c *call) waitInPace(ctx context.Context) (overload.Place, error) {
	if c.Gate != nil {
		return c.Pace.WaitInWalk(ctx, c.longestRetryAfter())
	}
	if retry := c.queued; retry != nil {
		c.queued = nil
		return retry.Wait()
	}
	return c.Pace.Wait(ctx, c.longestRetryAfter(), c.client.config.Limit)
}

// waitInLimit waits for the limit that the caller has set.
func (c *call) waitInLimit(ctx context.Context) (time.Duration, error) {
	limit := c.client.config.Limit
	if c.Gate != nil {
		return limit.WaitInWalk(ctx, c.Pace)
	}
	return limit.Wait(ctx, c.Pace)
}

// begin calls Begin, unless the call has already begun. If Begin returns false, begin returns ErrStopped. If
// waitContext has ended, begin calls unbegin and returns the error of waitContext. Otherwise begin calls Start if this
// is the first attempt.
func (c *call) begin() error {
	if !c.begun && c.Gate != nil && c.Gate.Begin != nil {
		if !c.Gate.Begin() {
			return ErrStopped
		}
	}
	c.begun = true
	if err := c.waitContext().Err(); err != nil {
		c.unbegin()
		return err
	}
	if c.Start != nil && c.result.Attempts == 0 {
		c.ctx = c.Start(c.ctx)
	}
	return nil
}

// orContextError returns the error of ctx if ctx has ended, and otherwise err. There are two reasons:
//   - net/http returns the cause of an ended context, which may be the error of another call.
//   - A RoundTripper may return any error when the context ends. But isProvenUnsent and the caller must see that the
//     context has ended.
func orContextError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return err
}

// attempt gets the API key, sends the request and reads the response, all within the timeout of an attempt. It sets
// c.result.
func (c *call) attempt(req *http.Request) (*http.Response, error) {
	c.beginAttempt()
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout())
	defer cancel()
	key, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	trace := newTrace()
	sent := req.WithContext(httptrace.WithClientTrace(ctx, &trace.hooks))
	sent.Header = maps.Clone(c.Header) // a copy, because the previous attempt may still be writing its header
	sent.Header["Authorization"] = []string{key}
	body := c.setBody(sent)
	defer body.end() // not before the response is read, because net/http may still send the body

	resp, err := c.client.base.RoundTrip(sent)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		err = orContextError(ctx, c.client.config.Disown(err)) // ctx also ends when the time of the attempt is over
		bodyMayBeRead := body.end()
		c.result.Delivery = c.deliveryWithoutResponse(err, trace, bodyMayBeRead)
		if !c.client.standard {
			err = &RoundTripperError{c.client.base, err}
		}
		return nil, err
	}
	if err := c.takeResponse(resp, trace); err != nil {
		return nil, err
	}
	return c.responseForEngine(req), nil // Response.Request is req, not sent: the header of sent has the API key
}

// beginAttempt resets c.result for the next attempt. It keeps Keys, and sets Unsure if an earlier attempt may have
// performed the operation.
func (c *call) beginAttempt() {
	unsure := c.mayBePerformed()
	c.result = Result{Attempts: c.result.Attempts + 1, Delivery: NotSent, Unsure: unsure, Keys: c.result.Keys}
}

// mayBePerformed reports whether the attempts so far may have performed the operation. Unsure covers all requests
// before the last one. The last request cannot have performed the operation if it was not sent or got a 429.
func (c *call) mayBePerformed() bool {
	wasRefused := c.result.Status == http.StatusTooManyRequests
	return c.result.Unsure || c.result.Delivery != NotSent && !wasRefused
}

// authorize returns the value of the Authorization header, and records it in the result.
func (c *call) authorize(ctx context.Context) (key string, err error) {
	key, err = c.client.config.Authorization(ctx)
	if err != nil {
		return "", &KeyError{c.client.config.Disown(err)}
	}
	if c.isStopped() { // Stop may have ended while the key source worked
		return "", ErrStopped
	}
	if !slices.Contains(c.result.Keys, key) {
		c.result.Keys = append(c.result.Keys, key)
	}
	return key, nil
}

// uploadRate is the slowest upload, in bytes per second, that an attempt has time for.
const uploadRate = 256 << 10

// timeout returns the time limit of an attempt: AttemptTimeout plus the time that the body takes at uploadRate.
func (c *call) timeout() time.Duration {
	timeout := c.client.config.AttemptTimeout
	seconds := c.Length / uploadRate
	mostSeconds := int64((math.MaxInt64 - timeout) / time.Second) // more seconds would overflow
	return timeout + time.Duration(min(seconds, mostSeconds))*time.Second
}

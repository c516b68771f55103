package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"time"
)

var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// attemptError is the error of one attempt. Delivery says how far the request of that attempt came.
type attemptError struct {
	Delivery Delivery
	Err      error
}

func (e *attemptError) Error() string { return fmt.Sprintf("%v (%v)", e.Err, e.Delivery) }

func (e *attemptError) Unwrap() error { return e.Err }

// RoundTrip waits for the rate limit and makes one attempt. It returns a response whose body is in memory. A failed
// attempt returns an *attemptError. If the wait fails, no attempt is made, and the error is that of the wait.
//
// The type call must not get a method CloseIdleConnections. The engine would call it after a failure, and it would
// close the connections of all callers.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.waitForTurn(); err != nil {
		return nil, err
	}
	start := time.Now()
	resp, err := c.attempt(req)
	c.took = time.Since(start)
	if err == nil {
		return resp, nil
	}
	return nil, &attemptError{c.result.Delivery, c.withoutCause(err)}
}

// withoutCause returns err, or the error of the caller's context if that has ended. net/http returns the cause of an
// ended context instead, which may be the error of another call.
func (c *call) withoutCause(err error) error {
	if ended := c.ctx.Err(); ended != nil {
		return ended
	}
	return err
}

// waitForTurn waits for the rate limit. For the first attempt the caller may have done so already.
func (c *call) waitForTurn() error {
	if c.Place != nil && c.result.Attempts == 0 {
		c.place = *c.Place
		return c.waitContext().Err()
	}
	place, err := c.Pace.Wait(c.waitContext(), c.maxRetryAfter())
	c.place = place
	return cmp.Or(err, c.waitContext().Err())
}

// attempt sends the request once and reads the whole response, within the deadline of an attempt. It sets c.result.
func (c *call) attempt(req *http.Request) (*http.Response, error) {
	r := &c.result
	c.prepaid = 0 // the retry begins here, so its cost is not given back
	unsure := c.mayBePerformed()
	*r = Result{Attempts: r.Attempts + 1, Delivery: NotSent, Unsure: unsure, Keys: r.Keys}
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout())
	defer cancel()
	key, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	trace := &attemptTrace{}
	sent := req.WithContext(httptrace.WithClientTrace(ctx, trace.hooks()))
	sent.Header = maps.Clone(req.Header) // the previous attempt may still be writing its header
	sent.Header["Authorization"] = []string{key}
	body := c.setBody(sent)
	defer body.end() // after the response is read: net/http may send the body until then

	resp, err := c.client.base.RoundTrip(sent)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		err = c.withoutCause(c.client.config.Disown(err))
		r.Delivery = c.deliveryWithoutResponse(err, trace, body.end())
		return nil, err
	}
	r.Status, r.Header = resp.StatusCode, resp.Header
	r.Delivery = deliveryWithResponse(r.Status, trace)
	r.Unsure = r.Unsure || c.mayHaveResent(trace)
	r.Body, err = readBody(resp, c.maxBytes(resp))
	err = c.client.config.Disown(err)
	if err != nil && r.Status < http.StatusBadRequest { // the status alone is enough for a failure
		r.Delivery = Unknown
		return nil, err
	}
	r.BodyIncomplete = err != nil
	return c.responseInMemory(req), nil
}

// authorize returns the value of the Authorization header, and records it in the result.
func (c *call) authorize(ctx context.Context) (key string, err error) {
	key, err = c.client.config.Authorization(ctx)
	if err != nil {
		return "", &KeyError{c.client.config.Disown(err)}
	}
	if c.isStopped() { // Sending may have ended while the key source worked
		return "", ErrStopped
	}
	if !slices.Contains(c.result.Keys, key) {
		c.result.Keys = append(c.result.Keys, key)
	}
	return key, nil
}

// mayBePerformed reports whether the attempts so far may have performed the operation.
func (c *call) mayBePerformed() bool {
	return c.result.Unsure || c.result.Delivery != NotSent && c.result.Status != http.StatusTooManyRequests
}

// uploadRate is the slowest upload, in bytes per second, that an attempt has time for.
const uploadRate = 256 << 10

// timeout returns how long an attempt may take: AttemptTimeout plus the time that the body takes at uploadRate.
func (c *call) timeout() time.Duration {
	timeout := c.client.config.AttemptTimeout
	longest := int64((math.MaxInt64 - timeout) / time.Second)
	return timeout + time.Duration(min(c.Length/uploadRate, longest))*time.Second
}

// maxBytes returns how many bytes of a response body are read. If the call may make another attempt, nobody needs the
// whole body, and the limit is lower.
func (c *call) maxBytes(resp *http.Response) int64 {
	limit := c.client.config.MaxResponseBytes
	if c.hasAttemptLeft() && c.isRetryableStatus(resp.StatusCode) {
		return min(limit, mostAtOnce)
	}
	return limit
}

// responseInMemory returns the last response for the engine. It has no Location header, so that http.Client follows no
// redirect.
func (c *call) responseInMemory(req *http.Request) *http.Response {
	r := &c.result
	header := r.Header
	if header.Get("Location") != "" {
		header = maps.Clone(header)
		delete(header, "Location")
	}
	return &http.Response{
		StatusCode: r.Status, Header: header, Body: io.NopCloser(bytes.NewReader(r.Body)),
		ContentLength: int64(len(r.Body)), Request: req,
	}
}

// mostAtOnce limits the bytes that are allocated because Content-Length announces them. It also limits the bytes that
// are read of a response after which the call may make another attempt.
const mostAtOnce = 1 << 20

// readBody reads and closes the body. It returns ErrTooLarge for a body over the limit. It reads any other body to its
// end, so that net/http can use the connection again.
func readBody(resp *http.Response, limit int64) (body []byte, err error) {
	if resp.Body == nil { // a hand-made RoundTripper may leave it out
		return nil, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, whose reads no deadline ends
		return nil, nil
	}
	if resp.ContentLength > limit {
		return nil, ErrTooLarge
	}
	capped := io.LimitReader(resp.Body, max(limit+1, limit)) // limit+1 may overflow
	if n := resp.ContentLength; n > 0 && n <= mostAtOnce {
		buf := bytes.NewBuffer(make([]byte, 0, n+bytes.MinRead))
		_, err = buf.ReadFrom(capped)
		body = buf.Bytes()
	} else {
		body, err = io.ReadAll(capped)
	}
	if int64(len(body)) > limit {
		return body[:limit], ErrTooLarge
	}
	return body, err
}

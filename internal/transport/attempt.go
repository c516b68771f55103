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

// attemptError is the error of an attempt, and how far its request came.
type attemptError struct {
	Delivery Delivery
	Err      error
}

func (e *attemptError) Error() string { return fmt.Sprintf("%v (%v)", e.Err, e.Delivery) }

func (e *attemptError) Unwrap() error { return e.Err }

// RoundTrip makes one attempt. The body of its response is in memory. Its error is an *attemptError, unless there was
// no attempt because the wait for it failed.
//
// A call has no CloseIdleConnections on purpose: after a failure the engine would close the connections of all callers.
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

// withoutCause returns the error of the context if that has ended, and otherwise err. net/http returns the cause of a
// context, which may be the error of another call.
func (c *call) withoutCause(err error) error {
	if ended := c.ctx.Err(); ended != nil {
		return ended
	}
	return err
}

// waitForTurn waits for the rate limit, unless the caller has done so.
func (c *call) waitForTurn() error {
	if c.Place != nil && c.result.Attempts == 0 {
		c.place = *c.Place
		return c.waits().Err()
	}
	place, err := c.Pace.Wait(c.waits(), c.maxRetryAfter())
	c.place = place
	return cmp.Or(err, c.waits().Err())
}

// attempt sends the request once and reads the whole response, within the deadline of an attempt.
func (c *call) attempt(req *http.Request) (*http.Response, error) {
	r := &c.result
	c.prepaid = 0
	*r = Result{Attempts: r.Attempts + 1, Delivery: NotSent, Unsure: c.mayBePerformed(), Keys: r.Keys}
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout())
	defer cancel()
	key, err := c.client.config.Authorization(ctx)
	if err != nil {
		return nil, &KeyError{c.client.config.Disown(err)}
	}
	if c.isStopped() { // while the key was waited for
		return nil, ErrStopped
	}
	if !slices.Contains(r.Keys, key) {
		r.Keys = append(r.Keys, key)
	}
	var seen trace
	sent := req.WithContext(httptrace.WithClientTrace(ctx, seen.hooks()))
	sent.Header = maps.Clone(req.Header) // the attempt before may still be writing its own
	sent.Header["Authorization"] = []string{key}
	body := c.setBody(sent)
	defer body.end()

	resp, err := c.client.base.RoundTrip(sent)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		err = c.withoutCause(c.client.config.Disown(err))
		r.Delivery = c.deliveryWithoutResponse(err, &seen, body)
		return nil, err
	}
	r.Status, r.Header, r.Delivery = resp.StatusCode, resp.Header, Answered
	r.Unsure = r.Unsure || c.mayHaveResent(&seen)
	if r.Status == http.StatusRequestTimeout && !seen.isNew() {
		r.Delivery = Unknown // servers end idle connections so: it may have been written before the request came
	}
	r.Body, err = readBody(resp, c.maxBytes(resp))
	err = c.client.config.Disown(err)
	if err != nil && r.Status < http.StatusBadRequest { // of a failure the status is enough
		r.Delivery = Unknown
		return nil, err
	}
	r.Cut = err != nil
	return c.responseInMemory(req), nil
}

// mayBePerformed reports whether the attempts so far may have performed the operation.
func (c *call) mayBePerformed() bool {
	return c.result.Unsure || c.result.Delivery != NotSent && c.result.Status != http.StatusTooManyRequests
}

// uploadRate is the slowest, in bytes per second, at which a body is given time to be sent.
const uploadRate = 256 << 10

// timeout returns how long an attempt may take.
func (c *call) timeout() time.Duration {
	timeout := c.client.config.AttemptTimeout
	longest := int64((math.MaxInt64 - timeout) / time.Second)
	return timeout + time.Duration(min(c.Length/uploadRate, longest))*time.Second
}

// maxBytes returns how much is read of a response: little if another attempt may follow, after which nobody needs it.
func (c *call) maxBytes(resp *http.Response) int64 {
	limit := c.client.config.MaxResponseBytes
	if c.isLeft() && c.mayPass(resp.StatusCode) {
		return min(limit, mostAtOnce)
	}
	return limit
}

// responseInMemory returns the response as the engine sees it. Without a Location, http.Client follows no redirect.
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

// mostAtOnce is how many bytes are allocated because a header announces them, and read of an answer that may be
// followed by another attempt.
const mostAtOnce = 1 << 20

// readBody reads and closes the body. One within the limit is read to its end, so that its connection can be used
// again.
func readBody(resp *http.Response, limit int64) (body []byte, err error) {
	if resp.Body == nil { // a hand-made RoundTripper may leave it out
		return nil, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, which no deadline ends
		return nil, nil
	}
	if resp.ContentLength > limit {
		return nil, ErrTooLarge
	}
	capped := io.LimitReader(resp.Body, max(limit+1, limit))
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

package transport

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"time"

	"example.com/payvault/internal/overload"
)

// call is the state of one operation over its attempts. It travels through the engine in the context.
type call struct {
	Request

	ctx    context.Context //nolint:containedctx // of the attempts
	max    int
	waited int            // attempts that were refused and are waited out
	place  overload.Place // of this attempt
	again  bool           // another attempt is to follow
	cost   int64          // of the last repetition
	result Result         // of the attempts so far
	err    error          // of the last attempt, or of the context that kept it from starting
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// mayBePerformed reports whether the attempts so far may have performed the operation.
func (c *call) mayBePerformed() bool {
	return c.result.Unsure || c.result.Delivery != NotSent && c.result.Status != http.StatusTooManyRequests
}

// attempts is the engine's transport: one round trip is one attempt. It has no CloseIdleConnections, which the engine
// would call after a failure and which would close the connections of all other callers.
type attempts struct{ client *Client }

// RoundTrip makes one attempt. The engine sees neither redirects nor bodies, which http.Client would act upon.
func (a attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	call := callOf(req.Context())
	call.again = false
	err := call.wait() //nolint:contextcheck // call.ctx is that of the attempts; req's ends with Sending too
	if call.err = cmp.Or(call.ctx.Err(), err); call.err != nil {
		return nil, call.err // and the result stays what it was
	}
	start := time.Now()
	call.err = a.client.attempt(req, call) //nolint:contextcheck // as above
	spent := a.client.decide(call)
	if r := &call.result; call.Observe != nil {
		call.Observe(Attempt{
			r.Attempts, r.Status, r.Delivery, time.Since(start), call.place.Waited, spent, call.err,
		})
	}
	if call.err != nil {
		return nil, call.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// wait waits for the turn of an attempt. There is no further one after the end of Sending.
func (c *call) wait() (err error) {
	if c.place = (overload.Place{}); c.Pace.IsLimited() {
		wait := func() (err error) { // of the two contexts, Sending is the one that has the deadline of a walk
			c.place, err = c.Pace.Wait(cmp.Or(c.Sending, c.ctx), c.Patient)
			return err
		}
		if c.Pause == nil || c.mayBePerformed() {
			err = wait()
		} else {
			err = c.Pause(wait)
		}
	}
	if c.isStopped() && !is[*overload.HeldError](err) {
		return ErrStopped
	}
	return err
}

func (c *call) isStopped() bool { return c.Sending != nil && c.Sending.Err() != nil }

// attempt sends the request once and reads the whole response, within the attempt's own deadline.
func (c *Client) attempt(req *http.Request, call *call) error {
	r := &call.result
	*r = Result{Attempts: r.Attempts + 1, Delivery: NotSent, Unsure: call.mayBePerformed(), Keys: r.Keys}
	timeout := c.config.AttemptTimeout
	timeout += time.Duration(min(call.Length/uploadRate, int64((math.MaxInt64-timeout)/time.Second))) * time.Second
	ctx, cancel := context.WithTimeout(call.ctx, timeout)
	defer cancel()
	key, err := c.config.Authorization(ctx)
	if err != nil {
		return &KeyError{err}
	}
	if call.isStopped() { // while the key was waited for
		return ErrStopped
	}
	if !slices.Contains(r.Keys, key) {
		r.Keys = append(r.Keys, key)
	}
	t := tracker{kind: c.kind}
	own := req.WithContext(httptrace.WithClientTrace(ctx, t.hooks()))
	own.Host = own.URL.Host
	if own.Header = call.Header; r.Attempts > 1 { // the attempt before may still be writing its own
		own.Header = maps.Clone(call.Header)
	}
	own.Header["Authorization"] = []string{key}
	c.setBody(own, &call.Request, &t)
	defer t.end()

	resp, err := c.base.RoundTrip(own)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		r.Delivery = t.delivery(call.Length > 0)
		return err
	}
	r.Status, r.Header, r.Delivery = resp.StatusCode, resp.Header, Answered
	r.Unsure = r.Unsure || t.resent(call.Replay)
	if r.Status == http.StatusRequestTimeout && (t.reused.Load() || t.connections.Load() == 0) {
		r.Delivery = Unknown // perhaps written before the request came: servers end idle connections so
	}
	limit := c.config.MaxResponseBytes
	if call.isLeft() && call.mayPass() { // after the next attempt nobody needs it
		limit = min(limit, mostAtOnce)
	}
	r.Body, err = readBody(resp, limit)
	if err == nil || r.Status >= http.StatusBadRequest { // of a failure the status is enough
		return nil
	}
	r.Delivery = Unknown
	return err
}

const (
	uploadRate = 256 << 10 // the slowest, in bytes per second, at which a body is given time to be sent
	mostAtOnce = 1 << 20   // bytes taken because they were announced, and read of an answer that may be followed
)

// readBody closes the body. One within the limit is read to its end, so that its connection can be used again.
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

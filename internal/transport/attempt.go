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
)

// call is the state of one operation over its attempts. It travels through the engine in the context.
type call struct {
	Request

	ctx      context.Context //nolint:containedctx // of the attempts
	max      int
	attempts int
	waited   int     // attempts that were refused and are waited out
	place    place   // of this attempt
	again    bool    // another attempt is to follow
	cost     int64   // of the last repetition
	last     outcome // of the last attempt
	err      error   // of the last attempt, or of the context that kept it from starting
	unsure   bool    // an attempt before the last may have performed the operation
	keys     []string
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// outcome is what one attempt gave.
type outcome struct {
	status   int
	header   http.Header
	body     []byte
	delivery Delivery
	resent   bool // the RoundTripper sent it more than once, so that the answer may not be to the first
	err      error
}

// mayBePerformed reports whether an attempt that is followed by another may have performed the operation.
func (o *outcome) mayBePerformed() bool {
	return o.delivery != NotSent && o.status != http.StatusTooManyRequests
}

func (c *call) result() Result {
	return Result{c.last.status, c.last.header, c.last.body, c.attempts, c.last.delivery, c.unsure, c.keys}
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
		return nil, call.err // and the last attempt stays what it was
	}
	var start time.Time
	if call.Observe != nil {
		start = time.Now()
	}
	call.unsure = call.unsure || call.last.mayBePerformed()
	call.attempts++
	call.last = a.client.attempt(req, call) //nolint:contextcheck // as above
	call.unsure = call.unsure || call.last.resent
	call.err = call.last.err
	spent := a.client.decide(call)
	if call.Observe != nil {
		call.Observe(Attempt{
			call.attempts, call.last.status, call.last.delivery, time.Since(start), call.place.waited,
			spent, call.err,
		})
	}
	if call.err != nil {
		return nil, call.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// wait waits for the turn of an attempt. There is no further one after the end of Sending.
func (c *call) wait() (err error) {
	if c.Pause == nil || c.unsure || c.last.mayBePerformed() || !c.Pace.isLimited() {
		err = c.waitForPace()
	} else {
		err = c.Pause(c.waitForPace)
	}
	if c.isStopped() && !is[*HeldError](err) {
		return ErrStopped
	}
	return err
}

// waitForPace: of the two contexts, Sending is the one that has the deadline of a walk.
func (c *call) waitForPace() (err error) {
	c.place, err = c.Pace.wait(cmp.Or(c.Sending, c.ctx), c.Patient)
	return err
}

func (p *Pace) isLimited() bool { return p != nil && p.limited.Load() }

func (c *call) isStopped() bool { return c.Sending != nil && c.Sending.Err() != nil }

// attempt sends the request once and reads the whole response, within the attempt's own deadline.
func (c *Client) attempt(req *http.Request, call *call) outcome {
	ctx, cancel := context.WithTimeout(call.ctx, c.timeout(call))
	defer cancel()
	key, err := c.config.Authorization(ctx)
	if err != nil {
		return outcome{delivery: NotSent, err: &KeyError{err}}
	}
	if call.isStopped() { // while the key was waited for
		return outcome{delivery: NotSent, err: ErrStopped}
	}
	if !slices.Contains(call.keys, key) {
		call.keys = append(call.keys, key)
	}
	t := tracker{kind: c.kind}
	own := req.WithContext(httptrace.WithClientTrace(ctx, t.hooks()))
	own.Host = own.URL.Host
	if own.Header = call.Header; call.attempts > 1 { // the attempt before may still be writing its own
		own.Header = maps.Clone(call.Header)
	}
	own.Header["Authorization"] = []string{key}
	defer c.setBody(own, &call.Request, &t).close()

	resp, err := c.base.RoundTrip(own)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		return outcome{delivery: t.delivery(), err: err}
	}
	o := outcome{status: resp.StatusCode, header: resp.Header, delivery: Answered, resent: t.resent(call.Replay)}
	if o.status == http.StatusRequestTimeout && (t.reused.Load() || t.connections.Load() == 0) {
		o.delivery = Unknown // perhaps written before the request came: servers end idle connections so
	}
	limit := c.config.MaxResponseBytes
	if call.isLeft() && call.mayPass(&o) { // after the next attempt nobody needs it
		limit = min(limit, mostBetween)
	}
	if o.body, err = readBody(resp, limit); err != nil && o.status < http.StatusBadRequest {
		o.delivery, o.err = Unknown, err // of a failure the status is enough
	}
	return o
}

// uploadRate is the slowest rate, in bytes per second, at which an upload is given time to finish.
const uploadRate = 256 << 10

func (c *Client) timeout(call *call) time.Duration {
	timeout := c.config.AttemptTimeout
	if call.Upload != nil {
		more := time.Duration(call.Upload.Len()/uploadRate) * time.Second
		timeout += min(more, math.MaxInt64-timeout)
	}
	return timeout
}

// mostAhead is the most memory, in bytes, that is taken for a body because its length was announced.
const mostAhead = 1 << 20

// mostBetween is read of an answer that another attempt may follow.
const mostBetween = 1 << 20

// readBody closes the body. One within the limit is read to its end, so that its connection can be used again.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
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
	body, err := readAll(io.LimitReader(resp.Body, max(limit+1, limit)), resp.ContentLength)
	if int64(len(body)) > limit {
		return body[:limit], ErrTooLarge
	}
	return body, err
}

// readAll reads to the end. A size that is announced is believed as long as that costs little memory.
func readAll(from io.Reader, size int64) ([]byte, error) {
	if size <= 0 || size > mostAhead {
		return io.ReadAll(from)
	}
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := body.ReadFrom(from)
	return body.Bytes(), err
}

package transport

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// sending is the state of one operation over its attempts. It travels to them in the request's context.
type sending struct {
	request  *Request
	max      int
	attempts int
	unknown  bool // an attempt may have performed the operation

	authorization string
	last          outcome
}

type sendingKey struct{}

// sendingOf gives what Do, the only caller, has put into the context.
func sendingOf(ctx context.Context) *sending {
	s, _ := ctx.Value(sendingKey{}).(*sending)
	return s
}

// outcome is what one attempt gave.
type outcome struct {
	status   int
	header   http.Header
	body     []byte
	delivery Delivery
	err      error
}

// uploadRate is the slowest rate, in bytes per second, at which an upload is given time to finish.
const uploadRate = 256 << 10

// attempt sends the request once and reads the whole response, within the attempt's own deadline. For the
// engine it returns a response without a body; the body is in the sending state.
func (c *Client) attempt(req *http.Request) (*http.Response, error) {
	s := sendingOf(req.Context())
	start := time.Now()
	s.attempts++
	if err := req.Context().Err(); err != nil {
		closeBody(req)
		if s.attempts == 1 {
			s.last = outcome{delivery: NotSent, err: err}
		}
		return nil, err
	}
	o := c.roundTrip(req, s)
	s.unknown = s.unknown || o.delivery != NotSent && o.status != http.StatusTooManyRequests
	s.last = o
	if observe := s.request.Observe; observe != nil {
		observe(Attempt{s.attempts, o.status, o.delivery, time.Since(start), o.err})
	}
	if o.err != nil {
		return nil, o.err
	}
	header := o.header
	if header.Get("Location") != "" { // net/http would parse it, and fail on a bad one
		header = maps.Clone(header)
		delete(header, "Location")
	}
	return &http.Response{StatusCode: o.status, Header: header, Body: http.NoBody, Request: req}, nil
}

func (c *Client) roundTrip(req *http.Request, s *sending) outcome {
	authorization, err := c.config.Authorization(req.Context())
	if err != nil {
		closeBody(req)
		return outcome{delivery: NotSent, err: &KeyError{err}}
	}
	timeout := c.config.AttemptTimeout
	if upload := s.request.Upload; upload != nil {
		timeout += time.Duration(upload.Len()/uploadRate) * time.Second
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	var t tracker
	req = req.WithContext(httptrace.WithClientTrace(ctx, t.trace()))
	if s.attempts > 1 { // the attempt before may still be writing the header
		req.Header = maps.Clone(req.Header)
	}
	s.authorization = authorization
	req.Header["Authorization"] = []string{authorization}

	resp, err := c.base.RoundTrip(req) //nolint:bodyclose // readBody closes it
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		return outcome{delivery: t.delivery(), err: err}
	}
	if resp.Body == nil { // a hand-made RoundTripper may leave it out
		resp.Body = http.NoBody
	}
	o := outcome{status: resp.StatusCode, header: resp.Header, delivery: Answered}
	o.body, err = readBody(resp.Body, resp.ContentLength, c.config.MaxResponseBytes)
	if err != nil && resp.StatusCode < http.StatusBadRequest {
		o.delivery, o.err = Unknown, err // of a failure the status is enough
	}
	return o
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// presize bounds what is allocated on the word of a Content-Length header.
const presize = 1 << 20

// readBody reads up to limit bytes and closes the body. A body within the limit is read to its end, so
// that its connection can be used again.
func readBody(body io.ReadCloser, length, limit int64) ([]byte, error) {
	defer body.Close()
	if length > limit {
		return nil, ErrTooLarge
	}
	// One byte more than announced, so that the end is seen without growing.
	buf := make([]byte, 0, min(max(length, 511), presize)+1)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return buf[:limit], ErrTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// tracker tells whether a byte of the request can have been written.
type tracker struct{ asked, connected atomic.Bool }

func (t *tracker) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.connected.Store(true) },
	}
}

// delivery counts a request as unsent only if its transport asked for a connection and got none. A transport
// that does not call the hooks proves nothing.
func (t *tracker) delivery() Delivery {
	if t.asked.Load() && !t.connected.Load() {
		return NotSent
	}
	return Unknown
}

// result sums the attempts up.
func (s *sending) result() Result {
	r := Result{
		Status: s.last.status, Header: s.last.header, Body: s.last.body,
		Attempts: s.attempts, Delivery: s.last.delivery,
		RetryAfter: retryAfter(s.last.header), Authorization: s.authorization,
	}
	if s.attempts == 0 {
		r.Delivery = NotSent
	}
	if s.unknown && r.Delivery == NotSent {
		r.Delivery = Unknown
	}
	return r
}

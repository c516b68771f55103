package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// sending is the state of one operation over its attempts. Through the engine it travels in the context.
type sending struct {
	request  Request
	attempts int
	unsure   bool // an attempt before the last one may have performed the operation
	resumed  bool // the engine knows how the first attempt went

	authorization string
	replaced      []string
	last          outcome
	buffer        *buffer // of the last answer

	first tracker
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
	resent   bool // by net/http, which may have been answered the second time only
	err      error
}

// mayBePerformed tells whether an attempt that is followed by another may have performed the operation.
func (o *outcome) mayBePerformed() bool {
	return o.delivery != NotSent && o.status != http.StatusTooManyRequests
}

// uploadRate is the slowest rate, in bytes per second, at which an upload is given time to finish.
const uploadRate = 256 << 10

// attempt sends the request once and reads the whole response, within the attempt's own deadline.
func (c *Client) attempt(ctx context.Context, s *sending) error {
	var start time.Time
	if s.request.Observe != nil {
		start = time.Now()
	}
	if err := ctx.Err(); err != nil {
		return err // and the last attempt stays what it was
	}
	s.unsure = s.unsure || s.attempts > 0 && s.last.mayBePerformed()
	s.attempts++
	o := c.roundTrip(ctx, s)
	s.unsure = s.unsure || o.resent
	s.last = o
	if observe := s.request.Observe; observe != nil {
		observe(Attempt{s.attempts, o.status, o.delivery, time.Since(start), o.err})
	}
	return o.err
}

func (c *Client) roundTrip(ctx context.Context, s *sending) outcome {
	timeout := c.config.AttemptTimeout
	request := &s.request
	if upload := request.Upload; upload != nil {
		if more := time.Duration(upload.Len()/uploadRate) * time.Second; more < math.MaxInt64-timeout {
			timeout += more
		}
		g := &gate{Upload: upload}
		defer g.close()
		gated := s.request
		gated.Upload, request = g, &gated
	}
	t := &s.first
	if s.attempts > 1 {
		t = new(tracker) // the attempt before may still call its hooks
	}
	t.replay = s.request.Replay
	t.Context, t.at = httptrace.WithClientTrace(ctx, t.hooks(c.opaque)), time.Now().Add(timeout)
	defer t.cancel(context.Canceled)
	authorization, err := c.config.Authorization(ctx, t.at) // without the hooks, which would take its connections for ours
	if err != nil {
		return outcome{delivery: NotSent, err: &KeyError{err}}
	}
	req := newRequest(&t.deadline, request, &t.body) //nolint:contextcheck // t.deadline is made of ctx
	if !c.http1.Load() {
		req.GetBody = nil // so that net/http does not send it again, and tells why it would have
	}
	if s.attempts > 1 { // the attempt before may still be writing its header
		req.Header = maps.Clone(req.Header)
	}
	if s.authorization != "" && s.authorization != authorization {
		s.replaced = append(s.replaced, s.authorization)
	}
	s.authorization = authorization
	t.authorization[0] = authorization
	req.Header["Authorization"] = t.authorization[:]

	resp, err := c.base.RoundTrip(req)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		return t.failed(err)
	}
	if http1 := resp.ProtoMajor == 1; http1 != c.http1.Load() {
		c.http1.Store(http1)
	}
	if resp.Body == nil { // a hand-made RoundTripper may leave it out
		resp.Body = http.NoBody
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // its body is the connection, which no deadline ends
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	o := outcome{status: resp.StatusCode, header: resp.Header, delivery: Answered, resent: t.resent.Load()}
	if s.buffer == nil {
		s.buffer = c.newBuffer()
	}
	s.buffer.bytes, err = readBody(s.buffer.bytes, resp.Body, resp.ContentLength, c.config.MaxResponseBytes)
	o.body = s.buffer.bytes
	if err != nil && resp.StatusCode < http.StatusBadRequest {
		o.delivery, o.err = Unknown, err // of a failure the status is enough
	}
	return o
}

// presize bounds what is allocated on the word of a Content-Length header, and what is kept for the next answer.
const presize = 1 << 20

// buffer holds the body of an answer.
type buffer struct{ bytes []byte }

func (c *Client) newBuffer() *buffer {
	if b, ok := c.buffers.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

// Release says that nobody keeps the body of a result, so that the next answer can use its memory.
func (c *Client) Release(r Result) {
	if r.buffer != nil && cap(r.buffer.bytes) <= presize {
		c.buffers.Put(r.buffer)
	}
}

// readBody reads up to limit bytes into buf and closes the body. A body within the limit is read to its end, so
// that its connection can be used again.
func readBody(buf []byte, body io.ReadCloser, length, limit int64) ([]byte, error) {
	defer body.Close()
	if length > limit {
		return nil, ErrTooLarge
	}
	// One byte more than announced, so that the end is seen without growing.
	buf = slices.Grow(buf[:0], int(min(max(length, 511), presize-1)+1))
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

// tracker is the state of one attempt. It tells whether a byte of the request can have been written, and keeps net/http
// from sending the request again and again by itself on HTTP/2. There it does so, without a limit or a pause, if the stream is
// reset with PROTOCOL_ERROR, even though the server may have performed the operation. On HTTP/1 it does so only if
// nothing was written, or with methods that are safe, and once.
type tracker struct {
	asked, connected      atomic.Bool
	http2, gaveUp, resent atomic.Bool

	replay bool
	conn   atomic.Pointer[tls.Conn] // the last one, nil without TLS
	trace  httptrace.ClientTrace

	deadline // the context

	authorization [1]string // the values of the header of that name
	body          bytes.Reader
}

func (t *tracker) hooks(opaque bool) *httptrace.ClientTrace {
	t.trace.GetConn = func(string) { t.asked.Store(true) }
	t.trace.GotConn = func(info httptrace.GotConnInfo) {
		conn, _ := info.Conn.(*tls.Conn)
		before := t.conn.Swap(conn)
		switch again := t.connected.Swap(true); {
		case again:
			t.again(before)
		case opaque && conn == nil:
			t.watchHeader()
		}
	}
	return &t.trace
}

// again is called when net/http takes a second connection, to send the request again.
func (t *tracker) again(before *tls.Conn) {
	switch {
	case t.http2.Load(), before != nil && before.ConnectionState().NegotiatedProtocol == "h2":
		t.gaveUp.Store(true)
		t.cancel(context.Canceled)
	case t.replay:
		t.resent.Store(true)
	}
}

// opaque tells whether a transport may speak HTTP/2 without a *tls.Conn that shows it.
func opaque(rt http.RoundTripper) bool {
	t, ok := rt.(*http.Transport)
	return !ok || t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
}

// watchHeader recognizes HTTP/2 by its pseudo-header fields.
func (t *tracker) watchHeader() {
	callers := t.trace.WroteHeaderField // of a trace in the context of the call
	t.trace.WroteHeaderField = func(key string, values []string) {
		if strings.HasPrefix(key, ":") {
			t.http2.Store(true)
		}
		if callers != nil {
			callers(key, values)
		}
	}
}

// failed is the outcome of a request without a response. It counts as unsent only if its transport asked for a
// connection and got none, or if the server says that it has not processed it. A transport that does not call the
// hooks proves nothing.
func (t *tracker) failed(err error) outcome {
	o := outcome{delivery: Unknown, err: err}
	switch {
	case t.gaveUp.Load():
		o.err = errStreamReset
	case t.asked.Load() && !t.connected.Load(), unprocessed(err):
		o.delivery = NotSent
	}
	return o
}

// unprocessed tells whether the server said that it has not processed the request. HTTP/2 guarantees that for a stream that
// is refused and for one above the last of a GOAWAY (RFC 9113, section 8.7). All that net/http shows of it is
// this text, when it may not send the request again itself.
func unprocessed(err error) bool {
	reason, ok := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	if !ok {
		return false
	}
	reason, _, _ = strings.Cut(reason, "]")
	return reason == "http2: Transport received Server's graceful shutdown GOAWAY" ||
		strings.HasPrefix(reason, "stream error: stream ID ") && strings.HasSuffix(reason, "; REFUSED_STREAM; received from peer")
}

// result sums the attempts up.
func (s *sending) result() Result {
	r := Result{
		Status: s.last.status, Header: s.last.header, Body: s.last.body,
		Attempts: s.attempts, Delivery: s.last.delivery, Unsure: s.unsure,
		Authorization: s.authorization, Replaced: s.replaced, buffer: s.buffer,
	}
	if s.attempts == 0 {
		r.Delivery = NotSent
	}
	return r
}

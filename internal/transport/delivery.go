package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
)

// This file keeps net/http from sending a request twice. It also decides whether a request without a response may have
// been performed.
//
// net/http repeats requests by itself. On HTTP/1 it repeats a request of which it wrote nothing. It also repeats a
// request that it has written, if the method is safe or if the request has an Idempotency-Key. The caller's
// RoundTripper may add such a key. On HTTP/2 net/http repeats a request whose stream the server has reset, although the
// server may have performed it. In all these cases net/http needs GetBody, unless the request has no body.
//
// So a request has GetBody only if net/http gets it directly and speaks nothing but HTTP/1. Otherwise the body can be
// read only once, and net/http cannot repeat it. The call itself then repeats a request that was provably not sent.

// Delivery is how far a request came.
type Delivery uint8

// Unknown is the zero value, so that a Delivery that nobody has set does not mean NotSent.
const (
	Unknown  Delivery = iota // it may have been performed, and no response came
	NotSent                  // it cannot have been performed, since too little of it was written
	Answered                 // a response came
)

// String returns the name of a delivery.
func (d Delivery) String() string {
	return [...]string{Unknown: "unknown", NotSent: "not sent", Answered: "answered"}[d]
}

// inspect reports two things about a RoundTripper. standard means that it is an *http.Transport that calls its hooks
// for every connection. onlyHTTP1 means that it also speaks nothing but HTTP/1.
//
// inspect reads TLSNextProto twice. That of a clone has only the protocols that the caller has added, and such a
// protocol may call no hooks. Clone also makes net/http set up the HTTP/2 of the original, as its first request does.
// That is safe while other requests run. Only afterwards TLSNextProto of the original has the HTTP/2 of net/http.
func inspect(rt http.RoundTripper) (standard, onlyHTTP1 bool) {
	t, ok := rt.(*http.Transport)
	if !ok {
		return false, false
	}
	addedByCaller := t.Clone().TLSNextProto
	if len(addedByCaller) > 0 {
		return false, false
	}
	unencryptedHTTP2 := t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
	return true, len(t.TLSNextProto) == 0 && !unencryptedHTTP2
}

// attemptTrace records which hooks net/http has called in one attempt.
type attemptTrace struct {
	asked        atomic.Bool // net/http has begun to look for a connection
	reused       atomic.Bool // the last connection had been used before
	wroteHeaders atomic.Bool
	connections  atomic.Int32 // number of connections that the attempt got
}

func (t *attemptTrace) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			if isNowhere(info.Conn) {
				return
			}
			t.reused.Store(info.Reused)
			t.connections.Add(1)
		},
		WroteHeaders: func() { // on HTTP/1 net/http calls it before it flushes its buffer
			if t.connections.Load() > 0 {
				t.wroteHeaders.Store(true)
			}
		},
	}
}

// isNowhere reports whether a connection has no remote address. httputil.DumpRequestOut writes a request to such a
// connection. A RoundTripper that logs requests may call it with our context, and our hooks are called then.
func isNowhere(conn net.Conn) bool { return conn != nil && conn.RemoteAddr() == nil }

// isNew reports whether the hooks prove that the last connection was new.
func (t *attemptTrace) isNew() bool { return t.connections.Load() > 0 && !t.reused.Load() }

// deliveryWithResponse returns Answered. The exception is status 408 on a connection that may have been used before.
// Servers end idle connections with this status. They may have written it before the request came, and then it says
// nothing about the request.
func deliveryWithResponse(status int, trace *attemptTrace) Delivery {
	if status == http.StatusRequestTimeout && !trace.isNew() {
		return Unknown
	}
	return Answered
}

// deliveryWithoutResponse returns NotSent if the service cannot have performed the request, and otherwise Unknown.
// bodyMayBeRead tells whether net/http may have read something of the body.
func (c *call) deliveryWithoutResponse(err error, trace *attemptTrace, bodyMayBeRead bool) Delivery {
	bodyIsUnread := c.Length > 0 && !bodyMayBeRead
	if trace.wroteHeaders.Load() {
		if bodyIsUnread && isWriteError(err) { // part of the headers is still in the buffer of net/http
			return NotSent
		}
		return Unknown
	}
	// On HTTP/1 the end of the headers was not even in the buffer.
	if c.client.onlyHTTP1 || c.isProvenUnsent(err, trace, bodyIsUnread) {
		return NotSent
	}
	return Unknown
}

// isProvenUnsent reports whether the service cannot have performed a request for which net/http did not call
// WroteHeaders, if the RoundTripper may speak HTTP/2. There the headers may have left before that call, so more proof
// is needed. net/http must have begun, since a RoundTripper that calls no hooks proves nothing. And one of these must
// hold:
//   - An *http.Transport got no connection. This is the only proof for a request without a body.
//   - net/http did not read the body, and the attempt did not fail because a context ended. When that happens, HTTP/2
//     may still be writing the headers.
func (c *call) isProvenUnsent(err error, trace *attemptTrace, bodyIsUnread bool) bool {
	if !trace.asked.Load() {
		return false
	}
	if c.client.standard && trace.connections.Load() == 0 {
		return true
	}
	return bodyIsUnread && !isContextError(err)
}

// isContextError reports whether the end of a context made the attempt fail.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isWriteError reports whether a write to the connection failed.
func isWriteError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "write"
}

// mayHaveResent reports whether the RoundTripper may have sent the request on an earlier connection too. An
// *http.Transport takes another connection only if it wrote nothing to the first, or if repeating is harmless.
func (c *call) mayHaveResent(trace *attemptTrace) bool {
	return trace.connections.Load() > 1 && (c.Replay || !c.client.standard)
}

// isSafe reports whether net/http repeats a request with this method even if it has written the request.
func isSafe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// setBody prepares the body of an attempt, and decides whether net/http may open it again with GetBody. The caller ends
// the attemptBody that it returns.
//
// net/http may repeat a request by itself only on HTTP/1 alone. Even there it repeats a request with a safe method that
// it has written, so then repeating the operation must be harmless.
func (c *call) setBody(req *http.Request) *attemptBody {
	body := &attemptBody{}
	content := io.Reader(http.NoBody)
	if req.Body != nil {
		content = req.Body
	}
	mayRepeat := c.client.onlyHTTP1 && (!isSafe(req.Method) || c.Replay)
	switch {
	case !mayRepeat:
		// net/http needs no GetBody to repeat a request without a body, so an empty body gets a reader too.
		req.Body, req.GetBody = attemptReader{content, body}, nil
	case c.Open != nil:
		req.Body = attemptReader{content, body}
		req.GetBody = func() (io.ReadCloser, error) { return attemptReader{c.Open(), body}, nil }
	default:
		// A body in memory stays as it is, with the GetBody of the engine. net/http knows its type, and sends it together
		// with the headers. No attemptReader sees whether net/http reads it.
		body.mayBeRead = true
	}
	return body
}

// attemptBody is the state that all readers of the body of one attempt share. On HTTP/2 net/http may read on after the
// attempt. But by then the caller may change the content, so reads fail after the end of the attempt.
type attemptBody struct {
	mu        sync.Mutex
	mayBeRead bool // net/http may have read something
	ended     bool
}

// end waits for a read that is under way, and makes later reads fail. It reports whether net/http may have read
// something.
func (b *attemptBody) end() (mayBeRead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	return b.mayBeRead
}

// attemptReader reads the body of an attempt.
type attemptReader struct {
	content io.Reader
	body    *attemptBody
}

func (r attemptReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.ended {
		return 0, io.ErrClosedPipe
	}
	r.body.mayBeRead = true
	return r.content.Read(p)
}

func (attemptReader) Close() error { return nil }

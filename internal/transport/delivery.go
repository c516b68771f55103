package transport

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
)

// This file keeps net/http from sending a request twice, and says what may have become of one that got no response.
//
// net/http repeats requests by itself. On HTTP/1 it repeats what it could not write at all; and also what it has
// written, if the method is safe or if there is an Idempotency-Key, which a RoundTripper of the caller's may add. On
// HTTP/2 it repeats what a server has reset, although that may have been performed. For each of these it needs a body
// that it can open again, by GetBody. So a request has GetBody only where net/http speaks HTTP/1 alone and no other
// RoundTripper stands in between. Everywhere else its body can be read once, and the call repeats what was provably not
// sent.

// Delivery is how far a request came.
type Delivery uint8

// Unknown is the zero value, so that a request about which nothing is known is not taken for unsent.
const (
	Unknown  Delivery = iota // it may have been performed, and no response came
	NotSent                  // it cannot have been performed, since too little of it was written
	Answered                 // a response came
)

// String returns the name of a delivery.
func (d Delivery) String() string {
	return [...]string{Unknown: "unknown", NotSent: "not sent", Answered: "answered"}[d]
}

// inspect asks net/http whether a RoundTripper is an *http.Transport whose hooks tell of every connection, and whether
// it speaks nothing but HTTP/1. Clone sets an *http.Transport up, as its first request may do at this moment. The clone
// has only the caller's own upgrades, which may call no hooks; then a name in TLSNextProto says that it speaks HTTP/2.
func inspect(rt http.RoundTripper) (standard, onlyHTTP1 bool) {
	t, ok := rt.(*http.Transport)
	if !ok || len(t.Clone().TLSNextProto) > 0 {
		return false, false
	}
	unencryptedHTTP2 := t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
	return true, len(t.TLSNextProto) == 0 && !unencryptedHTTP2
}

// trace records what net/http tells about one attempt.
type trace struct {
	asked, reused, wroteHeaders atomic.Bool
	connections                 atomic.Int32
}

func (t *trace) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			if isNowhere(info.Conn) {
				return
			}
			t.reused.Store(info.Reused)
			t.connections.Add(1)
		},
		WroteHeaders: func() { // on HTTP/1 before their end leaves the buffer
			if t.connections.Load() > 0 {
				t.wroteHeaders.Store(true)
			}
		},
	}
}

// isNowhere reports whether a connection leads to no address, as that of httputil.DumpRequestOut does. A RoundTripper
// that logs what it sends may call that function with our context.
func isNowhere(conn net.Conn) bool { return conn != nil && conn.RemoteAddr() == nil }

// isNew reports whether the last connection is known not to have been used before.
func (t *trace) isNew() bool { return t.connections.Load() > 0 && !t.reused.Load() }

// deliveryWithoutResponse returns NotSent if the request cannot have been performed. On HTTP/1 that is so if the end of
// its headers did not reach the buffer. On HTTP/2 they may have left before net/http says so. So elsewhere more is
// asked for: that net/http has begun, since a RoundTripper that calls no hooks proves nothing, and that nothing was
// read of the body; or, if there is none, that an *http.Transport got no connection.
func (c *call) deliveryWithoutResponse(err error, seen *trace, body *attemptBody) Delivery {
	read := body.end()
	bodyIsUnread := c.Length > 0 && !read
	switch {
	case seen.wroteHeaders.Load() && bodyIsUnread && isWriteError(err): // they have not left the buffer as a whole
		return NotSent
	case seen.wroteHeaders.Load():
		return Unknown
	case c.client.onlyHTTP1:
		return NotSent
	case !seen.asked.Load():
		return Unknown
	case bodyIsUnread, c.client.standard && seen.connections.Load() == 0:
		return NotSent
	}
	return Unknown
}

// isWriteError reports whether a write to the connection failed.
func isWriteError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "write"
}

// mayHaveResent reports whether a connection before the last one may have carried the request. An *http.Transport takes
// another one only if nothing was written to the first, or for a request that is harmless to repeat.
func (c *call) mayHaveResent(seen *trace) bool {
	return seen.connections.Load() > 1 && (c.Replay || !c.client.standard)
}

// isSafe reports whether net/http sends a method again by itself, written or not.
func isSafe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// setBody gives an attempt its body.
func (c *call) setBody(req *http.Request) *attemptBody {
	body := &attemptBody{}
	content := io.Reader(http.NoBody)
	if req.Body != nil {
		content = req.Body
	}
	switch {
	case !c.client.onlyHTTP1, isSafe(req.Method) && !c.Replay:
		// An empty body is set too: without one net/http would repeat the request as if it could read it again.
		req.Body, req.GetBody = attemptReader{content, body}, nil
	case c.Open != nil:
		req.Body = attemptReader{content, body}
		req.GetBody = func() (io.ReadCloser, error) { return attemptReader{c.Open(), body}, nil }
	default:
		// What is in memory stays as it is: net/http knows its type, and sends it together with the headers.
		body.read = true
	}
	return body
}

// attemptBody is the body of one attempt, in however many readers. Nothing is read from it after its attempt, as
// net/http would on HTTP/2: from then on its content is the caller's to change.
type attemptBody struct {
	mu    sync.Mutex
	read  bool // or it may have been
	ended bool
}

// end waits for a read that is under way, allows no further one, and reports whether there may have been one at all.
func (b *attemptBody) end() (read bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	return b.read
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
	r.body.read = true
	return r.content.Read(p)
}

func (attemptReader) Close() error { return nil }

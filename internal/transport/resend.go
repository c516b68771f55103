package transport

import (
	"io"
	"net/http"
	"slices"
	"sync"
)

// This file keeps net/http from repeating a request that may have been performed, unless repeating is harmless.
//
// net/http repeats requests by itself in these cases:
//   - On HTTP/1, if it has written no byte of the request.
//   - On HTTP/1, even if it has written the request: if the method is safe, or if the request has an Idempotency-Key,
//     which the caller's RoundTripper may add.
//   - On HTTP/2, if the server refuses or resets the stream with certain codes, or closes the connection. The server
//     may have performed the request then.
//
// It cannot repeat a request whose body it has begun to read, unless the request has GetBody. So a request has GetBody
// only if net/http gets the request directly and uses nothing but HTTP/1. Otherwise the body can be read only once. The
// call itself then repeats a request that was provably not sent.

// inspect reports two things about a RoundTripper. standard means that it is an *http.Transport that calls its hooks
// for every connection. onlyHTTP1 means that it also uses nothing but HTTP/1.
//
// TLSNextProto has the protocols besides HTTP/1. The caller can add some, which may call no hooks. net/http adds its
// own HTTP/2 when it sets up the Transport. inspect cannot see protocols that the caller has registered by
// RegisterProtocol; the comment of WithHTTPClient warns of that.
func inspect(rt http.RoundTripper) (standard, onlyHTTP1 bool) {
	t, ok := rt.(*http.Transport)
	if !ok {
		return false, false
	}
	// Clone makes net/http set up t, as the first request would, which completes t.TLSNextProto. That is safe while other
	// requests run. The copy has only the protocols that the caller has added.
	addedByCaller := t.Clone().TLSNextProto
	if len(addedByCaller) > 0 {
		return false, false
	}
	speaksHTTP2 := len(t.TLSNextProto) > 0
	speaksUnencryptedHTTP2 := t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
	return true, !speaksHTTP2 && !speaksUnencryptedHTTP2
}

// isSafe reports whether net/http repeats a request with this method even if it has written the request.
func isSafe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// setBody sets the body of an attempt. If net/http must not repeat the request, the body has no GetBody. Otherwise an
// upload gets a GetBody that reads it anew, and a body in memory keeps the GetBody of the engine. net/http may repeat a
// request on HTTP/1 only. If the method is safe, net/http repeats even a request that it has written, so repeating the
// operation must also be harmless. The caller ends the attemptBody that setBody returns.
func (c *call) setBody(req *http.Request) *attemptBody {
	body := &attemptBody{}
	mayRepeat := c.client.onlyHTTP1 && (!isSafe(req.Method) || c.Replay)
	switch {
	case !mayRepeat:
		// An empty body gets a reader too, because net/http repeats a request without a body even without GetBody. HTTP/1
		// sends such a POST or PUT chunked.
		content := io.Reader(http.NoBody)
		if req.Body != nil {
			content = req.Body
		}
		req.Body, req.GetBody = attemptReader{content, body}, nil
	case c.Open != nil:
		req.Body = attemptReader{req.Body, body}
		req.GetBody = func() (io.ReadCloser, error) { return attemptReader{c.Open(), body}, nil }
	default:
		// A body in memory does not change and has the GetBody of the engine. net/http knows its type, and sends it
		// together with the headers. No attemptReader notices whether net/http reads it.
		body.mayBeRead = true
	}
	return body
}

// attemptBody is the state that all readers of the body of one attempt share. On HTTP/2 net/http may read on after the
// attempt. But by then the caller may change the content, so reads fail after the end of the attempt.
type attemptBody struct {
	mu        sync.Mutex
	mayBeRead bool // net/http may have read a part of the body
	ended     bool
}

// end waits for a read that is under way, and makes later reads fail. It reports whether net/http may have read a part
// of the body.
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

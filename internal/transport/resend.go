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
//   - On HTTP/1, if a reused connection fails before net/http has written a byte of the request.
//   - On HTTP/1, if a reused connection fails later but before the response, and the method is safe or the request has
//     an Idempotency-Key. The caller's RoundTripper may add this header.
//   - On HTTP/2, if the server refuses or resets the stream with certain codes, or closes the connection. The server
//     may have performed the request then.
//
// net/http cannot repeat a request whose body it has begun to read, unless the request has GetBody. So setBody leaves
// GetBody in a request only if the RoundTripper is an *http.Transport that uses nothing but HTTP/1. If a request was
// provably not sent, the call itself makes another attempt.

// inspect reports two things about a RoundTripper. standard means that it is an *http.Transport that calls the hooks of
// httptrace for every connection. onlyHTTP1 means that it also uses nothing but HTTP/1.
//
// TLSNextProto has the protocols other than HTTP/1. net/http adds its own HTTP/2, encrypted or not, when it sets up the
// Transport. The caller may have added protocols whose code calls no hooks. inspect does not find a protocol that
// the caller has registered with RegisterProtocol; the comment of WithHTTPClient warns of that.
func inspect(rt http.RoundTripper) (standard, onlyHTTP1 bool) {
	t, ok := rt.(*http.Transport)
	if !ok {
		return false, false
	}
	// Clone makes net/http set up t, as the first request would, and is safe while other requests run. The setup
	// adds HTTP/2 to t.TLSNextProto. The TLSNextProto of the clone has entries only if the caller has set them.
	addedByCaller := t.Clone().TLSNextProto
	if len(addedByCaller) > 0 {
		return false, false
	}
	speaksHTTP2 := len(t.TLSNextProto) > 0
	return true, !speaksHTTP2
}

// isSafe reports whether net/http repeats a request with this method even if it has written the request.
func isSafe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// setBody sets the body of an attempt. The caller must call end on the result. If net/http must not repeat the request,
// setBody removes GetBody.
//
// setBody lets net/http repeat a request that has Replay and no body. It lets net/http repeat any other request only if
// the RoundTripper uses nothing but HTTP/1. Even then a request with a safe method needs Replay, because net/http
// repeats such a request even if it was written.
func (c *call) setBody(req *http.Request) *attemptBody {
	body := &attemptBody{}
	mayRepeat := c.client.onlyHTTP1 && (!isSafe(req.Method) || c.Replay)
	switch {
	case req.Body == nil && c.Replay:
		// Unlike an attemptReader, this body lets HTTP/2 end the stream with the headers. Some firewalls refuse a GET whose
		// stream ends later.
		req.Body = http.NoBody
	case !mayRepeat:
		// An empty body gets a reader too, because net/http repeats a request without a body even without GetBody. As a
		// consequence, the request declares no length, and HTTP/1 sends an empty POST or PUT with chunked encoding. Some
		// servers refuse such requests. The comment of WithHTTPClient warns of that.
		content := io.Reader(http.NoBody)
		if req.Body != nil {
			content = req.Body
		}
		req.Body, req.GetBody = attemptReader{content, body}, nil
	case c.Open != nil:
		req.Body = attemptReader{req.Body, body}
		req.GetBody = func() (io.ReadCloser, error) { return attemptReader{c.Open(), body}, nil }
		if c.Length >= longUpload {
			askBeforeUpload(req)
		}
	default:
		// The body is in memory, or there is none. A body in memory does not change, and has the GetBody of the engine. It is
		// not wrapped in an attemptReader, because net/http sends a body together with the headers only if it knows the type
		// of the body. So nothing notices whether net/http reads the body, and mayBeRead is set at once.
		body.mayBeRead = true
	}
	return body
}

// longUpload is the length, in bytes, of the shortest upload for which setBody calls askBeforeUpload.
const longUpload = 64 << 10

// askBeforeUpload makes net/http wait for status 100 before it sends the body, but no longer than the
// ExpectContinueTimeout of the Transport. A server that refuses an upload without reading it may close the connection.
// If net/http is then still writing the body, it returns the error of the write instead of the refusal.
func askBeforeUpload(req *http.Request) {
	req.Header["Expect"] = []string{"100-continue"}
	req.ProtoMajor, req.ProtoMinor = 1, 1 // without a version, net/http sends the header and does not wait
}

// attemptBody is the state that all readers of the body of one attempt share. On HTTP/2 net/http may still read the
// body after the attempt, when the caller may change the content. So reads after the attempt fail.
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

package transport

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
)

// kind is what is known of a RoundTripper.
type kind struct {
	standard bool // it is an *http.Transport, so that its hooks say all
	onlyH1   bool // and speaks HTTP/1 only
	plainH1  bool // and speaks HTTP/1 on connections without TLS
}

// kindOf asks net/http: once it has set an *http.Transport up, a name in TLSNextProto says that it speaks HTTP/2.
func kindOf(rt http.RoundTripper) kind {
	t, ok := rt.(*http.Transport)
	if !ok {
		return kind{}
	}
	_ = t.Clone() // sets t up, as its first request would, perhaps at this moment
	return kind{
		standard: true, onlyH1: len(t.TLSNextProto) == 0, plainH1: t.Protocols == nil || !t.Protocols.UnencryptedHTTP2(),
	}
}

// tracker learns by the hooks of net/http what became of the request of one attempt.
type tracker struct {
	kind          kind
	asked, reused atomic.Bool
	rewindable    atomic.Bool // the last connection speaks HTTP/1 and was used before
	connections   atomic.Int32
	taken         atomic.Bool // of a body that is watched
}

func (t *tracker) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			conn, secure := info.Conn.(interface{ ConnectionState() tls.ConnectionState }) // as net/http asks
			http1 := secure && conn.ConnectionState().NegotiatedProtocol != "h2" || !secure && t.kind.plainH1
			t.rewindable.Store(http1 && info.Reused)
			t.reused.Store(info.Reused)
			t.connections.Add(1)
		},
	}
}

// delivery of a request without a response: unsent only if a connection was asked for, none got, and nothing taken of
// the body.
func (t *tracker) delivery() Delivery {
	if t.asked.Load() && t.connections.Load() == 0 && !t.taken.Load() {
		return NotSent
	}
	return Unknown
}

// resent reports whether an earlier connection may have carried the request. An *http.Transport takes a second one for
// what must not be repeated only if nothing was written to the first.
func (t *tracker) resent(replay bool) bool {
	return t.connections.Load() > 1 && (replay || !t.kind.standard)
}

// setBody decides what net/http may send again by itself. It asks for the body anew on HTTP/1 only when nothing was
// written to a connection that was idle too long, but on HTTP/2 also after a reset, when the operation may have been
// performed. Without a body it does not ask, on HTTP/1 only for safe methods; an empty body that it cannot get anew
// stops it.
func (c *Client) setBody(req *http.Request, r *Request, t *tracker) *body {
	b := &body{request: r, taken: &t.taken}
	again := r.Replay || !safe(r.Method)
	switch {
	case r.Upload != nil:
		req.ContentLength = r.Upload.Len()
	case r.Body != nil || !again || !c.kind.onlyH1:
		req.ContentLength = int64(len(r.Body))
	default:
		return b
	}
	if r.Upload == nil && c.kind.standard {
		req.Body = io.NopCloser(b.open()) // of a type that net/http knows to be in memory
	} else {
		req.Body = b.reader()
	}
	if again {
		req.GetBody = func() (io.ReadCloser, error) {
			if !t.rewindable.Load() {
				return nil, errNotAgain
			}
			return b.reader(), nil
		}
	}
	return b
}

// safe reports whether net/http sends a request of this method again when its connection was lost.
func safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// body keeps net/http from reading on after the attempt, on HTTP/2: the content is the caller's to change from then on.
type body struct {
	request *Request
	taken   *atomic.Bool

	mu     sync.Mutex
	closed bool
}

func (b *body) open() io.Reader {
	if b.request.Upload != nil {
		return b.request.Upload.Open()
	}
	return bytes.NewReader(b.request.Body)
}

func (b *body) reader() io.ReadCloser { return &bodyReader{b, b.open()} }

// close waits for a read that is under way.
func (b *body) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

type bodyReader struct {
	body   *body
	source io.Reader
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.body.taken.Store(true)
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.closed {
		return 0, io.ErrClosedPipe
	}
	return r.source.Read(p)
}

func (r *bodyReader) Close() error { return nil }

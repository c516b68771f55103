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
	standard bool // it is an *http.Transport without upgrades of the caller's, so that its hooks say all
	onlyH1   bool // and speaks HTTP/1 only
	plainH1  bool // and speaks HTTP/1 where nothing was negotiated
}

// kindOf asks net/http. Clone sets an *http.Transport up, as its first request may do at this moment, and has only the
// caller's own upgrades, which may call no hooks; from then on a name in TLSNextProto says that it speaks HTTP/2.
func kindOf(rt http.RoundTripper) kind {
	t, ok := rt.(*http.Transport)
	if !ok || len(t.Clone().TLSNextProto) > 0 {
		return kind{}
	}
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

	mu    sync.Mutex
	taken bool // something of a body that is watched
	ended bool
}

func (t *tracker) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			conn, secure := info.Conn.(interface{ ConnectionState() tls.ConnectionState }) // as net/http asks
			http1 := t.kind.plainH1 && (!secure || conn.ConnectionState().NegotiatedProtocol != "h2") ||
				!t.kind.standard && secure && conn.ConnectionState().NegotiatedProtocol == "http/1.1"
			t.rewindable.Store(http1 && info.Reused)
			t.reused.Store(info.Reused)
			t.connections.Add(1)
		},
	}
}

// delivery of a request without a response: unsent only if a connection was asked for, none got, and nothing taken of
// the body. That there is none to take proves nothing of a RoundTripper that may not call all hooks.
func (t *tracker) delivery(body bool) Delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.Load() && t.connections.Load() == 0 && !t.taken && (body || t.kind.standard) {
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
func (c *Client) setBody(req *http.Request, r *Request, t *tracker) {
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, r.Method)
	open, again := r.Open, r.Replay || !safe
	if open == nil && again && c.kind.onlyH1 {
		return
	}
	if open == nil {
		open = func() io.Reader { return bytes.NewReader(nil) }
	}
	content := open()
	req.Body, req.ContentLength = watched{content, t}, r.Length
	if _, inMemory := content.(*bytes.Reader); inMemory && c.kind.standard {
		req.Body = io.NopCloser(content) // of a type that net/http knows
	}
	if again {
		req.GetBody = func() (io.ReadCloser, error) {
			if !t.rewindable.Load() {
				return nil, errNotAgain
			}
			return watched{open(), t}, nil
		}
	}
}

// watched is a body that is not read after its attempt, as net/http may do on HTTP/2: the content is the caller's to
// change from then on.
type watched struct {
	source  io.Reader
	attempt *tracker
}

func (w watched) Read(p []byte) (int, error) {
	w.attempt.mu.Lock()
	defer w.attempt.mu.Unlock()
	if w.attempt.ended {
		return 0, io.ErrClosedPipe
	}
	w.attempt.taken = true
	return w.source.Read(p)
}

func (w watched) Close() error { return nil }

// end waits for a read that is under way.
func (t *tracker) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

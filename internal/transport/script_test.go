package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errLost    = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

	errUnscripted = errors.New("a request that the script does not have")
)

// step returns the response to a request, or an error.
type step func(req *http.Request) (*http.Response, error)

// script is a RoundTripper for tests. It answers each request with the next of its steps, and records the request.
type script struct {
	steps []step

	mu     sync.Mutex
	sent   []sentRequest
	bodies []*trackedBody
}

type sentRequest struct {
	at     time.Time
	header http.Header // the map of the request, not a copy
	body   string
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.sent)
	s.sent = append(s.sent, sentRequest{at: time.Now(), header: req.Header})
	if n >= len(s.steps) {
		return nil, errUnscripted
	}
	resp, err := s.steps[n](req)
	if _, refused := errors.AsType[refusal](err); req.Body != nil && !refused {
		b, err := io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		s.sent[n].body = string(b)
	}
	if resp != nil && resp.Body != nil {
		b := &trackedBody{ReadCloser: resp.Body}
		s.bodies = append(s.bodies, b)
		resp.Body = b
	}
	return resp, err
}

// assertClosed checks that each body was closed.
func (s *script) assertClosed(t *testing.T) {
	t.Helper()
	for i, b := range s.bodies {
		assert.True(t, b.closed, "body %d was not closed", i)
	}
}

// trackedBody is a response body that records how it was read and whether it was closed.
type trackedBody struct {
	io.ReadCloser

	read   int
	atEOF  bool
	closed bool
}

func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += n
	b.atEOF = b.atEOF || err == io.EOF
	return n, err
}

func (b *trackedBody) Close() error {
	b.closed = true
	return b.ReadCloser.Close()
}

// times returns n copies of a step.
func times(n int, s step) []step { return slices.Repeat([]step{s}, n) }

// answer returns a step that answers with this status, body and header. In header, keys and values alternate.
func answer(status int, body string, header ...string) step {
	return func(req *http.Request) (*http.Response, error) {
		connected(req)
		return response(status, strings.NewReader(body), int64(len(body)), header...), nil
	}
}

func response(status int, body io.Reader, length int64, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: length}
	for pair := range slices.Chunk(header, 2) {
		resp.Header.Add(pair[0], pair[1])
	}
	return resp
}

// refused returns a step that fails with err, like a transport that got no connection.
func refused(err error) step {
	return func(req *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(req.Context()).GetConn("service.test:443")
		return nil, refusal{err}
	}
}

// refusal is the error of a step that got no connection. After it the script does not read the request body.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// lost returns a step that fails with err, like a transport whose connection broke after the headers were written.
func lost(err error) step {
	return func(req *http.Request) (*http.Response, error) {
		connected(req)
		return nil, err
	}
}

// silent returns a step that fails with err, like a RoundTripper that calls no hooks of httptrace.
func silent(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hang is a step that gets a connection and no answer. It fails when the context of the attempt ends.
func hang(req *http.Request) (*http.Response, error) {
	connected(req)
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// cut returns a step whose answer breaks off: after 4 of the 8 bytes that Content-Length announces, reading fails.
func cut(status int) step {
	return func(req *http.Request) (*http.Response, error) {
		connected(req)
		body := io.MultiReader(strings.NewReader("half"), brokenReader{})
		return response(status, body, 8), nil
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func connected(req *http.Request) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GetConn("service.test:443")
	trace.GotConn(httptrace.GotConnInfo{})
	trace.WroteHeaders()
}

// testConfig returns a configuration with short waits.
func testConfig(rt http.RoundTripper) Config {
	c := Config{
		Authorization:    func(context.Context) (string, error) { return "Basic static", nil },
		AttemptTimeout:   30 * time.Second,
		MaxResponseBytes: 1 << 20,
		Policy: Policy{
			MaxAttempts: 3, MinBackoff: time.Microsecond, MaxBackoff: time.Millisecond, MaxRetryAfter: time.Second,
		},
	}
	if rt != nil {
		c.HTTP = &http.Client{Transport: rt}
	}
	return c
}

func post(replay bool) *Request {
	r := &Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: "service.test", Path: "/base/pg/tokenize"},
		Header: http.Header{}, Replay: replay,
	}
	return r.text(`{"n":1}`)
}

// to sets the URL of a request.
func (r *Request) to(t *testing.T, address string) *Request {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	r.URL = u
	return r
}

// text sets a body in memory, or none if body is "".
func (r *Request) text(body string) *Request {
	r.Body, r.Length = []byte(body), int64(len(body))
	if body == "" {
		r.Body = nil
	}
	return r
}

// upload sets an upload of this many zero bytes, which are generated while they are read.
func (r *Request) upload(size int64) *Request {
	r.Body, r.Open, r.Length = nil, func() io.Reader { return io.LimitReader(zeros{}, size) }, size
	return r
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// repeated returns the letter x, n times.
func repeated(n int) string { return string(bytes.Repeat([]byte("x"), n)) }

// forgetful makes a RoundTripper from a function. Unlike a script, it records no requests.
type forgetful step

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

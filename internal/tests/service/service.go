// Package service provides test servers that replace the payment service, clients of these servers, and assertions
// about errors. A Server listens on a socket and records its requests. Pipe starts a server that works in a synctest
// bubble.
package service

import (
	"bytes"
	"context"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/testonly"
	"example.com/payvault/internal/tests/calls"
)

const (
	// APIKey is the API key of the clients that Client returns.
	APIKey = "test-api-key"
	// BasicToken is the Authorization header of the clients that Client returns. It encodes ":test-api-key".
	BasicToken = "Basic OnRlc3QtYXBpLWtleQ=="
	// BasePath is a path that tests append to a base URL.
	BasePath = "/gateway/v1"
	// Nowhere is a base URL with a port on which no server listens.
	Nowhere = "http://127.0.0.1:1"
)

// Seen is a request that a server received.
type Seen struct {
	Method, Target, Path string
	Query                url.Values
	Header               http.Header
	Body                 []byte
}

// Server records the requests that it receives.
type Server struct {
	*httptest.Server

	mu   sync.Mutex
	list []Seen
}

// Observe starts a server that records each request and calls a function to answer it. The function gets the number of
// the request, which is 1 for the first one.
func Observe(tb testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *Server {
	tb.Helper()
	s := &Server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(s.add(r), w, r)
	}))
	_ = s.Listener.Close()
	s.Listener = listen(tb)
	s.Start()
	tb.Cleanup(s.Close)
	return s
}

// Answer starts a server that always sends the same answer.
func Answer(tb testing.TB, status int, body string) *Server {
	tb.Helper()
	return Observe(tb, func(_ int, w http.ResponseWriter, _ *http.Request) { Say(w, status, body) })
}

// listen listens on [::1], or on 127.0.0.1 if the machine has no IPv6. Many programs listen on 127.0.0.1. There, the
// server could get a port that another program has just closed, and clients of that program could connect to the
// server.
func listen(tb testing.TB) net.Listener {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "[::1]:0")
	if err != nil {
		listener, err = new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	}
	require.NoError(tb, err)
	return listener
}

// add records a request with its body, and returns the number of requests so far.
func (s *Server) add(r *http.Request) int {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, Seen{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Header: r.Header.Clone(),
		Body: body,
	})
	return len(s.list)
}

// Seen returns all requests so far.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// Say sends an answer with a JSON body.
func Say(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = strings.NewReader(body).WriteTo(w)
}

// Client returns a client that uses the key APIKey and does not wait between attempts.
func Client(tb testing.TB, baseURL string, opts ...payvault.Option) *payvault.Client {
	tb.Helper()
	quick := []payvault.Option{Impatient(0), WithoutOverloadLimits()}
	c, err := payvault.NewClient(baseURL, APIKey, append(quick, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(c.CloseIdleConnections)
	return c
}

// WithoutOverloadLimits returns an option that turns off the retry budget and the rate limit after status 429.
func WithoutOverloadLimits() payvault.Option {
	return testonly.WithoutOverloadLimits().(payvault.Option) //nolint:errcheck // see package testonly
}

// Impatient returns an option for retries without a backoff. It permits the given number of attempts, or the default
// number if attempts is 0. A single call does not retry after a response that asks for a wait.
func Impatient(attempts int) payvault.Option {
	return payvault.WithRetryPolicy(payvault.RetryPolicy{
		MaxAttempts: attempts, MinBackoff: 1, MaxBackoff: 1, MaxRetryAfter: 1,
	})
}

// RoundTripper is a transport made from a function.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Over returns the option that makes a client send its requests with the given RoundTripper.
func Over(rt http.RoundTripper) payvault.Option {
	return payvault.WithHTTPClient(&http.Client{Transport: rt})
}

// Reply returns a response with a JSON body, for use in a RoundTripper.
func Reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
}

// Canned returns a transport that reads each request and always sends the same answer.
func Canned(status int, body string) RoundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return Reply(status, body), nil
	}
}

// Pipe starts a server with connections in memory, so the server works in a synctest bubble. Pipe returns an
// http.Client that sends all requests to the server.
func Pipe(tb testing.TB, serve http.HandlerFunc) *http.Client {
	tb.Helper()
	l := pipeListener{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: serve, ReadHeaderTimeout: 1 << 50}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) })
	pool := &http.Transport{DialContext: l.dial}
	tb.Cleanup(func() {
		pool.CloseIdleConnections()
		_ = server.Close()
		running.Wait()
	})
	return &http.Client{Transport: pool}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is called once by an [http.Server].
func (l pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// Exchange makes a call to a server that answers with status 200 and the given body. The server must receive exactly
// one request. Exchange returns this request, and the result and the error of the call.
func Exchange(
	t *testing.T, o *calls.Operation, request any, answer string, opts ...payvault.Option,
) (Seen, any, error) {
	t.Helper()
	server := Answer(t, http.StatusOK, answer)
	result, err := o.Do(t.Context(), Client(t, server.URL+BasePath, opts...), calls.Documented(), request)
	require.Len(t, server.Seen(), 1)
	return server.Seen()[0], result, err
}

// AssertForm checks that the multipart form of a request has this disputeResponse and this file. If content is nil, the
// form must have no file.
func AssertForm(t *testing.T, got Seen, response, fileName string, content []byte) {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	require.NoError(t, err)
	assert.Equal(t, "multipart/form-data", mediaType)
	form, err := multipart.NewReader(bytes.NewReader(got.Body), params["boundary"]).ReadForm(1 << 22)
	require.NoError(t, err)
	require.Len(t, form.Value, 1)
	assert.JSONEq(t, response, strings.Join(form.Value["disputeResponse"], ""))
	if content == nil {
		assert.Empty(t, form.File)
		return
	}
	require.Len(t, form.File, 1)
	require.Len(t, form.File["file"], 1)
	part := form.File["file"][0]
	assert.Equal(t, fileName, part.Filename)
	assert.Equal(t, "application/pdf", part.Header.Get("Content-Type"))
	assert.Len(t, part.Header, 2)
	file, err := part.Open()
	require.NoError(t, err)
	sent, err := io.ReadAll(file)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(content, sent), "other content")
}

// Together calls f in n goroutines at the same time and waits until all of them have ended.
func Together(n int, f func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(f)
	}
	wg.Wait()
}

// Methods returns the names of the methods of all services of a client, such as "Customers.Create".
func Methods() []string {
	var all []string
	for field := range reflect.TypeFor[payvault.Client]().Fields() {
		if field.IsExported() {
			for method := range field.Type.Methods() {
				all = append(all, field.Name+"."+method.Name)
			}
		}
	}
	return all
}

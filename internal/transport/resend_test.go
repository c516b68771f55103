package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/pool"
)

// TestInspect checks the results of inspect: which RoundTrippers are standard, and which ones use only HTTP/1.
func TestInspect(t *testing.T) {
	t.Parallel()
	asked := func(h2, unencrypted bool) *http.Protocols {
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetHTTP2(h2)
		p.SetUnencryptedHTTP2(unencrypted)
		return p
	}
	type upgrades = map[string]func(string, *tls.Conn) http.RoundTripper
	upgrade := upgrades{"h2": func(string, *tls.Conn) http.RoundTripper { return nil }}
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	type result struct{ standard, onlyHTTP1 bool }
	both, only1 := result{standard: true}, result{standard: true, onlyHTTP1: true}
	for name, test := range map[string]struct {
		rt   http.RoundTripper
		want result
	}{
		"some RoundTripper":        {forgetful(nil), result{}},
		"the default":              {&http.Transport{}, both},
		"own dialer":               {&http.Transport{DialContext: dial}, only1},
		"own dialer for TLS":       {&http.Transport{DialTLSContext: dial}, only1},
		"own settings of TLS":      {&http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}, only1},
		"own dialer, HTTP/2 asked": {&http.Transport{DialContext: dial, ForceAttemptHTTP2: true}, both},
		"TLS dialer, HTTP/2 asked": {&http.Transport{DialTLSContext: dial, ForceAttemptHTTP2: true}, both},
		"no upgrade":               {&http.Transport{TLSNextProto: upgrades{}, ForceAttemptHTTP2: true}, only1},
		"an upgrade":               {&http.Transport{TLSNextProto: upgrade, DialContext: dial}, result{}},
		"HTTP/1 asked":             {&http.Transport{Protocols: asked(false, false)}, only1},
		"HTTP/2 asked":             {&http.Transport{Protocols: asked(true, false), DialContext: dial}, both},
		"h2c asked":                {&http.Transport{Protocols: asked(false, true)}, both},
		"both":                     {&http.Transport{Protocols: asked(true, true)}, both},
		"own pool":                 {pool.New(), only1},
	} {
		for range 2 { // a second call must return the same, although the first one has set up the Transport
			standard, onlyHTTP1 := inspect(test.rt)
			assert.Equal(t, test.want, result{standard, onlyHTTP1}, name)
		}
	}
}

// TestNewBesideARequest fails only with -race. It checks that there is no data race if New inspects a Transport while
// another client sends the first request with it.
func TestNewBesideARequest(t *testing.T) {
	t.Parallel()
	shared := http.DefaultTransport.(*http.Transport).Clone()
	var both sync.WaitGroup
	both.Go(func() {
		//nolint:testifylint // only the race counts
		_, _ = New(testConfig(shared)).Do(t.Context(), post(false).to(t, "http://127.0.0.1:1"))
	})
	both.Go(func() { New(testConfig(shared)) })
	both.Wait()
}

// TestMeansToResend checks the Body and the GetBody of requests. net/http may repeat a request with Replay and without
// a body. Its Body is http.NoBody, so that HTTP/2 ends the stream with the headers. net/http may repeat any other
// request only on HTTP/1, and a GET only if it also has Replay. A request that must not be repeated has no GetBody, and
// has a Body even if the body is empty.
func TestMeansToResend(t *testing.T) {
	t.Parallel()
	requests := []*Request{post(false).text(""), post(false).text("{}"), post(false).upload(3)}
	for _, request := range requests {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
			for _, replay := range []bool{false, true} {
				for _, onlyHTTP1 := range []bool{false, true} {
					mayRepeat := onlyHTTP1 && (replay || method != http.MethodGet)
					c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
						assert.Equal(t, mayRepeat && request.Length > 0, req.GetBody != nil)
						if replay && request.Length == 0 {
							assert.Equal(t, http.NoBody, req.Body)
						} else {
							assert.Equal(t, !mayRepeat || request.Length > 0, req.Body != nil)
						}
						return response(http.StatusOK, strings.NewReader(""), 0), nil
					})))
					c.onlyHTTP1 = onlyHTTP1
					request.Method, request.Replay = method, replay
					_, err := c.Do(t.Context(), request)
					require.NoError(t, err)
				}
			}
		}
	}
}

// derived returns base, and RoundTrippers that pass the request on to base. One adds a header. The others derive a
// context, as tracing libraries do, and an http.Client that has a Timeout.
func derived(base http.RoundTripper) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{
		"plain": base,
		"WithTimeout per hop": forgetful(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(req.Context(), time.Minute)
			context.AfterFunc(req.Context(), cancel)
			return base.RoundTrip(req.WithContext(ctx))
		}),
		"WithCancel and its own hooks": forgetful(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{}))
			context.AfterFunc(req.Context(), cancel)
			return base.RoundTrip(req.Clone(ctx))
		}),
		"http.Client with Timeout": forgetful((&http.Client{Transport: base, Timeout: time.Minute}).Do),
		"an Idempotency-Key": forgetful(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("Idempotency-Key", "1")
			return base.RoundTrip(req)
		}),
	}
}

// TestNeverTwiceOnHTTP2 checks that a request without Replay is performed once if the server performs it and then
// resets its HTTP/2 stream. It tests all error codes except REFUSED_STREAM, which states that nothing was performed.
// "http over TLS" is a TLS server that negotiates no protocol with ALPN.
func TestNeverTwiceOnHTTP2(t *testing.T) {
	t.Parallel()
	const calls = 5
	for _, scheme := range []string{"https", "http", "http over TLS"} {
		for code := range uint32(0xd + 1) {
			if code == refusedStream {
				continue
			}
			t.Run(fmt.Sprintf("%s, code %d", scheme, code), func(t *testing.T) {
				t.Parallel()
				base, address, streams := resetting(t, scheme, code, everySecond)
				for name, rt := range derived(base.base) {
					config := testConfig(rt)
					config.AttemptTimeout = 10 * time.Second // enough time for net/http to repeat the request
					c := New(config)
					for _, request := range []*Request{
						(&Request{Method: http.MethodPost}).text("{}"),
						{Method: http.MethodPost},
						{Method: http.MethodDelete},
						(&Request{Method: http.MethodPost}).upload(3),
						{Method: http.MethodGet},
					} {
						request.Header = http.Header{}
						for range calls {
							_, err := c.Do(t.Context(), request.to(t, address))
							require.NoError(t, err)
							before := streams.Load()
							result, err := c.Do(t.Context(), request)
							require.Error(t, err, name)
							require.Equal(t, Unknown, result.Delivery, name)
							require.Equal(t, 1, result.Attempts, name)
							require.EqualValues(t, 1, streams.Load()-before, "%s, %s: performed more than once", name, request.Method)
						}
					}
				}
			})
		}
	}
}

// TestNeverTwiceOnHTTP1 checks that a request without Replay is performed once if the server reads it from a reused
// HTTP/1 connection and then closes the connection. net/http repeats such a request if it has a safe method or an
// Idempotency-Key, and can be sent again.
func TestNeverTwiceOnHTTP1(t *testing.T) {
	t.Parallel()
	for wrapper := range derived(nil) {
		for _, request := range []*Request{
			(&Request{Method: http.MethodPost}).text("{}"),
			{Method: http.MethodPost},
			{Method: http.MethodDelete},
			(&Request{Method: http.MethodPost}).upload(3),
			{Method: http.MethodGet},
		} {
			synctest.Test(t, func(t *testing.T) {
				served := 0
				tr := pipes(t, func(conn net.Conn) { // it answers only the first request
					for r := bufio.NewReader(conn); readRequest(r) == nil; {
						if served++; served > 1 {
							return
						}
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
					}
				})
				c := New(testConfig(derived(tr)[wrapper]))
				request.Header = http.Header{}
				_, err := c.Do(t.Context(), request.to(t, "http://service.test/"))
				require.NoError(t, err)
				result, err := c.Do(t.Context(), request)
				require.Error(t, err)
				assert.Equal(t, Unknown, result.Delivery, wrapper)
				assert.Equal(t, 1, result.Attempts, wrapper)
				assert.Equal(t, 2, served, "%s, %s: performed more than once", wrapper, request.Method)
			})
		}
	}
}

// TestStreamsResetByHTTP2 checks that net/http does not repeat a request whose HTTP/2 stream the server has reset, or
// left out with a GOAWAY frame. The server does so with the first two streams, and must get one request for each
// attempt. The call makes another attempt if it has Replay, or if the server states that it has not processed the
// stream. If neither is so, there is no other attempt; TestNeverTwiceOnHTTP2 has this case. Requests with Replay and
// without a body are not tested, because net/http may repeat them.
func TestStreamsResetByHTTP2(t *testing.T) {
	t.Parallel()
	codes := map[string]uint32{"protocol error": 1, "internal error": 2, "refused": refusedStream, "GOAWAY": goAway}
	for name, code := range codes {
		isUnprocessed := code == refusedStream || code == goAway
		for _, request := range []Request{
			*(&Request{Method: http.MethodPost}).text("{}"),
			{Method: http.MethodPost},
			{Method: http.MethodDelete},
			{Method: http.MethodGet},
		} {
			for _, scheme := range []string{"https", "http"} {
				for attempts, want := range map[int]Delivery{1: Unknown, 2: Unknown, 3: Answered} {
					r := request
					r.Header, r.MaxAttempts, r.Replay = http.Header{}, max(attempts, 2), attempts > 1
					if r.Replay && r.Length == 0 || !r.Replay && !isUnprocessed {
						continue
					}
					if isUnprocessed && want == Unknown {
						attempts, want = r.MaxAttempts, NotSent
					}
					t.Run(fmt.Sprintf("%s, %s, %s, %d attempts", name, scheme, request.Method, attempts), func(t *testing.T) {
						t.Parallel()
						for _, wrapper := range []string{"plain", "http.Client with Timeout"} {
							c, address, streams := resetting(t, scheme, code, 2)
							c = New(testConfig(derived(c.base)[wrapper]))
							result, err := c.Do(t.Context(), r.to(t, address))
							assert.Equal(t, attempts, result.Attempts, wrapper)
							assert.EqualValues(t, attempts, streams.Load(), wrapper)
							assert.Equal(t, want, result.Delivery, wrapper)
							assert.Equal(t, r.Replay && !isUnprocessed, result.Unsure, wrapper)
							assert.Equal(t, want == Answered, err == nil, wrapper)
							assert.NotErrorIs(t, err, context.Canceled, "nobody has canceled the call")
						}
					})
				}
			}
		}
	}
}

// closingReused returns a context for a request. If the request gets a reused connection, a hook closes *last, the
// server's end of this connection, before the request is written.
func closingReused(t *testing.T, last *net.Conn) context.Context {
	t.Helper()
	return httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			_ = (*last).Close()
			synctest.Wait() // until net/http has noticed that the connection is closed
		}
	}})
}

// TestIdleHTTP2ConnectionThatEndsBeforeTheWrite checks that a request is performed once, even without a body, if the
// server closes the reused HTTP/2 connection before the request is written.
func TestIdleHTTP2ConnectionThatEndsBeforeTheWrite(t *testing.T) {
	t.Parallel()
	for _, request := range []*Request{post(false), post(false).text(""), post(false).upload(3)} {
		for _, wrapper := range []string{"plain", "http.Client with Timeout"} {
			synctest.Test(t, func(t *testing.T) {
				var last net.Conn
				served := 0
				tr := pipes(t, func(conn net.Conn) {
					last = conn
					q := newQueued(conn)
					defer close(q.writes)
					serveHTTP2(q, func() (frame, flags byte, payload []byte) {
						served++
						return 1, 5, []byte{0x88} // HEADERS with END_STREAM and END_HEADERS, ":status: 200"
					})
				})
				tr.Protocols = new(http.Protocols)
				tr.Protocols.SetUnencryptedHTTP2(true)
				c := New(testConfig(derived(tr)[wrapper]))
				_, err := c.Do(t.Context(), request.to(t, "http://service.test/"))
				require.NoError(t, err)
				synctest.Wait()
				ctx := closingReused(t, &last)
				result, err := c.Do(ctx, request)
				require.NoError(t, err)
				assert.Equal(t, 2, result.Attempts)
				synctest.Wait()
				assert.Equal(t, 2, served)
			})
		}
	}
}

// TestIdleConnectionThatEndsBeforeTheWrite checks that a request is performed once if the server closes the reused
// connection before the request is written, and the Transport may use HTTP/2. A request without a body fails instead.
func TestIdleConnectionThatEndsBeforeTheWrite(t *testing.T) {
	t.Parallel()
	for _, request := range []*Request{post(false), post(false).text(""), post(false).upload(3)} {
		synctest.Test(t, func(t *testing.T) {
			var last net.Conn
			served := 0
			tr := pipes(t, func(conn net.Conn) {
				last = conn
				for r := bufio.NewReader(conn); readRequest(r) == nil; served++ {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
				}
			})
			tr.ForceAttemptHTTP2 = true
			c := New(testConfig(tr))
			_, err := c.Do(t.Context(), request.to(t, "http://service.test/"))
			require.NoError(t, err)
			synctest.Wait()
			ctx := closingReused(t, &last)
			result, err := c.Do(ctx, request)
			if request.Length == 0 { // nothing proves that a request without a body was not sent
				require.Error(t, err)
				assert.Equal(t, Unknown, result.Delivery)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, 2, result.Attempts)
			synctest.Wait()
			assert.Equal(t, 2, served)
		})
	}
}

// deadConn is a connection whose writes fail once dead is true.
type deadConn struct {
	net.Conn

	dead    atomic.Bool
	partial int // number of bytes that a failing write still sends
}

func (c *deadConn) Write(p []byte) (int, error) {
	if !c.dead.Load() {
		return c.Conn.Write(p)
	}
	n := min(c.partial, len(p))
	if n > 0 {
		if _, err := c.Conn.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

// TestStaleConnection checks a request on a reused connection to which writes fail. The request is sent again if it has
// Replay or was provably not sent. Otherwise the call fails. "HTTP/2" in a name means that the Transport may use
// HTTP/2; the server uses HTTP/1.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	requests := []Request{
		{Method: http.MethodPost},
		*(&Request{Method: http.MethodPost}).text("{}"),
		*(&Request{Method: http.MethodPost}).upload(3),
		{Method: http.MethodDelete},
		*(&Request{Method: http.MethodDelete}).text("{}"),
		{Method: http.MethodGet},
		*(&Request{Method: http.MethodGet}).text("{}"),
	}
	for _, request := range requests {
		for _, partial := range []int{0, 20} { // number of bytes of the request that reach the connection
			for _, replay := range []bool{false, true} {
				for _, http2 := range []bool{false, true} {
					// net/http itself repeats such a request
					nothingIsSent := partial == 0 && !http2 && request.Method != http.MethodGet
					// In these cases the client sees that net/http has not read the body, which proves that the request was not sent
					// whole.
					seesTheBody := request.Length > 0 && (http2 || request.Open != nil || request.Method == http.MethodGet)
					fails := !replay && !nothingIsSent && !seesTheBody
					name := fmt.Sprintf("%s of %d bytes, %d written, replay %t, HTTP/2 %t",
						request.Method, request.Length, partial, replay, http2)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							r := request
							r.Header, r.Replay = http.Header{}, replay
							testStaleConnection(t, &r, partial, http2, fails)
						})
					})
				}
			}
		}
	}
}

// testStaleConnection sends a request twice. Before the second time, writes to the connection begin to fail.
func testStaleConnection(t *testing.T, request *Request, partial int, http2, fails bool) {
	t.Helper()
	served, dials := 0, 0
	tr := pipes(t, func(conn net.Conn) {
		for r := bufio.NewReader(conn); readRequest(r) == nil; {
			served++
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	dying := &deadConn{partial: partial}
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if dials++; dials > 1 {
			return conn, err
		}
		dying.Conn = conn
		return dying, err
	}
	tr.ForceAttemptHTTP2 = http2
	c := New(testConfig(tr))
	_, err := c.Do(t.Context(), request.to(t, "http://service.test/"))
	require.NoError(t, err)
	require.Equal(t, 1, served)
	dying.dead.Store(true)
	result, err := c.Do(t.Context(), request)
	if fails {
		require.Error(t, err)
		assert.Equal(t, Unknown, result.Delivery)
		assert.Equal(t, 1, served)
		assert.Equal(t, 1, dials)
		return
	}
	require.NoError(t, err)
	assert.Equal(t, 2, served)
	assert.Equal(t, 2, dials)
}

// TestRequestBodies checks the Content-Length, the Transfer-Encoding and the body that reach the server.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	type arrived struct {
		length   int64
		encoding []string
		body     string
	}
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		got.Store(arrived{r.ContentLength, r.TransferEncoding, string(b)})
	}))
	t.Cleanup(server.Close)
	c := New(testConfig(nil))
	t.Cleanup(c.CloseIdleConnections)
	for name, test := range map[string]struct {
		request *Request
		want    arrived
	}{
		"POST, JSON":   {(&Request{Method: http.MethodPost}).text(`{}`), arrived{2, nil, `{}`}},
		"POST, empty":  {&Request{Method: http.MethodPost}, arrived{0, nil, ""}},
		"POST, upload": {(&Request{Method: http.MethodPost}).upload(3), arrived{3, nil, "\x00\x00\x00"}},
		"DELETE":       {&Request{Method: http.MethodDelete}, arrived{0, nil, ""}},
		"GET":          {&Request{Method: http.MethodGet}, arrived{0, nil, ""}},
		"GET, JSON":    {(&Request{Method: http.MethodGet}).text(`{}`), arrived{2, nil, `{}`}},
	} {
		for _, replay := range []bool{false, true} {
			request := test.request.to(t, server.URL)
			request.Header, request.Replay = http.Header{}, replay
			_, err := c.Do(t.Context(), request)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.Load(), "%s, replay %t", name, replay)
		}
	}
}

// TestUploadThatIsRefused checks uploads that the server refuses without reading them. In each case the call must get
// the refusal. If an upload has at least 64 KiB and the Transport uses only HTTP/1, the client must ask the server
// first (Expect: 100-continue), and so read no byte of the upload. Otherwise the client does not ask.
func TestUploadThatIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Expected", r.Header.Get("Expect"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	both := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(both.CloseIdleConnections)
	const asks = "100-continue"
	for name, test := range map[string]struct {
		rt   http.RoundTripper
		size int64
		want string
	}{
		"long":               {nil, 64 << 10, asks},
		"very long":          {nil, 8 << 20, asks},
		"short":              {nil, 64<<10 - 1, ""},
		"HTTP/2 is possible": {both, 64 << 10, ""},
	} {
		c := New(testConfig(test.rt))
		t.Cleanup(c.CloseIdleConnections)
		request := post(false).upload(test.size).to(t, server.URL)
		var read atomic.Bool
		open := request.Open
		request.Open = func() io.Reader { return reported{open(), &read} }
		result, err := c.Do(t.Context(), request)
		require.NoError(t, err, name)
		assert.Equal(t, http.StatusUnauthorized, result.Status, name)
		assert.Equal(t, Answered, result.Delivery, name)
		assert.Equal(t, test.want, result.Header.Get("Expected"), name)
		assert.Equal(t, test.want != asks, read.Load(), name)
	}
}

// reported is an io.Reader that sets read to true when its method Read is called.
type reported struct {
	io.Reader

	read *atomic.Bool
}

func (r reported) Read(p []byte) (int, error) {
	r.read.Store(true)
	return r.Reader.Read(p)
}

// TestUploadWithoutConsent checks an upload to a server that never sends status 100. A server that waits for the upload
// gets it after a second. If the server closes the connection instead, a request without Replay is not repeated. Its
// outcome is unknown, because the server has the headers.
func TestUploadWithoutConsent(t *testing.T) {
	t.Parallel()
	for closes, want := range map[bool]Delivery{false: Answered, true: Unknown} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			requests := 0
			serve := func(conn net.Conn) {
				defer func() { _ = conn.Close() }()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				requests++
				if closes {
					return
				}
				n, _ := io.Copy(io.Discard, request.Body)
				assert.EqualValues(t, 64<<10, n)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
			own := pool.New()
			own.DialContext = func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go serve(server)
				return client, nil
			}
			defer own.CloseIdleConnections()
			result, err := New(testConfig(own)).Do(t.Context(), post(false).upload(64<<10).to(t, "http://service.test"))
			assert.Equal(t, closes, err != nil, "%v", err)
			assert.Equal(t, want, result.Delivery)
			assert.Equal(t, 1, requests)
			if !closes {
				assert.Equal(t, time.Second, time.Since(start))
			}
		})
	}
}

// TestNothingIsReadAfterTheAttempt checks that all readers of an upload fail after the attempt. On HTTP/2 net/http may
// read the request body even after it has returned the response.
func TestNothingIsReadAfterTheAttempt(t *testing.T) {
	t.Parallel()
	for _, onlyHTTP1 := range []bool{false, true} {
		var readers []io.Reader
		c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
			readers = []io.Reader{req.Body}
			if onlyHTTP1 { // on HTTP/1 net/http may read the upload a second time
				again, err := req.GetBody()
				assert.NoError(t, err)
				readers = append(readers, again)
			}
			for _, r := range readers {
				_, err := io.ReadFull(r, make([]byte, 3))
				assert.NoError(t, err)
			}
			return response(http.StatusOK, strings.NewReader(""), 0), nil
		})))
		c.standard, c.onlyHTTP1 = onlyHTTP1, onlyHTTP1
		_, err := c.Do(t.Context(), post(false).upload(7))
		require.NoError(t, err)
		for _, r := range readers {
			_, err := r.Read(make([]byte, 3))
			require.ErrorIs(t, err, io.ErrClosedPipe)
		}
	}
}

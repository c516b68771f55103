package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trackConnections counts the connections that a server has accepted.
func trackConnections(server *httptest.Server) *atomic.Int64 {
	opened := new(atomic.Int64)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	return opened
}

// pooled is a client with its own pool that trusts the server.
func pooled(t *testing.T, server *httptest.Server) *Client {
	t.Helper()
	c := New(testConfig(nil))
	t.Cleanup(c.CloseIdleConnections)
	if certificate := server.Certificate(); certificate != nil {
		roots := x509.NewCertPool()
		roots.AddCert(certificate)
		c.base.(*http.Transport).TLSClientConfig.RootCAs = roots
	}
	return c
}

// together lets the first n requests go on when all of them have arrived.
func together(n int64) func() {
	var arrived atomic.Int64
	all := make(chan struct{})
	return func() {
		if arrived.Add(1) == n {
			close(all)
		}
		<-all
	}
}

func startHTTP2(server *httptest.Server) {
	server.EnableHTTP2 = true
	server.StartTLS()
}

func TestPoolSettings(t *testing.T) {
	t.Parallel()
	pool := newPool()
	assert.GreaterOrEqual(t, pool.MaxIdleConnsPerHost, 64, "64 callers keep 64 connections")
	assert.True(t, pool.MaxIdleConns == 0 || pool.MaxIdleConns >= pool.MaxIdleConnsPerHost)
	assert.Zero(t, pool.MaxConnsPerHost, "more callers are not throttled")
	assert.Positive(t, pool.IdleConnTimeout)
	assert.Less(t, pool.IdleConnTimeout, 60*time.Second, "before load balancers do")
	assert.Positive(t, pool.TLSHandshakeTimeout)
	assert.LessOrEqual(t, pool.TLSHandshakeTimeout, 30*time.Second)
	assert.NotNil(t, pool.DialContext)
	assert.True(t, pool.ForceAttemptHTTP2)
	assert.False(t, pool.DisableKeepAlives)
	assert.False(t, pool.DisableCompression)
	assert.EqualValues(t, tls.VersionTLS12, pool.TLSClientConfig.MinVersion)
	assert.False(t, pool.TLSClientConfig.InsecureSkipVerify)
}

// closedPort is an address on which nobody listens, nor can while the test runs: it is the near end of a connection.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = listener.Close()
	})
	return conn.LocalAddr().String()
}

// fewest runs f until it opens no more than n connections, five times at most. Where processors are short, net/http gives up
// a connection if the goroutine that wrote the request is late to say so, and each caller that misses it dials.
func fewest(n int64, f func() (opened int64)) (opened int64) {
	for range 5 {
		if opened = f(); opened <= n {
			break
		}
	}
	return opened
}

func TestManyCallersKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const callers = 64
	for name, test := range map[string]struct {
		start func(*httptest.Server)
		proto int
		calls int
		most  int64
	}{
		"HTTP/1.1":      {(*httptest.Server).Start, 1, 50, 70},
		"HTTP/1.1, TLS": {(*httptest.Server).StartTLS, 1, 50, 70},
		"HTTP/2":        {startHTTP2, 2, 5, 64}, // until the first connection has told its protocol, all callers dial
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := fewest(test.most, func() int64 {
				wait := together(callers)
				server, opened := countConnections(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if wait(); r.ProtoMajor != test.proto {
						t.Error(r.Proto)
					}
					_, _ = io.WriteString(w, `{"code":0}`)
				}), test.start)
				c := pooled(t, server)
				var running sync.WaitGroup
				for range callers {
					running.Go(func() {
						for range test.calls {
							result, err := c.Do(t.Context(), post(false).to(t, server.URL))
							if err != nil || result.Attempts != 1 || string(result.Body) != `{"code":0}` {
								t.Errorf("got %q in %d attempts: %v", result.Body, result.Attempts, err)
								return
							}
						}
					})
				}
				running.Wait()
				c.CloseIdleConnections()
				return opened.Load()
			})
			assert.LessOrEqual(t, opened, test.most)
		})
	}
}

// TestFailureOfOneLeavesTheConnectionsOfOthers has one caller fail all the time, in each way that the engine answers
// with CloseIdleConnections, while the connections of 64 others are idle.
func TestFailureOfOneLeavesTheConnectionsOfOthers(t *testing.T) {
	t.Parallel()
	const callers = 64
	nobody := "http://" + closedPort(t)
	opened := fewest(callers, func() int64 {
		var gate atomic.Pointer[func()]
		server, opened := countConnections(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			(*gate.Load())()
			_, _ = io.WriteString(w, "{}")
		}), (*httptest.Server).Start)
		c := pooled(t, server)
		type failing struct{}
		c.config.Authorization = func(ctx context.Context) (string, error) {
			if ctx.Value(failing{}) != nil {
				return "", errNoKey
			}
			return "Basic key", nil
		}
		round := func() {
			wait := together(callers)
			gate.Store(&wait)
			var running sync.WaitGroup
			for range callers {
				running.Go(func() {
					_, err := c.Do(t.Context(), post(false).to(t, server.URL))
					assert.NoError(t, err)
				})
			}
			running.Wait()
		}
		round() // warms the pool up
		for range 5 {
			_, err := c.Do(context.WithValue(t.Context(), failing{}, true), post(false).to(t, server.URL))
			require.ErrorIs(t, err, errNoKey)
			result, err := c.Do(t.Context(), post(false).to(t, nobody))
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			require.Equal(t, 3, result.Attempts)
			require.Equal(t, NotSent, result.Delivery)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = c.Do(ended, post(false).to(t, server.URL))
			require.ErrorIs(t, err, context.Canceled)
			round()
		}
		return opened.Load()
	})
	assert.EqualValues(t, callers, opened, "no connection was opened again")
}

func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	server, opened := countConnections(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), (*httptest.Server).Start)
	c := pooled(t, server)
	for range 2 {
		_, err := c.Do(t.Context(), post(false).to(t, server.URL))
		require.NoError(t, err)
		c.CloseIdleConnections()
	}
	assert.EqualValues(t, 2, opened.Load())
	New(testConfig(&script{})).CloseIdleConnections() // does nothing
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	for version, accepted := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			var served atomic.Int64
			server, opened := countConnections(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				served.Add(1)
			}), func(s *httptest.Server) {
				s.TLS = &tls.Config{MinVersion: version, MaxVersion: version}
				s.StartTLS()
			})
			result, err := pooled(t, server).Do(t.Context(), post(false).to(t, server.URL))
			if accepted {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "protocol version")
			assert.Equal(t, NotSent, result.Delivery)
			assert.Zero(t, served.Load())
			assert.Positive(t, opened.Load())
		})
	}
}

func TestUnknownCertificateIsRefusedOnce(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	server, opened := countConnections(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		served.Add(1)
	}), (*httptest.Server).StartTLS)
	c := New(testConfig(nil)) // does not know the certificate
	t.Cleanup(c.CloseIdleConnections)
	result, err := c.Do(t.Context(), post(true).to(t, server.URL))
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, NotSent, result.Delivery)
	assert.Equal(t, 1, result.Attempts)
	assert.Zero(t, served.Load())
	assert.EqualValues(t, 1, opened.Load())
}

// TestConnectionLostAfterTheRequest holds delivery against what the server has seen.
func TestConnectionLostAfterTheRequest(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).Start, "HTTP/2": startHTTP2,
	} {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
			for _, body := range []string{"", "{}"} {
				for _, replay := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s, body %q, replay %t", name, method, body, replay), func(t *testing.T) {
						t.Parallel()
						var served atomic.Int64
						server, _ := countConnections(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
							if r.URL.Path == "/drop" {
								served.Add(1)
								_, _ = io.Copy(io.Discard, r.Body)
								panic(http.ErrAbortHandler)
							}
						}), start)
						c := pooled(t, server)
						request := func(path string) *Request {
							r := (&Request{Method: method, Header: http.Header{}, Replay: replay}).to(t, server.URL+path)
							if body != "" {
								r.Body = []byte(body)
							}
							return r
						}
						for range 2 { // on a fresh connection, and on one that was used before
							served.Store(0)
							result, err := c.Do(t.Context(), request("/drop"))
							require.Error(t, err)
							assert.Equal(t, Unknown, result.Delivery)
							if replay {
								assert.Equal(t, 3, result.Attempts)
								assert.GreaterOrEqual(t, served.Load(), int64(3)) // net/http may add its own
							} else {
								assert.Equal(t, 1, result.Attempts)
								assert.EqualValues(t, 1, served.Load(), "never sent twice")
							}
							_, err = c.Do(t.Context(), request("/warm-up"))
							require.NoError(t, err)
						}
					})
				}
			}
		}
	}
}

// TestIdleConnectionClosedByTheServer answers one request per connection and closes it then, so that a client which keeps
// it may write into a dead connection.
func TestIdleConnectionClosedByTheServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				mu.Lock()
				seen[req.URL.Path]++
				mu.Unlock()
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	c := New(testConfig(nil))
	t.Cleanup(c.CloseIdleConnections)
	for i := range 300 {
		path := fmt.Sprintf("/%d", i)
		request := &Request{Method: []string{http.MethodPost, http.MethodDelete, http.MethodGet}[i%3], Header: http.Header{}}
		if i%2 == 0 {
			request.Body = []byte("{}")
		}
		result, err := c.Do(t.Context(), request.to(t, "http://"+listener.Addr().String()+path))
		mu.Lock()
		count := seen[path]
		mu.Unlock()
		switch {
		case err == nil:
			require.Equal(t, 1, count, "%s was sent twice", path)
		case result.Delivery == NotSent:
			require.Zero(t, count)
		default:
			require.Equal(t, Unknown, result.Delivery)
			require.LessOrEqual(t, count, 1, "%s was sent twice", path)
		}
	}
}

// A connection whose end was seen while it was idle is not used again.
func TestIdleConnectionSeenToBeClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		served := 0
		tr := pipes(t, func(conn net.Conn) {
			if readRequest(bufio.NewReader(conn)) != nil {
				return
			}
			served++
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		})
		c := New(testConfig(tr))
		for i := range 3 {
			result, err := c.Do(t.Context(), post(false).to(t, "http://service.test/"))
			require.NoError(t, err)
			assert.Equal(t, 1, result.Attempts)
			synctest.Wait() // the client sees the end
			assert.Equal(t, i+1, served)
		}
	})
}

// deadConn is a connection into which nothing can be written any more after the first request.
type deadConn struct {
	net.Conn

	writes  atomic.Int64
	partial int // bytes that are accepted of the write that fails
}

func (c *deadConn) Write(p []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		n := min(c.partial, len(p))
		if n > 0 {
			if _, err := c.Conn.Write(p[:n]); err != nil {
				return 0, err
			}
		}
		return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return c.Conn.Write(p)
}

// TestStaleConnection writes into a connection that has died unseen. If nothing could be written, the request goes out over
// a new one; if a part of it was, only a replayable one is repeated.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
		for _, body := range []string{"", "{}"} {
			for _, partial := range []int{0, 20} {
				for _, replay := range []bool{false, true} {
					if method == http.MethodGet && partial == 0 && !replay {
						continue // as careful as with a part: see newRequest
					}
					t.Run(fmt.Sprintf("%s, body %q, %d bytes written, replay %t", method, body, partial, replay), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							served := 0
							tr := pipes(t, func(conn net.Conn) {
								r := bufio.NewReader(conn)
								for readRequest(r) == nil {
									served++
									_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
								}
							})
							dial, dials := tr.DialContext, 0
							tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
								conn, err := dial(ctx, network, addr)
								if dials++; dials > 1 {
									return conn, err
								}
								return &deadConn{Conn: conn, partial: partial}, err
							}
							c := New(testConfig(tr))
							request := func() *Request {
								r := (&Request{Method: method, Header: http.Header{}, Replay: replay}).to(t, "http://service.test/")
								if body != "" {
									r.Body = []byte(body)
								}
								return r
							}
							_, err := c.Do(t.Context(), request())
							require.NoError(t, err)
							require.Equal(t, 1, served)
							result, err := c.Do(t.Context(), request())
							if partial > 0 && !replay {
								require.Error(t, err)
								assert.Equal(t, Unknown, result.Delivery)
								assert.Equal(t, 1, served)
								assert.Equal(t, 1, dials)
								return
							}
							require.NoError(t, err)
							assert.Equal(t, 2, served)
							assert.Equal(t, 2, dials)
						})
					})
				}
			}
		}
	}
}

// TestStreamsResetByHTTP2 has a server reset two streams before it answers one, with TLS and without. REFUSED_STREAM promises
// that a stream was not processed; no other code does.
func TestStreamsResetByHTTP2(t *testing.T) {
	t.Parallel()
	const protocolError, internalError, refusedStream = 1, 2, 7
	for name, test := range map[string]struct {
		code    uint32
		replay  bool
		streams int64
		want    Delivery
	}{
		"refused":                {refusedStream, false, 3, Answered},
		"refused, replay":        {refusedStream, true, 3, Answered},
		"protocol error":         {protocolError, false, 1, Unknown},
		"protocol error, replay": {protocolError, true, 3, Answered},
		"internal error":         {internalError, false, 1, Unknown},
		"internal error, replay": {internalError, true, 3, Answered},
	} {
		for _, request := range []struct {
			method string
			body   []byte
		}{{http.MethodPost, []byte("{}")}, {http.MethodPost, nil}, {http.MethodDelete, nil}, {http.MethodGet, nil}} {
			for _, scheme := range []string{"https", "http"} {
				t.Run(fmt.Sprintf("%s, %s %s, body %q", name, scheme, request.method, request.body), func(t *testing.T) {
					t.Parallel()
					test := test
					if request.body == nil && !test.replay && request.method != http.MethodGet && test.code == refusedStream {
						test.streams, test.want = 1, Unknown // net/http does not tell why it would send it again
					}
					c, address, streams := resetting(t, scheme, test.code)
					r := (&Request{Method: request.method, Header: http.Header{}, Body: request.body, Replay: test.replay}).to(t, address)
					result, err := c.Do(t.Context(), r)
					assert.Equal(t, test.streams, streams.Load())
					assert.Equal(t, test.want, result.Delivery, "%v", err)
					told := test.code == refusedStream && request.body != nil // net/http tells that nothing was processed
					assert.Equal(t, test.replay && !told, result.Unsure)
					if test.want == Answered {
						require.NoError(t, err)
						assert.Equal(t, http.StatusOK, result.Status)
					} else {
						require.Error(t, err)
					}
				})
			}
		}
	}
}

// resetting gives a client of a server that resets its first two streams, and the number of streams.
func resetting(t *testing.T, scheme string, code uint32) (c *Client, address string, streams *atomic.Int64) {
	t.Helper()
	streams = new(atomic.Int64)
	authority := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(authority.Close)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if scheme == "https" {
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: authority.TLS.Certificates, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
		})
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			serving.Go(func() {
				serveHTTP2(conn, func() (frame, flags byte, payload []byte) {
					if streams.Add(1) < 3 {
						return 3, 0, binary.BigEndian.AppendUint32(nil, code) // RST_STREAM
					}
					return 1, 5, []byte{0x88} // HEADERS with END_STREAM and END_HEADERS, ":status: 200"
				})
			})
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	c = pooled(t, authority)
	if scheme == "http" {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		c.base.(*http.Transport).Protocols = protocols
		c.opaque = opaque(c.base)
	}
	return c, scheme + "://" + listener.Addr().String(), streams
}

// serveHTTP2 answers each stream with one frame when its request is complete.
func serveHTTP2(conn io.ReadWriter, answer func() (frame, flags byte, payload []byte)) {
	r := bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	write := func(kind, flags byte, id uint32, payload []byte) {
		header := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind)) //nolint:gosec // a few bytes
		header = binary.BigEndian.AppendUint32(append(header, flags), id)
		_, _ = conn.Write(append(header, payload...))
	}
	const data, headers, settings, endStream = 0, 1, 4, 1
	write(settings, 0, 0, nil)
	for {
		var header [9]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(header[:]) >> 8
		kind, flags, id := header[3], header[4], binary.BigEndian.Uint32(header[5:])
		if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
			return
		}
		switch {
		case kind == settings && flags == 0:
			write(settings, 1, 0, nil)
		case (kind == headers || kind == data) && flags&endStream != 0:
			frame, flags, payload := answer()
			write(frame, flags, id, payload)
		}
	}
}

// TestCredentialsStayWithTheRequest looks at everything that leaves for the key.
func TestCredentialsStayWithTheRequest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, []string{"Basic static"}, r.Header["Authorization"])
		r.Header.Del("Authorization")
		dump := fmt.Sprint(r.URL, r.Header, r.Trailer)
		assert.False(t, strings.Contains(dump, "static"), dump)
		_, _ = w.Write(nil)
	}))
	t.Cleanup(server.Close)
	c := New(testConfig(nil))
	t.Cleanup(c.CloseIdleConnections)
	request := post(false).to(t, server.URL+"/base/pg/tokenize")
	before := *request.URL
	result, err := c.Do(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, result.Status, "the server has looked at it")
	assert.Equal(t, before, *request.URL)
}

package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// countConnections starts a server. It returns the server and a counter of the connections that the server has
// accepted.
func countConnections(
	t *testing.T, handler http.HandlerFunc, start func(*httptest.Server),
) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	server, opened := httptest.NewUnstartedServer(handler), new(atomic.Int64)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	start(server)
	t.Cleanup(server.Close)
	return server, opened
}

// pooled returns a client with its own connection pool. The client trusts the certificate of the server.
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

func startHTTP2(server *httptest.Server) {
	server.EnableHTTP2 = true
	server.StartTLS()
}

// TestCloseIdleConnections checks that a call after CloseIdleConnections opens a new connection. A RoundTripper without
// a method CloseIdleConnections must not cause a panic.
func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	server, opened := countConnections(t, func(http.ResponseWriter, *http.Request) {}, (*httptest.Server).Start)
	c := pooled(t, server)
	for range 2 {
		_, err := c.Do(t.Context(), post(false).to(t, server.URL))
		require.NoError(t, err)
		c.CloseIdleConnections()
	}
	assert.EqualValues(t, 2, opened.Load())
	New(testConfig(&script{})).CloseIdleConnections() // script has no CloseIdleConnections
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
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
				if info.Reused {
					_ = last.Close()
					synctest.Wait() // wait until net/http has noticed that the connection is closed
				}
			}})
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
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
					if info.Reused {
						_ = last.Close()
						synctest.Wait() // wait until net/http has noticed that the connection is closed
					}
				}})
				result, err := c.Do(ctx, request)
				require.NoError(t, err)
				assert.Equal(t, 2, result.Attempts)
				synctest.Wait()
				assert.Equal(t, 2, served)
			})
		}
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

// These are two values for the parameter code of resetting. Any value except goAway is an error code of RST_STREAM.
const (
	refusedStream = 7       // REFUSED_STREAM
	goAway        = 1 << 16 // a GOAWAY frame that leaves out the stream, instead of a reset
)

// everySecond is an argument for the parameter resets: the server resets every second stream.
const everySecond = -1

// resetting starts an HTTP/2 server that resets streams with an error code. If the parameter resets is everySecond, the
// server resets every second stream. Otherwise it resets the first streams, and the parameter is their number.
// resetting returns a client, the address of the server, and a counter of all streams.
func resetting(
	t *testing.T, scheme string, code uint32, resets int64,
) (c *Client, address string, streams *atomic.Int64) {
	t.Helper()
	streams = new(atomic.Int64)
	authority := httptest.NewTLSServer(nil) // only its certificate is used
	t.Cleanup(authority.Close)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if config := (&tls.Config{Certificates: authority.TLS.Certificates, MinVersion: tls.VersionTLS12}); scheme != "http" {
		if scheme == "https" {
			config.NextProtos = []string{"h2"}
		}
		listener = tls.NewListener(listener, config)
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
					if n := streams.Add(1); n <= resets || resets == everySecond && n%2 == 0 {
						if code == goAway {
							return 7, 0, make([]byte, 8) // GOAWAY; the last stream is 0, and the code is NO_ERROR
						}
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
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	transport := c.base.(*http.Transport).Clone()
	if transport.Protocols = protocols; scheme != "https" {
		protocols.SetUnencryptedHTTP2(true)
	}
	scheme, sidecar := strings.CutSuffix(scheme, " over TLS")
	if sidecar {
		transport.DialContext = (&tls.Dialer{Config: transport.TLSClientConfig.Clone()}).DialContext
	}
	t.Cleanup(transport.CloseIdleConnections)
	c.base = transport
	c.standard, c.onlyHTTP1 = inspect(transport)
	return c, scheme + "://" + listener.Addr().String(), streams
}

// serveHTTP2 is a minimal HTTP/2 server on one connection. It answers each complete request with the frame that the
// function answer returns.
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
	const data, headers, settings, goAwayFrame, endStream = 0, 1, 4, 7, 1
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
			if frame == goAwayFrame {
				id = 0
			}
			write(frame, flags, id, payload)
		}
	}
}

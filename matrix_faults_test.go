package payvault_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const (
	htmlPage      = "<html><head><title>Bad Gateway</title></head><body>nginx</body></html>"
	successAnswer = `{"code":0,"rcode":"000","message":"Success","rmsg":"Success","data":{}}`
	responseCap   = 64 << 10

	longestRetryAfter = 24 * time.Hour // that an Error tells
)

// matrixFaults are the faults of the matrix, in the order in which they strike on the way of a request.
func matrixFaults(t *testing.T) []matrixFault {
	t.Helper()
	var faults []matrixFault
	for _, list := range [][]matrixFault{
		connectionFaults(t), http2Faults(t), idleFaults(), lostFaults(), statusFaults(), rateLimits(), answerFaults(), redirects(t),
	} {
		faults = append(faults, list...)
	}
	return faults
}

// connectionFaults strike before there is a connection, or as soon as there is one.
func connectionFaults(t *testing.T) []matrixFault {
	t.Helper()
	closed := closedPort(t)
	return []matrixFault{
		{
			name: "connection refused", is: effectUnsent, cause: causedBy(syscall.ECONNREFUSED),
			network: dialing(func(ctx context.Context, d *net.Dialer) (net.Conn, error) { return d.DialContext(ctx, "tcp", closed) }),
		},
		{
			name: "DNS failure", is: effectUnsent, cause: causedByA[*net.DNSError],
			network: dialing(func(context.Context, *net.Dialer) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "gateway.invalid", IsNotFound: true}}
			}),
		},
		{
			name: "TLS: untrusted certificate", is: effectDistrusted, tls: true, cause: causedByA[*tls.CertificateVerificationError],
			network: func(c *matrixCell) http.RoundTripper {
				return &detour{cell: c, bad: &http.Transport{}, good: c.server.HTTPClient().Transport}
			},
		},
		{
			name: "TLS: handshake cut off", is: effectUnsent, tls: true,
			network: dialingTLS(func(conn net.Conn) { _ = conn.Close() }),
		},
		// From here on there is a connection. net/http does not tell how much it wrote, so the outcome counts as unknown.
		{
			name: "reset before the request is written", is: effectLost, cause: causedBy(syscall.ECONNRESET),
			network: writing(func(net.Conn, []byte) (int, error) {
				return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
			}),
		},
		// The reset may be seen while the connection is made.
		{name: "reset as soon as it is connected", is: effectLost, or: effectUnsent, network: peering(resetPeer)},
		{name: "reset after the header", is: effectLost, inject: payvaulttest.Fault{Kind: payvaulttest.ResetConnection}},
		{
			name: "reset half way through the body", is: effectLost, note: "half way through the header where there is no body",
			network: over(func(c *matrixCell, conn net.Conn) net.Conn { return &cutConn{Conn: conn, cell: c} }),
		},
	}
}

// idleFaults strike a connection that was used before and is idle. The next one is a new one, so they cannot stay.
func idleFaults() []matrixFault {
	once := "only idle connections are struck"
	return []matrixFault{
		{
			name: "idle connection closed at the same time", warm: true, once: once, is: effectLost, or: effectHealed,
			network: relaying,
		},
		{
			name: "idle connection closed, nothing written", warm: true, once: once, is: effectHealed,
			network: writing(func(net.Conn, []byte) (int, error) {
				return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
			}),
		},
		{
			name: "idle connection closed, request swallowed", warm: true, once: once, is: effectLost,
			// net/http sends a GET again; the others are left to the client.
			special: func(op *matrixOp, _ bool) []effect { return map[bool][]effect{true: {effectHealed}}[op.get] },
			network: writing(func(conn net.Conn, p []byte) (int, error) {
				_ = conn.Close()
				return len(p), nil
			}),
		},
	}
}

// cutConn loses its connection half way through the body of a request, or through the header if there is no body. What is
// written may be a part of a request.
type cutConn struct {
	net.Conn

	cell    *matrixCell
	request []byte // as far as it was written
}

func (c *cutConn) Write(p []byte) (int, error) {
	before := len(c.request)
	c.request = append(c.request, p...)
	if at := halfWay(c.request); at > 0 && at <= len(c.request) && c.cell.strikes() {
		n, _ := c.Conn.Write(p[:at-before])
		return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return c.Conn.Write(p)
}

// halfWay is where a request is to be cut; 0 if its header is not complete.
func halfWay(request []byte) int {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		return 0
	}
	header := bytes.Index(request, []byte("\r\n\r\n"))
	if r.ContentLength <= 0 {
		return header / 2
	}
	return header + 4 + int(r.ContentLength/2)
}

// recordedConn keeps what is written.
type recordedConn struct {
	net.Conn

	written *bytes.Buffer
}

func (c recordedConn) Write(p []byte) (int, error) {
	c.written.Write(p)
	return c.Conn.Write(p)
}

// TestMatrixCutsTheBody reads what is written of a request that is cut.
func TestMatrixCutsTheBody(t *testing.T) {
	t.Parallel()
	ops := matrixOperations()
	for i := range ops {
		op := &ops[i]
		var written []*bytes.Buffer // by connection
		c, err := newCell(t.Context(), &matrixFault{network: over(func(c *matrixCell, conn net.Conn) net.Conn {
			written = append(written, new(bytes.Buffer))
			return &cutConn{Conn: recordedConn{conn, written[len(written)-1]}, cell: c}
		})}, op, false, nil)
		require.NoError(t, err, op.name)
		_, _ = c.call.do(t.Context(), c.client)
		c.close()
		require.NotEmpty(t, written, op.name)
		request, err := http.ReadRequest(bufio.NewReader(written[0]))
		if op.get || op.bodyless {
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s: a part of the header", op.name)
			continue
		}
		require.NoError(t, err, op.name)
		body, err := io.ReadAll(request.Body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, op.name)
		assert.Positive(t, len(body), op.name)
		assert.EqualValues(t, request.ContentLength/2, len(body), op.name)
	}
}

// lostFaults leave a request without an answer.
func lostFaults() []matrixFault {
	return []matrixFault{
		{name: "connection lost while it reads", is: effectLost, inject: payvaulttest.Fault{Kind: payvaulttest.DropDuringRead}},
		{name: "connection lost before commit", is: effectLost, inject: payvaulttest.Fault{Kind: payvaulttest.DropBeforeCommit}},
		{name: "connection lost after commit", is: effectLost, performs: true, inject: payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit}},
		{name: "timeout before commit", is: effectLost, hangs: matrixHang, cause: causedBy(context.DeadlineExceeded)},
		{name: "timeout after commit", is: effectLost, performs: true, hangs: matrixHang, cause: causedBy(context.DeadlineExceeded)},
		// The answer begins and does not end: the status is known, the outcome is not.
		{
			name: "answer cut off, connection lost", is: effectLost, performs: true, status: 200, cause: causedBy(io.ErrUnexpectedEOF),
			inject: payvaulttest.Fault{Kind: payvaulttest.CutBody, AfterCommit: true, Body: successAnswer},
		},
		{name: "slow drip", is: effectLost, performs: true, status: 200, hangs: matrixDrip, cause: causedBy(context.DeadlineExceeded)},
	}
}

// statusFaults are answers whose status says it all.
func statusFaults() []matrixFault {
	var faults []matrixFault
	for _, status := range []int{401, 403, 404, 409} {
		faults = append(faults,
			matrixFault{
				name: strconv.Itoa(status) + " with a code", is: effectRefused, status: status, code: true,
				inject: payvaulttest.Fault{Kind: payvaulttest.OtherCode, Status: status, Code: status, Message: "No"},
			},
			matrixFault{
				name: strconv.Itoa(status) + " HTML", is: effectRefused, status: status,
				inject: payvaulttest.Fault{Kind: payvaulttest.Respond, Status: status, Body: htmlPage},
			})
	}
	for _, answer := range []struct {
		status   int
		is, code effect
	}{
		{500, effectFailed, effectFailedCode},
		{502, effectGatewayDown, effectGatewayCode},
		{503, effectGatewayDown, effectGatewayCode},
		{504, effectGatewayDown, effectGatewayCode},
		{509, effectFailed, effectFailedCode},
	} {
		name := strconv.Itoa(answer.status)
		html := payvaulttest.Fault{Kind: payvaulttest.Respond, Status: answer.status, Body: htmlPage}
		late, code := html, payvaulttest.Fault{Kind: payvaulttest.OtherCode, Status: answer.status, Code: answer.status, AfterCommit: true}
		late.AfterCommit = true
		faults = append(faults,
			matrixFault{name: name + " HTML", is: answer.is, status: answer.status, inject: html},
			matrixFault{name: name + " HTML, after commit", is: answer.is, status: answer.status, performs: true, inject: late},
			matrixFault{name: name + " with a code, after commit", is: answer.code, status: answer.status, code: true, performs: true, inject: code})
	}
	return faults
}

// rateLimits are 429 with all sorts of Retry-After.
func rateLimits() []matrixFault {
	inAnHour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	limit := func(name, retryAfter string, from, to time.Duration) matrixFault {
		is := effectTurnedAway
		if from > 0 { // longer than the clients of the matrix wait
			is = effectHeldOff
		}
		return matrixFault{
			name: "429, Retry-After: " + name, is: is, status: 429, code: true, waitsFrom: from, waitsTo: to,
			inject: payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: retryAfter},
		}
	}
	return []matrixFault{
		limit("none", "", 0, 0),
		limit("seconds", "2", 2*time.Second, 2*time.Second),
		limit("a date", inAnHour, 50*time.Minute, time.Hour),
		limit("a date in the past", "Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
		limit("absurdly long", "99999999999999999999", longestRetryAfter, longestRetryAfter),
		limit("not a time", "-1 fortnight", 0, 0),
	}
}

// answerFaults are answers of status 200 that are no success. All but the rejection come after commit, the worse case.
func answerFaults() []matrixFault {
	capped := []payvault.Option{payvault.WithMaxResponseBytes(responseCap)}
	after := func(kind payvaulttest.FaultKind, body string) payvaulttest.Fault {
		return payvaulttest.Fault{Kind: kind, AfterCommit: true, Body: body, Size: 4 * responseCap}
	}
	return []matrixFault{
		{
			name: "200 with another code", is: effectRejected, status: 200, code: true,
			inject: payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Message: "Declined"},
		},
		{name: "200 empty", is: effectMalformed, performs: true, status: 200, inject: after(payvaulttest.EmptyBody, "")},
		{name: "200 HTML", is: effectMalformed, performs: true, status: 200, inject: after(payvaulttest.Respond, htmlPage)},
		{name: "200 truncated JSON", is: effectMalformed, performs: true, status: 200, inject: after(payvaulttest.TruncatedJSON, successAnswer)},
		{name: "200 malformed JSON", is: effectMalformed, performs: true, status: 200, inject: after(payvaulttest.MalformedJSON, "")},
		{name: "200 wrong shape", is: effectUnreadable, performs: true, status: 200, inject: after(payvaulttest.Respond, `["code",0,"rcode","000"]`)},
		{name: "200 without a code", is: effectMalformed, performs: true, status: 200, inject: after(payvaulttest.Respond, `{"message":"Success","rmsg":"Success"}`)},
		{
			name: "200 endless body", is: effectTooLarge, performs: true, status: 200, options: capped,
			inject: payvaulttest.Fault{Kind: payvaulttest.OversizedBody, AfterCommit: true},
		},
		{name: "200 gzip bomb", is: effectTooLarge, performs: true, status: 200, options: capped, inject: after(payvaulttest.GzipBomb, "")},
	}
}

// redirects point to another host, which must never hear of them.
func redirects(t *testing.T) []matrixFault {
	t.Helper()
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(func() {
		elsewhere.Close()
		assert.Zero(t, visits.Load(), "requests that followed a redirect")
	})
	var faults []matrixFault
	for _, status := range []int{301, 302, 307, 308} {
		faults = append(faults, matrixFault{
			name: strconv.Itoa(status) + " to another host", is: effectRedirected, status: status,
			inject: payvaulttest.Fault{Kind: payvaulttest.Redirect, Status: status, Location: elsewhere.URL + "/pg/tokenize"},
		})
	}
	return faults
}

// causedBy tells whether an error wraps target.
func causedBy(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// causedByA tells whether an error wraps one of type T.
func causedByA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
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

// dialing is a network in which a connection is made by strike when the fault strikes.
func dialing(strike func(context.Context, *net.Dialer) (net.Conn, error)) func(c *matrixCell) http.RoundTripper {
	return func(c *matrixCell) http.RoundTripper {
		return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialer := new(net.Dialer)
			if c.strikes() {
				return strike(ctx, dialer)
			}
			return dialer.DialContext(ctx, network, addr)
		}}
	}
}

// writing is a network in which strike takes what is written to a connection when the fault strikes. The connection is
// of no use after that.
func writing(strike func(conn net.Conn, p []byte) (int, error)) func(c *matrixCell) http.RoundTripper {
	return over(func(c *matrixCell, conn net.Conn) net.Conn { return &struckConn{Conn: conn, cell: c, strike: strike} })
}

// over is a network with connections of another kind over those to the emulator.
func over(kind func(c *matrixCell, conn net.Conn) net.Conn) func(c *matrixCell) http.RoundTripper {
	return func(c *matrixCell) http.RoundTripper {
		return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return kind(c, conn), nil
		}}
	}
}

type struckConn struct {
	net.Conn

	cell   *matrixCell
	strike func(conn net.Conn, p []byte) (int, error)
}

func (c *struckConn) Write(p []byte) (int, error) {
	if c.cell.strikes() {
		return c.strike(c.Conn, p)
	}
	return c.Conn.Write(p)
}

// Read makes the end of a closed connection look as if the peer had closed it.
func (c *struckConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// detour sends a request through another transport when the fault strikes.
type detour struct {
	cell      *matrixCell
	bad, good http.RoundTripper
}

func (d *detour) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.cell.strikes() {
		return d.bad.RoundTrip(r)
	}
	return d.good.RoundTrip(r)
}

// dialingTLS is a network in which serve is the other side of a connection when the fault strikes.
func dialingTLS(serve func(conn net.Conn), roots ...*x509.Certificate) func(c *matrixCell) http.RoundTripper {
	return func(c *matrixCell) http.RoundTripper {
		transport := c.server.HTTPClient().Transport.(*http.Transport).Clone()
		for _, root := range roots {
			transport.TLSClientConfig.RootCAs = transport.TLSClientConfig.RootCAs.Clone()
			transport.TLSClientConfig.RootCAs.AddCert(root)
		}
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !c.strikes() {
				return c.keep(new(net.Dialer).DialContext(ctx, network, addr))
			}
			return c.keep(dialPeer(ctx, serve))
		}
		return transport
	}
}

// peering is a network in which serve is the other side of a connection when the fault strikes.
func peering(serve func(conn net.Conn)) func(c *matrixCell) http.RoundTripper {
	return dialing(func(ctx context.Context, _ *net.Dialer) (net.Conn, error) { return dialPeer(ctx, serve) })
}

func resetPeer(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// relaying is a network with a relay before the emulator, which closes a connection just before something is written to
// it when the fault strikes.
func relaying(c *matrixCell) http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		emulator, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		relay := make(chan net.Conn, 1)
		conn, err := dialPeer(ctx, func(conn net.Conn) {
			relay <- conn
			go func() {
				_, _ = io.Copy(emulator, conn)
				_ = emulator.Close()
			}()
			_, _ = io.Copy(conn, emulator)
			_ = conn.Close()
		})
		if err != nil {
			_ = emulator.Close()
			return nil, err
		}
		return &struckConn{Conn: conn, cell: c, strike: func(conn net.Conn, p []byte) (int, error) {
			_ = (<-relay).Close()
			return conn.Write(p)
		}}, nil
	}}
}

// dialPeer connects to serve, over loopback.
func dialPeer(ctx context.Context, serve func(conn net.Conn)) (net.Conn, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		conn, err := listener.Accept()
		_ = listener.Close()
		if err == nil {
			serve(conn)
		}
	}()
	return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
}

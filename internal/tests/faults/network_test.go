package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"example.com/payvault/internal/tests/service"
)

var errOwn = errors.New("the vault is sealed")

// connectionFaults strike before there is a connection, or as soon as there is one.
func connectionFaults(t *testing.T) []fault {
	t.Helper()
	nobody, closing := "127.0.0.1:1", closingPort(t)
	dial := func(addr string) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) }
	}
	fail := func(err error) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) { return nil, err }
	}
	unresolved := &net.DNSError{Err: "no such host", Name: "gateway.invalid", IsNotFound: true}
	stranger := x509.HostnameError{Certificate: &x509.Certificate{}, Host: "service.test"}
	proxy := fmt.Errorf("proxy: %w", &tls.CertificateVerificationError{Err: errOwn})
	return []fault{
		{name: "connection refused", is: unsent, cause: causedBy(syscall.ECONNREFUSED), network: dialing(dial(nobody))},
		{name: "DNS failure", is: unsent, cause: causedBy(unresolved), network: dialing(fail(unresolved))},
		{name: "dialer with an error of its own", is: unsent, cause: causedBy(errOwn), network: dialing(fail(errOwn))},
		{name: "certificate of a stranger", is: distrusted, network: dialing(fail(stranger))}, // which is not kept
		{name: "certificate of no CA", is: distrusted, network: dialing(fail(x509.UnknownAuthorityError{}))},
		{
			name: "certificate of the proxy", is: distrusted, network: dialing(fail(proxy)),
			cause: func(err error) bool {
				_, ok := errors.AsType[*tls.CertificateVerificationError](err)
				return ok
			},
		},
		{name: "TLS handshake cut off", is: unsent, tls: true, network: dialing(dial(closing))},
		// From here on there is a connection. net/http does not say how much it wrote, so the outcome counts as unknown.
		{
			name: "reset before the request is written", is: lost, network: writing(syscall.ECONNRESET, 0),
			cause: func(err error) bool { // whichever end of the connection net/http sees first
				return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
			},
		},
		// The reset may be seen while the connection is made.
		{name: "reset as soon as it is connected", is: lost, or: unsent, network: dialing(dial(closing))},
		{name: "reset half way through the request", is: lost, network: writing(syscall.ECONNRESET, 2)},
		{name: "reset before the answer", is: lost, performs: true, serve: func(w http.ResponseWriter, _ *http.Request) {
			closeHard(hijack(w))
		}},
		// The next connection is a new one, so that it cannot stay.
		{
			name: "idle connection closed, nothing written", is: healed, warm: true, once: true,
			network: writing(syscall.EPIPE, 0),
		},
	}
}

// keyFaults are those of a key source.
func keyFaults() []fault {
	return []fault{
		{
			name: "key source fails", is: noKey, cause: causedBy(errOwn),
			key: func(context.Context) (string, error) { return "", errOwn },
		},
		{name: "key source gives no key", is: noKey, key: func(context.Context) (string, error) { return "", nil }},
		{name: "key source gives a bad key", is: noKey, key: func(context.Context) (string, error) {
			return "bad-" + canaryKey + "\r\n", nil
		}},
		{
			name: "key source has the time of the attempt", is: noKey, bubble: true, cause: causedBy(context.DeadlineExceeded),
			key: func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return canaryKey, nil // late
			},
		},
	}
}

// handMade are RoundTrippers that call no hooks of net/http/httptrace, so that the request may have been sent.
func handMade() []fault {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	none := &http.Response{StatusCode: http.StatusRequestTimeout, Body: http.NoBody}
	strike := func(response *http.Response, err error) func(c *cell) http.RoundTripper {
		return func(c *cell) http.RoundTripper {
			return service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if c.strikes() {
					return response, err
				}
				return c.pool.RoundTrip(r)
			})
		}
	}
	return []fault{
		{name: "RoundTripper without hooks: error", is: lost, network: strike(nil, errOwn)},
		{name: "RoundTripper without hooks: error of a dial", is: lost, network: strike(nil, refused)},
		{name: "RoundTripper without hooks: neither", is: lost, network: strike(nil, nil)},
		{name: "RoundTripper without hooks: both", is: lost, network: strike(&http.Response{}, errOwn)},
		// Which may have come before the request: it decides nothing.
		{name: "RoundTripper without hooks: 408", is: lost, status: 408, network: strike(none, nil)},
	}
}

func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	return conn
}

// closeHard resets a connection.
func closeHard(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// closingPort is an address where connections are reset as soon as they are made.
func closingPort(t *testing.T) string {
	t.Helper()
	listener := service.Listen(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			closeHard(conn)
		}
	}()
	return listener.Addr().String()
}

// dialing is a network in which a connection is made by strike when the fault strikes.
func dialing(strike func(context.Context) (net.Conn, error)) func(c *cell) http.RoundTripper {
	return func(c *cell) http.RoundTripper {
		c.pool.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if c.strikes() {
				return strike(ctx)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		return c.pool
	}
}

// writing is a network in which a write fails when the fault strikes, after a part of what was to be written, or none
// if part is 0. The connection is of no use after that.
func writing(err error, part int) func(c *cell) http.RoundTripper {
	return func(c *cell) http.RoundTripper {
		c.pool.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, dialed := new(net.Dialer).DialContext(ctx, network, addr)
			return &struckConn{conn, c, &net.OpError{Op: "write", Net: "tcp", Err: err}, part}, dialed
		}
		return c.pool
	}
}

type struckConn struct {
	net.Conn

	cell *cell
	err  error
	part int
}

func (c *struckConn) Write(p []byte) (n int, err error) {
	if !c.cell.strikes() {
		return c.Conn.Write(p)
	}
	if c.part > 0 {
		n, _ = c.Conn.Write(p[:len(p)/c.part])
	}
	return n, c.err
}

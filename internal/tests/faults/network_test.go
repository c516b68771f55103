package faults

import (
	"bufio"
	"bytes"
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

	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/tests/service"
)

// connectionFaults strike before there is a connection, or as soon as there is one.
func connectionFaults(t *testing.T) []fault {
	t.Helper()
	closed := closedPort(t)
	unresolved := &net.DNSError{Err: "no such host", Name: "gateway.invalid", IsNotFound: true}
	return []fault{
		{
			name: "connection refused", is: unsent, cause: causedBy(syscall.ECONNREFUSED),
			network: dialing(func(ctx context.Context, d *net.Dialer) (net.Conn,
				error,
			) {
				return d.DialContext(ctx, "tcp", closed)
			}),
		},
		failingDial("DNS failure", &net.OpError{Op: "dial", Net: "tcp", Err: unresolved}),
		failingDial("DNS failure, not wrapped", unresolved),
		failingDial("dialer with an error of its own", errOwn),
		untrusting("certificate of a stranger", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "service.test"}),
		untrusting("certificate of no CA", x509.UnknownAuthorityError{}),
		untrusting("certificate of the proxy", fmt.Errorf("proxy: %w", &tls.CertificateVerificationError{Err: errOwn})),
		{
			name: "TLS: untrusted certificate", is: distrusted, tls: true, cause: causedByA[*tls.CertificateVerificationError],
			network: func(c *cell) http.RoundTripper {
				untrusting, trusting := &http.Transport{}, c.transport()
				c.closes = append(c.closes, untrusting.CloseIdleConnections)
				return service.RoundTripper(func(r *http.Request) (*http.Response, error) {
					if c.strikes() {
						return untrusting.RoundTrip(r)
					}
					return trusting.RoundTrip(r)
				})
			},
		},
		{
			name: "TLS: handshake cut off", is: unsent, tls: true,
			network: peering(func(conn net.Conn, _ *cell) { _ = conn.Close() }),
		},
		// From here on there is a connection. net/http does not say how much it wrote, so the outcome counts as unknown.
		{
			name: "reset before the request is written", is: lost,
			cause: func(err error) bool { // whichever end of the connection net/http sees first
				return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
			},
			network: writing(func(net.Conn, []byte) (int, error) { return 0, writeError(syscall.ECONNRESET) }),
		},
		// The reset may be seen while the connection is made.
		{name: "reset as soon as it is connected", is: lost, or: unsent, network: peering(func(conn net.Conn, _ *cell) {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		})},
		// Half way through the header where there is no body.
		{name: "reset half way through the body", is: lost, network: over(func(c *cell, conn net.Conn) net.Conn {
			return &cutConn{Conn: conn, cell: c}
		})},
		{name: "reset before the answer", is: lost, performs: true, serve: func(w http.ResponseWriter, _ *http.Request) {
			conn := hijack(w)
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}},
		{
			name: "key source fails", is: noKey, cause: causedBy(errOwn),
			key: func(*cell) (string, error) { return "", errOwn },
		},
		{name: "key source gives no key", is: noKey, key: func(*cell) (string, error) { return "", nil }},
		{
			name: "key source gives a bad key", is: noKey,
			key: func(*cell) (string, error) { return "bad-" + canaryKey + "\r\n", nil },
		},
	}
}

// idleFaults strike a connection that was used before and is idle. The next one is a new one, so they cannot stay.
func idleFaults() []fault {
	return []fault{
		{name: "idle connection closed, nothing written", is: healed, warm: true, once: true, network: writing(
			func(net.Conn, []byte) (int, error) { return 0, writeError(syscall.EPIPE) })},
		// net/http sends a GET again; the others are left to the client.
		{name: "idle connection closed, request swallowed", is: lost, get: healed, warm: true, once: true, network: writing(
			func(conn net.Conn, p []byte) (int, error) {
				_ = conn.Close()
				return len(p), nil
			})},
		{name: "idle connection closed at the same time", is: lost, or: healed, warm: true, once: true, network: relaying},
	}
}

var errOwn = errors.New("the vault is sealed")

// handMade are RoundTrippers that call no hooks of net/http/httptrace, so that the request may have been sent.
func handMade() []fault {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	var all []fault
	for name, answer := range map[string]service.RoundTripper{
		"error":           func(*http.Request) (*http.Response, error) { return nil, errOwn },
		"error of a dial": func(*http.Request) (*http.Response, error) { return nil, refused },
		//nolint:nilnil // the broken contract is the point
		"neither": func(*http.Request) (*http.Response, error) { return nil, nil },
		"both":    func(*http.Request) (*http.Response, error) { return &http.Response{}, errOwn },
	} {
		all = append(all, fault{
			name: "RoundTripper without hooks: " + name, is: lost,
			network: func(c *cell) http.RoundTripper {
				transport := c.transport()
				return service.RoundTripper(func(r *http.Request) (*http.Response, error) {
					if c.strikes() {
						return answer(r)
					}
					return transport.RoundTrip(r)
				})
			},
		})
	}
	return all
}

func failingDial(name string, err error) fault {
	return fault{name: name, is: unsent, cause: causedBy(err), network: dialing(
		func(context.Context, *net.Dialer) (net.Conn, error) { return nil, err })}
}

// untrusting is a dialer that finds a certificate wanting.
func untrusting(name string, err error) fault {
	f := failingDial("TLS: "+name, err)
	f.is, f.cause = distrusted, nil // what it wraps is not kept
	return f
}

func writeError(err error) error { return &net.OpError{Op: "write", Net: "tcp", Err: err} }

func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	return conn
}

// closedPort is an address on which nobody listens, nor can while the test runs: it is the near end of a connection.
func closedPort(t *testing.T) string {
	t.Helper()
	listener := service.Listen(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = listener.Close()
	})
	return conn.LocalAddr().String()
}

// dialing is a network in which a connection is made by strike when the fault strikes.
func dialing(strike func(context.Context, *net.Dialer) (net.Conn, error)) func(c *cell) http.RoundTripper {
	return func(c *cell) http.RoundTripper {
		transport := c.transport()
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if c.strikes() {
				return c.keep(strike(ctx, new(net.Dialer)))
			}
			return c.keep(new(net.Dialer).DialContext(ctx, network, addr))
		}
		return transport
	}
}

// peering is a network in which serve is the other side of a connection when the fault strikes.
func peering(serve func(conn net.Conn, c *cell)) func(c *cell) http.RoundTripper {
	return func(c *cell) http.RoundTripper {
		return dialing(func(ctx context.Context, _ *net.Dialer) (net.Conn, error) {
			return dialPeer(ctx, func(conn net.Conn) { serve(conn, c) })
		})(c)
	}
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

// over is a network with connections of another kind over those to the service.
func over(kind func(c *cell, conn net.Conn) net.Conn) func(c *cell) http.RoundTripper {
	return func(c *cell) http.RoundTripper {
		transport := c.transport()
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return kind(c, conn), nil
		}
		return transport
	}
}

// writing is a network in which strike takes what is written to a connection when the fault strikes. The connection is
// of no use after that.
func writing(strike func(conn net.Conn, p []byte) (int, error)) func(c *cell) http.RoundTripper {
	return over(func(c *cell, conn net.Conn) net.Conn { return &struckConn{Conn: conn, cell: c, strike: strike} })
}

type struckConn struct {
	net.Conn

	cell   *cell
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

// relaying is a network with a relay before the service, which closes a connection just before something is written to
// it when the fault strikes.
func relaying(c *cell) http.RoundTripper {
	transport := c.transport()
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		server, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		relay := make(chan net.Conn, 1)
		conn, err := dialPeer(ctx, func(conn net.Conn) {
			relay <- conn
			go func() {
				_, _ = io.Copy(server, conn)
				_ = server.Close()
			}()
			_, _ = io.Copy(conn, server)
			_ = conn.Close()
		})
		if err != nil {
			_ = server.Close()
			return nil, err
		}
		return &struckConn{Conn: conn, cell: c, strike: func(conn net.Conn, p []byte) (int, error) {
			_ = (<-relay).Close()
			return conn.Write(p)
		}}, nil
	}
	return transport
}

// cutConn loses its connection half way through the body of a request, or through the header if there is no body.
type cutConn struct {
	net.Conn

	cell    *cell
	request []byte // as far as it was written
}

func (c *cutConn) Write(p []byte) (int, error) {
	before := len(c.request)
	c.request = append(c.request, p...)
	if at := halfWay(c.request); at > 0 && at <= len(c.request) && c.cell.strikes() {
		n, _ := c.Conn.Write(p[:max(at-before, 0)])
		return n, writeError(syscall.ECONNRESET)
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

package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipes returns an *http.Transport whose connections are pipes, which work in a synctest bubble. serve gets the
// server's end of each pipe.
func pipes(t *testing.T, serve func(net.Conn)) *http.Transport {
	t.Helper()
	var servers sync.WaitGroup
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		servers.Go(func() {
			defer func() { _ = server.Close() }()
			serve(server)
		})
		return client, nil
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		servers.Wait()
	})
	return tr
}

// queued is a connection whose writes do not wait for the reader. On a net.Pipe each write waits for the reader. If
// both ends of a net.Pipe write at the same time, as HTTP/2 and TLS may do, each waits for the other.
type queued struct {
	net.Conn

	writes chan []byte
}

// newQueued returns a queued connection over conn. It starts a goroutine, which ends when the caller closes the channel
// writes.
func newQueued(conn net.Conn) queued {
	q := queued{conn, make(chan []byte, 100)}
	go func() {
		for p := range q.writes {
			_, _ = conn.Write(p)
		}
	}()
	return q
}

func (q queued) Write(p []byte) (int, error) {
	q.writes <- bytes.Clone(p)
	return len(p), nil
}

// readRequest reads one request and its body.
func readRequest(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
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

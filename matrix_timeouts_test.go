package payvault_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// matrixHang answers nothing until the client gives up.
func matrixHang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// matrixDrip answers one byte a second.
func matrixDrip(w http.ResponseWriter, r *http.Request) {
	for {
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// hang moves the cell into the bubble of t, where time passes when everyone waits. The emulator cannot be in there, and its
// own faults of time cannot be used: it listens on a socket, and while anyone waits for that no time passes. So the
// client gets a gateway that hangs as the fault says; it lets the emulator perform what is performed, and count it.
func (c *matrixCell) hang(t *testing.T, stays bool) {
	t.Helper()
	require.NoError(t, c.arm(stays))
	emulator := &http.Transport{DisableKeepAlives: true} // an idle connection would wait for a socket, too
	listener := &matrixListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // a server notices that its client is gone only after the body
		if err != nil {
			return
		}
		strikes := c.strikes()
		if strikes && !c.fault.performs {
			c.fault.hangs(w, r)
			return
		}
		status, answer, err := pass(emulator, r, body)
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.op.name, err)
		case strikes:
			c.fault.hangs(w, r)
		default:
			w.WriteHeader(status)
			_, _ = w.Write(answer)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	transport := &http.Transport{DialContext: listener.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	c.client = c.newClient(payvault.WithHTTPClient(&http.Client{Transport: transport}))
}

// pass sends a request on and reads the whole answer.
func pass(to http.RoundTripper, r *http.Request, body []byte) (status int, answer []byte, err error) {
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", r.Host, ""
	r.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := to.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, errors.Join(err, resp.Body.Close())
}

// matrixListener takes connections within the process.
type matrixListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *matrixListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *matrixListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *matrixListener) Close() error {
	close(l.closed)
	return nil
}

func (l *matrixListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

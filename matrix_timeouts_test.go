package payvault_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

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

// hang moves the cell into the bubble of t, where time passes when everyone waits: the client gets a service that hangs as
// the fault says, and otherwise performs the operation and counts that as the emulator does.
func (c *matrixCell) hang(t *testing.T, stays bool) {
	t.Helper()
	c.arm(stays)
	listener := &matrixListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		strikes := c.strikes()
		refused := false
		if !strikes || c.fault.performs {
			var commits int
			commits, refused = c.op.performed(c.commits())
			c.bubble.Store(int64(commits))
		}
		switch {
		case strikes:
			c.fault.hangs(w, r)
		case refused:
			w.WriteHeader(c.op.again)
			_, _ = fmt.Fprintf(w, `{"code":%d}`, c.op.again)
		default:
			_, _ = io.WriteString(w, c.op.answer())
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

// answer is a success of the operation.
func (o *matrixOp) answer() string {
	if strings.HasSuffix(o.name, ".list") || strings.HasSuffix(o.name, ".transactions") {
		return `{"code":0,"totalPages":1,"totalRecords":0,"data":[]}`
	}
	return `{"code":0,"rcode":"000","data":{"customer_id":"C1","payee_id":1,"app":{"app_id":1},"request_id":"R1","message":"Done"}}`
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

package simulation

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// bufferSize is the number of bytes that an HTTP/1.1 connection without TLS accepts before the service reads them.
// Other connections have no limit: a write that blocks would hold a mutex of TLS or HTTP/2, and goroutines that wait
// for the mutex would stop the clock of synctest.
const bufferSize = 64 << 10

// longestDial is the timeout of all dialers.
const longestDial = 10 * time.Second

// dial creates the next connection of the scenario.
func (r *run) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	number := int(r.dials.Add(1)) - 1
	var plan Dial
	if number < len(r.Dials) {
		plan = r.Dials[number]
	}
	if r.Down == downRefuses {
		plan.Fault = "refused"
	}
	ctx, cancel := context.WithTimeout(ctx, longestDial)
	defer cancel()
	if plan.Wait > 0 {
		if err := pause(ctx, plan.Wait); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
	}
	if err := r.refuse(ctx, plan); err != nil {
		r.trace("network", "connection %d: %v", number, err)
		return nil, err
	}
	r.trace("network", "connection %d: made, %s", number, plan.Fault)
	near, far := newConns()
	near.chunk, far.chunk = plan.Chunk, plan.Chunk
	r.open.Add(1)
	near.onClose = func() {
		r.open.Add(-1)
		r.trace("network", "connection %d: closed by the client", number)
	}
	if r.Wire == wireHTTP1 {
		near.out.limit = bufferSize
	}
	r.arm(plan, near)
	r.keep(near, far)
	r.serving.Go(func() {
		defer func() { _ = far.Close() }()
		r.accept(far, plan)
	})
	return near, nil
}

func (r *run) refuse(ctx context.Context, plan Dial) error {
	switch plan.Fault {
	case "refused":
		r.strike("dial: " + plan.Fault)
		return &net.OpError{Op: "dial", Net: "tcp", Addr: address{}, Err: syscall.ECONNREFUSED}
	case "unknown host":
		r.strike("dial: " + plan.Fault)
		unknown := &net.DNSError{Err: "no such host", Name: "service.test", IsNotFound: true}
		return &net.OpError{Op: "dial", Net: "tcp", Err: unknown}
	case "hangs":
		r.strike("dial: " + plan.Fault)
		<-ctx.Done()
		return &net.OpError{Op: "dial", Net: "tcp", Addr: address{}, Err: ctx.Err()}
	}
	return nil
}

// arm sets up the planned fault at the client's end of a connection, if the fault happens after a number of bytes.
func (r *run) arm(plan Dial, near *conn) {
	strike := func(s *stream, f func()) {
		s.cutAt = plan.At
		s.onCut = func() {
			r.strike("connection: " + plan.Fault)
			if f != nil {
				f()
			}
		}
	}
	switch plan.Fault {
	case "cut inbound":
		strike(near.out, near.reset)
	case "swallowed inbound":
		strike(near.out, nil)
	case "cut outbound":
		strike(near.in, near.reset)
	case "swallowed outbound":
		strike(near.in, nil)
	case "half-closed outbound":
		strike(near.in, near.in.end)
	}
}

// accept serves one connection with the protocol of the scenario and the planned fault.
func (r *run) accept(far *conn, plan Dial) {
	l := &line{far, far}
	secure := r.Wire == wireHTTP1TLS || r.Wire == wireH2
	http2 := r.Wire == wireH2C || r.Wire == wireH2
	switch plan.Fault {
	case "closed at once":
		r.strike("connection: " + plan.Fault)
		return
	case "not read":
		r.strike("connection: " + plan.Fault)
		far.awaitEndUnread()
		return
	case "garbage first":
		r.strike("connection: " + plan.Fault)
		_, _ = far.Write(newDie(uint64(plan.At)).garbage()) //nolint:gosec // the plan draws the number
		far.awaitEnd()
		return
	case "wrong protocol":
		r.strike("connection: " + plan.Fault)
		if http2 = !http2; secure {
			secure = false
		}
	}
	if secure {
		certificate := r.world.certificate
		if plan.Fault == "wrong certificate" {
			r.strike("connection: " + plan.Fault)
			certificate = r.world.untrusted
		}
		protocol := map[bool]string{true: "h2", false: "http/1.1"}[http2]
		secured := tls.Server(far, &tls.Config{
			Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13,
			SessionTicketsDisabled: true, CurvePreferences: []tls.CurveID{tls.X25519},
		})
		if secured.Handshake() != nil { //nolint:noctx // it ends with the connection
			return
		}
		l.Conn = secured
	}
	if http2 {
		r.serveHTTP2(l)
		return
	}
	r.serveHTTP1(l)
}

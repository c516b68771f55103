package simulation

import (
	"context"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is what a connection takes before somebody reads. Only HTTP/1 without TLS has a limit: on HTTP/2 and TLS
// writes hold a mutex, and one who waits for a mutex keeps the clock of a bubble from going on.
const bufferSize = 64 << 10

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	content  []byte
	limit    int
	ended    bool  // nothing more comes
	broken   error // what is in the buffer is lost
	passed   int   // bytes written
	cutAt    int   // bytes after which the rest is lost; negative for never
	onCut    func()
	deadline [2]time.Time // of reading and of writing
	timers   [2]*time.Timer
}

const (
	reading = iota
	writing
)

func newStream() *stream {
	s := &stream{limit: math.MaxInt, cutAt: -1}
	s.changed.L = &s.mu
	return s
}

// read waits for bytes. At most chunk of them come at a time, if it is positive.
func (s *stream) read(p []byte, chunk int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken != nil:
			return 0, s.broken
		case s.late(reading):
			return 0, os.ErrDeadlineExceeded
		case len(s.content) > 0:
			if chunk > 0 && len(p) > chunk {
				p = p[:chunk]
			}
			n := copy(p, s.content)
			s.content = s.content[n:]
			s.changed.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case len(p) == 0 && n > 0: // what was taken as a whole has not failed, as in a system
			return n, nil
		case s.broken != nil:
			return n, s.broken
		case s.ended:
			return n, syscall.EPIPE
		case s.late(writing):
			return n, os.ErrDeadlineExceeded
		case len(p) == 0:
			return n, nil
		}
		if room := s.limit - len(s.content); room > 0 {
			now := min(room, len(p))
			s.take(p[:now])
			p, n = p[now:], n+now
			continue
		}
		s.changed.Wait()
	}
}

// take keeps what comes before the cut.
func (s *stream) take(p []byte) {
	kept := p
	cut := s.cutAt >= 0 && s.passed+len(p) > s.cutAt
	if cut {
		kept = p[:max(0, s.cutAt-s.passed)]
	}
	s.passed += len(p)
	s.content = append(s.content, kept...)
	s.changed.Broadcast()
	if cut && s.onCut != nil {
		strike := s.onCut
		s.onCut = nil
		s.mu.Unlock()
		strike()
		s.mu.Lock()
	}
}

// end lets what is in the buffer be read, and nothing after it.
func (s *stream) end() { s.change(func() { s.ended = true }) }

func (s *stream) fail(err error) { s.change(func() { s.broken, s.content = err, nil }) }

func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
}

func (s *stream) late(direction int) bool {
	at := s.deadline[direction]
	return !at.IsZero() && !time.Now().Before(at)
}

func (s *stream) setDeadline(direction int, at time.Time) {
	s.change(func() {
		s.deadline[direction] = at
		if s.timers[direction] != nil {
			s.timers[direction].Stop()
		}
		if !at.IsZero() {
			s.timers[direction] = time.AfterFunc(time.Until(at), s.changed.Broadcast)
		}
	})
}

// conn is one end of a connection.
type conn struct {
	in, out *stream
	chunk   int
	once    sync.Once
	closed  chan struct{}
	onClose func()
}

func newConns() (near, far *conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up, closed: make(chan struct{})}, &conn{in: up, out: down, closed: make(chan struct{})}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p, c.chunk)
	return n, opError("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, opError("write", err)
}

func opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // as package net
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Err: err}
}

// Close ends what the other side reads, and breaks what it writes.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.end()
		c.in.fail(net.ErrClosed)
		close(c.closed)
		if c.onClose != nil {
			c.onClose()
		}
	})
	return nil
}

// reset is a connection that is lost, for both sides.
func (c *conn) reset() {
	c.in.fail(syscall.ECONNRESET)
	c.out.fail(syscall.ECONNRESET)
}

func (c *conn) closeWrite() { c.out.end() }

func (c *conn) LocalAddr() net.Addr  { return address{} }
func (c *conn) RemoteAddr() net.Addr { return address{} }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	return errorsOf(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func errorsOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(reading, t)
	return nil
}

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(writing, t)
	return nil
}

type address struct{}

func (address) Network() string { return "tcp" }
func (address) String() string  { return "192.0.2.1:443" }

// longestDial is that of the dialers of all callers.
const longestDial = 10 * time.Second

// dial makes the next connection of the scenario.
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

// arm sets up what strikes after a number of bytes, on the client's end.
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

// pause waits, but not for longer than the context.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitEnd waits until the other side has closed the connection, and drops what it writes.
func (c *conn) awaitEnd() {
	_, _ = io.Copy(io.Discard, c)
}

// awaitEndUnread does so without reading, so that the other side can write no more than the buffer holds.
func (c *conn) awaitEndUnread() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	for !c.in.ended && c.in.broken == nil {
		c.in.changed.Wait()
	}
}

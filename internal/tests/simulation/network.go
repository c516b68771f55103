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

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	content  []byte
	limit    int
	ended    bool  // no more bytes will be written
	broken   error // if not nil, reads and writes fail with this error, and the bytes in the buffer are lost
	passed   int   // number of bytes that were written
	cutAt    int   // number of bytes after which further bytes are lost; negative for never
	onCut    func()
	deadline [2]time.Time // deadlines of reading and of writing
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

// read waits for bytes. If chunk is positive, read returns at most that many.
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
		// As in an operating system, a complete write succeeds even if the connection is broken now.
		case len(p) == 0 && n > 0:
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

// take adds bytes to the buffer, but drops all bytes of the stream after the first cutAt bytes. It calls onCut when it
// first drops bytes.
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

// end makes reads return io.EOF after the bytes in the buffer.
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
	if err == nil || err == io.EOF { //nolint:errorlint // as package net does
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Err: err}
}

// Close closes this end of the connection. The other side can still read buffered bytes, but can no longer write.
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

// reset breaks the connection for both sides.
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

// pause waits for d, or until the context ends.
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

// awaitEnd reads and discards bytes until the other side has closed the connection, or until the connection is broken.
func (c *conn) awaitEnd() {
	_, _ = io.Copy(io.Discard, c)
}

// awaitEndUnread waits until the other side has closed the connection, or until the connection is broken. It does not
// read, so bytes stay in the buffer meanwhile.
func (c *conn) awaitEndUnread() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	for !c.in.ended && c.in.broken == nil {
		c.in.changed.Wait()
	}
}

// line is the service's end of a connection. Its Conn is raw itself, or TLS over raw.
type line struct {
	net.Conn

	raw *conn
}

func (l *line) cut(how string) {
	switch how {
	case "reset", "RST_STREAM":
		l.raw.reset()
	case "hang":
		l.raw.awaitEnd()
	case "half-close":
		l.raw.closeWrite()
		l.raw.awaitEnd()
	}
}

// send writes bytes and reports whether all of them were written. If drip is positive, send first writes up to 20
// pieces and waits for the time drip after each. Then it writes the rest.
func (l *line) send(raw []byte, drip time.Duration) bool {
	for pieces := 0; drip > 0 && len(raw) > 1 && pieces < 20; pieces++ {
		piece := min(len(raw), len(raw)/10+1)
		if _, err := l.Write(raw[:piece]); err != nil {
			return false
		}
		raw = raw[piece:]
		<-time.After(drip)
	}
	_, err := l.Write(raw)
	return err == nil
}

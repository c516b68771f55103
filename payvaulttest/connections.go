package payvaulttest

import (
	"net"
	"net/http"
	"sync"
)

// connections knows the open connections of a server, so that it can close idle ones and wait until
// all are gone.
type connections struct {
	refusing func() bool // whether those that become idle are closed, too

	mu   sync.Mutex
	idle map[net.Conn]bool
	open sync.WaitGroup
}

func newConnections(refusing func() bool) *connections {
	return &connections{refusing: refusing, idle: map[net.Conn]bool{}}
}

// track is the hook of the HTTP server.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open.Add(1)
		c.idle[conn] = false
	case http.StateActive, http.StateIdle:
		c.idle[conn] = state == http.StateIdle
		if c.idle[conn] && c.refusing() { // a client has its answer a little before its connection is idle
			_ = conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.idle, conn)
		c.open.Done()
	}
}

func (c *connections) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, idle := range c.idle {
		if idle {
			_ = conn.Close()
		}
	}
}

func (c *connections) wait() { c.open.Wait() }

// A gate counts those inside, and once it is shut lets no one in.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

func (g *gate) leave() { g.inside.Done() }

// shut waits until no one is inside.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}

// A pickyListener resets the connections that a fault says to refuse.
type pickyListener struct {
	net.Listener
	refuse func() bool
}

// Accept implements net.Listener.
func (l *pickyListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err // as it is: the HTTP server tells passing errors apart
		}
		if !l.refuse() {
			return conn, nil
		}
		resetConn(conn)
	}
}

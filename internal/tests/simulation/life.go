package simulation

import (
	"context"
	"errors"
	"net"
	"sync"
)

// life is one simulated process of a bulk job. A killed process loses its connections. It can no longer open
// connections or write to the journal.
type life struct {
	run    *run
	call   int
	number int
	diesAt int // number of the event at which the process is killed; 0 for never
	cancel context.CancelFunc

	mu     sync.Mutex
	events int
	dead   bool
	conns  []net.Conn
	failed bool // the journal has returned an error to this process
}

var errDead = errors.New("the process is dead")

// event counts one event. It kills the process at event diesAt.
func (l *life) event() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events++; l.events != l.diesAt || l.dead {
		return
	}
	l.run.strike("job: the process dies")
	l.run.trace("caller", "call %d: the process dies, life %d", l.call, l.number)
	l.dead = true
	l.cancel()
	for _, c := range l.conns {
		_ = c.Close() // the service still gets the bytes that were written before
	}
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *life) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.run.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		_ = c.Close()
		return nil, errDead
	}
	l.conns = append(l.conns, c)
	return c, nil
}

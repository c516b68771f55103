package simulation

import (
	"context"
	"errors"
	"net"
	"sync"
)

// life is one run of a job in a process that may die. After its death, the run changes neither the network nor the
// journal.
type life struct {
	run    *run
	call   int
	number int
	diesAt int // number of the event at which it dies; 0 for never
	cancel context.CancelFunc

	mu     sync.Mutex
	events int
	dead   bool
	conns  []net.Conn
	failed bool // the journal has failed in this life
}

var errDead = errors.New("the process is dead")

// event is a point at which the process may die.
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
		_ = c.Close() // bytes that were written still arrive
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

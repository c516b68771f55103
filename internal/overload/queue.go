package overload

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// queue has the requests that wait for a rate limit, in two lines. Single calls wait for the token turn. The calls of a
// walk, which is a loop of many calls, first wait for the token walkTurn. So of all walks only one request waits for
// turn, and a single call waits for at most one request of a walk.
type queue struct {
	turn     token // the request that holds it is the next to be sent
	walkTurn token // a request of a walk holds walkTurn while it waits for turn

	mu      sync.Mutex
	waiting int           // number of requests that wait for turn, or hold it
	limiter *rate.Limiter // decides when a request may be sent
}

// leave lowers the number of requests that wait by one.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
}

// untilToken returns the time from now until the limiter has a token for a request. The parameter ahead is the number
// of other requests that take a token before it. The caller holds mu, unless the field limiter never changes.
func (q *queue) untilToken(now time.Time, ahead int) time.Duration {
	missing := 1 + float64(ahead) - q.limiter.TokensAt(now)
	delay := missing / float64(q.limiter.Limit()) * float64(time.Second)
	return time.Duration(min(max(delay, 0), math.MaxInt64/2)) // a longer delay would overflow
}

// token is held by one request at a time. Requests get it in the order in which they have asked for it.
type token struct {
	mu     sync.Mutex
	isHeld bool
	line   []chan struct{} // channels of the requests that wait, the oldest request first
}

// ask returns a channel that receives a value when the request gets the token. Then the request holds the token until
// it calls giveBack. A request that gives up before it has received the value calls leave.
func (t *token) ask() (mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine = make(chan struct{}, 1)
	if t.isHeld {
		t.line = append(t.line, mine)
	} else {
		t.isHeld = true
		mine <- struct{}{}
	}
	return mine
}

func (t *token) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) == 0 {
		t.isHeld = false
		return
	}
	t.line[0] <- struct{}{}
	t.line = t.line[1:]
}

func (t *token) leave(mine chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.line, mine)
	if i >= 0 {
		t.line = slices.Delete(t.line, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // the request has just got the token
		t.giveBack()
	}
}

// take waits for the token. If ctx ends first, take returns the error of ctx.
func (t *token) take(ctx context.Context) error {
	mine := t.ask()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		t.leave(mine)
		return ctx.Err()
	}
}

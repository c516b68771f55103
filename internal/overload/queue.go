package overload

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// queue has the requests that wait for a rate limit, in two lines. Single calls wait for the token turn. The calls of a
// walk, which is a loop of many calls, first wait for the token walkTurn. So of all walks only one request waits for
// turn, and a single call waits for at most one request of a walk.
type queue struct {
	turn     token // the request that holds it is the next to be sent
	walkTurn token // a walk has to hold it while it waits for turn

	mu      sync.Mutex
	waiting int           // number of requests that wait for turn, or hold it
	limiter *rate.Limiter // decides when a request may be sent
}

func newQueue() queue { return queue{turn: newToken(), walkTurn: newToken()} }

// leave removes a request from the number of those that wait.
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

// token is held by one request at a time. A request that receives from the channel holds the token until it calls
// giveBack.
type token chan struct{}

func newToken() token {
	t := make(token, 1)
	t.giveBack()
	return t
}

// take waits for the token. If ctx ends first, take returns the error of ctx.
func (t token) take(ctx context.Context) error {
	select {
	case <-t:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t token) giveBack() { t <- struct{}{} }

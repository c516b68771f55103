package overload

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limit is a rate limit that the caller has set. All requests of a client share it. A nil Limit limits nothing.
type Limit struct {
	mu       sync.Mutex // makes a reservation and its cancellation one step: see reserve
	limiter  *rate.Limiter
	walkTurn chan struct{} // has one token; a walk has to hold it while it waits
}

// NewLimit returns a limit of perSecond requests a second on average, and of burst requests at once.
func NewLimit(perSecond float64, burst int) *Limit {
	l := &Limit{limiter: rate.NewLimiter(rate.Limit(perSecond), burst), walkTurn: make(chan struct{}, 1)}
	l.walkTurn <- struct{}{}
	return l
}

// Wait waits until a request may be sent, and returns how long that took. It fails at once with a [HeldError] if the
// turn of the request comes after the deadline of ctx. It fails with the error of ctx if ctx ends first.
func (l *Limit) Wait(ctx context.Context) (waited time.Duration, err error) {
	if l == nil {
		return 0, nil
	}
	reservation, err := l.reserve(ctx)
	if err != nil {
		return 0, err
	}
	delay := reservation.Delay()
	if delay == 0 {
		return 0, nil
	}
	start := time.Now()
	select {
	case <-time.After(delay):
		return time.Since(start), nil
	case <-ctx.Done():
		reservation.Cancel()
		return time.Since(start), ctx.Err()
	}
}

// WaitInWalk waits like Wait, before a call of a walk. Only one request of all walks competes with single calls, so
// that a single call waits for at most one request of a walk.
func (l *Limit) WaitInWalk(ctx context.Context) (waited time.Duration, err error) {
	if l == nil {
		return 0, nil
	}
	start := time.Now()
	select {
	case <-l.walkTurn:
	case <-ctx.Done():
		return time.Since(start), ctx.Err()
	}
	defer func() { l.walkTurn <- struct{}{} }()
	waitedForTurn := time.Since(start)
	waited, err = l.Wait(ctx)
	return waitedForTurn + waited, err
}

// reserve takes the next token that will be free. If the token comes after the deadline of ctx, reserve gives it back
// and returns a HeldError. Cancel gives a token back only if no later one is taken, so mu keeps others out meanwhile.
func (l *Limit) reserve(ctx context.Context) (*rate.Reservation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	reservation := l.limiter.Reserve()
	delay := reservation.Delay()
	deadline, hasDeadline := ctx.Deadline()
	if hasDeadline && delay > time.Until(deadline) {
		reservation.Cancel()
		return nil, &HeldError{delay}
	}
	return reservation, nil
}

package overload

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
)

// Limit is a rate limit that the caller has set. All requests of a client share it. A nil Limit limits nothing.
//
// A request that waits holds no token of the limiter. It takes its token when it is sent, so a request that gives up
// delays no other.
type Limit struct {
	queue

	grown chan struct{} // closed when a request joins the queue; nil if nobody waits for that; guarded by mu
}

// ErrPostponed is the error of a request that has to wait in its Pace again: when its turn in the Limit came, the
// service had asked for a wait.
var ErrPostponed = errors.New("the service has asked for a wait")

// NewLimit returns a limit that permits perSecond requests a second on average, and up to burst requests at once.
func NewLimit(perSecond float64, burst int) *Limit {
	return &Limit{queue: queue{limiter: rate.NewLimiter(rate.Limit(perSecond), burst)}}
}

// Wait waits until a request may be sent, and returns how long that took. It fails with one of these errors:
//   - a [HeldError], at once, if the turn of the request comes after the deadline of ctx;
//   - the error of ctx, if ctx ends first;
//   - [ErrPostponed], when the turn comes, if p says that the service has asked for a wait that has not ended. p may be
//     nil.
func (l *Limit) Wait(ctx context.Context, p *Pace) (waited time.Duration, err error) {
	if l == nil {
		return 0, nil
	}
	delay, err := l.join(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err = l.waitForTurn(ctx, p); err != nil {
		l.leave()
	}
	if delay > 0 {
		waited = time.Since(start)
	}
	return waited, err
}

// WaitInWalk waits like Wait, before a call of a walk, which is a loop of many calls. Of all walks only one call at a
// time joins the queue. The returned time includes the wait for the calls of the other walks.
func (l *Limit) WaitInWalk(ctx context.Context, p *Pace) (waited time.Duration, err error) {
	if l == nil {
		return 0, nil
	}
	start := time.Now()
	if err := l.walkTurn.take(ctx); err != nil {
		return time.Since(start), err
	}
	defer l.walkTurn.giveBack()
	waitedForTurn := time.Since(start)
	waited, err = l.Wait(ctx, p)
	return waitedForTurn + waited, err
}

// join counts the request as waiting, and returns the time until its turn. It fails with the error of ctx if ctx has
// ended, and with a HeldError if the turn comes after the deadline of ctx.
func (l *Limit) join(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delay := l.untilToken(time.Now(), l.waiting)
	deadline, hasDeadline := ctx.Deadline()
	if hasDeadline && delay > time.Until(deadline) {
		return 0, &HeldError{delay}
	}
	l.waiting++
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return delay, nil
}

// waitForTurn waits for the token turn, and then until the limiter permits the request. Then it calls take. If ctx ends
// first, it returns the error of ctx. If the service has asked for a wait that has not ended, it returns ErrPostponed.
// Before it returns, it gives the token turn back. If it returns an error, it has not called take.
func (l *Limit) waitForTurn(ctx context.Context, p *Pace) error {
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.giveBack()
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	delay := l.untilToken(now, 0)
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if p.IsHeld() {
		return ErrPostponed
	}
	l.take(now.Add(delay))
	return nil
}

// take removes the request from the queue, and takes a token of the limiter. The parameter free is the time at which
// the token became available. The limiter counts from this time, so a late timer does not lower the rate.
func (l *Limit) take(free time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limiter.ReserveN(free, 1)
	l.waiting--
}

// delayBehind returns the time until the turn of a request that joins the queue later. The parameter ahead is the
// number of other requests that join before it. The channel grown is closed when the next request joins the queue; it
// is nil if l is nil.
func (l *Limit) delayBehind(ahead int) (delay time.Duration, grown <-chan struct{}) {
	if l == nil {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.untilToken(time.Now(), l.waiting+ahead), l.grown
}

package overload

import (
	"context"
	"fmt"
	"time"
)

// This file has the queue of the requests that wait for the rate limit. The queue has two lanes: single calls wait for
// the turn, and requests of walks first wait for walkTurn. The request that holds the turn waits for the limiter.

// HeldError is returned for a request that is not sent because it would have to wait longer than its caller accepts.
// After is that wait.
type HeldError struct{ After time.Duration }

func (e *HeldError) Error() string {
	return fmt.Sprintf("requests have to wait %v, longer than this call may", e.After.Round(time.Millisecond))
}

// Wait waits until the request may be sent. It fails in these cases:
//   - with the error of ctx, if that ends first;
//   - with a [HeldError] as soon as the service has asked for a wait that is longer than longest;
//   - with a [HeldError] as soon as it is certain that no request is sent before the deadline of ctx;
//   - with a [HeldError] if the request is the next one and its turn comes after the deadline of ctx.
func (p *Pace) Wait(ctx context.Context, longest time.Duration) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	start := time.Now()
	if err := receive(ctx, p, longest, p.turn); err != nil {
		return Place{}, err
	}
	defer func() { p.turn <- struct{}{} }()
	deadline, limited := ctx.Deadline()
	for delay := p.take(); delay > 0; delay = p.take() {
		if limited && time.Until(deadline) < delay {
			return Place{}, &HeldError{delay}
		}
		// The rate may rise during the wait, so the loop computes the delay anew each second.
		if err := receive(ctx, p, longest, time.After(min(delay, time.Second))); err != nil {
			return Place{}, err
		}
	}
	now := time.Now()
	return Place{now.Sub(start), now}, nil
}

// WaitInWalk is Wait for a request of a walk. Walks may have many requests that wait. Only one of them at a time
// competes with single calls, so that single calls get their turns beside any walk.
func (p *Pace) WaitInWalk(ctx context.Context, longest time.Duration) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	start := time.Now()
	if err := receive(ctx, p, longest, p.walkTurn); err != nil {
		return Place{}, err
	}
	defer func() { p.walkTurn <- struct{}{} }()
	place, err := p.Wait(ctx, longest)
	place.Waited = time.Since(start)
	return place, err
}

// receive waits for a value from a channel: a turn, or the end of a delay. It returns an error as soon as mayWait does,
// or when ctx ends.
func receive[T any](ctx context.Context, p *Pace, longest time.Duration, from <-chan T) error {
	for {
		postponed, err := p.mayWait(ctx, longest)
		if err != nil {
			return err
		}
		select {
		case <-from:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-postponed: // the wait may be too long now
		}
	}
}

// mayWait returns an error if the request must not wait until p.until. Otherwise it returns a channel that is closed
// when p.until moves to a later time. The error of an ended context is ctx.Err, not its cause, which may be the error
// of another call.
func (p *Pace) mayWait(ctx context.Context, longest time.Duration) (postponed <-chan struct{}, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline, limited := ctx.Deadline()
	if time.Until(p.askedUntil) > longest || limited && p.until.After(deadline) {
		return nil, &HeldError{time.Until(p.until)}
	}
	return p.postponed, nil
}

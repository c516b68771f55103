package overload

import (
	"context"
	"fmt"
	"time"
)

// This file has the two queues of waiting requests: the channels turn and walkTurn of Pace. Single calls and all
// retries wait for the token of turn. The calls of a walk, which is a loop of many calls, first wait for the token of
// walkTurn, and then for the token of turn. The request that holds the token of turn is sent when the limiter permits
// it, but not before the time p.until.

// HeldError is the error of a request that is not sent because it would have to wait too long. Its field After has the
// length of the wait. There are two cases:
//   - The service has asked for a longer wait than the caller accepts.
//   - The context of the request has a deadline before the end of the wait.
type HeldError struct{ After time.Duration }

func (e *HeldError) Error() string {
	return fmt.Sprintf("requests have to wait %v, longer than this call may", e.After.Round(time.Millisecond))
}

// Wait waits until the request may be sent. Without a limit it returns at once. It fails with one of these errors:
//   - the error of ctx, if ctx ends first;
//   - a [HeldError], as soon as the service has asked for a longer wait than the parameter longest;
//   - a [HeldError], as soon as it is certain that no request is sent before the deadline of ctx;
//   - a [HeldError], if the request is the next one and would be sent after the deadline of ctx.
func (p *Pace) Wait(ctx context.Context, longest time.Duration) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	start := time.Now()
	if err := receive(ctx, p, longest, p.turn); err != nil {
		return Place{}, err
	}
	defer func() { p.turn <- struct{}{} }()
	deadline, hasDeadline := ctx.Deadline()
	for delay := p.take(); delay > 0; delay = p.take() {
		if hasDeadline && time.Until(deadline) < delay {
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

// take takes a token from the limiter for a request that is sent now, and returns 0. If the request has to wait, take
// returns the time to wait, and normally takes no token.
//
// The exception: if the limiter has a free token and only p.until makes the request wait, the token is lost, because
// Cancel cannot return it. Then the first request after the wait may be up to one p.interval() late.
func (p *Pace) take() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	reservation := p.limiter.Reserve()
	delay := max(reservation.Delay(), time.Until(p.until))
	if delay > 0 {
		reservation.Cancel()
	}
	return delay
}

// WaitInWalk waits like Wait, before a call of a walk. Only one request of all walks competes with single calls, so
// that a single call waits for at most one request of a walk.
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

// receive waits for a value from a channel. It returns an error when ctx ends, or as soon as mayWait returns one. It
// calls mayWait again each time that p.until moves.
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

// mayWait returns a HeldError if the request must not wait until p.until. If ctx has ended, it returns the error of ctx
// and not the cause, which may be the error of another call. Otherwise it returns a channel that is closed when p.until
// moves.
//
// The service has asked for a wait until p.askedUntil. A random addition makes p.until later than that. longest is
// compared with p.askedUntil, because a caller that accepts the wait also accepts the addition. The deadline is
// compared with p.until, because no request is sent earlier.
func (p *Pace) mayWait(ctx context.Context, longest time.Duration) (postponed <-chan struct{}, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline, hasDeadline := ctx.Deadline()
	asksTooMuch := time.Until(p.askedUntil) > longest
	endsBefore := hasDeadline && p.until.After(deadline)
	if asksTooMuch || endsBefore {
		return nil, &HeldError{time.Until(p.until)}
	}
	return p.postponed, nil
}

package overload

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file has the two queues of waiting requests: the channels turn and walkTurn of Pace. Single calls and all
// retries wait for the token of turn. The calls of a walk, which is a loop of many calls, first wait for the token of
// walkTurn, and then for the token of turn. The request that holds the token of turn is sent when the limiter permits
// it, but not before the time p.until.
//
// The learned rate may delay a single call, but never makes it fail. So a single call is sent without its turn if its
// turn would come when more than half of the time until its deadline is over. It then waits only as long as the service
// has asked. If the service has refused such a request within the last second, the learned rate is probably right. Then
// a call waits for its turn, but at most for half of the time until its deadline. The time that it then needs for its
// turn in a Limit does not count as time until its deadline.

// HeldError is the error of a request that is not sent because it would have to wait too long. Its field After has the
// length of the wait. There are two cases:
//   - The service has asked for a wait that is longer than the caller accepts, or ends after the deadline of the
//     context.
//   - The request exceeds a [Limit], and its turn comes after the deadline of the context.
type HeldError struct{ After time.Duration }

func (e *HeldError) Error() string {
	return fmt.Sprintf("requests have to wait %v, longer than this call may", e.After.Round(time.Millisecond))
}

// errSlow is returned for a request that is sent without its turn, because the queue is too slow.
var errSlow = errors.New("the queue takes more than half of the time until the deadline")

// waiter is a request that waits.
type waiter struct {
	*Pace

	ctx     context.Context //nolint:containedctx // the context of the request
	longest time.Duration   // longest wait that the service may ask for
	start   time.Time
	// reserved is the time that the request probably waits in the Limit after its turn. At the start, the requests that
	// are before it in this queue count as before it in the Limit too.
	reserved time.Duration
	// isPatient means that the request waits however long that takes: it belongs to a walk, or waits only as asked.
	isPatient bool
}

// Wait waits until a single call may be sent, or until it may join the queue of the Limit l, which may be nil. If p
// limits nothing, Wait returns at once. It fails with one of these errors:
//   - the error of ctx, if ctx ends first;
//   - a [HeldError], as soon as the service has asked for a longer wait than the parameter longest, or for a wait that
//     ends after the deadline of ctx.
func (p *Pace) Wait(ctx context.Context, longest time.Duration, l *Limit) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	w := waiter{Pace: p, ctx: ctx, longest: longest, start: time.Now()}
	err := errSlow
	if w.join(l) {
		defer w.leave()
		err = w.waitForTurn()
	}
	switch {
	case err == nil:
		now := time.Now()
		return Place{now.Sub(w.start), now}, nil
	case errors.Is(err, errSlow):
		err = w.waitAsAsked()
		return Place{Waited: time.Since(w.start)}, err
	}
	return Place{}, err
}

// WaitInWalk waits like Wait, before a call of a walk. The call is always sent in its turn. Only one request of all
// walks competes with single calls, so that a single call waits for at most one request of a walk.
func (p *Pace) WaitInWalk(ctx context.Context, longest time.Duration) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	w := waiter{Pace: p, ctx: ctx, longest: longest, start: time.Now(), isPatient: true}
	if err := receive(&w, p.walkTurn); err != nil {
		return Place{}, err
	}
	defer func() { p.walkTurn <- struct{}{} }()
	w.join(nil)
	defer w.leave()
	if err := w.waitForTurn(); err != nil {
		return Place{}, err
	}
	now := time.Now()
	return Place{now.Sub(w.start), now}, nil
}

// IsTooSlow reports whether a single call would wait for its turn for more than half of the time until the deadline of
// ctx. The time that it needs in the Limit l does not count.
func (p *Pace) IsTooSlow(ctx context.Context, l *Limit) bool {
	if !p.IsLimited() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := waiter{Pace: p, ctx: ctx, start: time.Now(), reserved: l.delayBehind(p.waiting)}
	return w.isTooSlow()
}

// IsHeld reports whether the service has asked for a wait that has not ended.
func (p *Pace) IsHeld() bool {
	if !p.IsLimited() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.askedUntil)
}

// join counts the request as waiting for the token of turn, and returns true. If the request is to be sent at once,
// without its turn, join returns false. It also sets w.reserved.
func (w *waiter) join(l *Limit) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved = l.delayBehind(w.waiting)
	isConfirmed := time.Since(w.refusedWithoutTurn) < confirmedFor
	if !isConfirmed && w.isTooSlow() {
		return false
	}
	w.waiting++
	return true
}

// leave takes back a join.
func (w *waiter) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
}

// isTooSlow reports whether the turn of a request that joins the queue now would come after w.latest. It assumes that
// the rate does not change. The caller holds mu.
func (w *waiter) isTooSlow() bool {
	latest, hasLatest := w.latest()
	if !hasLatest {
		return false
	}
	now := time.Now()
	untilToken := time.Duration((1 - w.limiter.TokensAt(now)) * float64(w.interval()))
	turn := max(w.until.Sub(now), untilToken) + time.Duration(w.waiting)*w.interval()
	return now.Add(turn).After(latest)
}

// latest returns the time at which the request is sent even if it is not its turn. Then half of the time from the start
// of the wait to the deadline is over. The wait that the service has asked for does not count, nor does w.reserved. The
// caller holds mu.
func (w *waiter) latest() (latest time.Time, hasLatest bool) {
	deadline, hasDeadline := w.ctx.Deadline()
	if w.isPatient || !hasDeadline {
		return time.Time{}, false
	}
	start := w.start
	if w.askedUntil.After(start) {
		start = w.askedUntil
	}
	return start.Add((deadline.Sub(start) - w.reserved) / 2), true
}

// waitForTurn waits until the request has the token of turn and the limiter permits it. Then it returns the token. It
// returns errSlow if the request is to be sent before its turn.
func (w *waiter) waitForTurn() error {
	if err := receive(w, w.turn); err != nil {
		return err
	}
	defer func() { w.turn <- struct{}{} }()
	for delay := w.take(); delay > 0; delay = w.take() {
		// The rate may rise during the wait, so the loop computes the delay anew each second.
		if err := receive(w, time.After(min(delay, time.Second))); err != nil {
			return err
		}
	}
	return nil
}

// waitAsAsked waits until p.askedUntil.
func (w *waiter) waitAsAsked() error {
	w.isPatient = true
	for {
		w.mu.Lock()
		delay := time.Until(w.askedUntil)
		w.mu.Unlock()
		if delay <= 0 {
			return w.ctx.Err()
		}
		if err := receive(w, time.After(delay)); err != nil {
			return err
		}
	}
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

// receive waits for a value from a channel. It returns an error when ctx ends, or as soon as mayWait returns one, and
// errSlow if the request is to be sent before its turn. It calls mayWait again each time that p.until moves.
func receive[T any](w *waiter, from <-chan T) error {
	for {
		postponed, tooLate, err := w.mayWait()
		if err != nil {
			return err
		}
		select {
		case <-from:
			return nil
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-tooLate:
			return errSlow
		case <-postponed: // the wait may be too long now
		}
	}
}

// mayWait returns a HeldError if the request must not wait until p.askedUntil. If ctx has ended, it returns the error
// of ctx and not the cause, which may be the error of another call. Otherwise it returns two channels. The channel
// postponed is closed when p.until moves. The channel tooLate gets a value when the request is to be sent without its
// turn; it is nil if the request always waits for its turn.
func (w *waiter) mayWait() (postponed <-chan struct{}, tooLate <-chan time.Time, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline, hasDeadline := w.ctx.Deadline()
	asksTooMuch := time.Until(w.askedUntil) > w.longest
	endsBefore := hasDeadline && w.askedUntil.After(deadline)
	if asksTooMuch || endsBefore {
		return nil, nil, &HeldError{time.Until(w.until)}
	}
	if latest, hasLatest := w.latest(); hasLatest {
		tooLate = time.After(time.Until(latest))
	}
	return w.postponed, tooLate, nil
}

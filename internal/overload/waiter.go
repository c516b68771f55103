package overload

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file has the requests that wait for a Pace. The request that holds the token turn is sent when the limiter
// permits it, but not before the time p.until.
//
// The learned rate may delay a single call, but never makes it fail. So a call with a deadline waits for its turn for
// at most half of the time until the deadline. Two waits are subtracted before the rest is halved: a wait that the
// service has asked for, and the wait for a Limit after the turn. When the queue of the Limit grows, a waiting call
// computes its half anew. So a call misses its deadline in these waits only if the Limit itself is too slow, or if the
// service asks for too long a wait.
//
// If its turn would come later, the call is sent without its turn: at once, or as soon as a wait that the service has
// asked for is over. The exception is the second after the service has refused a request that was sent without its
// turn. Then the learned rate is probably right, and the call first waits for its turn, until half of its time is over.

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
	limit   *Limit          // the request waits for this limit after its turn; nil for a walk, or without a limit
	start   time.Time
	ahead   int // number of requests that were in the queue when the request joined it
	// isPatient means that the wait does not end at half of the time until the deadline. The request belongs to a walk, or
	// it has given up its turn and waits only as long as the service has asked.
	isPatient bool
}

// Wait waits until a single call may be sent or, if l is not nil, until it may join the queue of the Limit l. If p
// limits nothing, Wait returns at once. It fails with one of these errors:
//   - the error of ctx, if ctx ends first;
//   - a [HeldError], as soon as the service has asked for a longer wait than the parameter longest, or for a wait that
//     ends after the deadline of ctx.
func (p *Pace) Wait(ctx context.Context, longest time.Duration, l *Limit) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	w := waiter{Pace: p, ctx: ctx, longest: longest, limit: l, start: time.Now()}
	if w.join(false) {
		return w.wait()
	}
	return w.waitWithoutTurn()
}

// Retry is the retry of a single call after a 429. It is in the queue of a Pace.
type Retry struct{ waiter }

// JoinForRetry puts a retry into the queue. It returns nil if p limits nothing, or if the turn of the retry would come
// too late for the deadline of ctx: see the comment at the top of this file. l is the Limit after the queue, or nil. If
// the result is not nil, the caller has to call its Wait or Leave.
func (p *Pace) JoinForRetry(ctx context.Context, longest time.Duration, l *Limit) *Retry {
	r := &Retry{waiter{Pace: p, ctx: ctx, longest: longest, limit: l, start: time.Now()}}
	if p.IsLimited() && r.join(true) {
		return r
	}
	return nil
}

// Wait waits like [Pace.Wait]. The retry is sent in its turn. If the queue has become too slow, the retry is sent when
// half of the time until its deadline is over.
func (r *Retry) Wait() (Place, error) { return r.wait() }

// Leave takes the retry out of the queue.
func (r *Retry) Leave() { r.leave() }

// WaitInWalk waits like Wait, before a call of a walk. The call is always sent in its turn.
func (p *Pace) WaitInWalk(ctx context.Context, longest time.Duration) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	w := waiter{Pace: p, ctx: ctx, longest: longest, start: time.Now(), isPatient: true}
	if err := w.takeToken(&p.walkTurn); err != nil {
		return Place{}, err
	}
	defer p.walkTurn.giveBack()
	w.join(false) // returns true, because w is patient
	return w.wait()
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

// join counts the request as waiting for the token turn, and returns true. If the queue is too slow, it returns false
// instead. In the second after the refusal of a request that was sent without its turn, a request joins even a slow
// queue. A retry after a 429 never joins a slow queue, because it can have a backoff instead.
func (w *waiter) join(isRetry bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead = w.waiting
	isConfirmed := time.Since(w.refusedWithoutTurn) < confirmedFor
	if (isRetry || !isConfirmed) && w.isTooSlow() {
		return false
	}
	w.waiting++
	return true
}

// isTooSlow reports whether the request would have to be sent without its turn if it joined the queue now and the rate
// did not change. The caller holds mu.
func (w *waiter) isTooSlow() bool {
	latest, _ := w.latest()
	if latest.IsZero() {
		return false
	}
	now := time.Now()
	turn := max(w.until.Sub(now), w.untilToken(now, 0)) + time.Duration(w.waiting)*w.interval()
	return now.Add(turn).After(latest)
}

// latest returns the time at which the request is sent even if it is not its turn, or the zero time if there is none.
// This is the middle between two times. The first is the start of the wait, or the end of a wait that the service has
// asked for, whichever is later. The second is the deadline, minus the time that the request then needs in the Limit,
// behind the requests that are before it in this queue. The channel grown is closed when the queue of the Limit grows.
// The caller holds mu.
func (w *waiter) latest() (latest time.Time, grown <-chan struct{}) {
	deadline, hasDeadline := w.ctx.Deadline()
	if w.isPatient || !hasDeadline {
		return time.Time{}, nil
	}
	start := w.start
	if w.askedUntil.After(start) {
		start = w.askedUntil
	}
	inLimit, grown := w.limit.delayBehind(min(w.ahead, w.waiting))
	return start.Add((deadline.Sub(start) - inLimit) / 2), grown
}

// wait waits for the turn of a request that has joined the queue, and leaves the queue. If the turn comes too late,
// wait then calls waitWithoutTurn.
func (w *waiter) wait() (Place, error) {
	err := w.waitForTurn()
	w.leave()
	switch {
	case err == nil:
		now := time.Now()
		return Place{now.Sub(w.start), now}, nil
	case errors.Is(err, errSlow):
		return w.waitWithoutTurn()
	}
	return Place{}, err
}

// waitForTurn waits for the token turn, and then until the limiter permits the request. It gives the token back before
// it returns. It fails with the error of ctx, with a HeldError, or with errSlow if the request is to be sent without
// its turn.
func (w *waiter) waitForTurn() error {
	if err := w.takeToken(&w.turn); err != nil {
		return err
	}
	defer w.turn.giveBack()
	for delay := w.take(); delay > 0; delay = w.take() {
		// The rate may rise during the wait, so the loop computes the delay anew each second.
		if err := receive(w, time.After(min(delay, time.Second))); err != nil {
			return err
		}
	}
	return nil
}

// waitWithoutTurn waits only as long as the service has asked.
func (w *waiter) waitWithoutTurn() (Place, error) {
	w.isPatient = true
	for {
		w.mu.Lock()
		delay := time.Until(w.askedUntil)
		w.mu.Unlock()
		err := w.ctx.Err()
		if delay > 0 {
			err = receive(w, time.After(delay))
		}
		if delay <= 0 || err != nil {
			return Place{Waited: time.Since(w.start)}, err
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

// takeToken waits until the request holds t, which is the token turn or walkTurn of the queue. The request keeps its
// position in the line for t, even if p.until moves meanwhile. takeToken fails with the error of ctx, with a HeldError,
// or with errSlow.
func (w *waiter) takeToken(t *token) error {
	mine := t.ask()
	err := receive(w, mine)
	if err != nil {
		t.leave(mine)
	}
	return err
}

// receive waits for a value from a channel. It fails with the error of ctx when ctx ends, with a HeldError when the
// service asks for too long a wait, or with errSlow when the request is to be sent without its turn. It calls mayWait
// again when p.until has moved, or when the queue of the Limit has grown.
func receive[T any](w *waiter, from <-chan T) error {
	for {
		events, err := w.mayWait()
		if err != nil {
			return err
		}
		select {
		case <-from:
			return nil
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-events.tooLate:
			return errSlow
		case <-events.postponed:
		case <-events.grown:
		}
	}
}

// events are the channels of a request that waits. tooLate and grown are nil if isPatient is true, or if the context
// has no deadline. Without a Limit, grown is nil.
type events struct {
	postponed <-chan struct{}  // closed when p.until moves
	tooLate   <-chan time.Time // gets a value when the request is to be sent without its turn
	grown     <-chan struct{}  // closed when the queue of the Limit grows, so that tooLate has to come earlier
}

// mayWait returns a HeldError if the service has asked for a wait that is longer than the request accepts, or that ends
// after its deadline. If ctx has ended, mayWait returns the error of ctx and not the cause, which may be the error of
// another call. Otherwise it returns the events to wait for.
func (w *waiter) mayWait() (events, error) {
	if err := w.ctx.Err(); err != nil {
		return events{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline, hasDeadline := w.ctx.Deadline()
	asksTooMuch := time.Until(w.askedUntil) > w.longest
	endsBefore := hasDeadline && w.askedUntil.After(deadline)
	if asksTooMuch || endsBefore {
		return events{}, &HeldError{time.Until(w.until)}
	}
	e := events{postponed: w.postponed}
	latest, grown := w.latest()
	if !latest.IsZero() {
		e.tooLate, e.grown = time.After(time.Until(latest)), grown
	}
	return e, nil
}

// Package overload spares a service that refuses requests or is down: the pace of an operation, the budget of retries,
// and the wait that an answer asks for.
package overload

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// HeldError is returned for a request that is not sent, since its context ends before the service takes it.
type HeldError struct{ After time.Duration }

func (e *HeldError) Error() string {
	return fmt.Sprintf("held back for %v", e.After.Round(time.Millisecond))
}

// Pace is that of one operation, for all its calls: as fast as they come until the service refuses one with status 429,
// from then on at a rate that each refusal cuts and answers raise, as TCP does, and not before the service takes
// requests again.
type Pace struct {
	limited         atomic.Bool
	second          atomic.Int64  // of now
	current, before atomic.Int64  // answers in this second, and in the one before it
	turn            chan struct{} // has one for the call that is next; the others wait in their order
	patient         chan struct{} // likewise among patient calls, of which one at a time stands in the line of all

	mu      sync.Mutex
	waiting map[*waiter]bool
	others  int // of those that wait: which are not patient
	limiter *rate.Limiter
	known   rate.Limit // to be permitted, rate.Inf for unknown; up to it the rate doubles each second
	until   time.Time  // nothing is sent before
	jitter  float64    // is added to a wait, as a share of it, so that clients do not come back all at once
	cutAt   time.Time  // of the last cut; what was sent before is part of its cause
	answers int        // to what was sent since
}

// NewPace returns a pace without a limit.
func NewPace() *Pace {
	p := &Pace{turn: make(chan struct{}, 1), patient: make(chan struct{}, 1), waiting: map[*waiter]bool{}}
	p.turn <- struct{}{}
	p.patient <- struct{}{}
	return p
}

// IsLimited reports whether the service has refused a request of late.
func (p *Pace) IsLimited() bool { return p != nil && p.limited.Load() }

const (
	firstRate    = 1           // a second, at least
	lowestRate   = 0.1         // a second
	rateCut      = 0.8         // by a refusal
	blindCut     = 0.5         // by a further one before any answer
	searchGrowth = math.Ln2    // by an answer doubles the rate in a second
	steadyFor    = 10          // answers, which add nothing to the known rate
	growth       = 0.05        // by an answer, from then on
	mostJitter   = 0.1         // of a wait
	quietTime    = time.Minute // without a refusal, after which nothing is known; after twice that there is no limit
	quietTurns   = 40          // are at least as long, so that a low rate is not left all the time
)

// Place is the permission to send a request.
type Place struct {
	Waited time.Duration

	at time.Time // zero if there was no limit
}

// Wait returns when the request may be sent. A patient one waits as long as its context lasts, but for what the service
// asks for, and lets the others pass while there are more of its kind.
func (p *Pace) Wait(ctx context.Context, patient bool) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	start := time.Now()
	ctx, end := context.WithCancelCause(ctx)
	w := &waiter{patient: patient, end: end}
	w.deadline, _ = ctx.Deadline()
	p.join(w)
	defer p.leave(w)
	if patient {
		if err := receive(ctx, p.patient); err != nil {
			return Place{}, err
		}
		defer func() { p.patient <- struct{}{} }()
	}
	if err := receive(ctx, p.turn); err != nil {
		return Place{}, err
	}
	defer func() { p.turn <- struct{}{} }()
	for delay := p.next(); delay > 0; delay = p.next() {
		if err := receive(ctx, time.After(min(delay, time.Second))); err != nil {
			return Place{}, err
		}
	}
	now := time.Now()
	return Place{now.Sub(start), now}, nil
}

// receive waits for a channel, unless the context ends before.
func receive[T any](ctx context.Context, from <-chan T) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case <-from:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waiter is a call that waits.
type waiter struct {
	patient  bool
	deadline time.Time // zero for none
	end      context.CancelCauseFunc
}

// endIfLate ends a call that cannot wait for so long.
func (w *waiter) endIfLate(wait time.Duration) {
	if !w.deadline.IsZero() && time.Until(w.deadline) < wait {
		w.end(&HeldError{wait})
	}
}

// join adds a call to those that wait.
func (p *Pace) join(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := p.held()
	if !w.patient {
		turns := p.others + min(1, len(p.waiting)-p.others) + 1
		wait += p.timeOf(float64(turns) - p.limiter.TokensAt(time.Now().Add(wait)))
		p.others++
	}
	p.waiting[w] = true
	w.endIfLate(wait)
}

// leave takes it out again.
func (p *Pace) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.waiting, w); !w.patient {
		p.others--
	}
	w.end(nil)
}

// held is how long nothing is sent.
func (p *Pace) held() time.Duration { return max(0, time.Until(p.until)) }

// timeOf is how long some requests take, if no more is permitted than what is known.
func (p *Pace) timeOf(requests float64) time.Duration {
	var took rate.Limit
	for r, left := p.limiter.Limit(), rate.Limit(requests); left > 0; {
		more := p.search(r)
		step := min(left, max(1, r/more/20)) // in which the rate hardly changes
		took += step / r
		r, left = r+step*more, left-step
	}
	return time.Duration(took * rate.Limit(time.Second))
}

// search is what an answer adds to a rate up to the known one.
func (p *Pace) search(r rate.Limit) rate.Limit { return min(searchGrowth, r, max(0, p.known-r)) }

// next is how long the next call has to wait, or 0 if it may be sent now. What it waits for may change meanwhile, so
// it asks again each second.
func (p *Pace) next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.held(); held > 0 {
		return held
	}
	turn := p.limiter.Reserve()
	delay := turn.Delay()
	if delay > 0 {
		turn.Cancel()
	}
	return delay
}

// Answered is told of each answer that is no refusal, and of the place of its request.
func (p *Pace) Answered(at Place) {
	if p == nil {
		return
	}
	now := time.Now()
	p.count(now).Add(1)
	if !p.limited.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.limiter.Limit()
	long := max(quietTime, time.Duration(quietTurns/r*rate.Limit(time.Second)))
	switch quiet := now.Sub(p.until); {
	case quiet > 2*long:
		p.limiter.SetLimit(rate.Inf) // for those who wait

		p.limited.Store(false)
		return
	case quiet > long:
		p.known = rate.Inf
	}
	switch {
	case at.at.IsZero(): // what was in flight at the first refusal says what is permitted
		p.limiter.SetLimit(max(r, rateCut*p.recent()))
	case at.at.After(p.cutAt):
		more := p.search(r)
		if p.answers++; p.answers > steadyFor {
			more = max(more, growth)
		}
		p.limiter.SetLimit(r + more)
	}
}

// Refused is told of a refusal, of the place of its request, and how long the service asks to wait. Nothing is sent
// until then, or for the time of one request.
func (p *Pace) Refused(at Place, after time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, first := time.Now(), !p.limited.Load()
	if first || at.at.After(p.cutAt) {
		switch {
		case first:
			p.count(now)
			p.limiter, p.known = rate.NewLimiter(rateCut*max(p.recent(), firstRate), 1), rate.Inf
		case p.answers > 0:
			p.known = max(rateCut*p.limiter.Limit(), lowestRate)
			p.limiter.SetLimit(p.known)
		default:
			p.limiter.SetLimit(max(blindCut*p.limiter.Limit(), lowestRate))
		}
		p.cutAt, p.answers = now, 0
		p.jitter = mostJitter * rand.Float64() //nolint:gosec // jitter need not be unpredictable
	}
	p.limited.Store(true)
	if after == 0 {
		after = time.Duration(float64(time.Second) / float64(p.limiter.Limit()))
	}
	if until := now.Add(after + time.Duration(p.jitter*float64(after))); until.After(p.until) {
		p.until = until
		for w := range p.waiting {
			w.endIfLate(p.held())
		}
	}
}

// count returns the counter of the current second.
func (p *Pace) count(now time.Time) *atomic.Int64 {
	if this, last := now.Unix(), p.second.Load(); this != last && p.second.CompareAndSwap(last, this) {
		counted := p.current.Swap(0)
		if this != last+1 {
			counted = 0
		}
		p.before.Store(counted)
	}
	return &p.current
}

// recent is how many answers there were in a second.
func (p *Pace) recent() rate.Limit { return rate.Limit(max(p.current.Load(), p.before.Load())) }

package transport

import (
	"context"
	"errors"
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

// ErrStopped is returned for a request that is not sent, since its caller has stopped meanwhile.
var ErrStopped = errors.New("stopped")

// Pace is that of one operation, for all its calls: as fast as they come until the service refuses one with status 429,
// from then on at a rate that each refusal cuts and each answer raises, as TCP does, and not before the service takes
// requests again.
type Pace struct {
	limited         atomic.Bool
	second          atomic.Int64  // of now
	current, before atomic.Int64  // answers in this second, and in the one before it
	turn            chan struct{} // has one for the call that is next; the others wait in their order

	mu        sync.Mutex
	waiting   map[*waiter]bool
	limiter   *rate.Limiter
	until     time.Time // nothing is sent before
	jitter    float64   // is added to a wait, as a share of it, so that clients do not come back all at once
	searching bool      // for what the service permits, until its second refusal
	firstAt   time.Time // of the first refusal
	refusedAt time.Time // of the last one
	cutAt     time.Time // of the last cut; what was sent before is part of its cause
}

// NewPace returns a pace without a limit.
func NewPace() *Pace {
	p := &Pace{turn: make(chan struct{}, 1), waiting: map[*waiter]bool{}}
	p.turn <- struct{}{}
	return p
}

const (
	firstRate    = 1           // a second, at least
	lowestRate   = 0.1         // a second
	rateCut      = 0.8         // by a refusal
	searchGrowth = math.Ln2    // doubles it in a second, until the second refusal
	growth       = 0.05        // from then on
	mostJitter   = 0.1         // of a wait
	unlimitAfter = time.Minute // without a refusal the service permits whatever is asked of it
)

// place is the permission to send a request.
type place struct {
	at     time.Time // zero if there was no limit
	waited time.Duration
}

// wait returns when the request may be sent. A patient one waits as long as its context lasts, but for what the service
// asks for.
func (p *Pace) wait(ctx context.Context, patient bool) (place, error) {
	if p == nil || !p.limited.Load() {
		return place{}, nil
	}
	start := time.Now()
	ctx, end := context.WithCancelCause(ctx)
	w := &waiter{end: end}
	w.deadline, _ = ctx.Deadline()
	p.join(w, patient)
	defer p.leave(w)
	if err := receive(ctx, p.turn); err != nil {
		return place{}, err
	}
	defer func() { p.turn <- struct{}{} }()
	for delay := p.next(); delay > 0; delay = p.next() {
		if err := receive(ctx, time.After(delay)); err != nil {
			return place{}, err
		}
	}
	now := time.Now()
	return place{now, now.Sub(start)}, nil
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
func (p *Pace) join(w *waiter, patient bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := p.held()
	if !patient { // the turns of those that wait, at a rate that answers will raise
		wait += p.timeOf(float64(len(p.waiting)+1) - p.limiter.TokensAt(time.Now().Add(wait)))
	}
	p.waiting[w] = true
	w.endIfLate(wait)
}

// leave takes it out again.
func (p *Pace) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, w)
	w.end(nil)
}

// held is how long nothing is sent.
func (p *Pace) held() time.Duration { return max(0, time.Until(p.until)) }

// timeOf is how long some requests take at the rate of now, which their answers raise.
func (p *Pace) timeOf(requests float64) time.Duration {
	grows := growth
	if p.searching {
		grows = searchGrowth
	}
	return time.Duration(math.Log1p(grows*requests/float64(p.limiter.Limit())) / grows * float64(time.Second))
}

// next is how long the next call has to wait, or 0 if it may be sent now. What it waits for may change meanwhile.
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

// answered is told of each answer that is no refusal, and of the place of its request.
func (p *Pace) answered(at place) {
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
	if now.Sub(p.refusedAt) > unlimitAfter && now.Sub(p.until) > unlimitAfter {
		p.limited.Store(false)
		return
	}
	switch r := p.limiter.Limit(); {
	case at.at.Before(p.firstAt): // what was in flight at the first refusal says what is permitted
		p.limiter.SetLimit(max(r, rateCut*p.recent()))
	case p.searching:
		p.limiter.SetLimit(r + min(searchGrowth, r))
	default:
		p.limiter.SetLimit(r + min(growth, r/100))
	}
}

// refused is told of a refusal, of the place of its request, and how long the service asks to wait. Nothing is sent
// until then, or for the time of one request.
func (p *Pace) refused(at place, after time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, first := time.Now(), !p.limited.Load()
	p.refusedAt = now
	if first {
		p.count(now)
		p.limiter, p.firstAt = rate.NewLimiter(max(p.recent(), firstRate), 1), now
	}
	if first || at.at.After(p.cutAt) {
		p.cutAt, p.jitter = now, mostJitter*rand.Float64() //nolint:gosec // jitter need not be unpredictable
		p.limiter.SetLimit(max(rateCut*p.limiter.Limit(), lowestRate))
		p.searching = first
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

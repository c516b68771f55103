package transport

import (
	"context"
	"errors"
	"fmt"
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

// Pace is that of one operation, for all its calls: as fast as they come until the service refuses one with status 429, from then
// on at a rate that each refusal cuts and each answer raises, as TCP does, and not before the service takes requests again.
type Pace struct {
	limited         atomic.Bool
	cuts            atomic.Int64  // of the rate
	second          atomic.Int64  // of now
	current, before atomic.Int64  // answers in this second, and in the one before it
	waiting         atomic.Int64  // calls
	line            chan struct{} // holds one for the call whose turn it is; the others come in their order

	mu        sync.Mutex
	limiter   *rate.Limiter
	cut       rate.Limit // the last one
	first     int64      // cuts until the first refusal
	until     time.Time  // nothing is sent before
	refusedAt time.Time  // last
}

// NewPace returns a pace without a limit.
func NewPace() *Pace { return &Pace{line: make(chan struct{}, 1)} }

const (
	rateCut      = 0.8
	heldCut      = 0.95
	unlimitAfter = time.Minute // without a refusal the service permits whatever is asked of it
)

// place is the permission to send a request.
type place struct {
	waited time.Duration
	cuts   int64 // of the rate until it was given
}

// wait returns when the request may be sent.
func (p *Pace) wait(ctx context.Context, stop <-chan struct{}) (at place, err error) {
	if p == nil {
		return at, nil
	}
	at.cuts = p.cuts.Load()
	if !p.limited.Load() {
		return at, nil
	}
	start := time.Now()
	delay := p.delay(p.waiting.Add(1))
	defer p.waiting.Add(-1)
	if end, ok := ctx.Deadline(); ok && end.Before(start.Add(delay)) {
		return at, &HeldError{delay}
	}
	select {
	case p.line <- struct{}{}:
	case <-ctx.Done():
		return at, ctx.Err()
	case <-stop:
		return at, ErrStopped
	}
	defer func() { <-p.line }()
	for taken := false; !taken; {
		if delay, taken = p.next(); delay > 0 {
			timer := time.NewTimer(delay)
			select {
			case <-timer.C:
			case <-ctx.Done():
				err = ctx.Err()
			case <-stop:
				err = ErrStopped
			}
			if timer.Stop(); err != nil {
				return at, err
			}
			at.waited = time.Since(start)
		}
	}
	at.cuts = p.cuts.Load()
	return at, nil
}

// delay estimates how long the last of some calls has to wait.
func (p *Pace) delay(calls int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, time.Until(p.until)) + time.Duration(float64(calls-1)/float64(p.limiter.Limit())*float64(time.Second))
}

// next is how long the first in the line has to wait, and whether its turn has then come.
func (p *Pace) next() (delay time.Duration, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := time.Until(p.until); held > 0 {
		return held, false
	}
	return p.limiter.Reserve().Delay(), true
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
	if now.Sub(p.refusedAt) > unlimitAfter {
		p.limited.Store(false)
		return
	}
	r := float64(p.limiter.Limit())
	if at.cuts == p.first { // what was in flight at the first refusal says what is permitted
		r = max(r, float64(p.cut)*p.recent())
	}
	p.limiter.SetLimit(rate.Limit(r + max(1, r/25)/r))
}

// refused is told of a refusal, and how long the service asks to wait. Those of places that were given before the last cut are
// part of what has caused it.
func (p *Pace) refused(at place, after time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.refusedAt = now
	if !p.limited.Load() {
		p.count(now)
		p.first = p.cuts.Load()
		p.limiter = rate.NewLimiter(rate.Limit(max(1, p.recent())), 1)
	}
	if at.cuts == p.cuts.Load() {
		p.cuts.Add(1)
		if p.cut = rateCut; after > 0 { // the wait makes up for most of it
			p.cut = heldCut
		}
		p.limiter.SetLimit(max(1, p.cut*p.limiter.Limit()))
	}
	if end := now.Add(after); after > 0 && end.After(p.until) {
		p.until = end
	}
	p.limited.Store(true)
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
func (p *Pace) recent() float64 { return float64(max(p.current.Load(), p.before.Load())) }

// budget is shared by all calls of a client: when a service is down, they soon fail after their first attempt. Size, costs and
// refunds are those of the standard mode of the AWS SDKs.
type budget struct{ spent atomic.Int64 }

const (
	budgetSize  = 500
	retryCost   = 5
	timeoutCost = 10
	firstRefund = 1
)

// take reports whether there was enough left.
func (b *budget) take(cost int64) bool {
	if b.spent.Add(cost) <= budgetSize {
		return true
	}
	b.spent.Add(-cost)
	return false
}

// refund gives back, down to nothing spent.
func (b *budget) refund(amount int64) {
	for {
		spent := b.spent.Load()
		if spent == 0 || b.spent.CompareAndSwap(spent, max(0, spent-amount)) {
			return
		}
	}
}

package transport

import (
	"context"
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

// Pace is that of one operation, for all its calls: as fast as they come until the service refuses one with status 429, from then
// on at a rate that each refusal cuts and each answer raises, as TCP does, and not before the service takes requests again.
// The zero value is ready to use.
type Pace struct {
	limited              atomic.Bool
	second               atomic.Int64 // of now
	current, before      atomic.Int64 // answers in this second, and in the one before it
	mu                   sync.Mutex
	limiter              *rate.Limiter
	until                time.Time // nothing is sent before
	limitedAt, refusedAt time.Time // the first refusal, and the last one
	cuts                 int       // of the rate
	cut                  rate.Limit
}

const (
	rateCut      = 0.7
	heldCut      = 0.95
	firstLook    = 500 * time.Millisecond // answers to what was in flight at the first refusal come in this time
	unlimitAfter = time.Minute            // without a refusal the service permits whatever is asked of it
)

// place is the permission to send a request.
type place struct {
	waited time.Duration
	cuts   int // of the rate until it was given
}

// wait returns when the request may be sent.
func (p *Pace) wait(ctx context.Context) (at place, err error) {
	if p == nil || !p.limited.Load() {
		return at, nil
	}
	for {
		delay, cuts, err := p.turn(ctx)
		at.cuts = cuts
		if delay <= 0 || err != nil {
			return at, err
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return at, ctx.Err()
		case <-timer.C:
		}
		if at.waited += delay; !p.held() { // others may have been refused meanwhile
			return at, nil
		}
	}
}

// turn takes the next place, and returns how far it is away.
func (p *Pace) turn(ctx context.Context) (delay time.Duration, cuts int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	from := now
	if p.until.After(from) {
		from = p.until
	}
	taken := p.limiter.ReserveN(from, 1)
	delay = from.Sub(now) + taken.DelayFrom(from)
	if end, ok := ctx.Deadline(); ok && end.Before(now.Add(delay)) {
		taken.CancelAt(from)
		return 0, p.cuts, &HeldError{delay}
	}
	return delay, p.cuts, nil
}

func (p *Pace) held() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until.After(time.Now())
}

// answered is told of each answer that is no refusal.
func (p *Pace) answered() {
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
	if now.Sub(p.limitedAt) < firstLook { // what was in flight at the first refusal says what is permitted
		r = max(r, float64(p.cut)*p.recent())
	}
	p.limiter.SetLimitAt(p.latest(now), rate.Limit(r+max(1, r/50)/r))
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
		p.limitedAt = now
		p.limiter = rate.NewLimiter(rate.Limit(max(1, p.recent())), 1)
	}
	if at.cuts == p.cuts {
		p.cuts++
		if p.cut = rateCut; after > 0 { // the wait makes up for most of it
			p.cut = heldCut
		}
		p.limiter.SetLimitAt(p.latest(now), max(1, p.cut*p.limiter.Limit()))
	}
	if end := now.Add(after); after > 0 && end.After(p.until) {
		p.until = end
	}
	p.limited.Store(true)
}

// latest is the time that the limiter counts from: it was asked for places after the end of a wait.
func (p *Pace) latest(now time.Time) time.Time {
	if p.until.After(now) {
		return p.until
	}
	return now
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

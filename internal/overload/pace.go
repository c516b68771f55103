// Package overload spares a service that refuses requests or is down. It has the rate limit of an operation, the budget
// of retries, and the wait that an answer asks for.
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

// HeldError is returned for a request that is not sent, because the service has asked for a longer wait than the caller
// accepts.
type HeldError struct{ After time.Duration }

func (e *HeldError) Error() string {
	return fmt.Sprintf("held back for %v", e.After.Round(time.Millisecond))
}

// Pace is the rate limit of one operation, shared by all its calls. Requests are sent as they come until the service
// refuses one with status 429. From then on they are sent at a rate that each refusal cuts and answers raise, as TCP
// does, and not before the service takes requests again.
type Pace struct {
	limited atomic.Bool

	second          atomic.Int64 // that current counts
	current, before atomic.Int64 // answers in this second, and in the one before it

	turn  chan struct{} // has one token: its holder sends the next request
	walks chan struct{} // has one token: its holder waits for turn, and all other requests of walks for this

	mu      sync.Mutex
	limiter *rate.Limiter // deals out turns; nil before the first refusal
	known   rate.Limit    // to be permitted; rate.Inf if nothing is known
	asked   time.Time     // end of the wait that the service has asked for
	until   time.Time     // nothing is sent before; no earlier than asked
	later   chan struct{} // closed when until is put off
	jitter  float64       // of waits, from 0 to 1, so that clients do not come back all at once
	cutAt   time.Time     // when the rate was cut; a refusal of what was sent before cuts it no further
	answers int           // since then, to what was sent since then
}

// NewPace returns a pace without a limit.
func NewPace() *Pace {
	p := &Pace{turn: make(chan struct{}, 1), walks: make(chan struct{}, 1), later: make(chan struct{})}
	p.turn <- struct{}{}
	p.walks <- struct{}{}
	return p
}

// IsLimited reports whether the service has refused a request of late.
func (p *Pace) IsLimited() bool { return p != nil && p.limited.Load() }

// The figures were found by simulation, with one client and with several that share a limit, which permits a burst or
// none.
const (
	firstRate    = 1           // a second, at least
	lowestRate   = 0.1         // a second
	rateCut      = 0.8         // by a refusal
	steadyCut    = 0.9         // by a refusal after steadyFor answers
	blindCut     = 0.5         // by a further one before any answer
	searchGrowth = math.Ln2    // by an answer doubles the rate in a second
	steadyFor    = 10          // answers, which add nothing to the known rate
	growth       = 0.05        // by an answer, from then on
	longestPause = 0.5         // after a refusal, in turns: the requests of two clients that met do not meet again
	mostJitter   = 0.1         // of a wait that the service asks for
	quietTime    = time.Minute // without a refusal, after which nothing is known; after twice that there is no limit
	quietTurns   = 40          // are at least as long, so that a low rate is not left all the time
)

// Place is the permission to send a request.
type Place struct {
	Waited time.Duration

	at time.Time // zero if there was no limit
}

// Wait returns when the request may be sent. It fails with a [HeldError] as soon as the service has asked for a wait
// that is longer than longest, or than the context lasts, or if the request is the next one and its turn comes too
// late. It fails with the error of the context if that ends first.
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
	for delay := p.next(); delay > 0; delay = p.next() {
		if limited && time.Until(deadline) < delay {
			return Place{}, &HeldError{delay}
		}
		// The rate may rise meanwhile, so it asks again each second.
		if err := receive(ctx, p, longest, time.After(min(delay, time.Second))); err != nil {
			return Place{}, err
		}
	}
	now := time.Now()
	return Place{now.Sub(start), now}, nil
}

// WaitInWalk is Wait for one of the many requests of a walk. However many of them there are, only one at a time stands
// in line with single calls, which hence get their turn beside any walk.
func (p *Pace) WaitInWalk(ctx context.Context, longest time.Duration) (Place, error) {
	if !p.IsLimited() {
		return Place{}, nil
	}
	start := time.Now()
	if err := receive(ctx, p, longest, p.walks); err != nil {
		return Place{}, err
	}
	defer func() { p.walks <- struct{}{} }()
	place, err := p.Wait(ctx, longest)
	place.Waited = time.Since(start)
	return place, err
}

// receive waits for a channel, for as long as the request may wait for its turn at all.
func receive[T any](ctx context.Context, p *Pace, longest time.Duration, from <-chan T) error {
	for {
		later, err := p.mayWait(ctx, longest)
		if err != nil {
			return err
		}
		select {
		case <-from:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-later:
		}
	}
}

// mayWait returns an error for a request that cannot wait until something is sent again, and otherwise a channel that
// is closed when that time is put off. It leaves the cause of the context alone, which may be the error of another
// call.
func (p *Pace) mayWait(ctx context.Context, longest time.Duration) (later <-chan struct{}, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline, limited := ctx.Deadline()
	if time.Until(p.asked) > longest || limited && p.until.After(deadline) {
		return nil, &HeldError{time.Until(p.until)}
	}
	return p.later, nil
}

// next returns how long the next request has to wait, or takes its turn and returns 0.
func (p *Pace) next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := p.limiter.Reserve()
	delay := max(turn.Delay(), time.Until(p.until))
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
	quiet := now.Sub(p.until)
	long := max(quietTime, time.Duration(quietTurns/p.limiter.Limit()*rate.Limit(time.Second)))
	if quiet > 2*long {
		p.limiter.SetLimit(rate.Inf) // for those who wait

		p.limited.Store(false)
		return
	}
	if quiet > long {
		p.known = rate.Inf
	}
	p.raise(at)
}

// raise raises the rate after an answer: twofold in a second up to what is known, then slowly.
func (p *Pace) raise(at Place) {
	r := p.limiter.Limit()
	if at.at.IsZero() { // what was in flight at the first refusal says what is permitted
		p.limiter.SetLimit(max(r, rateCut*p.recent()))
		return
	}
	if !at.at.After(p.cutAt) {
		return
	}
	more := min(searchGrowth, r, max(0, p.known-r))
	p.answers++
	if p.answers > steadyFor {
		more = max(more, growth)
	}
	p.limiter.SetLimit(r + more)
}

// Refused is told of a refusal, of the place of its request, and how long the service asks to wait, 0 if it does not
// say. Nothing is sent until then, or for a random part of the time of one turn.
func (p *Pace) Refused(at Place, after time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.limited.Load() || at.at.After(p.cutAt) {
		p.cut(now, after)
	}
	p.limited.Store(true)
	asked := now.Add(after)
	if asked.After(p.asked) {
		p.asked = asked
	}
	wait := time.Duration(p.jitter * longestPause * float64(time.Second) / float64(p.limiter.Limit()))
	if after > 0 {
		wait = after + time.Duration(p.jitter*mostJitter*float64(after))
	}
	until := now.Add(wait)
	if until.After(p.until) {
		p.until = until
		close(p.later)
		p.later = make(chan struct{})
	}
}

// cut lowers the rate after a refusal, or sets the first one. After many answers a refusal says that two requests came
// too close to each other rather than that the rate is wrong, so it cuts less. But one that asks for a wait costs that
// wait, and has to be rare.
func (p *Pace) cut(now time.Time, after time.Duration) {
	switch {
	case !p.limited.Load():
		p.count(now)
		p.limiter, p.known = rate.NewLimiter(rateCut*max(p.recent(), firstRate), 1), rate.Inf
		p.limiter.Allow() // the refused request has had the first turn
	case p.answers == 0:
		p.limiter.SetLimit(max(blindCut*p.limiter.Limit(), lowestRate))
	default:
		share := rate.Limit(rateCut)
		if p.answers > steadyFor && p.known != rate.Inf && after == 0 {
			share = steadyCut
		}
		p.known = max(share*p.limiter.Limit(), lowestRate)
		p.limiter.SetLimit(p.known)
	}
	p.cutAt, p.answers = now, 0
	p.jitter = rand.Float64() //nolint:gosec // jitter need not be unpredictable
}

// count returns the counter of the current second.
func (p *Pace) count(now time.Time) *atomic.Int64 {
	this := now.Unix()
	last := p.second.Load()
	if this != last && p.second.CompareAndSwap(last, this) {
		counted := p.current.Swap(0)
		if this != last+1 {
			counted = 0
		}
		p.before.Store(counted)
	}
	return &p.current
}

// recent returns how many answers there were in a second.
func (p *Pace) recent() rate.Limit { return rate.Limit(max(p.current.Load(), p.before.Load())) }

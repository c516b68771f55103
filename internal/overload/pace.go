// Package overload spares a service that refuses requests or is down. It has the rate limit of an operation, the retry
// budget of a client, and the reader of the Retry-After header.
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

// HeldError is returned for a request that is not sent because it would have to wait longer than its caller accepts.
// After is that wait.
type HeldError struct{ After time.Duration }

func (e *HeldError) Error() string {
	return fmt.Sprintf("held back for %v", e.After.Round(time.Millisecond))
}

// Pace is the rate limit of one operation, shared by all its calls. It limits nothing until the service refuses a
// request with status 429. From then on requests are sent at a limited rate. Each refusal cuts the rate and each answer
// raises it, as in TCP. No request is sent during a wait that the service has asked for.
type Pace struct {
	limited atomic.Bool

	countedSecond atomic.Int64 // the second, in Unix time, that thisSecond counts
	thisSecond    atomic.Int64 // number of answers in that second
	lastSecond    atomic.Int64 // number of answers in the second before it

	turn     chan struct{} // has one token; the request that holds it is the next to be sent
	walkTurn chan struct{} // has one token; of all requests of walks, only its holder may wait for turn

	mu              sync.Mutex
	limiter         *rate.Limiter // decides when a turn comes; nil before the first refusal
	knownRate       rate.Limit    // rate that the service is known to permit; rate.Inf if none is known
	askedUntil      time.Time     // end of the wait that the service has asked for
	until           time.Time     // no request is sent before this time, which is askedUntil or later
	postponed       chan struct{} // is closed when until moves to a later time
	jitter          float64       // of waits, from 0 to 1, so that clients do not come back all at once
	cutAt           time.Time     // time of the last cut; a refusal of a request sent before it cuts no further
	answersSinceCut int           // number of answers to requests that were sent after cutAt
}

// NewPace returns a Pace that does not limit requests yet.
func NewPace() *Pace {
	p := &Pace{turn: make(chan struct{}, 1), walkTurn: make(chan struct{}, 1), postponed: make(chan struct{})}
	p.turn <- struct{}{}
	p.walkTurn <- struct{}{}
	return p
}

// IsLimited reports whether requests have to wait, because the service has refused a request recently.
func (p *Pace) IsLimited() bool { return p != nil && p.limited.Load() }

// These figures come from simulations: with one client and with several that share a limit, and with limits that permit
// a burst and limits that do not. Rates are in requests per second.
const (
	// A refusal cuts the rate.
	firstRate  = 1   // before the first refusal the rate is taken to be at least this
	lowestRate = 0.1 // no later refusal cuts the rate below this
	rateCut    = 0.8 // factor of a refusal
	steadyCut  = 0.9 // factor of a refusal after more than steadyFor answers
	blindCut   = 0.5 // factor of a further refusal before any answer

	// Each answer raises the rate.
	searchGrowth    = math.Ln2    // added up to the known rate; it doubles the rate each second
	steadyFor       = 10          // number of answers after a cut that do not raise the rate beyond the known rate
	steadyGrowth    = 0.05        // added by each answer after these, at least
	quietTime       = time.Minute // without a refusal, until knownRate is forgotten; after twice this the limit ends
	leastQuietTurns = 40          // quietTime is at least this many turns, so that a low rate is kept long enough

	// A refusal makes requests wait.
	longestPause = 0.5 // without a Retry-After, in turns; so two clients that sent at the same time do not do so again
	mostJitter   = 0.1 // added to a Retry-After, as a share of it, at most
)

// Place is the permission to send a request. Answered and Refused get it back with the outcome of the request.
type Place struct {
	Waited time.Duration

	at time.Time // when the permission was given; zero if there was no limit
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
	for delay := p.takeTurn(); delay > 0; delay = p.takeTurn() {
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

// receive waits for a value from a channel. It returns an error as soon as mayWait does, or when ctx ends.
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
		case <-postponed: // it may be too long now
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

// takeTurn takes a turn of the limiter and returns 0 if there is one now. Otherwise it takes nothing and returns how
// long the request has to wait.
func (p *Pace) takeTurn() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := p.limiter.Reserve()
	delay := max(turn.Delay(), time.Until(p.until))
	if delay > 0 {
		turn.Cancel()
	}
	return delay
}

// Answered records an answer that is not a refusal. It raises the rate, or ends the limit if the last refusal was long
// ago. place is that of the request.
func (p *Pace) Answered(place Place) {
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
	long := max(quietTime, time.Duration(leastQuietTurns/p.limiter.Limit()*rate.Limit(time.Second)))
	if quiet > 2*long {
		p.limiter.SetLimit(rate.Inf) // for the requests that are still waiting
		p.limited.Store(false)
		return
	}
	if quiet > long {
		p.knownRate = rate.Inf
	}
	p.raise(place)
}

// raise raises the rate after an answer: fast up to the known rate, then slowly.
func (p *Pace) raise(place Place) {
	r := p.limiter.Limit()
	if place.at.IsZero() { // it was in flight at the first refusal; its answer too shows what is permitted
		p.limiter.SetLimit(max(r, rateCut*p.recent()))
		return
	}
	if !place.at.After(p.cutAt) {
		return
	}
	more := min(searchGrowth, r, max(0, p.knownRate-r))
	p.answersSinceCut++
	if p.answersSinceCut > steadyFor {
		more = max(more, steadyGrowth)
	}
	p.limiter.SetLimit(r + more)
}

// Refused records a refusal with status 429 and cuts the rate. place is that of the request. after is the wait that the
// service asks for, or 0. No request is sent during that wait and a random addition to it. If after is 0, no request is
// sent for a random part of a turn.
func (p *Pace) Refused(place Place, after time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.limited.Load() || place.at.After(p.cutAt) {
		p.cut(now, after)
	}
	p.limited.Store(true)
	asked := now.Add(after)
	if asked.After(p.askedUntil) {
		p.askedUntil = asked
	}
	wait := time.Duration(p.jitter * longestPause * float64(time.Second) / float64(p.limiter.Limit()))
	if after > 0 {
		wait = after + time.Duration(p.jitter*mostJitter*float64(after))
	}
	until := now.Add(wait)
	if until.After(p.until) {
		p.until = until
		close(p.postponed)
		p.postponed = make(chan struct{})
	}
}

// cut lowers the rate after a refusal, or sets the first rate. After many answers the rate is probably right, and two
// requests only came too close to each other, so cut lowers it less. A refusal with a Retry-After has to be rare,
// because it costs that wait, so it gets the whole cut.
func (p *Pace) cut(now time.Time, after time.Duration) {
	switch {
	case !p.limited.Load():
		p.count(now) // so that recent does not return the count of an older second
		p.limiter, p.knownRate = rate.NewLimiter(rateCut*max(p.recent(), firstRate), 1), rate.Inf
		p.limiter.Allow() // the refused request has had the first turn
	case p.answersSinceCut == 0:
		p.limiter.SetLimit(max(blindCut*p.limiter.Limit(), lowestRate))
	default:
		share := rate.Limit(rateCut)
		if p.answersSinceCut > steadyFor && p.knownRate != rate.Inf && after == 0 {
			share = steadyCut
		}
		p.knownRate = max(share*p.limiter.Limit(), lowestRate)
		p.limiter.SetLimit(p.knownRate)
	}
	p.cutAt, p.answersSinceCut = now, 0
	p.jitter = rand.Float64() //nolint:gosec // jitter need not be unpredictable
}

// count returns the counter of the current second. If a new second has begun, count first moves the number of the last
// second to lastSecond.
func (p *Pace) count(now time.Time) *atomic.Int64 {
	this := now.Unix()
	last := p.countedSecond.Load()
	if this != last && p.countedSecond.CompareAndSwap(last, this) {
		counted := p.thisSecond.Swap(0)
		if this != last+1 {
			counted = 0
		}
		p.lastSecond.Store(counted)
	}
	return &p.thisSecond
}

// recent returns the rate of answers of late: the number in this second or in the last one, whichever is larger.
func (p *Pace) recent() rate.Limit { return rate.Limit(max(p.thisSecond.Load(), p.lastSecond.Load())) }

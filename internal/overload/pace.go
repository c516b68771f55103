// Package overload spares a service that refuses requests or is down. It has the rate limit of an operation, the retry
// budget of a client, and the reader of the Retry-After header.
package overload

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Pace is the rate limit of one operation, shared by all its calls. It limits nothing until the service refuses a
// request with status 429. From then on requests are sent at a limited rate. Each refusal cuts the rate and each answer
// raises it, as in TCP. No request is sent during a wait that the service has asked for.
//
// This file cuts and raises the rate. The requests that wait for it stand in queue.go.
type Pace struct {
	limited  atomic.Bool
	answers  answerCount
	turn     chan struct{} // has one token; the request that holds it is the next to be sent
	walkTurn chan struct{} // has one token; of all requests of walks, only its holder may wait for turn

	mu              sync.Mutex
	limiter         *rate.Limiter // decides when a request may be sent; nil before the first refusal
	knownRate       rate.Limit    // rate that the service is known to permit; rate.Inf if none is known
	askedUntil      time.Time     // end of the wait that the service has asked for
	until           time.Time     // no request is sent before this time, which is askedUntil or later
	postponed       chan struct{} // is closed when until moves to a later time
	jitter          float64       // share of the random part of waits, from 0 to 1; drawn by cut
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

// take takes the permission to send a request now, and returns 0. If it has to wait, take takes nothing and returns how
// long.
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

// Answered records an answer that is not a refusal. It raises the rate, or ends the limit if the last refusal was long
// ago. place is that of the request.
func (p *Pace) Answered(place Place) {
	if p == nil {
		return
	}
	now := time.Now()
	p.answers.add(now)
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
		p.limiter.SetLimit(max(r, rateCut*p.answers.recent()))
		return
	}
	if !place.at.After(p.cutAt) {
		return
	}
	// One answer at most doubles the rate. At the lowest rate searchGrowth would raise it eightfold.
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
	p.postpone(now.Add(wait))
}

// postpone moves until to a later time, and tells the requests that wait.
func (p *Pace) postpone(until time.Time) {
	if !until.After(p.until) {
		return
	}
	p.until = until
	close(p.postponed)
	p.postponed = make(chan struct{})
}

// cut lowers the rate after a refusal, or sets the first rate.
func (p *Pace) cut(now time.Time, after time.Duration) {
	switch {
	case !p.limited.Load():
		p.answers.moveTo(now) // so that recent does not return the count of an older second
		p.limiter = rate.NewLimiter(rateCut*max(p.answers.recent(), firstRate), 1)
		p.limiter.Allow() // the refused request has had the first turn
		p.knownRate = rate.Inf
	case p.answersSinceCut == 0:
		p.limiter.SetLimit(max(blindCut*p.limiter.Limit(), lowestRate))
	default:
		p.knownRate = max(p.share(after)*p.limiter.Limit(), lowestRate)
		p.limiter.SetLimit(p.knownRate)
	}
	p.cutAt, p.answersSinceCut = now, 0
	// Requests that were sent together are refused together. All their refusals use the jitter of the one cut. If each
	// drew its own, the longest would count. Then each client with many requests would wait almost the longest time, and
	// all clients would come back at once.
	p.jitter = rand.Float64() //nolint:gosec // jitter need not be unpredictable
}

// share returns the factor of a cut after at least one answer. It is steadyCut if the rate is probably right, because
// many answers came at it. Then two requests only came too close to each other. It is rateCut in these cases:
//   - No rate is known. Then each answer raises the rate until it is too high, so many answers do not prove it right.
//   - The refusal has a Retry-After. It costs that wait, so it has to be rare.
func (p *Pace) share(after time.Duration) rate.Limit {
	if p.answersSinceCut > steadyFor && p.knownRate != rate.Inf && after == 0 {
		return steadyCut
	}
	return rateCut
}

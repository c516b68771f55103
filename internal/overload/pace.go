// Package overload protects a service that refuses requests or is down. It has the rate limit of an operation, the
// retry budget of a client, and the reader of the Retry-After header.
package overload

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Pace is the rate limit that a client has learned for one operation. All calls of the operation share it. It limits
// nothing until the service refuses a request with status 429. From then on requests wait for their turn, and an answer
// can end the limit again. Refusals lower the rate, and answers raise it, as in TCP. A single call with a deadline may
// be sent without its turn: see waiter.go. If a refusal asks for a wait, no request is sent during this wait.
//
// This file records the outcome of each request. rate.go computes the new rate. waiter.go holds the requests that wait.
type Pace struct {
	queue // its limiter is nil before the first refusal

	limited atomic.Bool // requests have to wait
	answers answerCount // also counts while there is no limit

	// mu guards the fields below.
	until     time.Time     // no request is sent in its turn before this time
	postponed chan struct{} // closed when the wait becomes longer
	// askedUntil is the end of the wait that the service has asked for with Retry-After. The wait itself may end later,
	// because a part of it is random.
	askedUntil time.Time
	// refusedWithoutTurn is the time of the latest refusal of a request that was sent without its turn, or before the
	// limit. The refusal that starts the limit does not count.
	refusedWithoutTurn time.Time
	jitter             float64 // random number from 0 to 1 that sets the random part of a wait

	// These fields are described in rate.go.
	knownRate       rate.Limit // rate that the service probably permits; rate.Inf if none is known
	cutAt           time.Time  // time of the latest cut
	answersSinceCut int        // number of answers to requests that were sent after cutAt
}

// NewPace returns a Pace that does not limit requests yet.
func NewPace() *Pace { return &Pace{postponed: make(chan struct{})} }

// IsLimited reports whether there is a limit: the service has refused a request, and no later answer has ended the
// limit. A nil Pace limits nothing.
func (p *Pace) IsLimited() bool { return p != nil && p.limited.Load() }

// Place is the permission to send a request. The caller passes it on to Answered or Refused.
type Place struct {
	Waited time.Duration

	at time.Time // time of the permission; zero if there was no limit, or if the request is sent without its turn
}

// These figures come from simulations, like the figures in rate.go. An interval is the time between two requests at the
// present rate.
const (
	// A refusal makes all requests wait. A part of the wait is random, so that clients that were refused at the same time
	// do not send again at the same time.
	longestPause = 0.5 // longest random wait after a refusal without a Retry-After, in intervals
	mostJitter   = 0.1 // longest random addition to the Retry-After, as a share of it

	// After the quiet time without a refusal, the known rate is dropped, so that the rate grows fast again. After twice
	// the quiet time, the limit ends.
	quietTime           = time.Minute
	leastQuietIntervals = 40 // the quiet time is at least this many intervals

	// The refusal of a request that was sent without its turn confirms the learned rate for this time.
	confirmedFor = time.Second
)

// Answered records an answer that is not a refusal. While there is a limit, an answer can raise the rate. If the latest
// wait after a refusal ended long ago, the answer drops the known rate or ends the limit. place is what the wait
// returned for the request.
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
	quiet := now.Sub(p.until) // time since the end of the latest wait
	quietEnough := max(quietTime, leastQuietIntervals*p.interval())
	if quiet > 2*quietEnough {
		p.limiter.SetLimit(rate.Inf) // for the requests that are still waiting
		p.limited.Store(false)
		return
	}
	if quiet > quietEnough {
		p.knownRate = rate.Inf
	}
	p.raise(place)
}

// Refused records a refusal with status 429. It makes requests wait, and cuts the rate. If there is no limit, it starts
// one. If there is a limit, there are two exceptions:
//   - If the request was sent before the latest cut, the rate stays.
//   - If the request was sent without its turn, or before the limit, the rate stays, and requests wait only if the
//     service asks for it. Otherwise many such refusals would stop the queue.
//
// place is what the wait returned for the request. after is the wait that the service asks for, or 0.
func (p *Pace) Refused(place Place, after time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	startsLimit := !p.limited.Load()
	if startsLimit || p.isSentAfterCut(place) {
		p.cut(now, after)
	}
	p.limited.Store(true)
	hadNoTurn := place.at.IsZero() && !startsLimit
	if hadNoTurn {
		p.refusedWithoutTurn = now
	}
	if !hadNoTurn || after > 0 {
		p.postpone(now, after)
	}
}

// postpone makes requests wait after a refusal. after is the Retry-After of the refusal, or 0. With a Retry-After, the
// wait is the Retry-After plus a random addition. Otherwise it is a random time, at most half of p.interval(). An
// earlier wait is never shortened.
func (p *Pace) postpone(now time.Time, after time.Duration) {
	wait := time.Duration(p.jitter * longestPause * float64(p.interval()))
	if after > 0 {
		if asked := now.Add(after); asked.After(p.askedUntil) {
			p.askedUntil = asked
		}
		wait = after + time.Duration(p.jitter*mostJitter*float64(after))
	}
	until := now.Add(wait)
	if !until.After(p.until) {
		return
	}
	p.until = until
	close(p.postponed) // the waiting requests check anew whether they accept the wait
	p.postponed = make(chan struct{})
}

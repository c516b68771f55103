package overload

import (
	"math"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// This file computes the rate. A refusal cuts the rate, and an answer raises it. The file uses four fields of Pace:
//   - limiter applies the rate.
//   - knownRate is the rate that the service probably permits. It is rate.Inf after the first refusal and after a quiet
//     time. A later cut sets it to the new rate, if an answer has come since the previous cut. The rate grows fast up
//     to knownRate, and then slowly.
//   - cutAt is the time of the latest cut. A request that was sent before cutAt was sent at another rate, so its
//     outcome does not change the rate. But an answer to a request that did not wait for the rate can raise the rate.
//   - answersSinceCut is the number of answers to requests that were sent in their turn after cutAt.
//
// Example: 100 answers a second come before the first refusal, so the rate becomes 80. Each answer adds 0.69, until the
// next refusal comes at a rate of 125. It cuts the rate to 100, which is now the known rate. The next ten answers add
// nothing, and each answer after them adds 0.05. A refusal at 110, without a Retry-After, then cuts the rate to 99.
//
// All methods in this file are called with mu locked.

// These figures come from simulations: with one client, with several clients that share a limit, and with limits that
// do or do not permit a burst. Rates are in requests per second.
const (
	// A refusal multiplies the rate by one of three factors: see cut.
	rateCut   = 0.8
	steadyCut = 0.9 // if the rate was probably right: see cutFactor
	blindCut  = 0.5 // if no answer has come since the latest cut

	firstRate  = 1   // lowest rate that is assumed before the first refusal
	lowestRate = 0.1 // a refusal does not cut the rate below this

	// Each answer adds to the rate.
	searchGrowth = math.Ln2 // added below knownRate; answers at the present rate double the rate each second
	steadyFor    = 10       // number of answers after a cut; only later answers raise the rate above knownRate
	steadyGrowth = 0.05     // least addition of each later answer
)

// interval returns the time between two requests at the present rate.
func (p *Pace) interval() time.Duration {
	return time.Duration(float64(time.Second) / float64(p.limiter.Limit()))
}

// isSentAfterCut reports whether a request was sent after the latest cut. place is what Wait returned for the request:
// it has the time at which the request was permitted, or the zero time if the request did not wait for the rate. With
// the zero time the result is false.
func (p *Pace) isSentAfterCut(place Place) bool { return place.at.After(p.cutAt) }

// raise raises the rate after an answer: fast up to knownRate, then slowly.
func (p *Pace) raise(place Place) {
	r := p.limiter.Limit()
	hadNoTurn := place.at.IsZero()
	switch {
	case hadNoTurn:
		// The request did not wait for the rate. So the number of recent answers shows about how many requests a second the
		// service permits. If the rate was cut again before this answer, the answer may undo that cut.
		p.limiter.SetLimit(max(r, rateCut*p.answers.recent()))
		return
	case !p.isSentAfterCut(place):
		return
	}
	// An answer at most doubles the rate. At the lowest rate, searchGrowth alone would raise it eightfold.
	more := min(searchGrowth, r, max(0, p.knownRate-r))
	p.answersSinceCut++
	if p.answersSinceCut > steadyFor {
		more = max(more, steadyGrowth)
	}
	p.limiter.SetLimit(r + more)
}

// cut lowers the rate after a refusal. If there is no limit yet, cut computes the first rate from the number of recent
// answers. after is the Retry-After of the refusal, or 0.
func (p *Pace) cut(now time.Time, after time.Duration) {
	startsLimit := !p.limited.Load()
	switch {
	case startsLimit:
		p.answers.moveTo(now) // so that recent does not return the count of an older second
		p.limiter = rate.NewLimiter(rateCut*max(p.answers.recent(), firstRate), 1)
		p.limiter.Allow() // the refused request has used the first token
		p.knownRate = rate.Inf
	case p.answersSinceCut == 0: // knownRate does not change: no answer has confirmed the rate
		p.limiter.SetLimit(max(blindCut*p.limiter.Limit(), lowestRate))
	default:
		p.knownRate = max(p.cutFactor(after)*p.limiter.Limit(), lowestRate)
		p.limiter.SetLimit(p.knownRate)
	}
	p.cutAt, p.answersSinceCut = now, 0
	// Requests that were sent together are refused together. All their refusals use the same jitter. If each refusal drew
	// its own jitter, the largest would count, and all clients with many requests would wait for almost the same time.
	p.jitter = rand.Float64() //nolint:gosec // jitter need not be unpredictable
}

// cutFactor returns the factor by which a cut multiplies the rate, if answers have come since the latest cut. After
// more than steadyFor answers the rate is probably right, so the factor is steadyCut. Otherwise it is rateCut. It is
// also rateCut in these cases:
//   - No rate is known. Then each answer raises the rate until it is too high, so many answers prove nothing.
//   - The refusal has a Retry-After. All requests have to wait for that time, so such refusals must be rare.
func (p *Pace) cutFactor(after time.Duration) rate.Limit {
	if p.answersSinceCut > steadyFor && p.knownRate != rate.Inf && after == 0 {
		return steadyCut
	}
	return rateCut
}

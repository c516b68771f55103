package overload

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// answerCount counts the answers of the present second and of the second before. It uses atomics, so that calls take no
// lock while there is no limit.
//
// Races at the beginning of a second are tolerated. Answers may be counted in the wrong second, or the count of a
// second may be lost. Then the method recent may return a wrong number. If that number is too low, the rate after the
// first refusal is too low for a few seconds.
type answerCount struct {
	second     atomic.Int64 // the second, in Unix time, that thisSecond counts
	thisSecond atomic.Int64
	lastSecond atomic.Int64 // number of answers in the second before
}

// add counts an answer.
func (c *answerCount) add(now time.Time) {
	c.moveTo(now)
	c.thisSecond.Add(1)
}

// recent returns the number of answers in the present second or in the second before, whichever is larger.
func (c *answerCount) recent() rate.Limit {
	return rate.Limit(max(c.thisSecond.Load(), c.lastSecond.Load()))
}

// moveTo begins a new second if the time now is not in the second that thisSecond counts. Of several goroutines only
// one begins the second. The others may go on before that goroutine has moved the counts.
func (c *answerCount) moveTo(now time.Time) {
	second := now.Unix()
	before := c.second.Load()
	if second == before || !c.second.CompareAndSwap(before, second) {
		return
	}
	counted := c.thisSecond.Swap(0)
	if second != before+1 { // counted belongs to an older second; the second before had no answer
		counted = 0
	}
	c.lastSecond.Store(counted)
}

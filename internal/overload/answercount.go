package overload

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// answerCount counts answers by the second. It needs no lock, since it counts every answer, also while there is no
// limit.
type answerCount struct {
	second     atomic.Int64 // the second, in Unix time, that thisSecond counts
	thisSecond atomic.Int64
	lastSecond atomic.Int64 // number of answers in the second before it
}

// add counts an answer.
func (c *answerCount) add(now time.Time) {
	c.moveTo(now)
	c.thisSecond.Add(1)
}

// recent returns the rate of answers of late: the number in the second that is counted or in the one before, whichever
// is larger.
func (c *answerCount) recent() rate.Limit {
	return rate.Limit(max(c.thisSecond.Load(), c.lastSecond.Load()))
}

// moveTo begins a new second if now is not in the second that is counted. Of two goroutines that call it at the same
// time, one does so.
func (c *answerCount) moveTo(now time.Time) {
	second := now.Unix()
	before := c.second.Load()
	if second == before || !c.second.CompareAndSwap(before, second) {
		return
	}
	counted := c.thisSecond.Swap(0)
	if second != before+1 { // there was no answer in the second before this one
		counted = 0
	}
	c.lastSecond.Store(counted)
}

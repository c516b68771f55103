package overload

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Budget is shared by all calls of a client: when a service is down, they soon fail after their first attempt. Size,
// costs and refunds are those of the standard mode of the AWS SDKs.
// A nil one is never spent.
type Budget struct{ spent atomic.Int64 }

const (
	budgetSize  = 500
	retryCost   = 5
	timeoutCost = 10
	firstRefund = 1
)

// Take takes the cost of a repetition, which is 0 if there is not enough left.
func (b *Budget) Take(timeout bool) (cost int64) {
	if cost = retryCost; timeout {
		cost = timeoutCost
	}
	if b != nil && b.spent.Add(cost) > budgetSize {
		b.spent.Add(-cost)
		return 0
	}
	return cost
}

// Refund is told of a success, and the cost of the repetition that led to it, or 0. It gives back, down to nothing
// spent.
func (b *Budget) Refund(cost int64) {
	if b == nil {
		return
	}
	for {
		spent := b.spent.Load()
		if spent == 0 || b.spent.CompareAndSwap(spent, max(0, spent-max(cost, firstRefund))) {
			return
		}
	}
}

// LongestWait bounds what is made of a Retry-After header, so that a caller can wait for it and add to it. It stands for
// any longer wait too, so that it is never waited for.
const LongestWait = 24 * time.Hour

// RetryAfter reads the Retry-After header, seconds or a date; 0 if there is none to wait for.
func RetryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), LongestWait)
	}
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(seconds, uint64(LongestWait/time.Second))) * time.Second
}

package overload

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// LongestWait is the longest wait that [RetryAfter] returns, so that adding to its result does not overflow.
// WithRetryPolicy checks that a client accepts only shorter waits. Otherwise the client would take a wait of days for a
// wait of 24 hours.
const LongestWait = 24 * time.Hour

// RetryAfter returns the wait that a Retry-After header asks for, in seconds or as a date. It returns 0 if the header
// is missing or unreadable, or if its date has passed.
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

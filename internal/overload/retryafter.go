package overload

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// LongestWait is the longest wait that [RetryAfter] returns, so that adding to its result does not overflow.
// WithRetryPolicy checks that a client accepts only shorter waits. Otherwise the client would take a wait of days for a
// wait of 24 hours.
const LongestWait = 24 * time.Hour

// RetryAfter returns the wait that a Retry-After header asks for, but at most [LongestWait]. The header has a number of
// seconds or a date. A fraction of a second is rounded up to a whole second. A date is compared with the Date of the
// same answer, because the local clock may be wrong. Without a readable Date it is compared with the local clock.
// RetryAfter returns 0 if the header is missing or unreadable, or if its date has passed.
func RetryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" { // almost always; the parsers below would allocate their errors
		return 0
	}
	if at, err := http.ParseTime(text); err == nil {
		now, err := http.ParseTime(header.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		return min(max(0, at.Sub(now)), LongestWait)
	}
	seconds, err := strconv.ParseFloat(text, 64)
	isPlain := strings.Trim(text, "0123456789.") == "" // ParseFloat also reads signs, exponents and names
	if err != nil || !isPlain {
		return 0
	}
	return time.Duration(math.Ceil(min(seconds, LongestWait.Seconds()))) * time.Second
}

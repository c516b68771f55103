package payvault

import (
	"cmp"
	"time"
)

// RetryPolicy sets how often and how fast an operation is repeated. It does not decide after which failures an
// operation is repeated: see docs/failures.md. A field that is zero has its default value.
type RetryPolicy struct {
	MaxAttempts int // largest number of attempts, the first included; 4 by default, 1 turns retries off

	// The wait before a retry is random. MinBackoff is the longest wait before the first retry, 200 ms by default. The
	// longest wait doubles with each further retry, up to MaxBackoff, 5 s by default. If the service sent a Retry-After,
	// or if the retry waits for the rate limit after a 429, MinBackoff and MaxBackoff are not used.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// MaxRetryAfter is the longest wait that the service may ask for with Retry-After. The default is 30 s; the value must
	// be below 24 h. If the service asks for a longer wait, the call fails at once.
	MaxRetryAfter time.Duration
	// MaxBulkRetryAfter takes the place of MaxRetryAfter in SubmitAll and in the iterators of lists. The default is 15
	// minutes, or MaxRetryAfter if that is longer: a long wait is better than a failed loop, which the caller has to start
	// again. The value must be below 24 h.
	MaxBulkRetryAfter time.Duration
}

// withDefaults returns p with the defaults in place of zero fields.
func (p RetryPolicy) withDefaults() RetryPolicy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 4)
	p.MinBackoff = cmp.Or(p.MinBackoff, 200*time.Millisecond)
	p.MaxBackoff = cmp.Or(p.MaxBackoff, 5*time.Second)
	p.MaxRetryAfter = cmp.Or(p.MaxRetryAfter, 30*time.Second)
	p.MaxBulkRetryAfter = cmp.Or(p.MaxBulkRetryAfter, max(15*time.Minute, p.MaxRetryAfter))
	return p
}

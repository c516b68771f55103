package payvault

import (
	"cmp"
	"time"
)

// RetryPolicy sets how often and how fast an operation is repeated. Which failures are repeated at all follows
// from the operation and is not a setting; see docs/failures.md. Zero fields take the defaults.
type RetryPolicy struct {
	MaxAttempts   int           // attempts in all, the first included; 4 by default, 1 turns retries off
	MinBackoff    time.Duration // ceiling of the first wait but after a 429, doubled for each further; 200 ms by default
	MaxBackoff    time.Duration // ceiling of these waits; 5 s by default
	MaxRetryAfter time.Duration // longest wait for a Retry-After, or the call fails at once; below 24 h, 30 s by default
	// MaxBulkRetryAfter is the longest wait for a Retry-After of SubmitAll and of the iterators of lists, which would lose
	// their place if they ended; below 24 h, 15 minutes by default, or MaxRetryAfter if that is longer.
	MaxBulkRetryAfter time.Duration
	// IgnoreOverload turns off what the calls of a client share, see docs/failures.md: the budget of
	// retries, and the rate limit of an operation after status 429.
	IgnoreOverload bool
}

// withDefaults fills in the fields that are zero.
func (p RetryPolicy) withDefaults() RetryPolicy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 4)
	p.MinBackoff = cmp.Or(p.MinBackoff, 200*time.Millisecond)
	p.MaxBackoff = cmp.Or(p.MaxBackoff, 5*time.Second)
	p.MaxRetryAfter = cmp.Or(p.MaxRetryAfter, 30*time.Second)
	p.MaxBulkRetryAfter = cmp.Or(p.MaxBulkRetryAfter, max(15*time.Minute, p.MaxRetryAfter))
	return p
}

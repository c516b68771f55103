package payvault

import (
	"cmp"
	"time"
)

// RetryPolicy sets how often and how fast an operation is repeated. No setting decides which failures are repeated;
// that follows from the operation, see docs/failures.md. Zero fields take the defaults.
type RetryPolicy struct {
	MaxAttempts int // largest number of attempts, the first included; 4 by default, 1 turns retries off

	// The wait before a retry is random. MinBackoff is the longest wait before the first retry, 200 ms by default. It
	// doubles for each further retry up to MaxBackoff, 5 s by default. A retry that has a Retry-After, or that waits for
	// the rate limit after a 429, does not use them.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// MaxRetryAfter is the longest wait that a call accepts if the service sends a Retry-After; below 24 h, 30 s by
	// default. If the service asks for more, the call fails at once.
	MaxRetryAfter time.Duration
	// MaxBulkRetryAfter is the longest wait that SubmitAll and the iterators of lists accept. If they ended, the caller
	// would have to start them again. It is below 24 h, and 15 minutes by default, or MaxRetryAfter if that is longer.
	MaxBulkRetryAfter time.Duration

	// IgnoreOverload turns off the two limits that the calls of a client share: the retry budget, and the rate limit of
	// an operation after status 429; see docs/failures.md.
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

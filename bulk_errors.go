package payvault

import (
	"errors"
	"fmt"
	"time"
)

// unsentError is the error of what is not sent since nothing more may be.
func unsentError(op Operation, cause error) error {
	e := &Error{Op: op, Delivery: NotSent, cause: inShort(cause)}
	if first, ok := errors.AsType[*Error](cause); ok && errors.Is(first, ErrRateLimited) {
		e.RetryAfter = first.RetryAfter
	}
	return e
}

// inShort is the refusal of another request, as the cause why nothing more is sent; any other cause stays as it is.
func inShort(cause error) error {
	first, ok := errors.AsType[*Error](cause)
	if !ok {
		return cause
	}
	text := "another request was refused"
	if first.RetryAfter > 0 {
		text += " for " + first.RetryAfter.Round(time.Millisecond).String()
	}
	for _, refusal := range []error{ErrRateLimited, ErrUnauthorized, ErrForbidden} {
		if errors.Is(first, refusal) {
			return fmt.Errorf("%w: %s", refusal, text)
		}
	}
	return cause
}

// earlierError is the error of a batch that an earlier run has sent.
func earlierError(op Operation, o BatchOutcome) error {
	e := &Error{Op: op, StatusCode: o.StatusCode, Code: o.Code, cause: errors.New(o.Message)}
	if o.Status == BatchRefused {
		e.Delivery = Answered
	}
	return e
}

package temporalpayvault

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
)

// Types of the application errors that [ActivityError] returns.
const (
	TypeSafeToRetry    = "SafeToRetry"    // calling again does no harm: Temporal tries again, after its RetryAfter if set
	TypeOutcomeUnknown = "OutcomeUnknown" // it may have been performed: Temporal does not try again; look it up
	TypeRefused        = "Refused"        // the service refused, or a local check failed: Temporal does not try again
)

// ActivityError maps an error of package payvault to an error that an activity of yours can return, so that Temporal
// does not repeat a call that may have been performed. The result is a [temporal.ApplicationError] of one of the types
// above, with the text of the error and no cause. If err wraps several errors, the first one of unknown outcome
// decides, or else the first one. A call that was not sent because its context was canceled becomes [context.Canceled],
// which a canceled activity has to return. Other errors are returned unchanged.
func ActivityError(err error) error {
	e := worst(ownErrors(err))
	if e == nil {
		return err
	}
	opt := temporal.ApplicationErrorOptions{NonRetryable: true}
	kind := TypeRefused
	switch {
	case isUnknown(e):
		kind = TypeOutcomeUnknown
	case !mayRepeat(e):
	case errors.Is(e, context.Canceled):
		return context.Canceled
	default:
		kind, opt.NonRetryable, opt.NextRetryDelay = TypeSafeToRetry, false, e.RetryAfter
	}
	return temporal.NewApplicationErrorWithOptions(e.Error(), kind, opt)
}

// ownErrors returns the errors of package payvault in the tree of err. It does not look into them: the cause of a
// context may be the error of another call. Some packages return all the errors that they join by another method than
// Unwrap: hashicorp/go-multierror and avast/retry-go by WrappedErrors, old versions of go.uber.org/multierr by Errors.
func ownErrors(err error) (found []*payvault.Error) {
	var wrapped []error
	switch err := err.(type) { //nolint:errorlint // the function walks over the tree itself
	case *payvault.Error:
		if err != nil {
			return []*payvault.Error{err}
		}
	case interface{ WrappedErrors() []error }:
		wrapped = err.WrappedErrors()
	case interface{ Errors() []error }:
		wrapped = err.Errors()
	case interface{ Unwrap() []error }:
		wrapped = err.Unwrap()
	case interface{ Unwrap() error }:
		wrapped = []error{err.Unwrap()}
	}
	for _, err := range wrapped {
		found = append(found, ownErrors(err)...)
	}
	return found
}

// worst returns the first error whose outcome is unknown, or else the first.
func worst(all []*payvault.Error) *payvault.Error {
	for _, e := range all {
		if isUnknown(e) {
			return e
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// isUnknown reports whether the outcome is unknown and calling again may do harm.
func isUnknown(e *payvault.Error) bool {
	return e.Is(payvault.ErrOutcomeUnknown) && !payvault.SafeToRetry(e)
}

// mayRepeat reports whether calling again does no harm and may help. This includes a batch that a walk has neither sent
// nor looked up in its journal: the next walk will do so.
func mayRepeat(e *payvault.Error) bool {
	local := errors.Is(e, payvault.ErrInvalidRequest) || errors.Is(e, payvault.ErrMerchantNotSupported)
	return payvault.SafeToRetry(e) || e.Delivery == payvault.DeliveryNotSent && !local
}

package temporalpayvault

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
)

// Types of the application errors that [ActivityError] returns.
const (
	TypeSafeToRetry    = "SafeToRetry"    // calling again does no harm: Temporal calls again, after RetryAfter if set
	TypeOutcomeUnknown = "OutcomeUnknown" // may have been performed: Temporal does not call again; look up the outcome
	TypeRefused        = "Refused"        // it would fail again, as after a refusal: Temporal does not call again
)

// ActivityError converts an error of package payvault for Temporal. Return the result from an activity that you write
// yourself. Then Temporal repeats the activity only if making the failed call again does no harm. The result is a
// [temporal.ApplicationError] with the text of the error and no cause. Its type is [TypeSafeToRetry],
// [TypeOutcomeUnknown] or [TypeRefused].
//
// If err wraps several *[payvault.Error], the result is made from the first one of unknown outcome, or else from the
// first one. A [payvault.StopError] becomes TypeRefused, because a second run without a journal would send all cards
// again. If err wraps neither an Error nor a StopError, ActivityError returns err unchanged. If the context of the call
// was canceled and calling again does no harm, the result is [context.Canceled], which a canceled activity has to
// return.
func ActivityError(err error) error {
	if stop, stopped := errors.AsType[*payvault.StopError](err); stopped {
		return temporal.NewNonRetryableApplicationError(stop.Error(), TypeRefused, nil)
	}
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

// ownErrors returns the errors of package payvault in the tree of err. It does not look inside a found error, because
// the cause of that error may be the error of another call. The joined errors of hashicorp/go-multierror and
// avast/retry-go have the method WrappedErrors. Those of old versions of go.uber.org/multierr have the method Errors.
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

// worst returns the first error for which isUnknown is true, or else the first error. It returns nil if there is no
// error.
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

// mayRepeat reports whether calling again does no harm and may help. Unlike SafeToRetry, it is also true for a batch
// that SubmitAll has neither sent nor looked up: the next SubmitAll looks up the batch in the journal.
func mayRepeat(e *payvault.Error) bool {
	local := errors.Is(e, payvault.ErrInvalidRequest) || errors.Is(e, payvault.ErrMerchantNotSupported)
	return payvault.SafeToRetry(e) || e.Delivery == payvault.DeliveryNotSent && !local
}

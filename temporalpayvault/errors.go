package temporalpayvault

import (
	"context"
	"errors"
	"strings"

	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
)

// Types of application errors.
const (
	TypeSafeToRetry    = "SafeToRetry"    // of Error: not performed; retried, after what the service asked to wait
	TypeOutcomeUnknown = "OutcomeUnknown" // of Error: may have been performed; not retried, look it up
	TypeRefused        = "Refused"        // of Error: the service decided, or a local check failed; not retried

	TypeReset  = "Reset"  // a workflow that may have sent before was reset or retried, and has no journal
	TypeSource = "Source" // the source of cards or subscriptions failed; what it says is left out
	TypeSink   = "Sink"   // the sink failed; what it says is left out
)

// Failure is the detail of an application error of [Error].
type Failure struct {
	Op         payvault.Operation  `json:"op"`
	StatusCode int                 `json:"status,omitempty"`
	Code       string              `json:"code,omitempty"`
	Fields     map[string][]string `json:"fields,omitempty"`
	Delivery   string              `json:"delivery"` // as payvault.Delivery prints
	Attempts   int                 `json:"attempts"`
}

// Error maps an error of package payvault for an activity to return, so that Temporal retries nothing that may have
// been performed. The result is a [temporal.ApplicationError] of one of the types above, with a [Failure], the text of
// the error, and no cause; of several errors that of the one whose outcome is unknown, else of the first. What was not
// sent since the context was canceled is [context.Canceled], which an activity that is canceled has to return. Other
// errors are returned as they are, and a nil [payvault.Error] is none.
func Error(err error) error {
	if none, ok := err.(*payvault.Error); ok && none == nil { //nolint:errorlint // an error that wraps it is one
		return nil
	}
	e := worst(err)
	if e == nil {
		return err
	}
	opt := temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{Failure{
		Op: e.Op, StatusCode: e.StatusCode, Code: e.Code, Fields: e.Fields,
		Delivery: e.Delivery.String(), Attempts: e.Attempts,
	}}}
	local := errors.Is(e, payvault.ErrInvalidRequest) || errors.Is(e, payvault.ErrMerchantNotSupported)
	again := payvault.SafeToRetry(e) || e.Delivery == payvault.NotSent && !local
	kind := TypeRefused
	switch {
	case again && errors.Is(err, context.Canceled):
		return context.Canceled
	case again:
		kind, opt.NonRetryable, opt.NextRetryDelay = TypeSafeToRetry, false, e.RetryAfter
	case isUnknown(e):
		kind = TypeOutcomeUnknown
	}
	return temporal.NewApplicationErrorWithOptions(e.Error(), kind, opt)
}

// worst returns the first error of a tree whose request may have been performed and must not be repeated, else the
// first of package payvault, or nil.
func worst(err error) *payvault.Error {
	first, _ := errors.AsType[*payvault.Error](err)
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok && !isUnknown(first) {
		for _, one := range joined.Unwrap() {
			if e := worst(one); isUnknown(e) {
				return e
			}
		}
	}
	return first
}

func isUnknown(e *payvault.Error) bool {
	return e != nil && errors.Is(e, payvault.ErrOutcomeUnknown) && !payvault.SafeToRetry(e)
}

// silent is the error of the caller's own code, without what it says. The message of an application error is the
// caller's own words for the history, its cause and its details are not.
func silent(err error, kind string) error {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return temporal.NewApplicationErrorWithOptions(
			bounded(app.Message(), maxMessage), bounded(app.Type(), maxID), temporal.ApplicationErrorOptions{
				NonRetryable: app.NonRetryable(), NextRetryDelay: app.NextRetryDelay(),
			})
	}
	return temporal.NewApplicationError("the "+strings.ToLower(kind)+" has failed", kind)
}

// failed is an error of an activity with what that has come to, from where the workflow goes on. The server does not
// try it again.
func failed(err error, done any) error {
	message, kind := err.Error(), ""
	opt := temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{done}}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		message, kind, opt.NextRetryDelay = app.Message(), app.Type(), app.NextRetryDelay()
	}
	return temporal.NewApplicationErrorWithOptions(bounded(message, maxMessage), kind, opt)
}

// errWorkerStops leaves the rest to another worker.
func errWorkerStops() error { return temporal.NewApplicationError("the worker stops", "WorkerStops") }

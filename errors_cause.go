package payvault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"

	"example.com/payvault/internal/formdata"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/trust"
)

var (
	// errStopped is the cause in the error of a request that was not sent, or not sent again, because SubmitAll has
	// stopped.
	errStopped = errors.New("the walk was stopped")
	// errIncomplete is the cause in the error of an answer with a status from 400 on, if the body is cut off or too large.
	// The missing part may have a message of the service.
	errIncomplete = errors.New("the body of the answer is cut off or too large")
)

// shownError has the text of shown, but does not match it, because shown may be the error of another call. A shownError
// matches only end, the error of an ended context. end may be nil.
type shownError struct{ shown, end error }

// Error returns the text of shown.
func (e *shownError) Error() string { return e.shown.Error() }

// Unwrap returns end.
func (e *shownError) Unwrap() error { return e.end }

// disown takes an error that came from the caller's own code, such as a RoundTripper, a key source or a file. It
// returns an error that does not match the error of another call. The caller's code may return the error of another
// call: errgroup makes the error of one call the cause of the context of all others, and a RoundTripper may return that
// cause.
//
// If err wraps an *Error or matches a sentinel of this package, the result has the same text and matches at most one
// error. It matches context.DeadlineExceeded or context.Canceled, if err wraps that error outside of an *Error. In all
// other cases the result is err itself.
func disown(err error) error {
	if err == nil {
		return nil
	}
	_, mustHide := errors.AsType[*Error](err)
	for _, sentinel := range sentinels() {
		mustHide = mustHide || errors.Is(err, sentinel)
	}
	switch {
	case !mustHide:
		return err
	case isOutsideCalls(err, context.DeadlineExceeded):
		return &shownError{err, context.DeadlineExceeded}
	case isOutsideCalls(err, context.Canceled):
		return &shownError{err, context.Canceled}
	}
	return &shownError{err, nil}
}

// isOutsideCalls reports whether err wraps target outside of an *Error. It compares target with the innermost errors
// that err wraps.
func isOutsideCalls(err, target error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the function unwraps errors itself
	case *Error:
		return false
	case interface{ Unwrap() error }:
		return isOutsideCalls(wrapped.Unwrap(), target)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), func(err error) bool { return isOutsideCalls(err, target) })
	}
	return errors.Is(err, target)
}

// safeCause takes the error of a failed request and returns the error that the caller may see. The text of the result
// has no URL, and no bytes of the request or the answer. It repeats the whole texts of two of the caller's own errors:
// the cause of the context, and the error of the key source.
//
// If the context has ended, the result matches ctx.Err() only. It does not match the cause of the context, because that
// may be the error of another call.
func safeCause(ctx context.Context, err error) error {
	if end, cause := ctx.Err(), context.Cause(ctx); end != nil {
		if cause == end { //nolint:errorlint // a cause that wraps the end says more
			return end
		}
		return &shownError{fmt.Errorf("%v: %v", end, cause), end} //nolint:errorlint // its text is enough
	}
	if errors.Is(err, transport.ErrTooLarge) {
		return ErrResponseTooLarge
	}
	if key, ok := errors.AsType[*transport.KeyError](err); ok {
		return key
	}
	if errors.Is(err, transport.ErrStopped) {
		return errStopped
	}
	if upload, ok := errors.AsType[*formdata.FileError](err); ok {
		return upload
	}
	if safe := systemError(err); safe != nil {
		return safe
	}
	for { // remove each url.Error: errors.As would find it in the hiddenError, with the URL
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return &hiddenError{err}
		}
		err = wrapped.Err
	}
}

// systemError returns the part of err that is safe to show: its text has at most addresses, names of hosts and of
// certificates, and errors of the operating system. It returns nil if err has no such part.
func systemError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns
	}
	if untrusted := trust.Failure(err); untrusted != nil {
		return untrusted
	}
	if errors.Is(err, context.DeadlineExceeded) { // not the end of the call's context: safeCause has checked that
		return fmt.Errorf("an attempt took too long: %w", context.DeadlineExceeded)
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	for _, end := range []error{io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, end) {
			return fmt.Errorf("no complete answer: %w", end)
		}
	}
	return nil
}

// hiddenError wraps an error whose text may quote bytes from the peer, as errors of net/http do. It matches the same
// targets as the wrapped error but has a text of its own.
type hiddenError struct{ err error }

// Error returns a fixed text, which depends only on whether the error is a timeout.
func (e *hiddenError) Error() string {
	if timeout, ok := errors.AsType[net.Error](e.err); ok && timeout.Timeout() {
		return "timeout"
	}
	return "connection failed"
}

// Is reports whether the wrapped error matches target.
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }

// As looks in the wrapped error for the first error of the type that target points to, and stores it there.
func (e *hiddenError) As(target any) bool { return errors.As(e.err, target) }

// Format writes the text of Error under every verb.
func (e *hiddenError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

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
	// errStopped is the cause of a request of a walk that is not sent, or not sent again, because the walk has stopped.
	errStopped = errors.New("the walk was stopped")
	// errIncomplete is the cause of a status from 400 on if the body, which may have a message, is not there as a whole.
	errIncomplete = errors.New("the body of the answer is cut off or too large")
)

// shownError has the text of an error and does not match that error: it may be the error of another call, which says
// nothing about this one. A shownError matches only end, which is nil or the error of an ended context.
type shownError struct{ shown, end error }

// Error returns the text of the error that is shown.
func (e *shownError) Error() string { return e.shown.Error() }

// Unwrap returns the end of the context.
func (e *shownError) Unwrap() error { return e.end }

// disown takes an error of the caller's own code, such as a RoundTripper, a key source or a file. Such code may return
// the error of another call: errgroup, for example, makes the error of one call the cause of the context of all others,
// and a RoundTripper may return the cause of its context.
//
// If err matches an error of a call or a sentinel of this package, disown returns an error with the same text that
// matches the end of a context at most. Otherwise it returns err itself.
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

// isOutsideCalls reports whether target is one of the innermost errors that err wraps. It does not look into errors of
// calls.
func isOutsideCalls(err, target error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // it walks through them
	case *Error:
		return false
	case interface{ Unwrap() error }:
		return isOutsideCalls(wrapped.Unwrap(), target)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), func(err error) bool { return isOutsideCalls(err, target) })
	}
	return errors.Is(err, target)
}

// safeCause gets the error of a failed request and returns the cause that the caller sees. If the context has ended,
// that is the end of the context, because net/http returns the cause of a context as its own error. Otherwise it is one
// of the errors that are named here, or a hiddenError, which shows nothing.
//
// So no URL of the request, and no bytes of the request or the answer, are shown. Two of the caller's own errors are
// shown as they are: the cause of the context, and the error of the key source.
func safeCause(ctx context.Context, err error) error {
	if end, cause := ctx.Err(), context.Cause(ctx); end != nil {
		if cause == end { //nolint:errorlint // a cause that wraps the end says more
			return end
		}
		return &shownError{fmt.Errorf("%v: %v", end, cause), end} //nolint:errorlint // to be shown only
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
	for { // take off each url.Error: the caller could find it, and with it the URL, through the hiddenError
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return &hiddenError{err}
		}
		err = wrapped.Err
	}
}

// systemError returns an error within err that shows only addresses, names of hosts and of certificates, and errors
// of the system. It returns nil if there is none.
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
	if errors.Is(err, context.DeadlineExceeded) { // not of the caller's context: safeCause has looked at that
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

// hiddenError stands for an error whose text may quote what the peer wrote, as the errors of net/http do. It matches
// what that error matches and shows nothing of it.
type hiddenError struct{ err error }

// Error says no more than whether it was a timeout.
func (e *hiddenError) Error() string {
	if timeout, ok := errors.AsType[net.Error](e.err); ok && timeout.Timeout() {
		return "timeout"
	}
	return "connection failed"
}

// Is matches what the hidden error matches.
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }

// As finds what the hidden error wraps.
func (e *hiddenError) As(target any) bool { return errors.As(e.err, target) }

// Format writes the text of Error under every verb.
func (e *hiddenError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

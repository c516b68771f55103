package payvault

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// statusOf returns the status of a batch. err is the error of its request, and body is the body of the answer.
func statusOf(err error, body []byte) BatchStatus {
	if err == nil {
		return BatchAccepted
	}
	e, failed := errors.AsType[*Error](err)
	switch {
	case !failed || e.Delivery == DeliveryUnknown:
		return BatchUnknown
	case e.Delivery == DeliveryNotSent, isKeyRefused(e):
		return BatchNotSent
	case SafeToRetry(e): // status 429
		return BatchNotSent
	}
	isWhole := len(body) > 0 && e.cause == nil && !isCutOff(body)
	if hasNoCode(e) && isWhole { // a proxy refused the request, and the service did not get it
		return BatchNotSent
	}
	return BatchRefused // also if the body is not whole: the missing part may have had a code
}

// isCutOff reports whether body begins like a JSON object but is not a valid one, such as the first half of an object.
// The Content-Length does not always show this: a service may cut off an object and send the length of the first half.
func isCutOff(body []byte) bool {
	isWhole := jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && !isWhole
}

// refusesAll reports whether all other batches would be refused with the same error as e.
func refusesAll(e *Error) bool { return isKeyRefused(e) || hasNoCode(e) }

// isKeyRefused reports whether the service refused the API key, by status 401 or 403.
func isKeyRefused(e *Error) bool {
	return e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden
}

// hasNoCode reports whether an answer has a status from 400 to 499 and no code, like the answer of a proxy. It is false
// if an earlier attempt may have performed the operation. Status 408 is excluded, because the service itself may send
// it when a request takes too long. Status 429 is excluded, because SubmitAll waits and sends the batch again.
func hasNoCode(e *Error) bool {
	switch e.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return e.StatusCode/100 == 4 && e.Delivery == DeliveryAnswered && e.Code == ""
}

// unsentError returns the error of a batch that is not sent because SubmitAll has stopped for the given cause.
func unsentError(cause error) *Error {
	e := &Error{Op: OpAccountUpdaterSubmit, Delivery: DeliveryNotSent, cause: inShort(cause)}
	if first, ok := cause.(*Error); ok && errors.Is(first, ErrRateLimited) { //nolint:errorlint // see inShort
		e.RetryAfter = first.RetryAfter
	}
	return e
}

// inShort returns the reason why SubmitAll has stopped, for the errors of batches that were not sent. A cause that is
// not an *Error is returned unchanged. For an *Error, inShort returns an error with a short description. The new error
// matches ErrRateLimited, ErrUnauthorized or ErrForbidden if the *Error does. It matches no other error.
func inShort(cause error) error {
	first, ok := cause.(*Error) //nolint:errorlint // an error of the journal stays as it is
	if !ok {
		return cause
	}
	text := "a request was refused"
	if first.RetryAfter > 0 {
		text = "a request has to wait " + first.RetryAfter.Round(time.Millisecond).String()
	}
	for _, refusal := range []error{ErrRateLimited, ErrUnauthorized, ErrForbidden} {
		if errors.Is(first, refusal) {
			return fmt.Errorf("%w: %s", refusal, text)
		}
	}
	return errors.New(text + " with status " + strconv.Itoa(first.StatusCode) + " and no code of the service")
}

// stoppedError returns the error of a batch that is not sent again because SubmitAll has stopped. The result is a copy
// of e with the reason for the stop. e itself must not change, because observers have it.
func stoppedError(e *Error, cause error) *Error {
	stopped := *e
	stopped.cause = fmt.Errorf("%w: %w", errStopped, inShort(cause))
	return &stopped
}

// noCardError returns the error of a batch whose cards are all invalid.
func noCardError() error {
	p := problems{"data": {"has no card that can be sent"}}
	return p.err(OpAccountUpdaterSubmit)
}

// otherCardsError returns the error of a batch that had another number of cards in an earlier run.
func otherCardsError(batch int) error {
	p := problems{"Job": {otherCardsText(batch)}}
	return p.err(OpAccountUpdaterSubmit)
}

func otherCardsText(batch int) string {
	return "had another number of cards in an earlier run, in batch " + strconv.Itoa(batch)
}

// earlierError returns the error of a batch that an earlier run began and did not record as accepted. o is the outcome.
func earlierError(o BatchOutcome) error {
	e := &Error{
		Op: OpAccountUpdaterSubmit, StatusCode: o.StatusCode, Code: o.Code, Fields: o.Fields, cause: recordedReason(o.Message),
	}
	if o.Status == BatchRefused {
		e.Delivery = DeliveryAnswered
	}
	return e
}

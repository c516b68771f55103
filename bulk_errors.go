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

// statusOf returns what became of a batch whose request ended with err and with the given body. An answer that is safe
// to retry is a 429.
func statusOf(err error, body []byte) BatchStatus {
	if err == nil {
		return BatchAccepted
	}
	e, failed := errors.AsType[*Error](err)
	switch {
	case !failed || e.Delivery == DeliveryUnknown:
		return BatchUnknown
	case e.Delivery == DeliveryNotSent, SafeToRetry(e), isKeyRefused(e):
		return BatchNotSent
	case isOfAnother(e) && e.cause == nil && len(body) > 0 && !isBrokenJSON(body):
		return BatchNotSent
	}
	return BatchRefused // also if the body is missing or cut off: the service may have given a code
}

// isBrokenJSON reports whether body begins as a JSON object and is none. A service may send half of one, with the
// length of that half.
func isBrokenJSON(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && !jsontext.Value(body).IsValid()
}

// refusesAll reports whether all other batches would get the same answer.
func refusesAll(e *Error) bool { return isKeyRefused(e) || isOfAnother(e) }

// isKeyRefused reports whether the service does not take the key.
func isKeyRefused(e *Error) bool {
	return e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden
}

// isOfAnother reports whether an answer has no code, as that of a proxy has none. A service that was at work may have
// given up with status 408, so that is no such answer. Status 429 has its own rules.
func isOfAnother(e *Error) bool {
	switch e.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return e.StatusCode/100 == 4 && e.Delivery == DeliveryAnswered && e.Code == ""
}

// unsentError is the error of a batch that is not sent because the walk has stopped.
func unsentError(cause error) *Error {
	e := &Error{Op: OpAccountUpdaterSubmit, Delivery: DeliveryNotSent, cause: inShort(cause)}
	if first, ok := cause.(*Error); ok && errors.Is(first, ErrRateLimited) { //nolint:errorlint // see inShort
		e.RetryAfter = first.RetryAfter
	}
	return e
}

// inShort returns the reason why a walk has stopped, as the cause of other errors. The error of a batch is only named:
// the others must not match what it matches. The exception is the sentinel of a refusal, which counts for all batches.
func inShort(cause error) error {
	first, ok := cause.(*Error) //nolint:errorlint // an error of the journal stays as it is
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
	return errors.New(text + " with status " + strconv.Itoa(first.StatusCode) + " and no code of the service")
}

// stoppedError adds the reason to the error of a batch that is not sent again because the walk has stopped. The first
// error stays as it is, since observers have it.
func stoppedError(e *Error, cause error) *Error {
	stopped := *e
	stopped.cause = fmt.Errorf("%w: %w", errStopped, inShort(cause))
	return &stopped
}

// noCardError is the error of a batch whose cards are all invalid.
func noCardError() error {
	p := problems{"data": {"has no card that can be sent"}}
	return p.err(OpAccountUpdaterSubmit)
}

// otherCardsError is the error of a batch that had another number of cards in an earlier run.
func otherCardsError(batch int) error {
	p := problems{"Job": {otherCardsText(batch)}}
	return p.err(OpAccountUpdaterSubmit)
}

func otherCardsText(batch int) string {
	return "had another number of cards in an earlier run, in batch " + strconv.Itoa(batch)
}

// earlierError is the error of a batch that an earlier run has sent.
func earlierError(o BatchOutcome) error {
	e := &Error{Op: OpAccountUpdaterSubmit, StatusCode: o.StatusCode, Code: o.Code, cause: errors.New(o.Message)}
	if o.Status == BatchRefused {
		e.Delivery = DeliveryAnswered
	}
	return e
}

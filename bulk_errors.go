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
	case e.Delivery == DeliveryNotSent, isAccessRefused(e):
		return BatchNotSent
	case SafeToRetry(e): // status 429
		return BatchNotSent
	}
	_, isPage := errors.AsType[pageError](e.cause)
	isWhole := len(body) > 0 && (e.cause == nil || isPage) && !isCutOff(body)
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

// refusesAll reports whether e, the error of a batch, shows that all other batches would be refused too. A batch ends
// with a 429 only if it may not make another attempt. Then the other batches may not either. But a 429 after an attempt
// of unknown outcome does not stop the walk, because the batch counts as one of unknown outcome.
func refusesAll(e *Error) bool {
	isTurnedAway := e.StatusCode == http.StatusTooManyRequests && e.Delivery != DeliveryUnknown
	return isTurnedAway || isAccessRefused(e) || hasNoCode(e)
}

// isAccessRefused reports whether the status is 401 or 403. After a 403 without a code, a firewall may have refused,
// and not the service.
func isAccessRefused(e *Error) bool {
	return e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden
}

// hasNoCode reports whether an answer has a status from 400 to 499 and no code, like the answer of a proxy. It is false
// if the operation may have been performed, by an earlier attempt or before a 403. Status 408 is excluded, because the
// service itself may send it when a request takes too long. Status 429 is excluded, because SubmitAll waits and sends
// the batch again.
func hasNoCode(e *Error) bool {
	switch e.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return e.StatusCode/100 == 4 && e.Delivery == DeliveryAnswered && e.Code == ""
}

// noCardError returns the error of a batch whose cards are all invalid.
func noCardError() error {
	p := problems{"data": {"has no card that can be sent"}}
	return p.err(OpAccountUpdaterSubmit)
}

// StopError is the error in the last element of a walk of SubmitAll that has stopped. For [StopStream], [StopJournal]
// and [StopContext] it wraps the error of the stream, of the journal or of the context. For [StopKey] it matches
// [ErrUnauthorized] or [ErrForbidden], and for [StopRateLimit] it matches [ErrRateLimited].
//
// It never wraps an *[Error]: if the stream or the journal returned one, the StopError has only its text. [SafeToRetry]
// is false for a StopError, because without a [Journal] a second run would send all cards again.
type StopError struct {
	Reason StopReason
	// RetryAfter is the time that a batch would have to wait, for [StopRateLimit]. It is 0 if the service refused the
	// batch without a Retry-After, and for any other Reason.
	RetryAfter time.Duration

	cause error
}

// Error returns the reason and its cause on one line.
func (e *StopError) Error() string {
	line := "payvault: " + string(OpAccountUpdaterSubmit) + ": " + string(e.Reason)
	if e.cause != nil { // nil if a fake in the caller's tests makes the error
		line += ": " + e.cause.Error()
	}
	return lineOf(line, longCause)
}

// Unwrap returns the cause.
func (e *StopError) Unwrap() error { return e.cause }

// StopReason says why a walk of SubmitAll has stopped. docs/bulk.md says what to do then.
type StopReason string

// The reasons for which a walk stops. If a walk meets several of them, the first one counts, with two exceptions.
// StopJournal takes the place of any other reason, because the journal may lack outcomes. Any other reason takes the
// place of StopContext.
const (
	// StopContext means that ctx ended too early: cards may not have been read or sent, or the outcome of a request that
	// was in flight is unknown.
	StopContext StopReason = "context"
	// StopStream means that the stream has yielded an error, and that ctx had not ended before.
	StopStream StopReason = "stream"
	// StopJournal means that a method of the journal has failed. An error of Begin after the walk has stopped does not
	// count.
	StopJournal StopReason = "journal"
	// StopOtherCards means that the journal has another number of cards for a batch than this run.
	StopOtherCards StopReason = "other cards"
	// StopKey means that the service has refused the key, by status 401, or by 403 with a code that refuses.
	StopKey StopReason = "key"
	// StopNoCode means that a batch got a status from 400 to 499 without a code of the service. Statuses 401, 408 and 429
	// are excluded. Such an answer mostly comes from something in front of the service, such as a proxy, or from a wrong
	// base URL. After a 403, the batch is of unknown outcome.
	StopNoCode StopReason = "no code"
	// StopRateLimit means that a batch may not wait for a rate limit, for one of these reasons:
	//   - The service asks for a longer wait than RetryPolicy.MaxBulkRetryAfter.
	//   - The service asks for a wait that ends after the deadline of ctx.
	//   - The turn of the batch in the limit of [WithRateLimit] comes after the deadline of ctx.
	//   - Only one attempt is allowed, and it got status 429.
	//   - A server of package payvaulttest made the client, and all attempts that are allowed got status 429.
	StopRateLimit StopReason = "rate limit"
	// StopUnknown means that 10 sent batches in a row, or 2 × Concurrency if that is more, are of unknown outcome. The
	// service seems to be down, and somebody has to look up each of these batches.
	StopUnknown StopReason = "unknown outcome"
	// StopNotSent means that 10 batches in a row, or 2 × Concurrency if that is more, could not be sent: no connection can
	// be made, or the key source fails.
	StopNotSent StopReason = "not sent"
)

// Passes reports whether a later run may succeed without anybody's help. It is true for StopJournal, StopRateLimit and
// StopNotSent. It is false for StopContext, because only you know why your context has ended.
func (r StopReason) Passes() bool { return r == StopJournal || r == StopRateLimit || r == StopNotSent }

// refusalStop returns the StopError of a walk that stops because of e, the error of a batch. The StopError does not
// wrap e, because SafeToRetry must be false for a StopError.
func refusalStop(e *Error) *StopError {
	text := "a request was refused with status " + strconv.Itoa(e.StatusCode)
	switch {
	case e.StatusCode == http.StatusUnauthorized:
		return &StopError{Reason: StopKey, cause: fmt.Errorf("%w: %s", ErrUnauthorized, text)}
	case e.StatusCode == http.StatusForbidden && e.rejected():
		return &StopError{Reason: StopKey, cause: fmt.Errorf("%w: %s", ErrForbidden, text)}
	case errors.Is(e, ErrRateLimited):
		if e.RetryAfter > 0 { // the request may not even have been sent
			text = "a request has to wait " + e.RetryAfter.Round(time.Millisecond).String()
		}
		return &StopError{StopRateLimit, e.RetryAfter, fmt.Errorf("%w: %s", ErrRateLimited, text)}
	}
	return &StopError{Reason: StopNoCode, cause: errors.New(text + " and no code of the service")}
}

func journalStop(err error) *StopError { return &StopError{Reason: StopJournal, cause: disown(err)} }

// lostStop returns the StopError of a walk that stops after n failed batches in a row. The text says how these batches
// failed.
func lostStop(reason StopReason, n int64, text string) *StopError {
	return &StopError{Reason: reason, cause: fmt.Errorf("the last %d batches %s", n, text)}
}

func otherCardsStop(batch int) *StopError {
	text := "the job had another number of cards in an earlier run, in batch " + strconv.Itoa(batch)
	return &StopError{Reason: StopOtherCards, cause: errors.New(text)}
}

// earlierError returns the error of a batch that an earlier run began and did not record as accepted. o is the outcome.
func earlierError(o BatchOutcome) error {
	e := &Error{
		Op: OpAccountUpdaterSubmit, StatusCode: o.StatusCode, Code: o.Code, Fields: o.Fields,
		cause: recordedReason(o.Message),
	}
	if o.Status == BatchRefused {
		e.Delivery = DeliveryAnswered
	}
	return e
}

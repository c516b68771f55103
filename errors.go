package payvault

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/redact"
)

// These sentinel errors are for [errors.Is]. One error may match several of them: for example, the error of a creation
// with status 502 matches ErrUnavailable and ErrOutcomeUnknown. If SubmitAll stops after ErrUnauthorized, ErrForbidden
// or ErrRateLimited, the errors of the batches that it does not send match that sentinel too.
var (
	// ErrInvalidRequest means that a request failed a local check. Nothing was sent.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrMerchantNotSupported means that an operation that takes no merchant_id was called through [Client.ForMerchant].
	// Nothing was sent.
	ErrMerchantNotSupported = errors.New("the operation cannot act for another merchant")
	// ErrUnauthorized means HTTP status 401.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden means HTTP status 403.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound means HTTP status 404.
	ErrNotFound = errors.New("not found")
	// ErrConflict means HTTP status 409.
	ErrConflict = errors.New("conflict")
	// ErrRateLimited means HTTP status 429: the service refused the request without performing it. ErrRateLimited also
	// means that a request was not sent, or not sent again, because its wait for the rate limit would be longer than the
	// [RetryPolicy] allows, or would end after the deadline of the context.
	ErrRateLimited = errors.New("rate limited")
	// ErrRejected means an answer with a code other than 0, or an rcode other than 000, and a status below 500. A code
	// that is zero in another form, such as 00, is no refusal. With a status below 400, such a code makes the answer
	// malformed.
	ErrRejected = errors.New("rejected")
	// ErrValidation means code 2 with a status below 500, for any operation except Tokenize. The error also matches
	// ErrRejected. [Error.Fields] has the messages of the service about fields.
	ErrValidation = errors.New("validation failed")
	// ErrUnavailable means an HTTP status of 500 or above.
	ErrUnavailable = errors.New("unavailable")
	// ErrMalformedResponse means an answer with a status below 400 that is not of the documented shape. For example, the
	// answer is a redirect, is not complete JSON, has no code, lacks a documented ID, or has a value that cannot be read.
	// Or it has a code and an rcode, and only one of them means success. But after an operation that changes something,
	// the SDK skips unreadable values that it does not need. ErrMalformedResponse also means that the pages of a list
	// contradict each other.
	ErrMalformedResponse = errors.New("malformed response")
	// ErrResponseTooLarge means an answer with a status below 400 and a larger body than [WithMaxResponseBytes] allows.
	// With a status from 400 on, the error is about the status and does not match ErrResponseTooLarge.
	ErrResponseTooLarge = errors.New("response too large")
	// ErrOutcomeUnknown means [DeliveryUnknown]: the operation may have been performed. Errors of operations that only
	// read ([ReplayRead]) never match it, because these operations change nothing. An error of [Client.Call] can match it
	// after any request, because Client.Call never counts as ReplayRead.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// sentinels returns all sentinel errors of this package.
func sentinels() []error {
	return []error{
		ErrInvalidRequest, ErrMerchantNotSupported, ErrUnauthorized, ErrForbidden, ErrNotFound, ErrConflict, ErrRateLimited,
		ErrRejected, ErrValidation, ErrUnavailable, ErrMalformedResponse, ErrResponseTooLarge, ErrOutcomeUnknown,
	}
}

// Delivery says whether a request reached the service.
type Delivery uint8

const (
	// DeliveryUnknown means that at least one attempt got no usable answer and may have reached the service. The operation
	// may have been performed. The error matches [ErrOutcomeUnknown], unless the operation only reads. If the last attempt
	// was refused, the error has the status, the code and the sentinels of the refusal. The refusal does not prove that
	// nothing happened: a second cancellation may be refused because the first one succeeded.
	DeliveryUnknown Delivery = iota
	// DeliveryNotSent means that the operation cannot have been performed: too little of the request was written. Earlier
	// attempts may have been sent, but the service refused them with status 429.
	DeliveryNotSent
	// DeliveryAnswered means that the service decided, and that no earlier attempt can have performed the operation. A
	// decision is an HTTP status from 400 to 499, or a status below 500 with a code that refuses. The exception is status
	// 408 on a connection that may have been used before. This status means DeliveryUnknown, because the service may have
	// sent the 408 before it got the request.
	DeliveryAnswered
)

// String returns "unknown", "not sent" or "answered".
func (d Delivery) String() string {
	switch d {
	case DeliveryNotSent:
		return "not sent"
	case DeliveryAnswered:
		return "answered"
	case DeliveryUnknown:
	}
	return "unknown"
}

// Error is the error of every call, of every batch and of [NewClient]. The error of an iterator over records or pages
// may wrap an Error. So get it with errors.AsType[*payvault.Error]. [WithResponse] gives the raw answer.
//
// # Text
//
// The text is one line with the operation, the status, the code, the message and the problems of fields. The text does
// not contain:
//
//   - values of the request that the service does not repeat. If a body cannot be encoded, the text has the reason and
//     the path of the value that failed. A name in the path may be a name that you chose, and the reason may be an
//     error of your own MarshalJSON.
//   - secrets and header values of the request, API keys, IDs of the path and values of the query, as far as the SDK
//     finds them where the service repeats them. The values of merchant_id, count, page, order_on and order_by stay. So
//     do other values that the service repeats, see docs/secrets.md.
//   - more than 20 fields, more than 300 characters of a text of the service, or more than 2,000 of a cause. Message,
//     Detail and Fields have the whole texts, except texts and data of more than 64 KiB, which only the raw answer has.
//
// # Fields
//
// After a failed local check of values, Fields has the problems. The keys are wire paths such as
// billing_cards[1].exp_date. For an argument or option that is not on the wire, the key is its Go name, or a word such
// as request, api_key or path[0].
//
// After an answer, Fields has the messages of the service about fields. The keys are the names that the service uses.
// The service documents these messages for code 2. Without code 2, Fields has the members of data in the answer that
// are lists of texts, if every other member is null or a text with the name message.
//
// # In a fake
//
// A fake of the client in your tests may make an Error itself. [ErrOutcomeUnknown] and [SafeToRetry] then use the
// replay class that [Operations] has for its Op. They use [ReplayNever] if Operations does not have the Op, or if the
// class depends on the request. The Delivery of such an Error is DeliveryUnknown unless the fake sets it.
type Error struct {
	Op         Operation           // the operation, such as "customers.create"
	StatusCode int                 // HTTP status; 0 if no response arrived
	Code       string              // platform code or tokenize rcode, as text; "" if there is none
	Message    string              // message or rmsg of the service
	Detail     string              // data.message of the service, or data that is a text or a list of texts
	Fields     map[string][]string // messages by field; see "Fields" above
	Delivery   Delivery            // whether the request reached the service
	Attempts   int                 // number of attempts; 0 if none was made, or if the error comes from a journal
	// RetryAfter is the wait that the service asked for, 24 h at most. It is 0 if the service asked for none. If a request
	// was not sent because of the rate limit, RetryAfter is the time that the request would have to wait.
	RetryAfter time.Duration

	replay Replay // class of the call; if it is "", the class of Op applies
	// final makes SafeToRetry false. These failures set it: a failed local check; a status 3xx; an answer that is too
	// large, has too many values or a value that cannot be read; and a batch that SubmitAll with a journal did not send
	// because SubmitAll had stopped.
	final bool
	cause error // see Unwrap
}

// Error returns a description of the failure on one line.
func (e *Error) Error() string {
	parts := []string{"payvault", string(e.Op)}
	if e.StatusCode != 0 {
		parts = append(parts, strings.TrimSpace("status "+strconv.Itoa(e.StatusCode)+" "+http.StatusText(e.StatusCode)))
	}
	if e.Code != "" {
		parts = append(parts, "code "+oneLine(e.Code))
	}
	if reason := e.reason(); reason != "" {
		parts = append(parts, reason)
	}
	line := strings.Join(parts, ": ")
	switch {
	case e.isLocal():
	case e.Delivery == DeliveryNotSent:
		line += " (not sent)"
	case e.Is(ErrOutcomeUnknown):
		line += " (outcome unknown)"
	}
	return line
}

// reason returns the texts of the service, and then the cause, on one line. If a local check failed, the cause comes
// first, and the problems of fields follow.
func (e *Error) reason() string {
	var said []string
	for _, text := range []string{e.Message, e.Detail} {
		if text != "" {
			said = append(said, oneLine(text))
		}
	}
	if len(e.Fields) > 0 {
		said = append(said, e.fieldsLine())
	}
	// Each text is redacted already, but a card number may be spread over the name of a field and its message.
	parts := []string{redact.CardNumbers(strings.Join(said, ": "))}
	if e.cause != nil {
		parts = append(parts, lineOf(e.cause.Error(), longCause))
	}
	if e.isLocal() {
		slices.Reverse(parts)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, ": ")
}

// fieldsLine returns the messages of the first 20 fields on one line.
func (e *Error) fieldsLine() string {
	const most = 20
	names := slices.Sorted(maps.Keys(e.Fields))
	texts := make([]string, 0, most+1)
	for i, name := range names {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		text := strings.Join(e.Fields[name], ", ")
		if !strings.HasPrefix(text, name+" ") { // many messages begin with the name of their field
			text = name + " " + text
		}
		texts = append(texts, oneLine(text))
	}
	return strings.Join(texts, "; ")
}

// longCause is the largest number of characters that Error writes of its cause. Some causes are long, such as a message
// that a journal has kept.
const longCause = 2000

// oneLine returns the first 300 characters of a text on one line.
func oneLine(text string) string { return lineOf(text, 300) }

// lineOf returns a text on one line. A text of more than the given number of characters is cut and gets an ellipsis. A
// character that cannot be printed, such as a line break, becomes a blank.
func lineOf(text string, most int) string {
	line := make([]rune, 0, min(len(text), most))
	for _, r := range text {
		if len(line) == most {
			return string(line) + "…"
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		line = append(line, r)
	}
	return string(line)
}

// Format writes the text of [Error.Error] under every verb, so that no dump shows more.
func (e *Error) Format(f fmt.State, verb rune) {
	text := e.Error()
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

// LogValue logs the operation, the status, the code, the message, the delivery, the number of attempts, and the whole
// text of [Error.Error].
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("operation", string(e.Op)), slog.Int("status", e.StatusCode), slog.String("code", oneLine(e.Code)),
		slog.String("message", oneLine(e.Message)), slog.String("delivery", e.Delivery.String()),
		slog.Int("attempts", e.Attempts), slog.String("error", e.Error()))
}

// Unwrap returns the cause, for example a sentinel of a local check, the reason why an answer is malformed, or a
// failure of the transport (a context error, a [net.OpError], …). It returns nil if the status or the code is reason
// enough.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a sentinel that the fields of e match, such as ErrNotFound for status 404. [errors.Is]
// finds all other sentinels in the cause.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrUnauthorized:
		return e.StatusCode == http.StatusUnauthorized
	case ErrForbidden:
		return e.StatusCode == http.StatusForbidden
	case ErrNotFound:
		return e.StatusCode == http.StatusNotFound
	case ErrConflict:
		return e.StatusCode == http.StatusConflict
	case ErrRateLimited:
		return e.StatusCode == http.StatusTooManyRequests
	case ErrUnavailable:
		return e.StatusCode >= 500
	case ErrRejected:
		return e.rejected()
	case ErrValidation:
		return e.rejected() && e.Code == answer.Validation && e.Op != OpTokensTokenize
	case ErrOutcomeUnknown:
		return e.Delivery == DeliveryUnknown && e.replayClass() != ReplayRead
	}
	return false
}

// replayClass returns the replay class of the call. The class of an Error that the caller made is the class of its Op.
func (e *Error) replayClass() Replay {
	if e.replay != "" {
		return e.replay
	}
	for _, op := range operations {
		if op.Op == e.Op {
			return op.Replay
		}
	}
	return ReplayNever
}

// rejected reports whether the code means that the service refused the operation. It is false with a 5xx: the code may
// come from a gateway, and the service behind it may have performed the operation.
func (e *Error) rejected() bool {
	return e.StatusCode < 500 && e.Code != "" && !answer.Code(e.Code).IsZero()
}

// isLocal reports whether a local check failed.
func (e *Error) isLocal() bool {
	return errors.Is(e.cause, ErrInvalidRequest) || errors.Is(e.cause, ErrMerchantNotSupported)
}

// decided reports whether the answer to the last attempt is a decision of the service: a code that refuses, or a status
// from 400 to 499. A status 408 without such a code is no decision if the delivery is unknown: servers end idle
// connections with 408, so the server may have sent the 408 before it got the request.
func (e *Error) decided() bool {
	provesNothing := e.StatusCode == http.StatusRequestTimeout && e.Delivery == DeliveryUnknown
	return e.rejected() || e.StatusCode/100 == 4 && !provesNothing
}

// SafeToRetry reports whether calling again with the same request does no harm and may help. It is true in two cases:
//
//   - The operation cannot have been performed: too little of the request was sent, or the service refused it with
//     status 429.
//   - A later call may succeed, and a second performance does no harm: the operation only reads, or has the same effect
//     if it is performed twice.
//
// [WithReplay] has no effect here, because it applies only to the attempts of one call. Request.Replay of [Client.Call]
// has an effect: it says that performing the request twice is harmless. SafeToRetry is false for a request that failed
// a local check, because it would fail again. It is also false for a batch that SubmitAll with a [Journal] did not send
// after it had stopped, and for errors that wrap no *Error. If err joins the errors of several calls, as [errors.Join]
// does, SafeToRetry is true only if it is true for all of them.
func SafeToRetry(err error) bool {
	calls := errorsOfCalls(err)
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(e *Error) bool { return !e.safeToRetry() })
}

// errorsOfCalls returns err if it is an *Error, or each *Error that err wraps. Some packages join errors and return
// them from a method that is not Unwrap: hashicorp/go-multierror and avast/retry-go from WrappedErrors, old versions of
// go.uber.org/multierr from Errors.
func errorsOfCalls(err error) (calls []*Error) {
	var wrapped []error
	switch wrapping := err.(type) { //nolint:errorlint // the function unwraps errors itself
	case *Error:
		if wrapping != nil {
			return []*Error{wrapping}
		}
	case interface{ WrappedErrors() []error }:
		wrapped = wrapping.WrappedErrors()
	case interface{ Errors() []error }:
		wrapped = wrapping.Errors()
	case interface{ Unwrap() []error }:
		wrapped = wrapping.Unwrap()
	case interface{ Unwrap() error }:
		wrapped = []error{wrapping.Unwrap()}
	}
	for _, err := range wrapped {
		calls = append(calls, errorsOfCalls(err)...)
	}
	return calls
}

// safeToRetry implements SafeToRetry for the error of one call.
func (e *Error) safeToRetry() bool {
	if e.final {
		return false
	}
	isTurnedAway := e.StatusCode == http.StatusTooManyRequests
	switch e.Delivery {
	case DeliveryNotSent:
		return true
	case DeliveryAnswered:
		return isTurnedAway
	case DeliveryUnknown:
	}
	isHarmless := e.replayClass() == ReplaySame || e.replayClass() == ReplayRead
	mayPass := isTurnedAway || !e.decided() // after any other decision the service would refuse the request again
	return isHarmless && mayPass
}

var errPanic = errors.New("panic")

// panicError returns the error that observers get if code of the caller, such as a key source, panics during a call.
func panicError(op Operation) error { return &Error{Op: op, cause: errPanic} }

package payvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/redact"
	"example.com/payvault/internal/transport"
)

// transportError returns the error of a call for which the transport returned err. Then no answer came, its body broke
// off or was too large, or the wait for an attempt failed. r is the transport's result of the last attempt.
func transportError(ctx context.Context, op OperationInfo, r transport.Result, err error) *Error {
	e := resultError(op, r)
	if r.Delivery == transport.Answered { // the last answer is a failure, and the wait for the next attempt failed
		e.readFailure(r.Body)
	}
	e.cause = safeCause(ctx, err)
	e.final = e.final || errors.Is(err, transport.ErrTooLarge) // the same answer would be too large again
	if held, ok := errors.AsType[*overload.HeldError](err); ok && ctx.Err() == nil {
		e.RetryAfter, e.cause = held.After, fmt.Errorf("%w: %w", ErrRateLimited, held)
	}
	return e
}

// answerError returns the error of an answer that is not a success. malformed is the reason why a 2xx is not a success;
// it is nil for any other status. malformed becomes the cause. The exception is a code that refuses the operation: the
// code is reason enough.
func answerError(op OperationInfo, r transport.Result, malformed error) *Error {
	e := resultError(op, r)
	e.readFailure(r.Body)
	switch {
	case e.rejected() || r.Status >= 400: // the status and the code say it all
	case r.Status >= 300:
		e.cause = fmt.Errorf("%w: a redirect, which is not followed", ErrMalformedResponse)
	case r.Status < 200:
		e.cause = fmt.Errorf("%w: a switch of protocols, which was not asked for", ErrMalformedResponse)
	default:
		e.cause, e.final = malformed, isUnreadable(malformed)
	}
	return e
}

// resultError returns an error with the values of the transport's result. The constants of both Delivery types have the
// same values. If an earlier attempt may have performed the operation (Unsure), the delivery is unknown, even if the
// last attempt was refused.
//
// A status 3xx is final by policy: it mostly comes from a wrong base URL or a proxy, and a new call changes neither.
// This is not always right: a temporary redirect may pass. The policy also applies to 300 and 304, which redirect
// nothing.
func resultError(op OperationInfo, r transport.Result) *Error {
	e := &Error{
		Op: op.Op, StatusCode: r.Status, Attempts: r.Attempts, RetryAfter: overload.RetryAfter(r.Header), replay: op.Replay,
		Delivery: Delivery(r.Delivery), final: r.Status/100 == 3,
	}
	if r.Unsure {
		e.Delivery = DeliveryUnknown
	}
	return e
}

// failure is the body of a failed call. The service has two shapes: code and message, or rcode and rmsg.
type failure struct {
	answer.Codes

	Message excerpt `json:"message"`
	RMsg    excerpt `json:"rmsg"`
	Data    excerpt `json:"data"`
}

// excerpt is a value of an answer that an error may contain. It does not keep a value that is longer than
// [answer.MostSaid].
type excerpt struct {
	jsontext.Value

	isTooLong bool // the value was not kept; only the raw answer has it
}

// UnmarshalJSON keeps a copy of a value, unless it is too long.
func (x *excerpt) UnmarshalJSON(b []byte) error {
	x.Value, x.isTooLong = nil, len(b) > answer.MostSaid
	if !x.isTooLong {
		x.Value = slices.Clone(b)
	}
	return nil
}

// text returns the text of a value. It returns "" for false, [] and {}, which PHP writes for no text.
func (x excerpt) text() string {
	if x.Kind() != '"' && answer.IsNone(x.Value) {
		return ""
	}
	return answer.Text(x.Value)
}

// readFailure reads the body of an answer that is not a success, and sets the code, the message, the detail and the
// fields, as far as the body has them. A body that cannot be read sets none of them. If neither the code nor the status
// says that the service decided, readFailure sets the delivery to unknown.
func (e *Error) readFailure(body []byte) {
	var f failure
	if _, err := answer.ReadLenient(body, &f); err != nil {
		f = failure{} // drop the values that were read before the error
	}
	own, other, _ := f.Deciding(decider(e.Op))
	e.Code = string(shownCode(own, other, e.StatusCode))
	message, rmsg := f.Message.text(), f.RMsg.text()
	e.Message = cmp.Or(message, rmsg)
	if f.RCode != "" && (f.Code == "" || e.Op == OpTokensTokenize) { // the text that belongs to the code comes first
		e.Message = cmp.Or(rmsg, message)
	}
	if e.rejected() || e.StatusCode >= 400 {
		e.readData(f.Data.Value) // in any other answer the data is the record
	}
	if !e.decided() {
		e.Delivery = DeliveryUnknown
	}
}

// shownCode returns the code of an error: own, which is documented for the operation, or other if there is no own.
// There is an exception: if own refuses, other says success and the status is below 300, it returns other, such as
// rcode 000 beside code 51. Codes that contradict each other are no refusal, and an error whose code is zero does not
// count as one.
func shownCode(own, other answer.Code, status int) answer.Code {
	if status < 300 && answer.Disagree(own, other) && other.IsZero() {
		return other
	}
	return cmp.Or(own, other)
}

// readData sets Detail and Fields from the data of a failure:
//
//   - A text or a list of texts is the Detail.
//   - With code 2, data is an object with messages by field name, as documented. All of them are the Fields.
//   - With another code, a text in data.message is the Detail. The rest is the Fields if it has only lists of texts and
//     nulls. Otherwise data is taken for a record and sets no Fields.
func (e *Error) readData(data jsontext.Value) {
	if texts, areTexts := messages(data); areTexts {
		e.Detail = strings.Join(texts, ", ")
		return
	}
	var members map[string]jsontext.Value
	if answer.Read(data, &members) != nil {
		return
	}
	if e.Code != answer.Validation {
		e.Detail = takeMessage(members)
	}
	fields := make(map[string][]string, len(members))
	for name, member := range members {
		texts, areTexts := messages(member)
		switch {
		case e.Code == answer.Validation, areTexts && member.Kind() == '[':
			fields[name] = texts
		case member.Kind() != 'n':
			return
		}
	}
	if len(fields) > 0 {
		e.Fields = fields
	}
}

// takeMessage removes the text in data.message from the members of data, and returns it. The case of the name does not
// matter. It does not remove a message that is not a text.
func takeMessage(members map[string]jsontext.Value) string {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if strings.EqualFold(name, "message") && members[name].Kind() == '"' {
			text := answer.Text(members[name])
			delete(members, name)
			return text
		}
	}
	return ""
}

// messages returns the texts of a list, or of a single value, and reports whether all elements are JSON strings. A null
// becomes "". An element of another kind is returned as it is written.
func messages(raw jsontext.Value) (texts []string, areTexts bool) {
	list := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		_ = answer.Read(raw, &list) // it was read before
	}
	areTexts = true
	for _, text := range list {
		texts = append(texts, answer.Text(text))
		areTexts = areTexts && text.Kind() == '"'
	}
	return texts, areTexts
}

// clear removes the given secrets, and card numbers, from the code, the message, the detail and the fields. These are
// texts of the service, which may repeat values of the request. A code that is too short for a card number does not
// change: it may have the digits of a security code by chance.
func (e *Error) clear(secrets []string) {
	clean := redact.New(secrets).Clean
	switch {
	case len(e.Code) < redact.CardDigits:
	case answer.Code(e.Code).IsZero(): // drop it: [REDACTED] in its place would look like a refusal
		e.Code = ""
	default:
		e.Code = clean(e.Code)
	}
	e.Message, e.Detail = clean(e.Message), clean(e.Detail)
	if len(e.Fields) == 0 {
		return
	}
	cleared := make(map[string][]string, len(e.Fields))
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		to := clean(name) // two names may become the same: keep the texts of both
		if cleared[to] == nil {
			cleared[to] = []string{} // a field without texts keeps its name
		}
		for _, text := range e.Fields[name] {
			cleared[to] = append(cleared[to], clean(text))
		}
	}
	e.Fields = cleared
}

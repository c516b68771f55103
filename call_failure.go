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

// transportError is the error of a request that got no complete answer.
func transportError(ctx context.Context, op OperationInfo, r transport.Result, err error) *Error {
	e := resultError(op, r)
	if r.Delivery == transport.Answered { // a status without its body, or the context ended before the next attempt
		e.readFailure(r.Body)
	}
	e.cause = safeCause(ctx, err)
	e.final = e.final || errors.Is(err, transport.ErrTooLarge)
	if held, ok := errors.AsType[*overload.HeldError](err); ok && ctx.Err() == nil {
		e.RetryAfter, e.cause = held.After, fmt.Errorf("%w: %w", ErrRateLimited, held)
	}
	return e
}

// answerError is the error of an answer that is not the success of the operation. What is wrong with its shape matters
// only if the answer does not refuse the operation.
func answerError(op OperationInfo, r transport.Result, malformed error) *Error {
	e := resultError(op, r)
	e.readFailure(r.Body)
	switch {
	case e.rejected() || r.Status >= 400:
	case r.Status >= 300:
		e.cause = fmt.Errorf("%w: a redirect, which is not followed", ErrMalformedResponse)
	case r.Status < 200:
		e.cause = fmt.Errorf("%w: a switch of protocols, which was not asked for", ErrMalformedResponse)
	default:
		e.cause, e.final = malformed, isComplete(malformed)
	}
	return e
}

// resultError fills in what the transport knows. A refusal of the last attempt says nothing about one before it.
func resultError(op OperationInfo, r transport.Result) *Error {
	e := &Error{
		Op: op.Op, StatusCode: r.Status, Attempts: r.Attempts, RetryAfter: overload.RetryAfter(r.Header), replay: op.Replay,
		Delivery: Delivery(r.Delivery), final: r.Status/100 == 3,
	}
	if r.Unsure {
		e.Delivery = Unknown
	}
	return e
}

// failure has both shapes of errors, code and message, and rcode and rmsg.
type failure struct {
	answer.Codes

	Message excerpt `json:"message"`
	RMsg    excerpt `json:"rmsg"`
	Data    excerpt `json:"data"`
}

// excerpt is a part of an answer that is shown, unless it is longer than [answer.MostSaid].
type excerpt struct {
	jsontext.Value

	isLeft bool // to the raw answer
}

// UnmarshalJSON keeps the text of a value.
func (x *excerpt) UnmarshalJSON(b []byte) error {
	x.isLeft = len(b) > answer.MostSaid
	if x.Value = nil; !x.isLeft {
		x.Value = slices.Clone(b)
	}
	return nil
}

// readFailure takes the code, the message and the fields from the body, as far as they are there. It also decides
// whether the service has answered: by a code that is not success, or by a status that refuses the request.
func (e *Error) readFailure(body []byte) {
	var f failure
	if _, err := answer.ReadLenient(body, &f); err != nil {
		f = failure{} // without what stands before the place where it is cut off
	}
	message, rmsg := answer.Text(f.Message.Value), answer.Text(f.RMsg.Value)
	if f.RCode != "" && (f.Code == "" || e.Op == OpTokensTokenize) {
		e.Code, e.Message = string(f.RCode), cmp.Or(rmsg, message)
	} else {
		e.Code, e.Message = string(f.Code), cmp.Or(message, rmsg)
	}
	own, other, _ := f.Deciding(decider(e.Op))
	if e.StatusCode < 300 && other.IsZero() && answer.SayBoth(own, other) {
		e.Code = string(other) // which refuses nothing
	}
	if e.rejected() || e.StatusCode >= 400 {
		e.readData(f.Data.Value) // of any other answer it is the record
	}
	if !e.decided() {
		e.Delivery = Unknown
	}
}

// readData takes data.message, data that is a text or a list of texts, or what it says of fields: lists of messages by
// name are documented for code 2. With another code, data that has anything but lists of texts and nulls is taken for a
// record, which has no place in an error.
func (e *Error) readData(data jsontext.Value) {
	if texts, plain := messages(data); plain {
		e.Detail = strings.Join(texts, ", ")
		return
	}
	var members map[string]jsontext.Value
	if answer.Read(data, &members) != nil {
		return
	}
	if message := members["message"]; e.Code != answer.Validation && message.Kind() == '"' {
		e.Detail = answer.Text(message)
		delete(members, "message")
	}
	fields := make(map[string][]string, len(members))
	for name, member := range members {
		texts, plain := messages(member)
		switch {
		case e.Code == answer.Validation, plain && member.Kind() == '[':
			fields[name] = texts
		case member.Kind() != 'n':
			return
		}
	}
	if len(fields) > 0 {
		e.Fields = fields
	}
}

// messages reads a list of texts, or a single one, and reports whether it is that. Any other value is kept as it is
// written.
func messages(raw jsontext.Value) (texts []string, plain bool) {
	list := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		_ = answer.Read(raw, &list) // it was read before
	}
	plain = true
	for _, text := range list {
		texts = append(texts, answer.Text(text))
		plain = plain && text.Kind() == '"'
	}
	return texts, plain
}

// clear removes the given secrets, and card numbers, from the texts of the service: it may repeat what it was sent. A
// code that is too short for a card number stays, since it may well have the digits of a security code or of an ID.
func (e *Error) clear(secrets []string) {
	clean := redact.New(secrets).Clean
	switch {
	case len(e.Code) < redact.CardDigits:
	case answer.Code(e.Code).IsZero(): // which refuses nothing, as a mark would
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
		to := clean(name) // two names may become the same
		if cleared[to] == nil {
			cleared[to] = []string{}
		}
		for _, text := range e.Fields[name] {
			cleared[to] = append(cleared[to], clean(text))
		}
	}
	e.Fields = cleared
}

package payvault

import (
	"bytes"
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

// transportError returns the error of a call for which the transport returned err. The transport does so if no answer
// came, if the body of an answer with a status below 400 broke off or was too large, or if the wait for an attempt
// failed. r is the transport's result of the last attempt.
func transportError(ctx context.Context, op OperationInfo, r transport.Result, err error) *Error {
	e := resultError(op, r)
	if r.Delivery == transport.Answered { // the last answer is a failure, and the wait for the next attempt failed
		e.readFailure(r)
	}
	e.cause = safeCause(ctx, err)
	if end := ctx.Err(); end != nil && r.Failed != nil && !errors.Is(r.Failed, end) { // it ended while a retry waited
		last := safeCause(context.WithoutCancel(ctx), r.Failed) // for the text only
		e.cause = &shownError{fmt.Errorf("%w, after: %w", e.cause, last), end}
	}
	e.final = e.final || errors.Is(err, transport.ErrTooLarge) // the same answer would be too large again
	if held, ok := errors.AsType[*overload.HeldError](err); ok && ctx.Err() == nil {
		e.RetryAfter, e.cause = held.After, fmt.Errorf("%w: %w", ErrRateLimited, held)
	}
	return e
}

// answerError returns the error of an answer that is not a success. For a 2xx answer, malformed is the reason why it is
// not a success. This reason becomes the cause, unless the answer has a code that refuses the operation.
func answerError(op OperationInfo, r transport.Result, malformed error) *Error {
	e := resultError(op, r)
	e.readFailure(r)
	switch {
	case e.rejected() || r.Status >= 400: // the status or the code is reason enough
	case r.Status >= 300:
		e.cause = fmt.Errorf("%w: a redirect, which is not followed", ErrMalformedResponse)
	case r.Status < 200:
		e.cause = fmt.Errorf("%w: a switch of protocols, which was not asked for", ErrMalformedResponse)
	default:
		e.cause, e.final = malformed, isUnreadable(malformed)
	}
	return e
}

// resultError returns an error with the values of the transport's result. The constants of the types Delivery and
// transport.Delivery have the same values. If the operation may have been performed before the last request was sent
// (Unsure), the delivery is unknown, even if the last request was refused.
//
// A status 3xx makes the error final. Such a status mostly comes from a wrong base URL or a proxy, and a new call would
// get it again.
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

// failure is the body of an answer that is not a success. The service documents rcode and rmsg for Tokenize, and code
// and message for all other operations.
type failure struct {
	answer.Codes

	Message excerpt `json:"message"`
	RMsg    excerpt `json:"rmsg"`
	Data    excerpt `json:"data"`

	// Gateways in front of the service use these names. Title and Detail are those of application/problem+json.
	Title  excerpt `json:"title"`
	Detail excerpt `json:"detail"`
	Error  excerpt `json:"error"`
	Errors excerpt `json:"errors"`

	ErrorDescription excerpt `json:"error_description"` // of OAuth

	Msg    excerpt `json:"msg"`
	Reason excerpt `json:"reason"`
}

// gatewayText joins the texts with which a gateway in front of the service refused the request. It returns "" if there
// are none. The members error and errors may each be a text, an object with a message, title or detail, or a list of
// such texts and objects.
func (f *failure) gatewayText() string {
	texts := []string{f.Title.stringOnly(), f.Detail.stringOnly(), f.Msg.stringOnly(), f.Reason.stringOnly()}
	for _, member := range []excerpt{f.Error, f.Errors} {
		list := []jsontext.Value{member.Value}
		if member.Kind() == '[' {
			_ = answer.Read(member.Value, &list) // no error, because it was read before
		}
		for _, element := range list {
			var inner struct{ Message, Title, Detail excerpt }
			switch element.Kind() {
			case '"':
				texts = append(texts, answer.Text(element))
			case '{':
				if answer.Read(element, &inner) == nil {
					texts = append(texts, inner.Message.stringOnly(), inner.Title.stringOnly(), inner.Detail.stringOnly())
				}
			}
		}
	}
	texts = append(texts, f.ErrorDescription.stringOnly())
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ": ")
}

// errLongData is the error of data that is too long for an excerpt.
var errLongData = &answer.PlaceError{Place: "/data", Why: "too long, with more than 64 KiB"}

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

// text returns the text of a value. It returns "" for null, false, [] and {}, because PHP programs write these values
// for an empty text.
func (x excerpt) text() string {
	if x.Kind() != '"' && answer.IsNone(x.Value) {
		return ""
	}
	return answer.Text(x.Value)
}

// stringOnly returns the text of a JSON string, and "" for any other value. An object or a list may be a saved record,
// which an error must not contain.
func (x excerpt) stringOnly() string {
	if x.Kind() != '"' {
		return ""
	}
	return answer.Text(x.Value)
}

// readFailure reads the body of an answer that is not a success, and sets the code, the message, the detail and the
// fields, as far as the body has them. It also sets the cause if pageCause finds one, or if the member data is too
// long. Of a body that is not a JSON object, only a message is read. A body with too many values sets nothing. If
// neither the code nor the status is a decision of the service, readFailure sets the delivery to unknown.
func (e *Error) readFailure(r transport.Result) {
	var f failure
	_, err := answer.ReadLenient(r.Body, &f)
	if err != nil {
		f = failure{} // drop the values that were read before the error
	}
	own, other, _ := f.Deciding(e.Op.decider())
	e.Code = string(shownCode(own, other, e.StatusCode))
	message, rmsg := f.Message.text(), f.RMsg.text()
	e.Message = cmp.Or(message, rmsg)
	rcodeDecides := f.Code == "" || e.Op.decider() == answer.ByRCode
	if f.RCode != "" && rcodeDecides { // rmsg belongs to the rcode, so rmsg comes first
		e.Message = cmp.Or(rmsg, message)
	}
	if e.Message == "" && e.StatusCode >= 400 {
		e.Message = cmp.Or(f.gatewayText(), bodyText(r, err))
		if e.Message == "" && errors.Is(err, answer.ErrNotJSON) {
			e.cause = pageCause(r)
		}
	}
	if e.rejected() || e.StatusCode >= 400 {
		e.readData(f.Data.Value) // the data of any other answer is a record without messages
		if f.Data.isTooLong {
			e.cause = errLongData
		}
		if e.Code == "" && e.Fields == nil {
			e.readErrors(f.Errors.Value)
		}
	}
	if !e.decided() {
		e.Delivery = DeliveryUnknown
	}
}

// pageCause returns the error of a refusal that is not JSON, such as the HTML page of a proxy. It returns nil if there
// is no body, if the body was not read to its end, or if nothing shows why the body is not JSON.
func pageCause(r transport.Result) error {
	wrong := notJSON(r)
	if len(r.Body) == 0 || r.BodyErr != nil || errors.Is(wrong, answer.ErrNotJSON) {
		return nil //nolint:nilerr // finish adds the cause of BodyErr
	}
	return wrong
}

// bodyText returns the text of a body that is a JSON string, or the first line of a body that is plain text. For any
// other body it returns "". notRead is the error of reading the body as an object, or nil.
//
// bodyText returns "" if the body is not complete or is longer than [answer.MostSaid]: a text that is cut may end with
// half of a card number or of an ID, which would not be redacted. It also returns "" for a plain text that begins like
// an object or a list, because the text may be a part of a saved record.
func bodyText(r transport.Result, notRead error) string {
	body := bytes.TrimSpace(r.Body)
	if len(body) == 0 || len(body) > answer.MostSaid || r.BodyErr != nil {
		return ""
	}
	isJSON := !errors.Is(notRead, answer.ErrNotJSON)
	switch {
	case isJSON && body[0] == '"':
		return answer.Text(body)
	case isJSON, contentType(r) != "text/plain", body[0] == '{', body[0] == '[':
		return ""
	}
	line, _, _ := strings.Cut(string(body), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "\ufffd")
}

// shownCode returns the code of an error: own, which is the deciding code of the operation, or the code other if own is
// empty. If own refuses in a 2xx answer and the code other is zero, the answer is malformed. Then shownCode returns the
// code other, so that the error does not look like a refusal.
func shownCode(own, other answer.Code, status int) answer.Code {
	if status < 300 && answer.Disagree(own, other) && other.IsZero() {
		return other
	}
	return cmp.Or(own, other)
}

// readData sets Detail and Fields from the data of a failure:
//
//   - A text or a list of texts is the Detail.
//   - With code 2, data is documented as an object with messages by field name. Fields gets all of them.
//   - With another code, a text in data.message is the Detail. The other members of data become the Fields if each of
//     them is null or a list of texts; nulls are left out. If one of them is anything else, Fields stays empty: data
//     may be a saved record.
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
	e.Fields = fieldsOf(members, e.Code == answer.Validation)
}

// readErrors sets Fields from the member errors of a body, if that member is an object. Web frameworks such as Laravel
// and Rails write messages by field into this member.
func (e *Error) readErrors(raw jsontext.Value) {
	var members map[string]jsontext.Value
	if answer.Read(raw, &members) == nil {
		e.Fields = fieldsOf(members, false)
	}
}

// fieldsOf returns the messages by field, or nil if there are none. If areMessages is true, every member counts as
// messages. Otherwise, lists of texts count, nulls are left out, and a member of any other kind makes the result nil:
// the members may be a saved record, which an error must not contain.
func fieldsOf(members map[string]jsontext.Value, areMessages bool) map[string][]string {
	fields := make(map[string][]string, len(members))
	for name, member := range members {
		texts, areTexts := messages(member)
		switch {
		case areMessages, areTexts && member.Kind() == '[':
			fields[name] = texts
		case member.Kind() != 'n':
			return nil
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// takeMessage removes the text in data.message from the members of data, and returns it. The case of the name does not
// matter. A message that is not a text stays.
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
// becomes "". An element of another JSON type is returned as it is written.
func messages(raw jsontext.Value) (texts []string, areTexts bool) {
	list := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		_ = answer.Read(raw, &list) // no error, because raw was read before
	}
	areTexts = true
	for _, text := range list {
		texts = append(texts, answer.Text(text))
		areTexts = areTexts && text.Kind() == '"'
	}
	return texts, areTexts
}

// clear redacts the given secrets, and card numbers, in the code, the message, the detail and the fields. The service
// writes these texts, and may repeat values of the request in them. A code that is too short for a card number stays as
// it is: it may equal a security code by chance.
func (e *Error) clear(secrets []string) {
	clean := redact.New(secrets).Clean
	switch {
	case len(e.Code) < redact.CardDigits:
	case answer.Code(e.Code).IsZero(): // drop the code: [REDACTED] in its place would look like a code that refuses
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
		to := clean(name) // two names may become equal: keep the texts of both names
		if cleared[to] == nil {
			cleared[to] = []string{} // a field without texts keeps its name
		}
		for _, text := range e.Fields[name] {
			cleared[to] = append(cleared[to], clean(text))
		}
	}
	e.Fields = cleared
}

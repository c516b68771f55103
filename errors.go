package payvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/formdata"
	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/redact"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/trust"
)

// Sentinels for [errors.Is]. One error may match several: a lost answer of a gateway is both
// ErrUnavailable and ErrOutcomeUnknown.
var (
	// ErrInvalidRequest is a request that failed a local check. Nothing was sent.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrMerchantNotSupported is an operation without a merchant_id, called through [Client.ForMerchant].
	// Nothing was sent.
	ErrMerchantNotSupported = errors.New("the operation cannot act for another merchant")
	// ErrUnauthorized is HTTP status 401.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden is HTTP status 403.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound is HTTP status 404.
	ErrNotFound = errors.New("not found")
	// ErrConflict is HTTP status 409.
	ErrConflict = errors.New("conflict")
	// ErrRateLimited is HTTP status 429: the service turned the request away without performing it. So is a request that
	// was not sent since the service had asked to wait, and the context would have ended before.
	ErrRateLimited = errors.New("rate limited")
	// ErrRejected is an answer with a code other than 0, or an rcode other than 000, and a status below 500. A
	// code that only looks like zero, such as 00, is no refusal but a malformed answer.
	ErrRejected = errors.New("rejected")
	// ErrValidation is code 2 of a platform operation, also a rejection: [Error.Fields] holds the messages.
	ErrValidation = errors.New("validation failed")
	// ErrUnavailable is an HTTP status of 500 or above.
	ErrUnavailable = errors.New("unavailable")
	// ErrMalformedResponse is an answer that is not of the documented shape: not JSON, cut off, without a code or a
	// documented ID, a redirect, with a value that cannot be read, or with a code and an rcode of which one says success
	// and the other does not.
	ErrMalformedResponse = errors.New("malformed response")
	// ErrResponseTooLarge is an answer larger than [WithMaxResponseBytes] allows.
	ErrResponseTooLarge = errors.New("response too large")
	// ErrOutcomeUnknown is a request that was sent, at least in part, without a usable answer, in the last attempt or in
	// one before it. An operation that only reads has no outcome to be unsure of, and never matches.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// Delivery answers the question whether a request reached the service.
type Delivery uint8

const (
	// Unknown means that the request was sent, at least in part, and no usable answer came to it, in any of the attempts.
	// The operation may have been performed. An error of this kind matches [ErrOutcomeUnknown], unless the operation only
	// reads. When an attempt is lost and the next one is refused, status, code and sentinels are those of the refusal: a
	// second cancellation may be refused because the first has been performed.
	Unknown Delivery = iota
	// NotSent means that the operation cannot have been performed: not a byte of it was written, but in earlier attempts
	// that were turned away with status 429.
	NotSent
	// Answered means that the service decided: it gave an HTTP status from 400 to 499, or a code with a status below 500,
	// and no attempt before that can have performed the operation.
	Answered
)

// String returns "unknown", "not sent" or "answered".
func (d Delivery) String() string {
	switch d {
	case NotSent:
		return "not sent"
	case Answered:
		return "answered"
	case Unknown:
	}
	return "unknown"
}

// Error is every error of a call and of [NewClient]. Its text is one line with the operation, the status, the code, the
// message and what is wrong with fields. Nothing of the request is put into it, no body, query, header or path value,
// and texts of the service are cleared of its secrets, of the API keys, of the IDs in the path and of the values of the
// query; the service may repeat other things, see docs/secrets.md. The raw answer is available through [WithResponse].
//
// Fields has the problems that local checks found, keyed by wire path such as billing_cards[1].exp_date (an argument or
// option without one goes by its Go name), or what the service says of fields: documented for code 2, and read for any
// other code whose data holds nothing but lists of texts by name. Each is in the text of the error, up to 20 of them.
// Texts and data of more than 64 KiB are left to the raw answer.
//
// For [ErrOutcomeUnknown] and [SafeToRetry], an Error that you make yourself, in a fake, is of the class that
// [Operations] has for its Op, and of [ReplayNever] if that depends on the request. Its Delivery is Unknown unless you
// set it.
type Error struct {
	Op         Operation           // the operation, such as "customers.create"
	StatusCode int                 // HTTP status; 0 if no response arrived
	Code       string              // platform code or tokenize rcode, as text; "" if there is none
	Message    string              // message or rmsg of the service
	Detail     string              // data.message of the service, or data that is a text or a list of texts
	Fields     map[string][]string // messages by field, see above
	Delivery   Delivery            // whether the request reached the service
	Attempts   int                 // how often it was tried; 0 if a local check failed or the context had ended before
	RetryAfter time.Duration       // what the service asked to wait, 24 h at most; 0 if it did not

	replay  Replay // of the call; "" for that of Op
	earlier string // the reason in the error of an earlier run
	page    string // of a walk, that failed
	unasked bool   // the journal of a job was not asked whether an earlier run has sent it
	cause   error
}

const shortCode = 3 // too short to complete a card number that the message has most of

// Error returns one line of text.
func (e *Error) Error() string {
	parts := []string{"payvault", string(e.Op)}
	if e.page != "" {
		parts = append(parts, e.page)
	}
	if e.StatusCode != 0 {
		parts = append(parts, strings.TrimSpace("status "+strconv.Itoa(e.StatusCode)+" "+http.StatusText(e.StatusCode)))
	}
	var said []string
	switch code := "code " + oneLine(e.Code); {
	case e.Code == "":
	case len(e.Code) <= shortCode:
		parts = append(parts, code)
	default:
		said = append(said, code)
	}
	line := strings.Join(append(parts, e.reason(said)...), ": ")
	switch {
	case e.refusedLocally():
	case e.Delivery == NotSent:
		line += " (not sent)"
	case e.Is(ErrOutcomeUnknown):
		line += " (outcome unknown)"
	}
	return line
}

// reason is what went wrong: what the service said, after what is given, the cause, and the fields.
func (e *Error) reason(said []string) (parts []string) {
	for _, text := range []string{e.Message, e.Detail} {
		if text != "" {
			said = append(said, oneLine(text))
		}
	}
	if e.earlier != "" {
		said = append(said, e.earlier)
	}
	// Each is cleared of card numbers already, but one may be spread over them.
	digits := func(text string) string { return redact.New(nil).Clean(text)[0] }
	if len(said) > 0 {
		parts = append(parts, digits(strings.Join(said, ": ")))
	}
	if e.cause != nil {
		parts = append(parts, oneLine(e.cause.Error()))
	}
	if len(e.Fields) > 0 {
		parts = append(parts, digits(e.fieldsLine()))
	}
	return parts
}

// fieldsLine names as many fields as a log line can hold.
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
		if !strings.HasPrefix(text, name+" ") {
			text = name + " " + text
		}
		texts = append(texts, oneLine(text))
	}
	return strings.Join(texts, "; ")
}

// oneLine keeps what a log line can hold.
func oneLine(text string) string { return lineOf(text, 300) }

// lineOf keeps some characters of a text, on one line.
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

// LogValue logs the fields of e.
func (e *Error) LogValue() slog.Value {
	said := []string{oneLine(e.Code), oneLine(e.Message)}
	if len(e.Code) > shortCode {
		said = redact.New(nil).Clean(said...)
	}
	return slog.GroupValue(
		slog.String("operation", string(e.Op)), slog.Int("status", e.StatusCode), slog.String("code", said[0]),
		slog.String("message", said[1]), slog.String("delivery", e.Delivery.String()),
		slog.Int("attempts", e.Attempts), slog.String("error", e.Error()))
}

// Unwrap returns the cause: a sentinel of a local check or of a malformed answer, or the failure of the transport
// (a context error, a [net.OpError], …).
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether e is of the kind of a sentinel that follows from the fields of e.
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
		return e.rejected() && e.Code == codeValidation && e.Op != OpTokensTokenize
	case ErrOutcomeUnknown:
		return e.Delivery == Unknown && e.replayed() != ReplayRead
	}
	return false
}

// replayed is what performing the operation twice does.
func (e *Error) replayed() Replay {
	for _, op := range operations {
		if op.Op == e.Op && e.replay == "" {
			return op.Replay
		}
	}
	return cmp.Or(e.replay, ReplayNever)
}

// rejected does not hold for a 5xx: gateways give codes too, and the service behind may have performed the operation.
func (e *Error) rejected() bool {
	return e.StatusCode < 500 && e.Code != "" && !resultCode(e.Code).isZero()
}

// SafeToRetry reports whether calling again with the same request does no harm and may help: the operation cannot have
// been performed, since nothing was sent or the service turned the request away (429), or the operation is replayable
// by what it does, so that performing it twice changes nothing, and the failure may pass. [WithReplay] does not count
// here: it is for the attempts of one call. It is false for a request that failed a local check, since the same request
// would fail again, and for errors of other packages.
func SafeToRetry(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || e == nil || e.refusedLocally() || e.unasked {
		return false
	}
	turnedAway := e.StatusCode == http.StatusTooManyRequests
	switch e.Delivery {
	case NotSent:
		return true
	case Answered:
		return turnedAway
	case Unknown:
	}
	harmless := e.replayed() == ReplaySame || e.replayed() == ReplayRead
	return harmless && (turnedAway || e.mayPass())
}

// refusedLocally reports whether a local check failed.
func (e *Error) refusedLocally() bool {
	return errors.Is(e.cause, ErrInvalidRequest) || errors.Is(e.cause, ErrMerchantNotSupported)
}

// mayPass reports whether the last attempt failed in a way that the next one may not: no answer came, or none that is
// the service's last word.
func (e *Error) mayPass() bool {
	return !e.decided() && e.StatusCode/100 != 3 && !errors.Is(e.cause, ErrResponseTooLarge) &&
		!errors.Is(e.cause, errUnreadable)
}

// decided reports whether the service decided the last attempt, and no server that had not got the request yet.
func (e *Error) decided() bool {
	early := e.StatusCode == http.StatusRequestTimeout && e.Delivery == Unknown
	return e.rejected() || e.StatusCode/100 == 4 && !early
}

// problems collects what local checks find, keyed by wire path.
type problems map[string][]string

func (p *problems) add(path, text string) {
	if *p == nil {
		*p = problems{}
	}
	(*p)[path] = append((*p)[path], text)
}

// require adds a problem if value is the zero value of its type.
func require[T comparable](p *problems, path string, value T) {
	if value == *new(T) {
		p.add(path, "is required")
	}
}

// err returns nil if there are no problems.
func (p *problems) err(op Operation) error {
	if len(*p) == 0 {
		return nil
	}
	return &Error{Op: op, Fields: *p, Delivery: NotSent, cause: ErrInvalidRequest}
}

// merchantError is the error of an operation that cannot act for another merchant.
func merchantError(op Operation) error {
	return &Error{Op: op, Delivery: NotSent, cause: ErrMerchantNotSupported}
}

var errPanic = errors.New("panic")

// panicError stands for the result of a call that does not return: the caller's own code, such as a key source, has
// panicked in it. Observers get it, and the batch of a walk.
func panicError(op Operation) error { return &Error{Op: op, cause: errPanic} }

// walkError is the error of a list whose pages contradict each other.
func walkError(op Operation, text string) error {
	return &Error{
		Op: op, Attempts: 1, Delivery: Unknown, cause: fmt.Errorf("%w: %s", ErrMalformedResponse, text),
	}
}

// failure reads both error shapes at once, code and message, and rcode and rmsg.
type failure struct {
	codes

	Message excerpt `json:"message"`
	RMsg    excerpt `json:"rmsg"`
	Data    excerpt `json:"data"`
}

// transportError is the error of a request that got no complete answer.
func transportError(ctx context.Context, op OperationInfo, r transport.Result, err error) *Error {
	e := resultError(op, r)
	if r.Delivery == transport.Answered { // a status without its body, or the context ended before the next attempt
		e.readFailure(ctx, r)
	}
	e.cause = safeCause(ctx, err)
	if held, ok := errors.AsType[*overload.HeldError](err); ok && ctx.Err() == nil {
		e.RetryAfter, e.cause = held.After, fmt.Errorf("%w: %w", ErrRateLimited, held)
	}
	return e
}

// answerError is the error of an answer that is not the success of the operation. What is wrong with its
// shape matters only if the answer does not reject the operation itself.
func answerError(ctx context.Context, op OperationInfo, r transport.Result, malformed error) *Error {
	e := resultError(op, r)
	e.readFailure(ctx, r)
	switch {
	case e.rejected() || r.Status >= 400:
	case r.Status >= 300:
		e.cause = fmt.Errorf("%w: a redirect, which is not followed", ErrMalformedResponse)
	case r.Status < 200:
		e.cause = fmt.Errorf("%w: a switch of protocols, which was not asked for", ErrMalformedResponse)
	default:
		e.cause = malformed
	}
	return e
}

// resultError fills in what the transport knows. A refusal of the last attempt says nothing about one before it.
func resultError(op OperationInfo, r transport.Result) *Error {
	e := &Error{
		Op: op.Op, StatusCode: r.Status, Attempts: r.Attempts, RetryAfter: overload.RetryAfter(r.Header), replay: op.Replay,
		Delivery: Delivery(r.Delivery),
	}
	if r.Unsure {
		e.Delivery = Unknown
	}
	return e
}

// mostSaid bounds each text of a failure, and the data in it. A longer one is left to the raw answer, since half of it
// may hold half of a card number.
const mostSaid = 64 << 10

// excerpt is JSON of at most mostSaid.
type excerpt struct {
	jsontext.Value

	isLeft bool // to the raw answer
}

// UnmarshalJSON keeps the text of a value.
func (e *excerpt) UnmarshalJSON(b []byte) error {
	e.Value, e.isLeft = e.Value[:0], len(b) > mostSaid
	if !e.isLeft {
		e.Value = append(e.Value, b...)
	}
	return nil
}

// readFailure takes code, message and fields from the body, whatever of them is there, and decides whether
// the answer is one: a code that is not success, or a status that refuses the request.
func (e *Error) readFailure(ctx context.Context, r transport.Result) {
	var f failure
	lenient := reader{ctx: ctx, op: e.Op, lenient: true}
	if lenient.read(r.Body, &f) != nil {
		f = failure{} // and not what stands before the place where it is cut off
	}
	e.Code, e.Message = string(f.Code), textOf(f.Message.Value)
	if e.Code == "" || e.Op == OpTokensTokenize && f.RCode != "" {
		e.Code, e.Message = string(f.RCode), textOf(f.RMsg.Value)
	}
	if e.Message == "" {
		e.Message = cmp.Or(textOf(f.Message.Value), textOf(f.RMsg.Value))
	}
	if own, other, _ := f.of(e.Op); e.StatusCode < 300 && sayBoth(own, other) && other.isZero() {
		e.Code = string(other) // which refuses nothing
	}
	if e.rejected() || e.StatusCode >= 400 {
		e.readData(f.Data.Value) // of any other answer it is the record
	}
	if !e.decided() {
		e.Delivery = Unknown
	}
}

// readData takes data.message, data that is a text or a list of texts, or what it says of fields: a map to lists of
// messages is documented for code 2. With another code, data that has anything but lists of texts and nulls is taken
// for a record, which has no place in an error.
func (e *Error) readData(data jsontext.Value) {
	if texts, plain := messages(data); plain {
		e.Detail = strings.Join(texts, ", ")
		return
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(data, &members, tolerantForm) != nil {
		return
	}
	if message := members["message"]; e.Code != codeValidation && message.Kind() == '"' {
		e.Detail = textOf(message)
		delete(members, "message")
	}
	fields := make(map[string][]string, len(members))
	for name, member := range members {
		texts, plain := messages(member)
		switch {
		case e.Code == codeValidation, plain && member.Kind() == '[':
			fields[name] = texts
		case member.Kind() != 'n':
			return
		}
	}
	if len(fields) > 0 {
		e.Fields = fields
	}
}

// problemsBeside gives the messages that stand in the data of a success, cleared of card numbers: every text, list or
// object that is not empty, except for data.message, by the name of its member. One that has no name is under "".
func problemsBeside(data jsontext.Value) map[string][]string {
	var members map[string]jsontext.Value
	if data.Kind() != '{' || json.Unmarshal(data, &members, tolerantForm) != nil {
		members = map[string]jsontext.Value{"": data}
	}
	if members["message"].Kind() == '"' {
		delete(members, "message")
	}
	e := &Error{Fields: map[string][]string{}}
	for name, member := range members {
		kind := member.Kind()
		if kind == 't' || kind == '0' || isNone(member, reflect.Invalid) {
			continue
		}
		texts, _ := messages(member)
		if texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" }); len(texts) > 0 {
			e.Fields[name] = texts
		}
	}
	if len(e.Fields) == 0 {
		return nil
	}
	e.clear(nil)
	return e.Fields
}

// messages reads a list of texts, or a single one, and reports whether it is that. Whatever else it is is kept as text.
func messages(raw jsontext.Value) (texts []string, plain bool) {
	list := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		_ = json.Unmarshal(raw, &list, tolerantForm) // it was read before
	}
	plain = true
	for _, text := range list {
		texts, plain = append(texts, textOf(text)), plain && text.Kind() == '"'
	}
	return texts, plain
}

// quotes reports whether e repeats texts of the service.
func (e *Error) quotes() bool { return len(e.Code)+len(e.Message)+len(e.Detail)+len(e.Fields) > 0 }

// clear removes the given secrets from the texts of the service: it may repeat what it was sent.
func (e *Error) clear(secrets []string) {
	clean := redact.New(secrets).Clean
	if len(e.Code) >= redact.LongSecret { // a code may well have the digits of a security code or of an ID
		rejected := e.rejected()
		if e.Code = clean(e.Code)[0]; e.rejected() != rejected { // it looked like zero, which the mark does not
			e.Code = ""
		}
	}
	names := slices.Sorted(maps.Keys(e.Fields))
	texts := []string{e.Message, e.Detail}
	for _, name := range names {
		texts = append(texts, e.Fields[name]...)
	}
	texts = clean(texts...)
	e.Message, e.Detail, texts = texts[0], texts[1], texts[2:]
	if len(names) == 0 {
		return
	}
	fields := make(map[string][]string, len(names))
	long := slices.Clone(names)
	for i, name := range long {
		if len(name) < redact.ShortSecret { // such as the number of a card in a batch
			long[i] = ""
		}
	}
	for i, name := range clean(long...) {
		name = cmp.Or(name, names[i])
		if fields[name] == nil {
			fields[name] = []string{}
		}
		n := len(e.Fields[names[i]])
		fields[name], texts = append(fields[name], texts[:n]...), texts[n:]
	}
	e.Fields = fields
}

// onPage is the error of a page of a walk, which names the page. What is refused locally is so for all pages.
func onPage(page int, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.refusedLocally() {
		return err
	}
	named := *e // the call has given e to its observers
	named.page = "page " + strconv.Itoa(page)
	return &named
}

var errStopped = errors.New("the walk was stopped")

// endError is the end of a context. The cause of that end is only shown: it may be the error of another call, as
// errgroup makes it, and that says nothing about this one.
type endError struct{ end, cause error }

func (e *endError) Error() string { return e.end.Error() + ": " + e.cause.Error() }

// Unwrap returns what the context itself ended with.
func (e *endError) Unwrap() error { return e.end }

// safeCause gives the cause without what could carry a URL, or bytes of the request or of the answer. When the context
// has ended, err is not looked at: net/http gives the cause of the context for its own error.
func safeCause(ctx context.Context, err error) error {
	if end := ctx.Err(); end != nil {
		if cause := context.Cause(ctx); cause != end { //nolint:errorlint // what wraps the end says more
			return &endError{end, cause}
		}
		return end
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
	for { // errors.As would find the URL
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return &hiddenError{err}
		}
		err = wrapped.Err
	}
}

// systemError digs out the error whose text is made of addresses, names of hosts and errors of the system only.
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
	for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	for _, end := range []error{io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, end) {
			return fmt.Errorf("no complete answer: %w", end)
		}
	}
	return nil
}

// hiddenError stands for an error whose text may quote what the peer wrote, as those of net/http do. It matches what
// the error matches and shows nothing of it.
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

// unsentError is the error of what is not sent since nothing more may be.
func unsentError(op Operation, cause error) error {
	e := &Error{Op: op, Delivery: NotSent, cause: inShort(cause)}
	if first, ok := errors.AsType[*Error](cause); ok && errors.Is(first, ErrRateLimited) {
		e.RetryAfter = first.RetryAfter
	}
	return e
}

// inShort is the refusal of another request, as the cause why nothing more is sent; any other cause stays as it is.
func inShort(cause error) error {
	first, ok := errors.AsType[*Error](cause)
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
	return cause
}

// longReason is as long as that of an error with many fields.
const longReason = 8000

// earlierError is the error of a batch that an earlier run has sent.
func earlierError(op Operation, o BatchOutcome) error {
	e := &Error{Op: op, StatusCode: o.StatusCode, Code: o.Code}
	e.earlier = lineOf(o.Message, longReason)
	if o.Status == BatchRefused {
		e.Delivery = Answered
	}
	return e
}

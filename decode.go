package payvault

import (
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"example.com/payvault/internal/jsonskip"
)

// The codes that the document of the service shows.
const (
	codeSuccess    = "0"
	codeValidation = "2"
	rcodeSuccess   = "000"
	failing        = "123456789" // digits that no success has
)

var (
	errNotCode = errors.New("not a result code")
	// errUnreadable is a whole answer that cannot be read, and could not be the next time.
	errUnreadable = fmt.Errorf("%w", ErrMalformedResponse)
	errBoth       = fmt.Errorf("%w: it says both success and failure", ErrMalformedResponse)
	errTooMany    = fmt.Errorf("%w: more values than an answer may have", errUnreadable)
)

// resultCode is the text of a code or rcode; "" if there is none. If an answer has it twice, the one that is not
// success counts.
type resultCode string

// UnmarshalJSON reads a string or a number. Null says nothing.
func (c *resultCode) UnmarshalJSON(b []byte) error {
	text := numberText(b)
	switch {
	case text == nil:
	case len(text) > mostSaid, bytes.ContainsAny(text, `{}[]"\`) || string(text) == "true" || string(text) == "false":
		return errNotCode
	case *c == "" || *c == codeSuccess || *c == rcodeSuccess:
		*c = resultCode(text)
		if b[0] == '"' {
			break
		}
		if d, ok := exactDecimal(b); ok && d.IsInt() { // a number such as 0.0
			*c = resultCode(d.Trunc(0).String())
		}
	}
	return nil
}

// tokenizeCode is an rcode. The number 0 is what is left of 000 where it is not sent as text.
type tokenizeCode resultCode

// UnmarshalJSON reads a string or a number. Null says nothing.
func (c *tokenizeCode) UnmarshalJSON(b []byte) error {
	if string(b) == codeSuccess {
		b = []byte(`"` + rcodeSuccess + `"`)
	}
	return (*resultCode)(c).UnmarshalJSON(b)
}

// codes are those of both kinds of operations.
type codes struct {
	Code  resultCode   `json:"code"`
	RCode tokenizeCode `json:"rcode"`
}

// of gives the code that decides on an operation, rcode where that is documented, then the other one.
func (c codes) of(op Operation) (own, other resultCode, success string) {
	if op == OpTokensTokenize || op == OpCall && c.Code == "" {
		return resultCode(c.RCode), c.Code, rcodeSuccess
	}
	return c.Code, resultCode(c.RCode), codeSuccess
}

// sayBoth reports whether of the code that decides and the other one says success and one failure. Of the other, for
// which nothing is documented, only digits say anything.
func sayBoth(own, other resultCode) bool {
	switch {
	case own == "" || other == "":
		return false
	case own.isZero():
		return strings.ContainsAny(string(other), failing)
	default:
		return other.isZero()
	}
}

// isZero reports whether a code is 0, or looks like it and may well mean success.
func (c resultCode) isZero() bool {
	number, err := strconv.ParseFloat(strings.TrimSpace(string(c)), 64)
	return err == nil && number == 0
}

// check refuses what does not say success, or says both.
func (c codes) check(op OperationInfo) error {
	switch own, other, success := c.of(op.Op); {
	case own == "":
		return fmt.Errorf("%w: no result code", ErrMalformedResponse)
	case sayBoth(own, other):
		return errBoth
	case string(own) != success:
		return fmt.Errorf("%w: another result code than %s", ErrMalformedResponse, success)
	}
	return nil
}

// reply is the success shape of an operation.
type reply interface {
	result() codes
	// missing names a documented value that is not there, and reports whether the caller cannot go on without it, as
	// without the ID of what was created. If the caller can, the code decides.
	missing() (place string, needed bool)
}

// platformReply is the success envelope of platform operations.
type platformReply[T any] struct {
	codes

	Data    *T   `json:"data"`
	informs bool // the caller can go on without the data
}

func (r *platformReply[T]) result() codes { return r.codes }

// missing asks the record.
func (r *platformReply[T]) missing() (place string, needed bool) {
	record, ok := any(r.Data).(interface{ missing() string })
	switch {
	case !ok: // no data is documented
	case r.Data == nil:
		place, r.Data = "/data", new(T)
	case record.missing() != "":
		place = "/data/" + record.missing()
	}
	return place, !r.informs
}

// ignored is the data of operations for which none is documented.
type ignored struct{}

// UnmarshalJSON accepts anything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// readReply decodes a success. Anything else is an error that matches ErrMalformedResponse and names the place. Of an
// operation that changes something it is not lost to a value that cannot be read: unread has the places of those, also
// with an error.
func readReply(ctx context.Context, op OperationInfo, body []byte, into reply) (unread []string, err error) {
	r := reader{ctx: ctx, op: op.Op, lenient: op.Replay != ReplayRead}
	if call, ok := into.(*callReply); ok {
		err = call.read(&r, body)
	} else {
		err = r.read(body, into)
	}
	if err == nil {
		err = into.result().check(op)
	}
	if err == nil && r.contrary {
		err = errBoth
	}
	if err != nil {
		return r.unread, err
	}
	field, needed := into.missing()
	if field == "" {
		return r.unread, nil
	}
	for i, at := range r.unread {
		if !strings.HasPrefix(field+"/", at+"/") {
			continue
		}
		if needed {
			return r.unread, r.reasons[i]
		}
		return r.unread, nil
	}
	err = fmt.Errorf("%w: %s is missing", ErrMalformedResponse, field)
	if needed {
		return r.unread, err
	}
	r.note(field, err)
	return r.unread, nil
}

// reader decodes an answer within bounds of memory and time, and takes what services really send for what is
// documented.
type reader struct {
	ctx     context.Context //nolint:containedctx // of the one call of read
	op      Operation       // which has a code that must be read
	lenient bool            // go on after a value that cannot be read
	open    bool            // the type is the caller's own: no value is taken for another

	options   json.Options
	root      reflect.Type // of what is read
	allocated uintptr      // in this pass: by lists, records, maps and copies of texts
	most      uintptr      // that may be
	embedded  map[reflect.Type]uintptr
	values    int
	unread    []string
	reasons   []error // why each of them is
	contrary  bool    // a code that cannot be read says failure
	err       error   // why it ended
}

// The bounds of what a pass over an answer may allocate, of which there are two at most. In a smaller body with
// fewElements it cannot exceed mostAllocated, whatever they are, so that they need not be counted.
const (
	mostAllocated = 35 << 20
	fewElements   = 15_000
	mostUnread    = 20      // places that are named
	anyValue      = 16      // garbage of each that a function looks at
	oddValue      = 1 << 10 // garbage of looking for what it might be
	secretCopies  = 5       // of its text, until it is masked
	largeBody     = 1 << 20
	maxResponse   = 8 << 20 // of WithMaxResponseBytes by default
)

// tolerantForm reads what encoding/json took and JSON v2 refuses.
//
//nolint:gochecknoglobals // never changed
var tolerantForm = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	anyCase)

// anyCase takes names in another case, but none with other underscores.
//
//nolint:gochecknoglobals // never changed
var anyCase = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))

// read decodes strictly first, so that an answer as documented pays nothing for tolerance, and for counting only if it
// is a large page. What that reads before it fails is read in the same way again.
func (r *reader) read(body []byte, into any) error {
	page, isPage := into.(interface {
		counters(r *reader) *json.Unmarshalers
	})
	_, isSaved := into.(*platformReply[savedData]) // what does not fit is noted only by decode
	switch {
	case isSaved:
	case isHarmless(body):
		if json.Unmarshal(body, into, anyCase) == nil {
			return nil
		}
	case isPage:
		r.begin(body)
		err := json.Unmarshal(body, into, anyCase, json.WithUnmarshalers(page.counters(r)),
			jsontext.AllowDuplicateNames(true)) // or all names would be kept
		if err == nil || r.err != nil {
			return r.err
		}
	}
	return r.decode(body, into)
}

// begin starts a pass, which copies each text once. An answer that is larger than it may be by default may take five
// times its size.
func (r *reader) begin(body []byte) {
	r.allocated, r.most = uintptr(len(body)), mostAllocated
	if len(body) > maxResponse {
		r.most = max(mostAllocated, 5*r.allocated)
	}
}

// counter counts the values of a type, of which a list may have many, and refuses null for one of them.
func counter[T any](r *reader) *json.Unmarshalers {
	t := reflect.TypeFor[T]()
	return json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *T) error {
		if err := r.count(t, dec); err != nil {
			return r.end(err)
		}
		if t.Kind() == reflect.Struct && dec.PeekKind() == 'n' && inList(dec) {
			return errNullRecord
		}
		return jsonskip.Err
	})
}

// isHarmless reports whether a text is short and has few elements, which commas separate, and no null but behind a
// colon, so that no record of a list is null.
func isHarmless(body []byte) bool {
	count := func(text string) int { return bytes.Count(body, []byte(text)) }
	if len(body) > largeBody || count(",") > fewElements {
		return false
	}
	nulls := count("null")
	return nulls == 0 || nulls == count(":null")+count(": null")
}

// decode counts, and tolerates.
func (r *reader) decode(body []byte, into any) error {
	r.begin(body)
	return r.part(body, into)
}

// part reads an answer or a part of it. Invalid UTF-8 becomes U+FFFD, as with encoding/json, and in a large body a
// question mark, which takes no more memory than it.
func (r *reader) part(body []byte, into any) error {
	body = bytes.TrimRight(bytes.TrimPrefix(body, []byte("\ufeff")), "\x00")
	if len(body) > largeBody && !utf8.Valid(body) {
		r.allocated += uintptr(len(body))
		body = bytes.ToValidUTF8(body, []byte("?"))
	}
	defer func(outer reflect.Type) { r.root = outer }(r.root)
	r.root = reflect.TypeOf(into)
	err := json.Unmarshal(body, into, r.form())
	switch {
	case err == nil:
		return nil
	case r.err != nil:
		return r.err
	case !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)):
		return fmt.Errorf("%w: not JSON, or cut off", ErrMalformedResponse)
	}
	place := "the body"
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		place = r.place(e.JSONPointer)
	}
	return fmt.Errorf("%w: %s cannot be read", errUnreadable, place)
}

// place gives a place by documented names, up to where names may be anything.
func (r *reader) place(at jsontext.Pointer) string {
	return cmp.Or(strings.Join(append([]string{""}, documented(r.root, at)...), "/"), "the body")
}

// documented gives the tokens of a place in the JSON of a type as far as it has names for them, and those as it spells
// them.
func documented(t reflect.Type, place jsontext.Pointer) (names []string) {
	for token := range place.Tokens() {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if page, ok := reflect.TypeAssert[interface{ elements() reflect.Type }](reflect.Zero(t)); ok {
			t = page.elements()
		}
		switch t.Kind() {
		case reflect.Slice, reflect.Array:
			t = t.Elem()
		case reflect.Struct:
			field, name := fieldNamed(t, token)
			if name == "" {
				return names
			}
			t, token = field.Type, name
		default:
			return names
		}
		names = append(names, token)
	}
	return names
}

// within reads a part of an answer that was kept as text, strictly.
func (r *reader) within(raw jsontext.Value, into any) error {
	defer func(lenient bool) { r.lenient = lenient }(r.lenient)
	r.lenient = false
	err := r.part(raw, into)
	if err != nil {
		r.err = r.spent() // which ends the whole answer
	}
	return err
}

func (r *reader) form() json.Options {
	if r.options == nil {
		form := tolerantForm
		if r.open { // as callers know it, but for going on after the error that ends it
			form = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
		}
		r.options = json.JoinOptions(form, json.WithUnmarshalers(json.UnmarshalFromFunc(r.value)))
	}
	return r.options
}

// end stops the decoding.
func (r *reader) end(err error) error {
	r.err = err
	return err
}

// value is called by the decoder before each value, and leaves to it what it does not read itself.
func (r *reader) value(dec *jsontext.Decoder, pointer any) error {
	v, kind := reflect.ValueOf(pointer).Elem(), dec.PeekKind()
	r.allocated += anyValue
	if err := r.count(v.Type(), dec); err != nil {
		return r.end(err)
	}
	_, isFrom := pointer.(json.UnmarshalerFrom)
	number, isNumber := pointer.(*stdjson.Number) // which v2 knows from Go 1.27 on
	own, isOwn := pointer.(formReader)
	switch {
	case isNumber && kind == '0':
		raw, err := dec.ReadValue()
		*number = stdjson.Number(raw)
		return err
	case isOwn && (kind == '{' || r.open):
		defer func(open bool) { r.open = open }(r.open)
		r.open = false // what it holds is documented
		return own.readForm(r, dec)
	case r.open:
		return jsonskip.Err
	case kind == 'n' && !v.IsZero(): // it comes twice
		return dec.SkipValue()
	case v.Kind() == reflect.Interface && kind == '0':
		raw, err := dec.ReadValue()
		v.Set(reflect.ValueOf(stdjson.Number(raw)))
		return err
	case isFrom, fits(kind, v.Kind()) && !readsItself(pointer):
		return jsonskip.Err
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	isPage := v.Kind() == reflect.Slice && dec.StackDepth() <= 1 // of which nothing says that it is empty
	isElement := v.Kind() == reflect.Struct && inList(dec)
	if isNone(raw, v.Kind()) && !isPage && !isElement && !isCode(pointer) && !isRaw(pointer) {
		if v.Kind() == reflect.Slice && v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		return nil
	}
	if _, ok := pointer.(*Secret); ok && r.isTooLong(raw) {
		return r.end(errTooMany)
	}
	nullRecord := kind == 'n' && isElement
	isNoRecord := isElement && isOwn && kind != '{'
	if err = scalar(raw, v, pointer); err == nil && !nullRecord && !isNoRecord {
		return nil
	}
	r.allocated += oddValue
	goOn := (r.lenient || isCode(pointer)) && dec.StackDepth() > 0 && !decides(r.op, pointer)
	r.contrary = r.contrary || isCode(pointer) && bytes.ContainsAny(raw, failing)
	if goOn && len(r.unread) == mostUnread {
		return nil
	}
	at := r.place(dec.StackPointer())
	reason := fmt.Errorf("cannot be read as %s", typeName(v.Type()))
	if nullRecord {
		reason = errNullRecord
	} else if errors.Is(err, errRedacted) {
		reason = fmt.Errorf("is %w", err)
	}
	reason = fmt.Errorf("%w: %s %w", errUnreadable, at, reason)
	if goOn {
		r.note(at, reason)
		return nil
	}
	return r.end(reason)
}

// note keeps the place of a value that could not be read.
func (r *reader) note(at string, reason error) {
	if len(r.unread) < mostUnread {
		r.unread, r.reasons = append(r.unread, at), append(r.reasons, reason)
	}
}

// fits reports whether the decoder reads a value by itself, or finds that there is none.
func fits(kind jsontext.Kind, of reflect.Kind) bool {
	switch of {
	case reflect.Interface, reflect.Pointer:
		return true
	case reflect.Map, reflect.Struct:
		return kind == '{'
	case reflect.Slice:
		return kind == '['
	case reflect.String:
		return kind == '"'
	case reflect.Bool:
		return kind == 't' || kind == 'f'
	}
	return kind == 0
}

// isCode reports whether a value is a code of either kind.
func isCode(pointer any) bool {
	switch pointer.(type) {
	case *resultCode, *tokenizeCode:
		return true
	}
	return false
}

// decides reports whether a value is the code that is documented for an operation. For [Client.Call] either may be.
func decides(op Operation, pointer any) bool {
	switch pointer.(type) {
	case *resultCode:
		return op != OpTokensTokenize && op != OpCall
	case *tokenizeCode:
		return op == OpTokensTokenize
	}
	return false
}

// count bounds the memory that lists and maps of small values take, garbage included, and ends with the context.
func (r *reader) count(t reflect.Type, dec *jsontext.Decoder) error {
	kind, n := dec.StackIndex(dec.StackDepth())
	switch {
	case n > 256: // in a list or a map that grows by and by: no record has so many members
		r.allocated += 5 * t.Size()
	case kind == '[' && n&(n-1) == 0: // a list without room, which doubles
		r.allocated += uintptr(max(1, 2*n)) * t.Size()
	// Perhaps in a map, and not in its first room.
	case r.open && (n >= 16 || t.Size() > 128), n >= 16 && t.Kind() == reflect.Interface:
		r.allocated += 3 * t.Size()
	}
	switch t.Kind() {
	case reflect.Pointer:
		r.allocated += t.Elem().Size()
	case reflect.Map: // which has room for eight members at first, unless they are large
		r.allocated += 64 + 9*(t.Key().Size()+min(t.Elem().Size(), 128)) + t.Elem().Size()
	case reflect.Interface: // for what it holds
		r.allocated += 48
	case reflect.Struct:
		if t == reflect.TypeFor[Timestamp]() || t == reflect.TypeFor[time.Time]() {
			r.allocated += 160 // for its offset
		} else if r.open {
			r.allocated += r.behind(t)
		}
	}
	if r.values++; r.isFull() || r.values%1024 == 0 {
		return r.spent()
	}
	return nil
}

// behind gives the size of what a struct embeds by pointers, for which the decoder asks nobody.
func (r *reader) behind(t reflect.Type) uintptr {
	size, known := r.embedded[t]
	if known {
		return size
	}
	if r.embedded == nil {
		r.embedded = map[reflect.Type]uintptr{}
	}
	r.embedded[t] = 0 // which ends with a type that embeds itself
	for field := range t.Fields() {
		inner := field.Type
		if field.Anonymous && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
			size += inner.Size()
		}
		if field.Anonymous && inner.Kind() == reflect.Struct {
			size += r.behind(inner)
		}
	}
	r.embedded[t] = size
	return size
}

// isTooLong reports whether a text cannot become a secret any more.
func (r *reader) isTooLong(raw []byte) bool {
	r.allocated += secretCopies * uintptr(len(raw))
	return r.isFull()
}

func (r *reader) isFull() bool { return r.allocated > r.most }

// spent gives the reason to read nothing more, if there is one.
func (r *reader) spent() error {
	if r.isFull() {
		return errTooMany
	}
	return r.ctx.Err()
}

// inList reports whether the next value is an element of a list.
func inList(dec *jsontext.Decoder) bool {
	kind, _ := dec.StackIndex(dec.StackDepth())
	return kind == '['
}

// formReader is a type that is not read field by field. What it holds it reads with the decoder and the bounds of r.
type formReader interface {
	readForm(r *reader, dec *jsontext.Decoder) error
}

// unmarshalForm is the UnmarshalJSON of such types.
func unmarshalForm(b []byte, v formReader) error {
	r := reader{ctx: context.Background(), root: reflect.TypeOf(v)}
	r.begin(b)
	err := v.readForm(&r, jsontext.NewDecoder(bytes.NewBuffer(b), r.form()))
	if r.err != nil && errors.Is(err, r.err) { // without what the decoder puts around it
		return r.err
	}
	return err
}

// readsItself reports whether a type has a form of its own.
func readsItself(pointer any) bool {
	switch pointer.(type) {
	case json.Unmarshaler, interface{ UnmarshalText(text []byte) error }:
		return true
	}
	return false
}

// scalar reads a value into a field of another kind too, as services send them.
func scalar(raw jsontext.Value, v reflect.Value, pointer any) error {
	kind := raw.Kind()
	if !readsItself(pointer) && kind != 'n' {
		switch {
		case v.Kind() == reflect.String && (kind == '0' || kind == 't'):
			v.SetString(string(raw)) // the literal, with all its digits
			return nil
		case v.Kind() == reflect.Bool && (kind == '"' || kind == '0'):
			return flag(raw, v)
		case v.CanInt() && (kind == '"' || kind == '0'):
			return integer(raw, v)
		case v.Type() == reflect.TypeFor[[]string]() && kind == '"': // a single text, or none
			text := textOf(raw)
			v.Set(reflect.ValueOf(slices.DeleteFunc([]string{text}, func(s string) bool { return s == "" })))
			return nil
		}
	}
	if secret, ok := pointer.(*Secret); ok && kind == '0' {
		*secret = NewSecret(string(raw))
		return nil
	}
	return json.Unmarshal(raw, pointer, tolerantForm)
}

// isNone reports whether a value stands for none, as PHP may write it.
func isNone(raw jsontext.Value, kind reflect.Kind) bool {
	switch raw.Kind() {
	case 'f':
		return kind != reflect.Bool
	case '"':
		return len(raw) == len(`""`)
	case '{', '[':
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
	}
	return false
}

// isRaw reports whether a value is kept as its text.
func isRaw(pointer any) bool {
	return reflect.TypeOf(pointer).Elem().Kind() == reflect.Slice && readsItself(pointer)
}

var errNullRecord = errors.New("is null")

var errNotFlag = errors.New("neither true nor false")

func flag(raw []byte, v reflect.Value) error {
	text := bytes.TrimSpace(unquote(raw))
	if d, ok := exactDecimal(text); ok && (d.IsZero() || d.IsOne() && d.IsPos()) {
		v.SetBool(d.IsPos())
		return nil
	}
	switch strings.ToLower(string(text)) {
	case "true", "t", "y", "yes", "on":
		v.SetBool(true)
	case "false", "f", "n", "no", "off", "":
		v.SetBool(false)
	default:
		return errNotFlag
	}
	return nil
}

// integer reads 5, 5.0, 5e0 and the same in quotes; an empty text is 0.
func integer(raw []byte, v reflect.Value) error {
	text := bytes.TrimSpace(unquote(raw))
	if len(text) == 0 {
		v.SetInt(0)
		return nil
	}
	d, isNumber := exactDecimal(text)
	whole, _, isSmall := d.Int64(0)
	if !isNumber || !isSmall || !d.IsInt() || v.OverflowInt(whole) {
		return errNotInteger
	}
	v.SetInt(whole)
	return nil
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[resultCode](), t == reflect.TypeFor[tokenizeCode]():
		return "a result code"
	case t.Kind() == reflect.Struct && !token.IsExported(t.Name()): // of this package
		return "an object"
	case t.Kind() == reflect.Slice && t.Name() == "":
		return "an array"
	}
	return t.Name()
}

// textOf gives a text of the service that is shown to people only; whatever else stands there is kept as it is.
func textOf(raw jsontext.Value) string {
	var text string
	if raw.Kind() == '"' || raw.Kind() == 'n' {
		_ = json.Unmarshal(raw, &text, tolerantForm)
		return text
	}
	return string(raw)
}

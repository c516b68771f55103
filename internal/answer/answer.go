// Package answer reads JSON in the forms in which services really write it. If a strict reading fails, it reads the
// text again, and tolerates the forms in which common serializers write a documented value. The length of the text
// limits the memory that reading takes. The package does not depend on the operations or types of the SDK.
package answer

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

var (
	// ErrNotJSON is the error of a text that is not JSON, is nested too deep for the decoder, or was cut off. The whole
	// answer may arrive on a retry.
	ErrNotJSON = errors.New("not JSON, or cut off")
	// ErrTooMany is the error of a text that has more values than an answer may have, or more unreadable values than
	// [MostUnread].
	ErrTooMany = errors.New("more values than an answer may have")
)

// PlaceError has the JSON pointer of a value that cannot be read, cut like the result of [PlainNames]. It does not
// contain the value.
type PlaceError struct {
	Place string // JSON pointer; "" for the whole text
	Why   string // what the value is, such as "not an integer"; "" if that is not known
}

// Error says that the value at Place cannot be read. It adds Why, unless Why is empty. Without a Place it says "the
// body".
func (e *PlaceError) Error() string {
	text := cmp.Or(e.Place, "the body") + " cannot be read"
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// MostUnread is the largest number of unreadable values that are skipped in an answer.
const MostUnread = 20

// mostCompleted is the largest number of codes with added zeros whose JSON pointers ReadLenient returns. No record has
// so many codes.
const mostCompleted = 1000

// Read decodes an answer into the variable to which the second argument points. Its error is [ErrNotJSON], [ErrTooMany]
// or a [*PlaceError]. After an error the variable may have a part of the answer.
func Read(text []byte, into any) error {
	_, err := read(text, into, reader{})
	return err
}

// ReadLenient is like [Read], but skips up to [MostUnread] values that cannot be read. It returns their JSON pointers,
// cut like the result of [PlainNames], even if it returns an error too. A skipped element of a list becomes a zero
// value. ReadLenient also returns the pointers of up to 1000 codes of three digits that had lost zeros.
func ReadLenient(text []byte, into any) (unread []string, err error) {
	return read(text, into, reader{lenient: true})
}

// ReadSaved is like [Read], for a value that the caller will send again. It leaves a pointer nil if the value means
// "none" (see [IsNone]), because otherwise the caller would send an empty value. The exception is the value false,
// which sets a *bool.
func ReadSaved(text []byte, into any) error {
	_, err := read(text, into, reader{saved: true})
	return err
}

// ReadGiven is like [ReadSaved], for a value that the caller gives as JSON. An unknown name in an object is an error,
// because it may be misspelt, and then its value would be lost.
func ReadGiven(text []byte, into any) error {
	_, err := read(text, into, reader{saved: true, given: true})
	return err
}

// form has the options of the decoder for the strict and the tolerant pass. A name may differ from the documented name
// in upper and lower case, but not in _ and -. If a name occurs twice, the last value counts, and objects are merged:
// to refuse such a text, the decoder would have to keep all names in memory.
//
//nolint:gochecknoglobals // never changed
var (
	form = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true),
		jsontext.AllowDuplicateNames(true))
	// brokenText accepts half of a character, such as the escape \ud83d, and reads it as U+FFFD. Programs that cut a text
	// to a length write such halves.
	brokenText    = jsontext.AllowInvalidUTF8(true)
	byteOrderMark = []byte("\ufeff")
)

// read decodes a text. The parameter how has the settings of Read, ReadLenient, ReadSaved or ReadGiven. The first pass
// is strict, so that a documented answer does not take the time of the tolerant pass. If the strict pass fails, a
// tolerant pass follows and overwrites the values of the first. In three cases there is only the tolerant pass:
//   - The text has so many lists and objects that two passes would take too much memory.
//   - The text may have null as an element of a list, which the strict pass would read as an empty record.
//   - The settings are those of ReadSaved or ReadGiven. A pointer has to stay nil for a value that means none, such as
//     "", and the strict pass would set it.
func read(text []byte, into any, how reader) (unread []string, err error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	containers := countContainers(text)
	if isTooMany(text, containers) {
		return nil, ErrTooMany
	}
	const mostReadTwice = 20_000 // containers; reading any 8 MiB twice then takes less than 300 MB
	mayBeStrict := !how.saved && containers <= mostReadTwice && !mayHoldNullElement(text)
	if mayBeStrict && json.Unmarshal(text, into, form) == nil {
		return nil, nil
	}
	pass := how            // a copy: pass.value moves it to the heap, and most calls need no such copy
	if !utf8.Valid(text) { // for example, the text is Latin-1
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	err = json.Unmarshal(text, into, form, brokenText, json.RejectUnknownMembers(how.given),
		json.WithUnmarshalers(json.UnmarshalFromFunc(pass.value)))
	return pass.unread, ownError(err)
}

// ownError replaces an error of the decoder by an error of this package, because an error of the decoder may quote a
// value.
func ownError(err error) error {
	if err == nil {
		return nil
	}
	if unreadable, ok := errors.AsType[*PlaceError](err); ok {
		return unreadable
	}
	if errors.Is(err, ErrTooMany) {
		return ErrTooMany
	}
	if unknown, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(unknown.Err, json.ErrUnknownName) {
		return &PlaceError{placeOf(unknown.JSONPointer), "an unknown name"}
	}
	return ErrNotJSON
}

// countContainers returns an upper limit for the number of lists and objects in a text. It also counts braces and
// brackets in strings.
func countContainers(text []byte) int {
	return bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("["))
}

// isTooMany reports whether a text has too many lists and objects, or too many values. containers is the result of
// countContainers. Within the limits, decoding any 8 MiB takes less than 300 MB. A longer text has higher limits.
func isTooMany(text []byte, containers int) bool {
	const usual = 8 << 20
	most := 72_000 + max(0, len(text)-usual)/64
	return containers > most || bytes.Count(text, []byte(",")) > 10*most
}

// mayHoldNullElement reports whether a null in a text may be an element of a list, because no colon stands before it.
// The strict pass would read such a null as an empty record.
func mayHoldNullElement(text []byte) bool {
	for {
		before, rest, found := bytes.Cut(text, []byte("ull")) // u is rarer than n, so this is faster than looking for null
		if !found {
			return false
		}
		before, isNull := bytes.CutSuffix(before, []byte("n"))
		if isNull && !bytes.HasSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(":")) {
			return true
		}
		text = rest
	}
}

// ReadAsCaller decodes a text into a variable of the caller's own type, as encoding/json does with
// [stdjson.Decoder.UseNumber]: a number in a variable of type any keeps its digits. It does not check the number of
// values, so the same text must have been read with [Read] or [ReadLenient] before. An error is a [*PlaceError].
func ReadAsCaller(text []byte, into any) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	decoder := stdjson.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(into) == nil {
		return nil
	}
	unreadable := &PlaceError{}
	// An error of encoding/json seldom has a place, but an error of JSON v2 has one. So JSON v2 decodes the text too.
	wrong := json.Unmarshal(text, into, likeV1, strictErrors)
	if e, ok := errors.AsType[*json.SemanticError](wrong); ok && !isRefused(e.GoType) {
		unreadable.Place = placeOf(e.JSONPointer)
	}
	return unreadable
}

// likeV1 makes JSON v2 read as encoding/json does. With strictErrors, its errors have JSON pointers.
//
//nolint:gochecknoglobals // never changed
var (
	likeV1 = json.JoinOptions(jsonv1.DefaultOptionsV1(),
		json.WithUnmarshalers(json.UnmarshalFromFunc(readNumber)))
	strictErrors = jsonv1.ReportErrorsWithLegacySemantics(false)
)

// isRefused reports whether strictErrors refuses a type that encoding/json reads, such as a struct with an embedded
// map. An error about such a type does not show which value encoding/json could not read.
func isRefused(of reflect.Type) bool {
	if of == nil {
		return false
	}
	empty, into := []byte("{}"), reflect.New(of).Interface()
	return json.Unmarshal(empty, into, likeV1) == nil && json.Unmarshal(empty, into, likeV1, strictErrors) != nil
}

// readNumber reads a json.Number. Up to Go 1.26, JSON v2 itself does not support this type.
func readNumber(dec *jsontext.Decoder, number *stdjson.Number) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return stdjson.Unmarshal(raw, number)
}

// plainName matches a name that looks like the name of a field, and an index of a list. It matches no card number.
var plainName = regexp.MustCompile(`^([A-Za-z_]+[1-4]?|\d{1,6})$`)

// PlainNames returns the names in a JSON pointer, cut before the first name that looks neither like the name of a field
// nor like an index. The service or the caller chose such a name, so it may be a secret.
func PlainNames(pointer jsontext.Pointer) (names []string) {
	for name := range pointer.Tokens() {
		if !plainName.MatchString(name) {
			break
		}
		names = append(names, name)
	}
	return names
}

// placeOf returns the JSON pointer, cut like the result of PlainNames.
func placeOf(pointer jsontext.Pointer) string {
	return strings.Join(append([]string{""}, PlainNames(pointer)...), "/")
}

package payvaulttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The depth of a JSON value and the elements of a list: far more than any operation needs, and little
// enough to walk.
const (
	maxNesting  = 64
	maxElements = 1000
)

// decode reads one JSON value into v as strictly as the interface is written: exact names, each at
// most once, no null, integers as JSON integers, strings as JSON strings, and nothing after the value.
// Its messages name fields and types, never values.
func decode(body []byte, v any) error {
	return decodeAt("", body, v)
}

// decodeAt is decode for a value that stands at a path of the request.
func decodeAt(path string, body []byte, v any) error {
	if err := (shapeWalker{}).walk(path, body, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return refuse(http.StatusBadRequest, "the JSON does not fit the operation")
	}
	return nil
}

// hasLoneSurrogate tells whether well-formed JSON escapes half of a surrogate pair: there is no such
// character, so the text could not be kept or echoed as it was sent.
func hasLoneSurrogate(body []byte) bool {
	for len(body) > 0 {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			return false
		}
		first := escaped(body[i:])
		body = body[i+2:]
		if !utf16.IsSurrogate(first) {
			continue
		}
		body = body[4:] // the rest of the first escape
		if utf16.DecodeRune(first, escaped(body)) == utf8.RuneError {
			return true
		}
		body = body[6:]
	}
	return false
}

// escaped is the code unit of the \u escape that a text begins with, or zero.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

// A place is where a value stands in a JSON value. Its path is put together only when it is asked for:
// a path for each value would make memory grow with the square of the body.
type place struct {
	up    *place
	name  string
	index int // of an element; -1 for a member
	depth int
}

func (p *place) member(name string) *place {
	return &place{up: p, name: name, index: -1, depth: p.depth + 1}
}

func (p *place) element(index int) *place { return &place{up: p, index: index, depth: p.depth + 1} }

// path writes the place as messages name it, such as billing_cards[1].exp_date.
func (p *place) path() string {
	switch {
	case p.up == nil:
		return p.name
	case p.index >= 0:
		return fmt.Sprintf("%s[%d]", p.up.path(), p.index)
	default:
		return join(p.up.path(), p.name)
	}
}

// A shapeWalker compares a stream of JSON tokens with a Go type. The JSON is known to be well-formed.
type shapeWalker struct {
	dec *json.Decoder
	// seed is set for seeds: their lists may have any length, and may be null as encoding/json writes them.
	seed bool
}

// walk compares a JSON value that stands at a path with a type.
func (w shapeWalker) walk(path string, text []byte, t reflect.Type) error {
	if !utf8.Valid(text) || !json.Valid(text) {
		return refuse(http.StatusBadRequest, "this is not one well-formed JSON value in UTF-8")
	}
	if hasLoneSurrogate(text) {
		return refuse(http.StatusBadRequest, "a text of the JSON holds half of a surrogate pair")
	}
	w.dec = json.NewDecoder(bytes.NewReader(text))
	w.dec.UseNumber()
	return w.value(&place{name: path}, t)
}

func (w shapeWalker) value(at *place, t reflect.Type) error {
	if at.depth > maxNesting {
		return refuse(http.StatusBadRequest, "the JSON is nested more than %d deep", maxNesting)
	}
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return w.object(at, t)
		}
		return w.array(at, t)
	case nil:
		return expect(isFree(t) || w.seed && t.Kind() == reflect.Slice, at, t, "null")
	case string:
		if t == timeType() {
			return expectTime(at, token)
		}
		return expect(isFree(t) || isText(t), at, t, "a string")
	case bool:
		return expect(isFree(t) || t.Kind() == reflect.Bool, at, t, "a boolean")
	case json.Number:
		return expect(takesNumber(t, token), at, t, "this number")
	}
	return nil
}

func (w shapeWalker) object(at *place, t reflect.Type) error {
	members := map[string]reflect.Type{}
	if !isFree(t) {
		if t.Kind() != reflect.Struct || isText(t) {
			return expect(false, at, t, "an object")
		}
		members = membersOf(t)
	}
	seen := map[string]bool{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		member, known := members[name]
		inside := at.member(name)
		if err := checkName(inside, known || isFree(t), seen[name]); err != nil {
			return err
		}
		seen[name] = true
		if err := w.value(inside, member); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w shapeWalker) array(at *place, t reflect.Type) error {
	var element reflect.Type
	if !isFree(t) {
		if t.Kind() != reflect.Slice {
			return expect(false, at, t, "an array")
		}
		element = t.Elem()
	}
	for i := 0; w.dec.More(); i++ {
		if i == maxElements && !isFree(t) && !w.seed {
			return problems{at.path(): {fmt.Sprintf("takes at most %d elements", maxElements)}}.err()
		}
		if err := w.value(at.element(i), element); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func checkName(at *place, known, seen bool) error {
	switch {
	case !known:
		return problems{at.path(): {"is not a known field"}}.err()
	case seen:
		return problems{at.path(): {"is given twice"}}.err()
	}
	return nil
}

func expect(ok bool, at *place, t reflect.Type, got string) error {
	if ok {
		return nil
	}
	p := problems{}
	p.add(cmp.Or(at.path(), "body"), "must be %s, not %s", describe(t), got)
	return p.err()
}

func expectTime(at *place, text string) error {
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return problems{at.path(): {"must be a time with an offset, such as 2026-01-31T23:59:59-05:00"}}.err()
	}
	return nil
}

func describe(t reflect.Type) string {
	switch {
	case t == nil:
		return "a value"
	case t == numberType():
		return "a number"
	case isText(t):
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "an array"
	case reflect.Struct:
		return "an object"
	default:
		return "an integer"
	}
}

// takesNumber tells whether a field of type t takes the number: integer fields take JSON integers
// that fit into 64 bits, without fraction or exponent.
func takesNumber(t reflect.Type, n json.Number) bool {
	if isFree(t) || t == numberType() {
		return true
	}
	_, err := strconv.ParseInt(n.String(), 10, 64)
	return t.Kind() == reflect.Int64 && err == nil
}

// isFree tells whether the interface leaves the shape of the value open.
func isFree(t reflect.Type) bool { return t == nil || t == reflect.TypeFor[json.RawMessage]() }

// isText tells whether the values of a type are JSON strings.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String && t != numberType() || t == timeType()
}

func timeType() reflect.Type { return reflect.TypeFor[time.Time]() }

func numberType() reflect.Type { return reflect.TypeFor[json.Number]() }

// membersOf lists the JSON names of a struct, those of embedded structs included.
func membersOf(t reflect.Type) map[string]reflect.Type {
	members := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			members[name] = field.Type
		}
	}
	return members
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

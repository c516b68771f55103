package payvaulttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decode reads one JSON value into v as strictly as the interface is written: exact names, each at
// most once, no null, integers as JSON integers, strings as JSON strings, and nothing after the value.
// Its messages name fields and types, never values.
func decode(body []byte, v any) error {
	return decodeAt("", body, v)
}

// decodeAt is decode for a value that stands at a path of the request.
func decodeAt(path string, body []byte, v any) error {
	if !utf8.Valid(body) || !json.Valid(body) {
		return refuse(http.StatusBadRequest, "the body is not one well-formed JSON value in UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	w := shapeWalker{dec: dec}
	if err := w.value(path, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return refuse(http.StatusBadRequest, "the JSON does not fit the operation")
	}
	return nil
}

// A shapeWalker compares a stream of JSON tokens with a Go type. The JSON is known to be well-formed,
// and no deeper than [json.Valid] permits.
type shapeWalker struct{ dec *json.Decoder }

func (w shapeWalker) value(path string, t reflect.Type) error {
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
			return w.object(path, t)
		}
		return w.array(path, t)
	case nil:
		return expect(t == nil || isFree(t), path, t, "null")
	case string:
		return expect(isFree(t) || t.Kind() == reflect.String && t != numberType(), path, t, "a string")
	case bool:
		return expect(isFree(t) || t.Kind() == reflect.Bool, path, t, "a boolean")
	case json.Number:
		return expect(takesNumber(t, token), path, t, "this number")
	}
	return nil
}

func (w shapeWalker) object(path string, t reflect.Type) error {
	members := map[string]reflect.Type{}
	if !isFree(t) {
		if t.Kind() != reflect.Struct {
			return expect(false, path, t, "an object")
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
		if err := checkName(join(path, name), known || isFree(t), seen[name]); err != nil {
			return err
		}
		seen[name] = true
		if err := w.value(join(path, name), member); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w shapeWalker) array(path string, t reflect.Type) error {
	var element reflect.Type
	if !isFree(t) {
		if t.Kind() != reflect.Slice {
			return expect(false, path, t, "an array")
		}
		element = t.Elem()
	}
	for i := 0; w.dec.More(); i++ {
		if err := w.value(fmt.Sprintf("%s[%d]", path, i), element); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func checkName(path string, known, seen bool) error {
	p := problems{}
	p.check(known, path, "is not a field of this operation")
	p.check(!seen, path, "is given twice")
	return p.err()
}

func expect(ok bool, path string, t reflect.Type, got string) error {
	if ok {
		return nil
	}
	if path == "" {
		path = "body"
	}
	p := problems{}
	p.add(path, "must be %s, not %s", describe(t), got)
	return p.err()
}

func describe(t reflect.Type) string {
	switch {
	case t == nil:
		return "a value"
	case t == numberType():
		return "a number"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
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

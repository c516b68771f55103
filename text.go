package payvault

import (
	"bytes"
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkText refuses texts of a request that are not UTF-8. In their wire form encoding/json silently replaces what is not by
// U+FFFD, so that only a body that may have that character, as itself or escaped, has to be looked through.
func checkText(body any, wire []byte, p *problems) {
	if !utf8.Valid(wire) { // written by a MarshalJSON of the caller's
		p.add("body", "is not UTF-8")
		return
	}
	const itself, escaped = "\ufffd", `\ufffd`
	if bytes.IndexByte(wire, itself[0]) < 0 &&
		(bytes.IndexByte(wire, escaped[0]) < 0 || !bytes.Contains(wire, []byte(escaped))) {
		return
	}
	var found problems // p itself would go to the heap with each request
	walkTexts(reflect.ValueOf(body), "", 0, func(path string, text reflect.Value) {
		if !utf8.ValidString(text.String()) {
			found.add(cmp.Or(strings.TrimPrefix(path, "."), "body"), "is not UTF-8")
		}
	})
	p.addAll(found)
}

// maxDepth ends the walk of a value that refers to itself; no request of this package is half as deep.
const maxDepth = 24

// walkTexts visits all texts in a request, with their wire paths.
func walkTexts(v reflect.Value, path string, depth int, visit func(path string, text reflect.Value)) {
	if depth > maxDepth {
		return
	}
	if v.IsValid() && v.Type() == reflect.TypeFor[ApplicationData]() {
		path = "" // its keys stand for themselves
	}
	switch v.Kind() {
	case reflect.String:
		visit(path, v)
	case reflect.Pointer, reflect.Interface:
		walkTexts(v.Elem(), path, depth+1, visit)
	case reflect.Struct:
		for name, field := range wireFields(v) {
			walkTexts(field, path+"."+name, depth+1, visit)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walkTexts(v.Index(i), path+"["+strconv.Itoa(i)+"]", depth+1, visit)
		}
	case reflect.Map: // whose keys may be anything, and are not repeated in an error
		for _, key := range v.MapKeys() {
			walkTexts(key, path, depth+1, visit)
			walkTexts(v.MapIndex(key), path, depth+1, visit)
		}
	}
}

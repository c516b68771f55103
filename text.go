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
// U+FFFD, so that only a body with that character has to be looked through.
func checkText(body any, wire []byte, p *problems) {
	if bytes.Contains(wire, []byte(`\ufffd`)) || bytes.Contains(wire, []byte("\ufffd")) {
		checkTexts(reflect.ValueOf(body), "", p, 0)
	}
}

func checkTexts(v reflect.Value, path string, p *problems, depth int) {
	if depth > maxDepth {
		return
	}
	if v.IsValid() && v.Type() == reflect.TypeFor[ApplicationData]() {
		path = "" // its keys stand for themselves
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			p.add(cmp.Or(strings.TrimPrefix(path, "."), "body"), "is not UTF-8")
		}
	case reflect.Pointer, reflect.Interface:
		checkTexts(v.Elem(), path, p, depth+1)
	case reflect.Struct:
		for name, field := range wireFields(v) {
			checkTexts(field, path+"."+name, p, depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			checkTexts(v.Index(i), path+"["+strconv.Itoa(i)+"]", p, depth+1)
		}
	case reflect.Map: // whose keys may be anything, and are not repeated in an error
		for _, key := range v.MapKeys() {
			checkTexts(key, path, p, depth+1)
			checkTexts(v.MapIndex(key), path, p, depth+1)
		}
	}
}

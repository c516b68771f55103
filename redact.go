package payvault

import (
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
)

// formatPlain formats a request or a result like any struct; plain has its fields and no methods. What has a Format method
// of its own is never printed without it: for a pointer inside another value, under a verb that does
// not apply to pointers (%s), fmt would otherwise print what it points to without asking the secrets in it.
func formatPlain(f fmt.State, verb rune, plain any) {
	if verb == 'p' || verb == 'w' { // apply to no struct, with the same effect
		verb = 'v'
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), plain)
}

// logGroup is the log value of a request or a result: its fields under their wire names, empty ones left
// out, secrets redacted.
func logGroup(v any) slog.Value {
	rv := reflect.ValueOf(v)
	attrs := make([]slog.Attr, 0, rv.NumField())
	for name, field := range wireFields(rv) {
		attrs = append(attrs, slog.Attr{Key: name, Value: logValue(field)})
	}
	return slog.GroupValue(attrs...)
}

// logValue gives a value that no handler has to marshal by itself: the handlers know nothing of secrets.
func logValue(v reflect.Value) slog.Value {
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return slog.AnyValue(nil)
	}
	switch value := v.Interface().(type) {
	case slog.LogValuer:
		return value.LogValue()
	case json.RawMessage:
		return slog.StringValue(strconv.Itoa(len(value)) + " bytes") // what it holds is not documented
	case fmt.Stringer:
		return slog.StringValue(value.String())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return logValue(v.Elem())
	case reflect.Struct:
		return logGroup(v.Interface())
	case reflect.Slice, reflect.Array:
		attrs := make([]slog.Attr, v.Len())
		for i := range v.Len() {
			attrs[i] = slog.Attr{Key: strconv.Itoa(i), Value: logValue(v.Index(i))}
		}
		return slog.GroupValue(attrs...)
	case reflect.Map:
		attrs := make([]slog.Attr, 0, v.Len())
		for _, key := range v.MapKeys() {
			attrs = append(attrs, slog.Attr{Key: fmt.Sprint(key), Value: logValue(v.MapIndex(key))})
		}
		return slog.GroupValue(attrs...)
	}
	return slog.AnyValue(v.Interface())
}

// wireFields yields the exported fields of a struct that are not empty, under their wire names. As in JSON those of embedded
// structs are its own.
func wireFields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) { yieldFields(v, 0, yield) }
}

func yieldFields(v reflect.Value, depth int, yield func(string, reflect.Value) bool) bool {
	for field, value := range v.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if inner := reflect.Indirect(value); field.Anonymous && name == "" && (!inner.IsValid() || inner.Kind() == reflect.Struct) {
			if inner.IsValid() && depth < maxDepth && !yieldFields(inner, depth+1, yield) {
				return false
			}
			continue
		}
		if !field.IsExported() || value.IsZero() {
			continue
		}
		if name == "" || name == "-" {
			name = field.Name
		}
		if !yield(name, value) {
			return false
		}
	}
	return true
}

// secretsOf finds the texts of all secrets in a request.
func secretsOf(v any) []string {
	var secrets []string
	walkTexts(reflect.ValueOf(v), "", 0, func(_ string, text reflect.Value) {
		if text.Type() == reflect.TypeFor[Secret]() && text.Len() > 0 {
			secrets = append(secrets, text.String())
		}
	})
	return secrets
}

// Package canary fills values of all exported struct types of package payvault with known secret texts. Tests print the
// values, and search the output for the texts.
package canary

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/govalues/decimal"

	"example.com/payvault"
)

// These are the secret texts that tests search for.
const (
	Secret = "5ecretCanary" // the content of every Secret, and the API key of the client
	Raw    = "7awCanary"    // the content of every body, header, file, path, query and filter
)

// Types returns all exported struct types of package payvault, by name.
func Types() map[string]reflect.Type {
	found := map[reflect.Type]bool{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[*payvault.Client](), reflect.TypeFor[payvault.Error](), reflect.TypeFor[payvault.Observer](),
		reflect.TypeFor[payvault.StopError](),
		reflect.TypeFor[payvault.RetryPolicy](), reflect.TypeFor[payvault.Response](),
		reflect.TypeFor[payvault.Notification](), reflect.TypeFor[payvault.OperationInfo](),
		reflect.TypeFor[payvault.Pairs](), reflect.TypeFor[payvault.ApplicationData](),
	} {
		reach(t, found, true)
	}
	types := map[string]reflect.Type{"Page": reflect.TypeFor[payvault.Page[payvault.Payee]]()}
	for t := range found {
		own := t.PkgPath() == reflect.TypeFor[payvault.Client]().PkgPath() && t.Kind() == reflect.Struct
		if name := t.Name(); own && name[0] <= 'Z' && !strings.Contains(name, "[") {
			types[name] = t
		}
	}
	return types
}

// Holds reports whether the first type is the second one, or contains it at any depth. Unexported fields and methods do
// not count.
func Holds(t, what reflect.Type) bool {
	found := map[reflect.Type]bool{}
	reach(t, found, false)
	return found[what]
}

// reach adds t to found, with the types of its keys, elements, exported fields, parameters and results, at any depth.
// If calls is true, reach also adds the types of the parameters and results of all methods.
func reach(t reflect.Type, found map[reflect.Type]bool, calls bool) {
	if found[t] {
		return
	}
	found[t] = true
	if calls {
		for method := range t.Methods() {
			reach(method.Type, found, calls)
		}
	}
	switch t.Kind() {
	case reflect.Map:
		reach(t.Key(), found, calls)
		reach(t.Elem(), found, calls)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		reach(t.Elem(), found, calls)
	case reflect.Struct:
		for field := range t.Fields() {
			if field.IsExported() {
				reach(field.Type, found, calls)
			}
		}
	case reflect.Func:
		for in := range t.Ins() {
			reach(in, found, calls)
		}
		for out := range t.Outs() {
			reach(out, found, calls)
		}
	}
}

// EachFilled calls check in a subtest for every type that Types returns, with a pointer to a filled value. If a type
// has fields of type any, there is a subtest for each possible content of these fields; with -short there is only one.
func EachFilled(t *testing.T, check func(t *testing.T, typ string, pointer any)) {
	t.Helper()
	secret := payvault.NewSecret(Secret)
	opens := map[string]any{
		"a secret": secret, "a pointer": &secret, "a slice": []payvault.Secret{secret},
		"an array": [1]payvault.Secret{secret}, "a slice of any": []any{"plain", secret},
		"a map": map[string]payvault.Secret{"key": secret}, "a map by secrets": map[payvault.Secret]int{secret: 1},
		"a map of any": map[string]any{"key": []any{map[string]any{"deep": secret}}},
		"a struct":     payvault.Owner{SSN: secret}, "a pointer to one": &payvault.Owner{SSN: secret},
		"a slice of pointers": []*payvault.AccountUpdaterCard{{CardNumber: secret}},
		"pairs":               payvault.Pairs{{Name: "n", Value: secret}},
		"the caller's struct": struct{ Number payvault.Secret }{secret},
	}
	for name, typ := range Types() {
		isOpen := Holds(typ, reflect.TypeFor[any]())
		for content, open := range opens {
			if content == "a secret" || isOpen && !testing.Short() {
				t.Run(name+" with "+content, func(t *testing.T) {
					t.Parallel()
					check(t, name, Filled(typ, open))
				})
			}
		}
	}
}

// Filled returns a pointer to a value of type t whose exported fields are filled, at any depth. Functions stay nil.
// Fields of type any get the second argument.
func Filled(t reflect.Type, open any) any {
	client, err := payvault.NewClient("https://sandbox.example.com", Secret)
	if err != nil {
		panic(err)
	}
	switch {
	case t == reflect.TypeFor[payvault.Client]():
		return client
	case strings.HasSuffix(t.Name(), "Service"):
		return reflect.ValueOf(client).Elem().FieldByName(strings.TrimSuffix(t.Name(), "Service")).Interface()
	}
	v := reflect.New(t)
	fill(v.Elem(), open)
	return v.Interface()
}

func fill(v reflect.Value, open any) {
	t := v.Type()
	for _, value := range []any{
		payvault.NewSecret(Secret), payvault.AmountOf(decimal.MustParse("12.50")),
		payvault.Timestamp{Time: time.Unix(1e9, 0).UTC()},
		payvault.Date{Year: 2026, Month: time.March, Day: 14},
		json.RawMessage(`{"plain":1}`), // the SDK does not hide JSON of undocumented fields
		[]byte(Raw),
		http.Header{"X-Raw": {Raw}},
		url.Values{"raw": {Raw}},
		payvault.Filter{Field: "plain", Condition: "plain", Values: []string{Raw}},
	} {
		if t == reflect.TypeOf(value) {
			v.Set(reflect.ValueOf(value))
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("plain")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Uint8:
		v.Set(reflect.ValueOf(7).Convert(t))
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem(), open)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 2, 2))
		fill(v.Index(0), open)
		fill(v.Index(1), open)
	case reflect.Map:
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		fill(key, open)
		fill(value, open)
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				fill(value, open)
			}
		}
		switch value := v.Addr().Interface().(type) {
		case *payvault.Request:
			value.Path = []string{Raw}
		case *payvault.SavedField: // the value of a saved field must be JSON
			value.Value = payvault.NewSecret(`"` + Secret + `"`)
		}
	case reflect.Interface:
		fillInterface(v, open)
	case reflect.Func: // a function has no content to hide
	default:
		panic("canary: fill does not know " + t.String())
	}
}

func fillInterface(v reflect.Value, open any) {
	switch target := v.Addr().Interface().(type) {
	case *any:
		*target = open
	case *io.ReaderAt:
		*target = strings.NewReader(Raw)
	case *error:
		*target = errors.New("plain")
	}
}

// Shapes returns, in open, the pointer and the value that it points to, each alone and inside other values, such as
// lists and structs. Of a Client, it returns only the pointer. The map hidden has each value of open inside an
// unexported field, so fmt does not call the methods of the value.
func Shapes(pointer any) (open, hidden map[string]any) {
	open, hidden = map[string]any{}, map[string]any{}
	p := reflect.ValueOf(pointer)
	for _, v := range []reflect.Value{p, p.Elem()} {
		list := reflect.Append(reflect.Zero(reflect.SliceOf(v.Type())), v)
		field := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Field", Type: v.Type()}})).Elem()
		field.Field(0).Set(v)
		for shape, value := range map[string]any{
			"": v.Interface(), "list of ": list.Interface(), "field of ": field.Interface(),
			"any of ": struct{ V any }{v.Interface()}, "map of any of ": map[string]any{"value": []any{v.Interface()}},
		} {
			open[shape+v.Type().String()] = value
			hidden["unexported "+shape+v.Type().String()] = struct{ hidden any }{value}
		}
		if p.Type() == reflect.TypeFor[*payvault.Client]() { // a Client must not be copied
			break
		}
	}
	return open, hidden
}

// Find returns the first of the forms that the text contains, or "" if it contains none.
func Find(text string, forms []string) string {
	for _, form := range forms {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}

// Forms returns the forms of the texts that tests search for: unchanged, in base64 with and without a colon before the
// text, and as the bytes that fmt prints with verbs such as %x.
func Forms(texts ...string) []string {
	var forms []string
	for _, text := range texts {
		forms = append(forms, text)
		for _, encoded := range []string{text, ":" + text} { // the Authorization header has the second form
			forms = append(forms, base64.StdEncoding.EncodeToString([]byte(encoded)))
		}
		for _, format := range []string{"%x", "%X", "% x", "% X", "%d", "%o", "%b", "%U"} {
			forms = append(forms, strings.Trim(fmt.Sprintf(format, []byte(text)), "[]"))
		}
		forms = append(forms, strings.Trim(fmt.Sprintf("%#v", []byte(text)), "[]byte{}"))
	}
	return forms
}

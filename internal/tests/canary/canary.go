// Package canary fills values of all exported types of package payvault with texts that must not be seen, and finds
// these in what loggers and encoders make of the values.
package canary

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/govalues/decimal"

	"example.com/payvault"
)

// The texts to look for.
const (
	Secret = "5ecretCanary" // of every Secret, and the API key of the client
	Raw    = "7awCanary"    // of every body, header and file
)

// Types returns all exported struct types, by name; Page is the one generic type. They are those that the methods,
// fields and options of a client lead to.
func Types() map[string]reflect.Type {
	found := map[reflect.Type]bool{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[*payvault.Client](), reflect.TypeFor[payvault.Error](), reflect.TypeFor[payvault.Observer](),
		reflect.TypeFor[payvault.RetryPolicy](), reflect.TypeFor[payvault.Response](),
		reflect.TypeFor[payvault.Notification](), reflect.TypeFor[payvault.OperationInfo](),
		reflect.TypeFor[payvault.Pairs](), reflect.TypeFor[payvault.ApplicationData](),
	} {
		reach(t, found)
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

// reach adds what a type leads to.
func reach(t reflect.Type, found map[reflect.Type]bool) {
	if found[t] {
		return
	}
	found[t] = true
	for method := range t.Methods() {
		reach(method.Type, found)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		reach(t.Elem(), found)
	case reflect.Func:
		for in := range t.Ins() {
			reach(in, found)
		}
		for out := range t.Outs() {
			reach(out, found)
		}
	case reflect.Struct:
		for field := range t.Fields() {
			if field.IsExported() {
				reach(field.Type, found)
			}
		}
	}
}

// Opens are the values with which fields of type any are filled for a type; a single nil for a type that has none.
func Opens(t reflect.Type) map[string]any {
	if !Holds(t, reflect.TypeFor[any]()) {
		return map[string]any{"nothing": nil}
	}
	secret := payvault.NewSecret(Secret)
	return map[string]any{
		"a secret":            secret,
		"a pointer":           &secret,
		"a slice":             []payvault.Secret{secret},
		"an array":            [1]payvault.Secret{secret},
		"a slice of any":      []any{"plain", secret},
		"a map":               map[string]payvault.Secret{"key": secret},
		"a map of any":        map[string]any{"key": []any{map[string]any{"deep": secret}}},
		"a map by secrets":    map[payvault.Secret]int{secret: 1},
		"a struct":            payvault.Owner{SSN: secret},
		"a pointer to one":    &payvault.Owner{SSN: secret},
		"a slice of pointers": []*payvault.AccountUpdaterCard{{CardNumber: secret}},
		"pairs":               payvault.Pairs{{Name: "n", Value: secret}},
		"the caller's struct": struct{ Number payvault.Secret }{secret},
	}
}

// Holds reports whether a value of t can hold, at any depth, one of the type what.
func Holds(t, what reflect.Type) bool { return holds(t, what, nil) }

func holds(t, what reflect.Type, within []reflect.Type) bool {
	if t == what {
		return true
	}
	if slices.Contains(within, t) {
		return false
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holds(t.Elem(), what, within)
	case reflect.Map:
		return holds(t.Key(), what, within) || holds(t.Elem(), what, within)
	case reflect.Struct:
		for field := range t.Fields() {
			if field.IsExported() && holds(field.Type, what, within) {
				return true
			}
		}
	}
	return false
}

// Filled returns a pointer to a value of t that is filled deeply: secrets and raw bytes with the canaries, fields of
// type any with open, all else with plain values.
func Filled(t reflect.Type, open any) any {
	switch {
	case t == reflect.TypeFor[payvault.Client]():
		return client()
	case strings.HasSuffix(t.Name(), "Service"):
		return reflect.ValueOf(client()).Elem().FieldByName(strings.TrimSuffix(t.Name(), "Service")).Interface()
	}
	v := reflect.New(t)
	fill(v.Elem(), open)
	return v.Interface()
}

// client returns a client whose API key is the canary.
func client() *payvault.Client {
	c, err := payvault.NewClient("https://sandbox.example.com", Secret)
	if err != nil {
		panic(err)
	}
	return c
}

func fill(v reflect.Value, open any) {
	switch target := v.Addr().Interface().(type) {
	case *payvault.Secret:
		*target = payvault.NewSecret(Secret)
	case *payvault.Amount:
		*target = payvault.AmountOf(decimal.MustParse("12.50"))
	case *payvault.Timestamp:
		*target = payvault.Timestamp{Time: time.Unix(1e9, 0).UTC()}
	case *payvault.Date:
		*target = payvault.Date{Year: 2026, Month: time.March, Day: 14}
	case *json.RawMessage:
		*target = json.RawMessage(`{"plain":1}`) // of which nothing is documented; not a secret
	case *[]byte:
		*target = []byte(Raw)
	case *http.Header:
		*target = http.Header{"X-Raw": {Raw}}
	case *io.ReaderAt:
		*target = strings.NewReader(Raw)
	case *error:
		*target = errors.New("plain")
	case *any:
		*target = open
	case *payvault.Journal: // the caller's own; nothing of a request is in it
	default:
		fillKind(v, open)
	}
}

func fillKind(v reflect.Value, open any) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("plain")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), open)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), open)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, open)
		fill(value, open)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				fill(value, open)
			}
		}
	case reflect.Func: // nothing to see
	default:
		panic("canary: fill does not know " + v.Type().String())
	}
}

// Shapes are the ways to hold a value: by itself, and within values of the caller.
func Shapes(pointer any) map[string]any {
	p := reflect.ValueOf(pointer)
	if p.Type() == reflect.TypeFor[*payvault.Client]() { // which is not to be copied
		return shapesOf(p, nil)
	}
	return shapesOf(p, shapesOf(p.Elem(), nil))
}

func shapesOf(v reflect.Value, all map[string]any) map[string]any {
	if all == nil {
		all = map[string]any{}
	}
	kind := v.Type().String()
	list := reflect.Append(reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, 1), v)
	dict := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), v.Type()))
	dict.SetMapIndex(reflect.ValueOf("key"), v)
	field := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Field", Type: v.Type()}})).Elem()
	field.Field(0).Set(v)
	array := reflect.New(reflect.ArrayOf(1, v.Type())).Elem()
	array.Index(0).Set(v)
	all[kind] = v.Interface()
	all["list of "+kind] = list.Interface()
	all["map of "+kind] = dict.Interface()
	all["field of "+kind] = field.Interface()
	all["array of "+kind] = array.Interface()
	all["any of "+kind] = struct{ V any }{v.Interface()}
	all["list of any of "+kind] = []any{v.Interface()}
	all["map of any of "+kind] = map[string]any{"value": []any{v.Interface()}}
	return all
}

// Hidden are the ways to hold a value where methods are not called: in unexported fields.
func Hidden(pointer any) map[string]any {
	all := map[string]any{}
	for name, value := range Shapes(pointer) {
		all["unexported "+name] = struct{ hidden any }{value}
	}
	return all
}

// Find returns the first of the forms that stands in a text, or "".
func Find(text string, forms []string) string {
	for _, form := range forms {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}

// Forms are those in which texts can appear: as they are, in base64, and as bytes under the verbs of fmt.
func Forms(texts ...string) []string {
	var forms []string
	for _, text := range texts {
		forms = append(forms, text)
		for _, encoded := range []string{text, ":" + text} { // the latter in the header Authorization
			forms = append(forms, base64.StdEncoding.EncodeToString([]byte(encoded)))
		}
		for _, format := range []string{"%x", "%X", "% x", "% X", "%d", "%o", "%b", "%U"} {
			forms = append(forms, strings.Trim(fmt.Sprintf(format, []byte(text)), "[]"))
		}
		forms = append(forms, strings.Trim(fmt.Sprintf("%#v", []byte(text)), "[]byte{}"))
	}
	return forms
}

// Planted returns a copy of a value, all of whose secrets are the canary.
func Planted(value any) any {
	if value == nil {
		return nil
	}
	planted := reflect.New(reflect.TypeOf(value)).Elem()
	plant(planted, reflect.ValueOf(value))
	return planted.Interface()
}

func plant(into, from reflect.Value) {
	into.Set(from)
	switch {
	case from.Type() == reflect.TypeFor[payvault.Secret]():
		if !from.IsZero() {
			into.Set(reflect.ValueOf(payvault.NewSecret(Secret)))
		}
	case from.Kind() == reflect.Pointer && !from.IsNil():
		into.Set(reflect.New(from.Type().Elem()))
		plant(into.Elem(), from.Elem())
	case from.Kind() == reflect.Slice && !from.IsNil():
		into.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			plant(into.Index(i), from.Index(i))
		}
	case from.Kind() == reflect.Struct:
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				plant(into.Field(i), from.Field(i))
			}
		}
	}
}

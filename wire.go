package payvault

import (
	"bytes"
	"cmp"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"example.com/payvault/internal/jsonskip"
)

// MarshalWire returns the JSON that is sent for v, with the texts of its secrets: v is a request, a result, or a value
// of your own that holds some. It is for a request that has to wait, in a queue for example; json.Unmarshal reads it
// back. With json.Marshal the secrets would be lost.
//
// What it returns is card data in clear: encrypt it, keep it out of logs, and delete it when it is sent. Mind that the
// card industry permits nobody to keep security codes and track data once a payment is authorized.
//
// Apart from secrets it writes what [encoding/json.Marshal] writes, with <, > and & as they are; text that is not UTF-8
// is an error. A [Secret] in a field of type any is read back as a string, and the file of a [DisputeResponse] is not
// in its JSON. What cannot be sent is an error that matches [ErrInvalidRequest], and so is a type of your own whose
// MarshalJSON has redacted a secret: it needs the method MarshalJSONTo of JSON v2, which gets the options that write
// texts.
func MarshalWire(v any) ([]byte, error) {
	var p problems
	wire := marshal(v, &p)
	for path, texts := range p {
		return nil, fmt.Errorf("payvault: MarshalWire: %w: %s %s", ErrInvalidRequest, path, texts[0])
	}
	return wire, nil
}

// marshal returns the wire form of v, or nil and why there is none.
func marshal(v any, p *problems) []byte {
	wire, err := json.Marshal(v, wireForm)
	if err == nil {
		return wire
	}
	path, reason := unwritable(v, err)
	if _, known := (*p)[path]; !known { // a check of its own says it better
		p.add(path, reason)
	}
	return nil
}

// The two forms of JSON: what is shown, with a mark for each secret, and what is sent. Both are as encoding/json writes
// them, as callers know it from their own types: JSON v2 by itself would, for one, send a zero marked omitempty.
//
//nolint:gochecknoglobals // never changed
var (
	shownForm = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false),
		json.WithMarshalers(ownForms))
	wireForm = json.JoinOptions(shownForm, jsontext.AllowInvalidUTF8(false), jsontext.AllowDuplicateNames(false),
		jsonv1.ReportErrorsWithLegacySemantics(false), // which name no place
		json.WithMarshalers(json.JoinMarshalers(
			json.MarshalToFunc(writeSecret),
			json.MarshalToFunc(func(enc *jsontext.Encoder, s rawSecret) error {
				return writeMarshaler(enc, jsontext.Value(s.Reveal()))
			}),
			json.MarshalToFunc(func(enc *jsontext.Encoder, v holder) error {
				if v.secret() == nil {
					return &json.SemanticError{Err: errNoSecret}
				}
				return writeSecret(enc, *v.secret())
			}),
			json.MarshalToFunc(func(_ *jsontext.Encoder, f ApplicationField) error {
				if text, ok := f.Value.(string); ok && hasMark(text) { // which is refused when it is read, too
					return &json.SemanticError{Err: errRedacted}
				}
				return jsonskip.Err
			}),
			ownForms,
			json.MarshalToFunc(writeMarshaler),
			json.MarshalToFunc(writeTextMarshaler),
		)))

	// ownForms are those of types that are not written field by field, and of numbers, which v2 knows from Go 1.27 on.
	ownForms = json.JoinMarshalers(
		json.MarshalToFunc(func(enc *jsontext.Encoder, v ownForm) error { return v.writeForm(enc) }),
		json.MarshalToFunc(func(enc *jsontext.Encoder, n stdjson.Number) error {
			return enc.WriteValue(jsontext.Value(cmp.Or(n, "0")))
		}),
	)
)

// marshalShown is the MarshalJSON of types of an ownForm.
func marshalShown(v ownForm) ([]byte, error) { return json.Marshal(v, shownForm) }

// ownForm is a type that is not written field by field. What it holds it writes with the options of enc, so that they
// reach the secrets in it.
type ownForm interface {
	writeForm(enc *jsontext.Encoder) error
}

// isSent reports whether enc writes what is sent, and not what is shown.
func isSent(enc *jsontext.Encoder) bool {
	isShown, _ := json.GetOption(enc.Options(), jsontext.AllowInvalidUTF8)
	return !isShown
}

// holder is a Secret, or a struct that embeds one or a pointer to one.
type holder interface{ secret() *Secret }

var errNoSecret = errors.New("an embedded *Secret is nil")

// writeSecret writes the text. The mark in its place would be taken for a card number.
func writeSecret(enc *jsontext.Encoder, s Secret) error {
	text := s.Reveal()
	if hasMark(text) {
		return errRedacted
	}
	return enc.WriteToken(jsontext.String(text))
}

// writeMarshaler refuses marks in raw JSON, and those of a MarshalJSON method, which no option reaches.
func writeMarshaler(enc *jsontext.Encoder, v json.Marshaler) error {
	if _, takesOptions := v.(json.MarshalerTo); takesOptions {
		return jsonskip.Err
	}
	text, err := v.MarshalJSON()
	if err == nil && isMarked(text) {
		err = errRedacted
	}
	if err != nil {
		return &json.SemanticError{Err: err} // whose place is not that of an error within it
	}
	return enc.WriteValue(text)
}

// writeTextMarshaler refuses the mark of a MarshalText method, which no option reaches either.
func writeTextMarshaler(enc *jsontext.Encoder, v encoding.TextMarshaler) error {
	if _, takesOptions := v.(json.MarshalerTo); takesOptions {
		return jsonskip.Err
	}
	text, err := v.MarshalText()
	if err == nil && hasMark(string(text)) {
		err = errRedacted
	}
	if err != nil {
		return &json.SemanticError{Err: err}
	}
	return enc.WriteToken(jsontext.String(string(text)))
}

// isMarked reports whether a JSON text has the mark of a secret as one of its texts.
func isMarked(text []byte) bool {
	if !bytes.Contains(text, []byte(strings.Trim(redacted, "[]"))) {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), tolerantForm)
	for {
		token, err := dec.ReadToken()
		if err != nil || token.Kind() == '"' && hasMark(token.String()) {
			return err == nil
		}
	}
}

// unwritable says where and why v cannot be written. It repeats no values and no names in maps, which may be anything.
func unwritable(v any, err error) (path, reason string) {
	var place jsontext.Pointer // of the outermost, which is seen from v
	for {
		if e, ok := errors.AsType[*json.SemanticError](err); ok {
			place, err = cmp.Or(place, e.JSONPointer), e.Err
			if err == nil {
				err = fmt.Errorf("%v has no form", e.GoType)
			}
		} else if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			place, err = cmp.Or(place, e.JSONPointer), e.Err
		} else {
			return wirePath(reflect.ValueOf(v), place), fmt.Sprintf("cannot be written as JSON: %v", err)
		}
	}
}

// wirePath turns a place in the JSON of v into a path such as billing_cards[1].exp_date.
func wirePath(v reflect.Value, place jsontext.Pointer) string {
	names := knownNames(v, place)
	for i, name := range names {
		if _, err := strconv.Atoi(name); err == nil {
			names[i] = "[" + name + "]"
		} else if i > 0 {
			names[i] = "." + name
		}
	}
	return cmp.Or(strings.Join(names, ""), "body")
}

// knownNames gives the tokens of a place in the JSON of v up to where they are names in a map, which may be anything. A
// field of [ApplicationData] goes by its key.
func knownNames(v reflect.Value, place jsontext.Pointer) (names []string) {
	for token := range place.Tokens() {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if !v.IsValid() {
			break
		}
		if data, ok := reflect.TypeAssert[ApplicationData](v); ok {
			v = reflect.ValueOf(data.fields())
		}
		switch v.Kind() {
		case reflect.Struct:
			if field, ok := reflect.TypeAssert[ApplicationField](v); ok {
				v = reflect.ValueOf(field.Value)
				continue
			}
			v = member(v, token)
		case reflect.Slice, reflect.Array:
			i, err := strconv.Atoi(token)
			if err != nil || i >= v.Len() {
				return names
			}
			v = v.Index(i)
			if field, ok := reflect.TypeAssert[ApplicationField](v); ok {
				names = []string{field.Key}
				continue
			}
		default:
			return names
		}
		if !v.IsValid() {
			return names
		}
		names = append(names, token)
	}
	return names
}

// member returns the field of a struct with that name in JSON.
func member(v reflect.Value, name string) reflect.Value {
	field, name := fieldNamed(v.Type(), name)
	if name == "" {
		return reflect.Value{}
	}
	value, _ := v.FieldByIndexErr(field.Index) // none behind a nil pointer
	return value
}

// fieldNamed returns the field of a struct with that name in JSON, in whatever case, and the name as it is declared.
func fieldNamed(t reflect.Type, name string) (reflect.StructField, string) {
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag = cmp.Or(tag, field.Name); field.IsExported() && strings.EqualFold(tag, name) {
			return field, tag
		}
	}
	return reflect.StructField{}, ""
}

// secretsOf finds the texts of all secrets that are sent with a request.
func secretsOf(body any) []string {
	var texts []string
	collect := json.MarshalToFunc(func(enc *jsontext.Encoder, v holder) error {
		if v.secret() != nil {
			texts = append(texts, v.secret().Reveal())
		}
		return enc.WriteToken(jsontext.String(strconv.Itoa(len(texts)))) // also where it is a name in a map
	})
	all, _ := json.GetOption(wireForm, json.WithMarshalers)
	_, _ = json.Marshal(body, wireForm, json.WithMarshalers(json.JoinMarshalers(collect, all)))
	return texts
}

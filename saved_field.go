package payvault

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json" // becomes encoding/json/v2 in Go 1.27
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
)

// SavedField is a field of an application as the service has saved it. To store a SavedField, write it with
// [MarshalWire] and encrypt the result. json.Marshal would write [REDACTED] in place of the value. MarshalWire refuses
// a value that contains an object in which a name occurs twice. [SavedField.Decode] reads the value of one field.
// [ApplicationDataOf] reads the values of all fields.
type SavedField struct {
	Key      string        `json:"key"`
	Value    Secret        `json:"value"` // raw JSON, so a string has its quotes; empty if the service sent null
	Type     string        `json:"type"`  // kind of field, such as "text" or "toggle"
	Settings FieldSettings `json:"settings"`
}

// Decode stores the value in a variable of the caller; into is a pointer to that variable. The variable has the type of
// the field in [ApplicationData], such as string, *bool, [Secret] or [Ownership], or any other type that fits the JSON.
// In a variable of type any, all numbers are [encoding/json.Number]. In a variable of another type, numbers in parts of
// type any, such as the values of a map[string]any, are float64, which may lose digits. If a value cannot be read, the
// error has its place, a JSON pointer that begins with the key.
//
// If the field has no value, Decode changes nothing. If the variable or a part of it is a pointer, the values null, "",
// [] and {} do not change this pointer. The value false changes a *bool, and no other pointer.
func (f SavedField) Decode(into any) error {
	if err := readSaved(f.Key, jsontext.Value(f.Value.Reveal()), into, answer.ReadSaved); err != nil {
		return fmt.Errorf("payvault: %w", err)
	}
	return nil
}

// savedField is the wire form of a SavedField. T is RawMessage for reading the value, and secretJSON for writing it.
type savedField[T any] struct {
	Key      string        `json:"key"`
	Value    T             `json:"value"`
	Type     string        `json:"type"`
	Settings FieldSettings `json:"settings"`
}

// savedOf makes a SavedField of a wire form that was read. The JSON of the value becomes a secret.
func savedOf(wire savedField[stdjson.RawMessage]) SavedField {
	saved := SavedField{Key: wire.Key, Type: wire.Type, Settings: wire.Settings}
	if value := jsontext.Value(wire.Value); value.Kind() != 'n' {
		// Let Compact write an incomplete character as U+FFFD, because MarshalWire would refuse the character itself.
		_ = value.Compact(jsontext.PreserveRawStrings(false)) // no error, because the value was read before
		saved.Value = NewSecret(string(value))
	}
	return saved
}

// readSaved decodes raw, the value of a key, into the variable that into points to. If raw is null or empty, the
// variable stays unchanged. The parameter read is answer.ReadSaved or answer.ReadGiven. For a variable of type any,
// readSaved calls answer.ReadExactly instead. A bank routing number that has lost a zero is an error. If a value cannot
// be read, the error has its place, a JSON pointer that begins with the key.
func readSaved(key string, raw jsontext.Value, into any, read func(text []byte, into any) error) error {
	variable := reflect.ValueOf(into)
	if variable.Kind() != reflect.Pointer || variable.IsNil() {
		return fmt.Errorf("%s needs a pointer that is not nil to be read into", key)
	}
	if len(raw) == 0 || raw.Kind() == 'n' {
		return nil
	}
	if strings.EqualFold(key, "bank_routing") && answer.HasLostZero(raw) {
		return &answer.PlaceError{Place: "/" + key, Why: "a number of fewer than nine digits"}
	}
	why := fmt.Sprintf("not of the type %v", variable.Type().Elem())
	if _, isOpen := into.(*any); isOpen {
		read, why = answer.ReadExactly, ""
	}
	err := read(raw, into)
	if err == nil {
		return nil
	}
	place := &answer.PlaceError{Place: "/" + key, Why: why}
	if within, ok := errors.AsType[*answer.PlaceError](err); ok {
		place = &answer.PlaceError{Place: place.Place + within.Place, Why: cmp.Or(within.Why, why)}
	}
	return place
}

// redactedAt returns the error for a JSON value that contains [REDACTED]. The place in the error is a JSON pointer that
// begins with name.
func redactedAt(name string, value jsontext.Value) error {
	names := append([]string{"", name}, answer.PlainNames(placeOfMark(value))...)
	return &answer.PlaceError{Place: strings.Join(names, "/"), Why: errRedacted.Error()}
}

// MarshalJSON writes the wire form, with [REDACTED] in place of the value.
func (f SavedField) MarshalJSON() ([]byte, error) { return marshalShown(f) }

func (f SavedField) writeJSON(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, savedField[secretJSON]{f.Key, secretJSON{f.Value}, f.Type, f.Settings})
}

// UnmarshalJSON reads the wire form. It fails if [REDACTED] stands in the value, written without escapes.
func (f *SavedField) UnmarshalJSON(b []byte) error {
	var wire savedField[stdjson.RawMessage]
	if err := answer.Read(b, &wire); err != nil {
		return err
	}
	if hasMark(string(wire.Value)) {
		return redactedAt("value", jsontext.Value(wire.Value))
	}
	*f = savedOf(wire)
	return nil
}

// FieldSettings describes the values that a field takes.
type FieldSettings struct {
	Required bool          `json:"required"`          // the service reports the field as required
	Options  []FieldOption `json:"options,omitempty"` // the allowed values; empty for a free field
}

// FieldOption is one of the values that a field takes.
type FieldOption struct {
	Label    string `json:"label"`
	Value    string `json:"value"` // a number or true stays as the service wrote it; false and null are ""
	Disabled bool   `json:"disabled,omitzero"`
}

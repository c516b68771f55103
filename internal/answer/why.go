package answer

import (
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
)

// unfit is the prefix of the description of a value in an error of [Unfit]. whyUnfit recognizes such an error by this
// prefix, because encoding/json describes no value in this way. The texts of other errors are not repeated, because
// they may quote a value.
const unfit = "a value that is "

// Unfit returns the error of the method UnmarshalJSON of type T, or nil if why is nil. why says what the value is, such
// as "not a date", and contains no part of the value. Up to Go 1.26, encoding/json adds the names of the fields around
// the value to the error. From Go 1.27 on, [UnmarshalFrom] adds them.
func Unfit[T any](why error) error {
	if why == nil {
		return nil
	}
	return &stdjson.UnmarshalTypeError{Value: unfit + why.Error(), Type: reflect.TypeFor[T]()}
}

// whyUnfit returns the reason in an error of [Unfit]. It returns "" for any other error.
func whyUnfit(err error) string {
	wrong, ok := errors.AsType[*stdjson.UnmarshalTypeError](err)
	if !ok || !strings.HasPrefix(wrong.Value, unfit) {
		return ""
	}
	return strings.TrimPrefix(wrong.Value, unfit)
}

// UnmarshalFrom implements the method UnmarshalJSONFrom, which encoding/json calls from Go 1.27 on. UnmarshalFrom calls
// the method UnmarshalJSON, and adds the place of the value to an error of [Unfit].
func UnmarshalFrom(dec *jsontext.Decoder, into json.Unmarshaler) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	err = into.UnmarshalJSON(raw)
	if why := whyUnfit(err); why != "" {
		return &json.SemanticError{
			JSONPointer: dec.StackPointer(), JSONKind: raw.Kind(), GoType: reflect.TypeOf(into).Elem(), Err: errors.New(why),
		}
	}
	return err
}

// placeError returns the error of a value that could not be read into a variable of the given type. err is the error of
// a function of this package, or of the type's own UnmarshalJSON.
func placeError(pointer jsontext.Pointer, err error, of reflect.Type) *PlaceError {
	if within, ok := errors.AsType[*PlaceError](err); ok {
		return &PlaceError{placeOf(pointer + jsontext.Pointer(within.Place)), within.Why}
	}
	unreadable := &PlaceError{placeOf(pointer), whyUnfit(err)}
	switch {
	case errors.Is(err, errOtherKind):
		unreadable.Why = notOf(of)
	case errors.Is(err, errLostDigits), errors.Is(err, errNoID):
		unreadable.Why = err.Error()
	}
	return unreadable
}

// notOf says that a value is not of the given type.
func notOf(of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.String:
		return "not a text"
	case reflect.Bool:
		return "neither true nor false"
	case reflect.Slice, reflect.Array:
		return "not a list"
	case reflect.Struct, reflect.Map:
		return "not an object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "not an integer that fits"
	}
	return "not a number"
}

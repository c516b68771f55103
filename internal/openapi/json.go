package openapi

import (
	stdjson "encoding/json"
	"errors"
	"slices"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
)

// Numbers keeps the digits of numbers where a type is open: they become [stdjson.Number].
func Numbers() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported // by this function; the package goes on by itself
		}
		text, err := dec.ReadValue()
		*v = stdjson.Number(text)
		return err
	}))
}

// Parse reads the JSON that stands at a path of a request. The package refuses invalid UTF-8 and names that are given
// twice.
func Parse(path string, text []byte) (any, Problems) {
	var value any
	err := json.Unmarshal(text, &value, Numbers())
	if failure, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(failure, jsontext.ErrDuplicateName) {
		return nil, Problems{WirePath(path, slices.Collect(failure.JSONPointer.Tokens())...): {"is given twice"}}
	}
	if err != nil {
		return nil, Problems{WirePath(path, "body"): {"is not one well-formed JSON value in UTF-8"}}
	}
	return value, nil
}

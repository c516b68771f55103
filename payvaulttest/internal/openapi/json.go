package openapi

import (
	stdjson "encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/jsonskip"
)

// numbers keeps the digits of numbers in values of type any: they become [stdjson.Number].
//
//nolint:gochecknoglobals // never changed, and the package remembers what it found in it
var numbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return jsonskip.Err // other values are decoded by the package itself
	}
	text, err := dec.ReadValue()
	if *v = stdjson.Number(text); err == nil && !isShort(string(text)) {
		return errors.New("a number is too long")
	}
	return err
}))

// isShort reports whether a number can be compared fast: the validator makes exact fractions of numbers.
func isShort(number string) bool {
	const digits, exponent = 64, 3
	_, after, _ := strings.Cut(strings.ToLower(number), "e")
	return len(number) <= digits && len(strings.TrimLeft(after, "+-0")) <= exponent
}

// Parse reads JSON. path is its path in the request. The package refuses invalid UTF-8 and names that occur twice.
func Parse(path string, text []byte) (any, Problems) {
	var value any
	err := json.Unmarshal(text, &value, numbers)
	if failure, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(failure, jsontext.ErrDuplicateName) {
		return nil, Problems{WirePath(path, slices.Collect(failure.JSONPointer.Tokens())...): {"is given twice"}}
	}
	if err != nil {
		const message = "is not one well-formed JSON value in UTF-8, or a number in it is too long"
		return nil, Problems{WirePath(path, "body"): {message}}
	}
	return value, nil
}

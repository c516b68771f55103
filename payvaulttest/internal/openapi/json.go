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

// numbers is an option that decodes a number in a value of type any as a [stdjson.Number], which keeps all digits. The
// option refuses a number for which isShort returns false.
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

// isShort reports whether a number has few digits and a small exponent. The validator converts each number to an exact
// fraction. That can take minutes if the number is long or its exponent is large.
func isShort(number string) bool {
	const digits, exponent = 64, 3
	_, after, _ := strings.Cut(strings.ToLower(number), "e")
	return len(number) <= digits && len(strings.TrimLeft(after, "+-0")) <= exponent
}

// Parse decodes one JSON value. path is the path of the value in the request. The json package refuses invalid UTF-8
// and names that occur twice.
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

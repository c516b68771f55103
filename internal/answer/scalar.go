package answer

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
	"github.com/govalues/decimal"

	"example.com/payvault/internal/jsonskip"
)

var errOtherKind = errors.New("a value of another kind")

// set is like setScalar, but the variable may also be a pointer. The pointer then points to a new variable with the
// value, or is nil if the value means "none" (see IsNone).
func set(raw jsontext.Value, target reflect.Value) error {
	if target.Kind() != reflect.Pointer || IsNone(raw) {
		return setScalar(raw, target)
	}
	variable := reflect.New(target.Type().Elem())
	if err := setScalar(raw, variable.Elem()); err != nil {
		return err
	}
	target.Set(variable)
	return nil
}

// setScalar sets a variable from a JSON value of another kind, such as a string from a number or a bool from "Y". If
// the value means "none" (see IsNone), a list becomes empty, and any other variable becomes zero. A list of texts may
// be set from a scalar, which becomes its only element. Integers, quoted or not, are read here too. Any other value is
// an error.
func setScalar(raw jsontext.Value, target reflect.Value) error {
	isScalar := raw.Kind() == '"' || raw.Kind() == '0' || raw.Kind() == 't'
	switch {
	case IsNone(raw) && target.Kind() == reflect.Slice:
		target.Set(reflect.MakeSlice(target.Type(), 0, 0))
	case IsNone(raw):
		target.SetZero()
	case !isScalar:
		return errOtherKind
	case target.Kind() == reflect.String:
		target.SetString(Text(raw)) // a number becomes a text with all its digits
	case target.Type() == reflect.TypeFor[[]string]():
		target.Set(reflect.ValueOf([]string{Text(raw)}))
	case target.Kind() == reflect.Bool:
		return setFlag(Text(raw), target)
	case target.CanInt():
		return setInteger(Text(raw), target)
	default:
		return errOtherKind
	}
	return nil
}

// setInteger sets an integer from a text such as 5, 5.0 or 5e0. Any other text, or a number that does not fit, is an
// error.
func setInteger(text string, target reflect.Value) error {
	number, isExact := Decimal(strings.TrimSpace(text))
	whole, _, fits := number.Int64(0)
	if !isExact || !fits || !number.IsInt() || target.OverflowInt(whole) {
		return errOtherKind
	}
	target.SetInt(whole)
	return nil
}

// setFlag sets a bool from a word or digit that services send for true or false. Any other text is an error.
func setFlag(text string, target reflect.Value) error {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "t", "y", "yes", "on", "1":
		target.SetBool(true)
	case "false", "f", "n", "no", "off", "0":
		target.SetBool(false)
	default:
		return errOtherKind
	}
	return nil
}

// IsNone reports whether a JSON value means "none": null, "", false, [] or {}. PHP writes each of them. There may be
// blanks inside the quotes, brackets or braces.
func IsNone(raw jsontext.Value) bool {
	switch raw.Kind() {
	case 'n', 'f':
		return true
	case '"':
		if bytes.IndexByte(raw, '\\') >= 0 { // a blank may be written as an escape, such as \u00a0
			return strings.TrimSpace(Text(raw)) == ""
		}
		fallthrough
	case '[', '{':
		return len(raw) >= 2 && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
	}
	return false
}

// Text returns the text of a JSON string, "" for null, and any other value unchanged.
func Text(raw jsontext.Value) string {
	switch raw.Kind() {
	case 'n':
		return ""
	case '"':
		within := bytes.TrimSuffix(raw[1:], []byte(`"`))
		if bytes.IndexByte(within, '\\') < 0 && utf8.Valid(within) {
			return string(within)
		}
		text, _ := jsontext.AppendUnquote(nil, raw) // ignore the error: bytes that are not UTF-8 are replaced
		return string(text)
	}
	return string(raw)
}

// Trimmed returns the text of a value without blanks around it, and "" for a value that means "none". It is for types
// with their own UnmarshalJSON.
func Trimmed(raw jsontext.Value) string {
	if IsNone(raw) {
		return ""
	}
	return strings.TrimSpace(Text(raw))
}

// Decimal reads a decimal number, and reports whether the result is exact. The result is not exact if package decimal
// cannot parse the text, or if it changed the number by rounding it to 19 digits. In the second case, the significant
// digits differ before and after the rounding.
func Decimal(text string) (number decimal.Decimal, isExact bool) {
	number, err := decimal.Parse(text)
	hasExponent := strings.Contains(text, "e") || strings.Contains(text, "E")
	if err != nil || len(text) <= decimal.MaxPrec && !hasExponent { // a short text is never rounded
		return number, err == nil
	}
	mantissa := text[:strings.IndexAny(text+"e", "eE")]
	return number, significant(mantissa) == significant(number.String())
}

// significant returns the digits of a number without the zeros at its beginning and end.
func significant(number string) string {
	return strings.Trim(strings.Replace(number, ".", "", 1), "+-0")
}

// exactNumbers reads a number into a variable of type any as a stdjson.Number, which keeps all digits.
//
//nolint:gochecknoglobals // never changed
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, into *any) error {
	if dec.PeekKind() != '0' {
		return jsonskip.Err
	}
	raw, err := dec.ReadValue()
	*into = stdjson.Number(raw)
	return err
}))

// ReadExactly decodes a text whose form is not documented. It tolerates only bytes that are not UTF-8 and halves of
// characters, and reads them as U+FFFD. Numbers in variables of type any become [stdjson.Number]. An error contains no
// part of the text.
func ReadExactly(text []byte, into any) error {
	if isTooMany(text, countContainers(text)) {
		return ErrTooMany
	}
	if json.Unmarshal(text, into, exactNumbers, brokenText) != nil {
		return &PlaceError{}
	}
	return nil
}

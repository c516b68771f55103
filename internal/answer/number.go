package answer

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/govalues/decimal"
)

// This file implements the struct tag "answer". The tag says how a JSON number is read into a field that holds an ID, a
// date or a code, and not a quantity:
//
//   - answer:"id" is an ID. A number with an exponent, or with a fraction other than zeros, may have lost digits and
//     cannot be read. In an integer field, a quoted number is treated alike. The value true cannot be read either.
//   - answer:"mmyy" is a month and a year. A number of three digits has lost its first zero and gets it back.
//   - answer:"iso" is a code of three digits. A number of one or two digits has lost zeros and gets them back. The
//     number 0 stays 0.
//
// In all three, a fraction of zeros is left out: 17.0 is read as 17. In a field of type string without the tag, a
// number keeps all of its characters.
const (
	tagID   = "id"
	tagMMYY = "mmyy"
	tagISO  = "iso"
)

var (
	errLostDigits = errors.New("a number that has lost digits")
	errNoID       = errors.New("not an ID")
)

// tagsByType has the results of tagsOf.
var tagsByType sync.Map //nolint:gochecknoglobals // a cache

// tagsOf returns the tags "answer" of the fields of a struct type, by the offsets of the fields. It leaves out the
// fields of embedded structs.
func tagsOf(structType reflect.Type) map[uintptr]string {
	known, _ := tagsByType.Load(structType)
	if tags, ok := known.(map[uintptr]string); ok {
		return tags
	}
	tags := map[uintptr]string{}
	for field := range structType.Fields() {
		if tag := field.Tag.Get("answer"); tag != "" {
			tags[field.Offset] = tag
		}
	}
	tagsByType.Store(structType, tags)
	return tags
}

// setTagged is like [set], but follows the tag of the variable. If the variable is an ID, setTagged refuses true, and a
// number that may have lost digits. isCompleted reports whether setTagged has added zeros to a code of three digits.
func setTagged(tag string, raw jsontext.Value, variable reflect.Value) (isCompleted bool, err error) {
	isNumber := raw.Kind() == '0'
	isQuotedNumber := raw.Kind() == '"' && variable.CanInt() && isDecimal(Text(raw))
	switch {
	case tag == tagID && raw.Kind() == 't':
		return false, errNoID
	case tag == "" || !isNumber && !isQuotedNumber:
		return false, set(raw, variable)
	}
	digits, err := Digits(Text(raw))
	switch {
	case tag == tagID && err != nil:
		return false, err
	case isQuotedNumber || err != nil:
		return false, set(raw, variable)
	}
	digits, isCompleted = withZeros(tag, digits)
	return isCompleted, set(jsontext.Value(`"`+digits+`"`), variable)
}

// withZeros returns the digits with the zeros that they have lost. isCompleted reports whether a code of three digits
// gets zeros.
func withZeros(tag, digits string) (text string, isCompleted bool) {
	hasSign, isZero := strings.HasPrefix(digits, "-"), digits == "0"
	switch {
	case tag == tagMMYY && len(digits) == 3:
		return "0" + digits, false
	case tag == tagISO && len(digits) < 3 && !hasSign && !isZero:
		return strings.Repeat("0", 3-len(digits)) + digits, true
	}
	return digits, false
}

// isDecimal reports whether package decimal can parse a text. Blanks around the text do not matter.
func isDecimal(text string) bool {
	_, err := decimal.Parse(strings.TrimSpace(text))
	return err == nil
}

// Digits returns the digits of a number. It leaves out a fraction of zeros. It returns an error for a number with an
// exponent or another fraction, because such a number may have lost digits.
func Digits(number string) (string, error) {
	whole, fraction, _ := strings.Cut(number, ".")
	if strings.ContainsAny(number, "eE") || strings.Trim(fraction, "0") != "" {
		return "", errLostDigits
	}
	return whole, nil
}

// HasLostZero reports whether the JSON value of a bank routing number is a number that has lost a zero. A routing
// number has nine digits. The result is false for a text, because a text keeps its zeros.
func HasLostZero(routing jsontext.Value) bool {
	digits, err := Digits(string(routing))
	return routing.Kind() == '0' && err == nil && len(digits) < 9
}

package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A problem has the path of its field, below the path that is given.
func TestParse(t *testing.T) {
	t.Parallel()
	const notJSON = "is not one well-formed JSON value in UTF-8, or a number in it is too long"
	for text, want := range map[string]Problems{
		`{"a":[{"b":1,"b":2}]}`: {"in.a[0].b": {"is given twice"}},
		"{\"a\":\"\xff\"}":      {"in.body": {notJSON}},
		`{} {}`:                 {"in.body": {notJSON}},
		`{"a":1e999}`:           nil,
	} {
		_, wrong := Parse("in", []byte(text))
		assert.Equal(t, want, wrong, text)
	}
}

// The validator would take minutes for numbers that are long or have a large exponent.
func TestNumbersThatTakeLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 900_000)
	for number, fits := range map[string]bool{
		"1e308": true, "-1.5E-007": true, strings.Repeat("9", 64): true,
		"1e999999": false, "1E-999999": false, "1e+0001000": false, long: false, "0." + long: false,
	} {
		_, wrong := Parse("", []byte(`{"size":`+number+`}`))
		assert.Equal(t, fits, wrong == nil, number[:5])
	}
}

package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNumbersThatTakeLong checks that Parse refuses numbers that are long or have a large exponent. The validator might
// take minutes to check them.
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

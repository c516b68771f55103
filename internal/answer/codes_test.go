package answer

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCodes_Check checks that an answer is a success only if its deciding code has the documented value of a success
// and its other code does not mean failure.
func TestCodes_Check(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][3]error{ // the errors for ByCode, ByRCode and ByEither
		`{"code":0}`:                        {nil, ErrNoCode, nil},
		`{"code":"0"}`:                      {nil, ErrNoCode, nil},
		`{"code":0.0}`:                      {nil, ErrNoCode, nil},
		`{"rcode":"000"}`:                   {ErrNoCode, nil, nil},
		`{"rcode":0}`:                       {ErrNoCode, nil, nil}, // the number 000 is written as 0
		`{"rcode":0.0}`:                     {ErrNoCode, nil, nil},
		`{"rcode":"0"}`:                     {ErrNoCode, ErrOtherCode, ErrOtherCode},
		`{"code":"000"}`:                    {ErrOtherCode, ErrNoCode, ErrOtherCode},
		`{"code":7}`:                        {ErrOtherCode, ErrNoCode, ErrOtherCode},
		`{}`:                                {ErrNoCode, ErrNoCode, ErrNoCode},
		`{"code":null,"rcode":""}`:          {ErrNoCode, ErrNoCode, ErrNoCode},
		`{"code":0,"code":7}`:               {ErrOtherCode, ErrNoCode, ErrOtherCode},
		`{"code":7,"code":0}`:               {ErrOtherCode, ErrNoCode, ErrOtherCode},
		`{"code":0,"code":null}`:            {nil, ErrNoCode, nil},
		`{"code":0,"rcode":"000"}`:          {nil, nil, nil},
		`{"code":0,"rcode":"000 Approved"}`: {nil, ErrDisagree, nil},
		// A word such as Approved means neither success nor failure.
		`{"code":0,"rcode":"Approved"}`: {nil, ErrDisagree, nil},
		`{"code":0,"rcode":"051"}`:      {ErrDisagree, ErrDisagree, ErrDisagree},
		`{"code":5,"rcode":"000"}`:      {ErrDisagree, ErrDisagree, ErrDisagree},
		`{"code":5,"rcode":"051"}`:      {ErrOtherCode, ErrOtherCode, ErrOtherCode},
		`{"code":"OK","rcode":"000"}`:   {ErrDisagree, nil, ErrDisagree},
	} {
		var codes Codes
		_, err := ReadLenient([]byte(text), &codes)
		require.NoError(t, err)
		for by, wanted := range want {
			assert.Equal(t, wanted, codes.Check(Decider(by)), "%s by %d", text, by)
		}
	}
}

// TestCode_unreadable checks which JSON values are refused as a code, and which codes are zero.
func TestCode_unreadable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`true`, `{"a":1}`, `[7]`, `"` + strings.Repeat("7", MostSaid) + `"`} {
		var code Code
		assert.Error(t, json.Unmarshal([]byte(text), &code), "%.20s", text)
		assert.Empty(t, code)
	}
	for _, zero := range []Code{"0", "000", "0.0", "-0", " 0", "0e5"} {
		assert.True(t, zero.IsZero(), zero)
	}
	for _, other := range []Code{"", "1", "0x0", "10", "zero", "1e999"} {
		assert.False(t, other.IsZero(), other)
	}
}

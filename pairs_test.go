package payvault_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestPairs checks that names and values keep their order and all their digits when they are written and read.
func TestPairs(t *testing.T) {
	t.Parallel()
	pairs := payvault.Pairs{
		{"order", "17"},
		{"lane", "4"},
		{"order", "18"},
		{"a&b<c>", `"\ é 🙂`},
		{"", ""},
		{"null", nil},
		{"flag", true},
		{"n", json.Number("12345678901234567890.10")},
		{"o", map[string]any{"b": json.Number("1.50"), "a": []any{json.Number("9007199254740993")}}},
	}
	text, err := json.Marshal(pairs)
	require.NoError(t, err)
	inner, err := decode[string](string(text))
	require.NoError(t, err, "text that holds the array")
	assert.Equal(t, `[{"order":"17"},{"lane":"4"},{"order":"18"},{"a&b<c>":"\"\\ é 🙂"},{"":""},{"null":null},`+
		`{"flag":true},{"n":12345678901234567890.10},{"o":{"a":[9007199254740993],"b":1.50}}]`, inner,
		"in order, with duplicates, exact, not escaped for HTML")

	back, err := decode[payvault.Pairs](string(text))
	require.NoError(t, err)
	assert.Equal(t, pairs, back)
	parsed, err := payvault.ParsePairs(inner)
	require.NoError(t, err)
	assert.Equal(t, pairs, parsed)

	service.AssertWire(t, payvault.Pairs{}, `"[]"`)
	for _, none := range []string{`null`, `""`} {
		got, err := decode[payvault.Pairs](none)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

// TestPairs_refused checks that ParsePairs fails unless the text is an array of single-pair objects, and that decoding
// fails unless a JSON string holds such an array. The errors must not contain the text. Encoding fails for a value that
// JSON cannot represent.
func TestPairs_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{"a":1}`, `[1]`, `[null]`, `[{}]`, `[{"a":1},{"b":2,"c":3}]`, `[{"a":1,"a":2}]`, `[{"a":1}] x`, `[{"a":1}`,
		`"[]"`, `null`, `[{"` + garbageCanary + `":}]`, strings.Repeat("[", 100_000),
	} {
		pairs, err := payvault.ParsePairs(text)
		assert.EqualError(t, err, "not a JSON array of single-pair objects", "%.80s", text)
		assert.Nil(t, pairs)
	}
	assertUnreadable[payvault.Pairs](t, `[]`, `[{"a":1}]`, `{}`, `17`)
	_, err := json.Marshal(payvault.Pairs{{"f", func() {}}})
	assert.Error(t, err, "what JSON cannot write")
}

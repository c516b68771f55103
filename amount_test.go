package payvault_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"testing"
	"text/template"

	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestAmount checks that an amount is read exactly, with all digits after the point, and written as a JSON number. The
// tests of internal/answer cover more forms of numbers.
func TestAmount(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]string{
		`12.50`: "12.50", `-12.50`: "-12.50", `0`: "0", `1250e-2`: "12.50", `"12.50"`: "12.50", `"\u0031\u002e5"`: "1.5",
		`" 12.50 "`: "12.50", `"1.5e1"`: "15", `"1,234.50"`: "1234.50", `"-12,345,678.9"`: "-12345678.9",
		`null`: "0", `""`: "0", `[]`: "0", `{}`: "0", `false`: "0",
		`-9999999999999999999`: "-9999999999999999999", `0.0000000000000000001`: "0.0000000000000000001",
		`9007199254740993`: "9007199254740993", // not exact in a float64
	} {
		got := payvault.MustParseAmount("1") // UnmarshalJSON replaces it, even by null
		require.NoError(t, json.Unmarshal([]byte(wire), &got), wire)
		assert.Equal(t, want, got.String())
		text, err := json.Marshal(got)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

// TestAmount_refused checks that reading fails for a number that does not fit into 19 digits, and for a text that is
// not a number or has misplaced or ambiguous commas. The error does not contain the text.
func TestAmount_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`99999999999999999999`, `1.00000000000000000001`, `1e-20`, `1e400`} {
		_, err := payvault.ParseAmount(text)
		assert.EqualError(t, err, "not a decimal number of at most 19 digits", text)
		assertUnreadable[payvault.Amount](t, text, `"`+text+`"`)
	}
	assertUnreadable[payvault.Amount](t, `"1,50"`, `"1,234"`, `"1.234,50"`, `"1,23.50"`, `"1234,567.50"`, `"1,234.50."`,
		`",234.50"`, `"1,234."`, `"NaN"`, `"0x10"`, `"12.50 USD"`)
	_, err := payvault.ParseAmount("")
	require.Error(t, err)
	assert.Panics(t, func() { payvault.MustParseAmount("12.50 USD") })
}

// TestAmount_isExact checks that NewAmount, AmountOf and Decimal do not round.
func TestAmount_isExact(t *testing.T) {
	t.Parallel()
	assert.Equal(t, decimal.MustParse("0.3"), payvault.MustParseAmount("0.3").Decimal())
	assert.Equal(t, "0.3", payvault.AmountOf(decimal.MustParse("0.3")).String())
	amount, err := payvault.NewAmount(1250, 2)
	require.NoError(t, err)
	assert.Equal(t, "12.50", amount.String())
	amount, err = payvault.NewAmount(math.MinInt64, 19)
	require.NoError(t, err)
	assert.Equal(t, "-0.9223372036854775808", amount.String())
	for _, scale := range []int{-1, 20} {
		_, err = payvault.NewAmount(1, scale)
		assert.EqualError(t, err, "not a decimal number of at most 19 digits")
	}
	assert.Equal(t, "0", payvault.Amount{}.String())
}

// TestAmount_print checks what package fmt writes for an amount and for a pointer to it, and what a template writes for
// an amount.
func TestAmount_print(t *testing.T) {
	t.Parallel()
	amount := payvault.MustParseAmount("12.50")
	for format, want := range map[string]string{
		"%v": "12.50", "%s": "12.50", "%f": "12.50", "%.1f": "12.5", "%8.3f": "  12.500", "%q": `"12.50"`,
		"%d": "%!d(decimal.Decimal=12.50)", "%g": "%!g(decimal.Decimal=12.50)", "%#v": "12.50",
	} {
		assert.Equal(t, want, fmt.Sprintf(format, amount))
		assert.Equal(t, want, fmt.Sprintf(format, &amount))
	}
	var page strings.Builder
	parsed := template.Must(template.New("").Parse(`{{.}} {{printf "%.1f" .}}`))
	require.NoError(t, parsed.Execute(&page, amount))
	assert.Equal(t, "12.50 12.5", page.String())
}

// TestAmount_compare checks that Equal and Cmp compare amounts by value, and that the option omitzero leaves out only
// an amount that was never set.
func TestAmount_compare(t *testing.T) {
	t.Parallel()
	parse := payvault.MustParseAmount
	for _, same := range [][2]string{{"10.9", "10.90"}, {"0", "0.00"}, {"-0", "0"}, {"-1.50", "-1.5"}} {
		a, b := parse(same[0]), parse(same[1])
		assert.True(t, a.Equal(b) && b.Equal(a), same)
		assert.Zero(t, a.Cmp(b), same)
	}
	sorted := []payvault.Amount{parse("-2"), parse("-0.01"), {}, parse("0.1"), parse("10.9"), parse("10.91"), parse("99")}
	for i := range sorted[1:] {
		assert.False(t, sorted[i].Equal(sorted[i+1]))
		assert.Equal(t, -1, sorted[i].Cmp(sorted[i+1]), "%v", sorted[i])
		assert.Equal(t, +1, sorted[i+1].Cmp(sorted[i]), "%v", sorted[i])
	}
	type record struct {
		Refund payvault.Amount `json:"refund,omitzero"`
	}
	zero, err := payvault.NewAmount(0, 0)
	require.NoError(t, err)
	for _, test := range []struct {
		refund payvault.Amount
		want   string
	}{
		{payvault.Amount{}, `{}`},
		{parse("0.00"), `{"refund":0.00}`},
		{parse("0"), `{"refund":0}`},
		{zero, `{"refund":0}`},
		{payvault.AmountOf(decimal.Zero), `{"refund":0}`},
	} {
		text, err := json.Marshal(record{test.refund})
		require.NoError(t, err)
		assert.Equal(t, test.want, string(text))
		var back record
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, test.refund, back.Refund)
		assert.True(t, test.refund.Equal(back.Refund))
	}
	none := record{parse("1")}
	require.NoError(t, json.Unmarshal([]byte(`{"refund":null}`), &none))
	assert.Equal(t, record{}, none)
}

// TestAmount_otherEncodings checks that amounts keep their exact value in XML and gob, and that reading an invalid text
// fails in XML.
func TestAmount_otherEncodings(t *testing.T) {
	t.Parallel()
	type record struct {
		Amount payvault.Amount `xml:"amount"`
		None   payvault.Amount `xml:"none"`
	}
	in := record{Amount: payvault.MustParseAmount("-12.50")}
	text, err := xml.Marshal(in)
	require.NoError(t, err)
	assert.Equal(t, "<record><amount>-12.50</amount><none>0</none></record>", string(text))
	var out record
	require.NoError(t, xml.Unmarshal(text, &out))
	assert.Equal(t, record{in.Amount, payvault.MustParseAmount("0")}, out)
	for _, odd := range []string{"1,50", ""} {
		assert.Error(t, xml.Unmarshal([]byte("<record><amount>"+odd+"</amount></record>"), new(record)), odd)
	}
	var gobbed bytes.Buffer
	require.NoError(t, gob.NewEncoder(&gobbed).Encode(in))
	out = record{}
	require.NoError(t, gob.NewDecoder(&gobbed).Decode(&out))
	assert.Equal(t, in, out)
}

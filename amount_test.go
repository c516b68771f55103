package payvault_test

import (
	"encoding/json"
	"encoding/xml"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestAmount checks that every form of a number that services send is read exactly and written as a JSON number.
func TestAmount(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]string{
		`12.50`: "12.50", `12.5`: "12.5", `12.500`: "12.500", `0`: "0", `-0.00`: "0.00", `-12.50`: "-12.50",
		`"12.50"`: "12.50", `"\u0031\u002e5"`: "1.5", `null`: "0", `""`: "0", `" 12.50 "`: "12.50", `0.1`: "0.1",
		`1e2`: "100", `1.5E+3`: "1500", `1250e-2`: "12.50", `"1,234.50"`: "1234.50", `"-12,345,678.9"`: "-12345678.9",
		`1.00000000000000000000`: "1.000000000000000000", `[]`: "0", `{}`: "0",
		`1e18`: "1000000000000000000", `1e-19`: "0.0000000000000000001",
		`-12345e-2`: "-123.45", `10000000000000000000e-1`: "1000000000000000000", `0E-5`: "0.00000",
		`"1.5e1"`: "15", `false`: "0",
		`0.0000000000000000001`: "0.0000000000000000001", `9999999999999999999`: "9999999999999999999",
		`-9999999999999999999`: "-9999999999999999999", `99999999999999999.99`: "99999999999999999.99",
		`9007199254740993`: "9007199254740993", // a float64 cannot hold it
	} {
		got, err := decode[payvault.Amount](wire)
		require.NoError(t, err, wire)
		assert.Equal(t, want, got.String())
		text, err := json.Marshal(got)
		require.NoError(t, err)
		assert.Equal(t, want, string(text), "a JSON number")
	}
}

// TestAmount_refusesWhatDoesNotFit checks that numbers of more than 19 digits, and texts that are no numbers, are
// refused.
func TestAmount_refusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`99999999999999999999`, `12345678901234567890.1`, `0.12345678901234567891`, `1.00000000000000000001`, `1e19`,
		`1e-20`, `1e400`, `1e-400`, `1e99999999999999999999`, strings.Repeat("9", 400), `0.` + strings.Repeat("0", 400) + `1`,
	} {
		_, err := payvault.ParseAmount(text)
		assert.EqualError(t, err, "not a decimal number of at most 19 digits", text)
		assertUnreadable[payvault.Amount](t, text, `"`+text+`"`)
	}
	assertUnreadable[payvault.Amount](t, `"1,50"`, `"1,234"`, `"1.234,50"`, `"1,23.50"`, `"1234,567.50"`, `"1,234.50."`,
		`",234.50"`, `"1,234,56.00"`, `"1,234."`, `"1.2.3"`, `"NaN"`, `"Infinity"`, `"0x10"`, `"1_000"`, `"--1"`, `"-"`,
		`"."`, `"1e"`, `"e1"`, `"-e1"`, `".e1"`, `"+-1e1"`, `"1.2.3e1"`, `"1e1e1"`, `"1e1.0"`)
	for _, text := range []string{"", garbageCanary, "12.50 USD", "1/3"} {
		_, err := payvault.ParseAmount(text)
		assert.Error(t, err, text)
	}
	assert.Panics(t, func() { payvault.MustParseAmount("12.50 USD") })
}

// TestAmount_isExact checks that an Amount converts to and from decimals and integers without rounding.
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

// TestValues_otherEncodings checks that amounts and dates keep their exact value in XML, which stores them as text.
func TestValues_otherEncodings(t *testing.T) {
	t.Parallel()
	type record struct {
		Amount   payvault.Amount `xml:"amount"`
		Date     payvault.Date   `xml:"date"`
		NoAmount payvault.Amount `xml:"none"`
		NoDate   payvault.Date   `xml:"no_date"`
	}
	in := record{Amount: payvault.MustParseAmount("-12.50"), Date: payvault.Date{2026, time.March, 14}}
	text, err := xml.Marshal(in)
	require.NoError(t, err)
	want := "<record><amount>-12.50</amount><date>2026-03-14</date><none>0</none><no_date></no_date></record>"
	assert.Equal(t, want, string(text))
	var out record
	require.NoError(t, xml.Unmarshal(text, &out))
	assert.Equal(t, in, out)
	for _, odd := range []string{"<amount>1,50</amount>", "<amount></amount>", "<date>14.3.2026</date>"} {
		assert.Error(t, xml.Unmarshal([]byte("<record>"+odd+"</record>"), new(record)), odd)
	}
	_, err = xml.Marshal(payvault.Date{2026, 2, 30})
	assert.Error(t, err)
}

package payvault_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// decode reads a JSON text.
func decode[T any](text string) (T, error) {
	var v T
	err := json.Unmarshal([]byte(text), &v)
	return v, err
}

// garbageCanary stands in values that cannot be read: no error may repeat it.
const garbageCanary = "4111garbage1111"

// assertUnreadable wants an error for each text, and none that repeats it.
func assertUnreadable[T any](t *testing.T, texts ...string) {
	t.Helper()
	texts = append(texts, `"`+garbageCanary+`"`, `{"a":"`+garbageCanary+`"}`, `["`+garbageCanary+`"]`, `true`)
	for _, text := range texts {
		_, err := decode[T](text)
		if assert.Error(t, err, text) && len(text) > 8 {
			assert.NotContains(t, err.Error(), garbageCanary)
			assert.NotContains(t, err.Error(), text)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	tests := []struct{ wire, want, written string }{
		{`12.50`, "12.50", `12.50`}, // the scale is kept
		{`12.5`, "12.5", `12.5`},
		{`12.500`, "12.500", `12.500`},
		{`0`, "0", `0`},
		{`-0.00`, "0.00", `0.00`},
		{`-12.50`, "-12.50", `-12.50`},
		{`"12.50"`, "12.50", `12.50`}, // quoted
		{`"\u0031\u002e5"`, "1.5", `1.5`},
		{`null`, "0", `0`},
		{`""`, "0", `0`},
		{`1e2`, "100", `100`},
		{`1.5E+3`, "1500", `1500`},
		{`1250e-2`, "12.50", `12.50`},
		{`0.0000000000000000001`, "0.0000000000000000001", `0.0000000000000000001`},
		{`9999999999999999999`, "9999999999999999999", `9999999999999999999`},
		{`-9999999999999999999`, "-9999999999999999999", `-9999999999999999999`},
		{`99999999999999999.99`, "99999999999999999.99", `99999999999999999.99`},
		{`0.1`, "0.1", `0.1`},
		{`9007199254740993`, "9007199254740993", `9007199254740993`}, // not a float64
		{`"1,234.50"`, "1234.50", `1234.50`},
		{`"-12,345,678.9"`, "-12345678.9", `-12345678.9`},
		{`" 12.50 "`, "12.50", `12.50`},
	}
	for _, test := range tests {
		t.Run(test.wire, func(t *testing.T) {
			t.Parallel()
			got, err := decode[payvault.Amount](test.wire)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.String())
			text, err := json.Marshal(got)
			require.NoError(t, err)
			assert.Equal(t, test.written, string(text), "a JSON number")
		})
	}
}

func TestAmount_refusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	long := []string{
		`99999999999999999999`, `12345678901234567890.1`, `0.12345678901234567891`, `1.00000000000000000001`, `1e19`,
		`1e-20`, `1e400`, `1e-400`,
		`1e99999999999999999999`, strings.Repeat("9", 400), `0.` + strings.Repeat("0", 400) + `1`,
	}
	for _, text := range long {
		_, err := payvault.ParseAmount(text)
		if assert.Error(t, err, text) {
			assert.Equal(t, "not a decimal number of at most 19 digits", err.Error())
		}
		_, err = decode[payvault.Amount](text)
		assert.Error(t, err, text)
		_, err = decode[payvault.Amount](`"` + text + `"`)
		assert.Error(t, err, text)
	}
	assertUnreadable[payvault.Amount](t, `"1,50"`, `"1,234"`, `"1.234,50"`, `"1,23.50"`, `"1234,567.50"`, `"1,234.50."`,
		`",234.50"`, `"1,234,56.00"`, `"1,234."`, `"1.2.3"`, `"NaN"`, `"Infinity"`, `"0x10"`, `"1_000"`, `"--1"`, `"-"`,
		`"."`, `[]`, `{}`)
	for _, text := range []string{"", garbageCanary, "12.50 USD", "1/3"} {
		_, err := payvault.ParseAmount(text)
		assert.Error(t, err, text)
	}
}

func TestAmount_arithmeticIsExact(t *testing.T) {
	t.Parallel()
	a, err := payvault.ParseAmount("0.1")
	require.NoError(t, err)
	b, err := payvault.ParseAmount("0.2")
	require.NoError(t, err)
	sum, err := a.Decimal().Add(b.Decimal())
	require.NoError(t, err)
	assert.Equal(t, "0.3", payvault.AmountOf(sum).String())
	assert.Equal(t, decimal.MustParse("0.3"), sum)

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

func TestDate(t *testing.T) {
	t.Parallel()
	day := payvault.Date{Year: 2026, Month: time.February, Day: 28}
	assertWire(t, day, `"2026-02-28"`)
	assertWire(t, payvault.Date{}, `""`)
	assertWire(t, payvault.Date{Year: 2024, Month: time.February, Day: 29}, `"2024-02-29"`)
	assertWire(t, payvault.Date{Year: 1, Month: 1, Day: 1}, `"0001-01-01"`)
	assertWire(t, payvault.Date{Year: 9999, Month: 12, Day: 31}, `"9999-12-31"`)
	for _, text := range []string{`null`, `""`, `" "`, `"0000-00-00"`, `"0000-00-00 00:00:00"`, `"00000000"`} {
		got, err := decode[payvault.Date](text)
		require.NoError(t, err, text)
		assert.Equal(t, payvault.Date{}, got, text)
	}
	for _, text := range []string{
		`"20260228"`, `20260228`, `" 2026-02-28 "`, `"2026-02-28t10:20:30z"`, `"2026-02-28T10:20"`,
		`"2026-02-28 10:20:30 +07:00"`, `"20260228T102030Z"`,
	} {
		got, err := decode[payvault.Date](text)
		require.NoError(t, err, text)
		assert.Equal(t, day, got, text)
	}
	assert.Empty(t, payvault.Date{}.String())
	parsed, err := payvault.ParseDate("2026-02-28")
	require.NoError(t, err)
	assert.Equal(t, day, parsed)

	berlin := time.FixedZone("CET", 3600)
	assert.Equal(t, time.Date(2026, 2, 28, 0, 0, 0, 0, berlin), day.In(berlin))
	assert.Equal(t, day, payvault.DateOf(time.Date(2026, 2, 28, 23, 59, 0, 0, berlin)),
		"the day in the location of the time")
	assert.Equal(t, payvault.Date{Year: 2026, Month: 3, Day: 1},
		payvault.DateOf(time.Date(2026, 2, 28, 23, 59, 0, 0, time.FixedZone("", -3600)).UTC()))
}

func TestDate_refusesWhatIsNoDay(t *testing.T) {
	t.Parallel()
	assertUnreadable[payvault.Date](t, `"2026-02-29"`, `"2026-13-01"`, `"2026-00-01"`, `"2026-01-00"`, `"2026-1-1"`,
		`"2026-01-01x"`, `"2026010"`, `20261301`, `20260230`, `"2026-01-01 at noon"`, `"2026-02-29T00:00:00Z"`,
		`"2026-01-011"`,
		`"01/02/2026"`, `"T"`, `"10000-01-01"`, `"-001-01-01"`)
	for _, date := range []payvault.Date{
		{2026, 2, 29},
		{2026, 13, 1},
		{2026, 0, 1},
		{2026, 1, 0},
		{10000, 1, 1},
		{-1, 1, 1},
		{2026, 1, -1},
		{0, 0, 1},
	} {
		assert.False(t, date.Valid(), "%v", date)
		_, err := json.Marshal(date)
		assert.Error(t, err, "%v", date)
	}
	assert.False(t, payvault.Date{}.Valid(), "no date is no day")
	assert.True(t, payvault.Date{Year: 2000, Month: 2, Day: 29}.Valid())
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	tests := []struct{ wire, want, written string }{
		{`"2026-01-15T14:30:42Z"`, "2026-01-15T14:30:42Z", `"2026-01-15T14:30:42Z"`},
		{`"2026-01-15T14:30:42+00:00"`, "2026-01-15T14:30:42Z", `"2026-01-15T14:30:42Z"`},
		{`"2026-01-15T14:30:42+07:00"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`}, // the offset is kept
		{`"2026-01-15T14:30:42-05:30"`, "2026-01-15T14:30:42-05:30", `"2026-01-15T14:30:42-05:30"`},
		{`"2026-01-15T14:30:42+0700"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`},
		{`"2026-01-15T14:30:42-0530"`, "2026-01-15T14:30:42-05:30", `"2026-01-15T14:30:42-05:30"`},
		{`"2026-01-15T14:30:42.5Z"`, "2026-01-15T14:30:42.5Z", `"2026-01-15T14:30:42.5Z"`},
		{
			`"2026-01-15T14:30:42.123456789+07:00"`, "2026-01-15T14:30:42.123456789+07:00",
			`"2026-01-15T14:30:42.123456789+07:00"`,
		},
		{`"2026-01-15T14:30:42.000+0700"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`},
		{`"2026-01-15 14:30:42+07:00"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`},
		{`"2026-01-15 14:30:42.25+0700"`, "2026-01-15T14:30:42.25+07:00", `"2026-01-15T14:30:42.25+07:00"`},
		{`"2026-01-15t14:30:42z"`, "2026-01-15T14:30:42Z", `"2026-01-15T14:30:42Z"`},
		{`"2026-01-15 14:30:42 +07:00"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`},
		{`"2026-01-15T14:30:42.5 -0530"`, "2026-01-15T14:30:42.5-05:30", `"2026-01-15T14:30:42.5-05:30"`},
		{`"2026-01-15T14:30:42 Z"`, "2026-01-15T14:30:42Z", `"2026-01-15T14:30:42Z"`},
		{`"2026-01-15T14:30Z"`, "2026-01-15T14:30:00Z", `"2026-01-15T14:30:00Z"`},
		{`"2026-01-15 14:30-07"`, "2026-01-15T14:30:00-07:00", `"2026-01-15T14:30:00-07:00"`},
		{`"0000-00-00 00:00:00"`, "0001-01-01T00:00:00Z", `"0001-01-01T00:00:00Z"`},
		{`"0000-00-00T00:00:00Z"`, "0001-01-01T00:00:00Z", `"0001-01-01T00:00:00Z"`},
		{`" "`, "0001-01-01T00:00:00Z", `"0001-01-01T00:00:00Z"`},
		// As .NET escapes it.
		{`"2026-01-15T14:30:42\u002b07:00"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`},
		{`"2026\u002D01-15T14:30:42\u002B0700"`, "2026-01-15T14:30:42+07:00", `"2026-01-15T14:30:42+07:00"`},
		{`""`, "0001-01-01T00:00:00Z", `"0001-01-01T00:00:00Z"`},
		{`null`, "0001-01-01T00:00:00Z", `"0001-01-01T00:00:00Z"`},
	}
	for _, test := range tests {
		t.Run(test.wire, func(t *testing.T) {
			t.Parallel()
			got, err := decode[payvault.Timestamp](test.wire)
			require.NoError(t, err)
			want, err := time.Parse(time.RFC3339Nano, test.want)
			require.NoError(t, err)
			assert.True(t, want.Equal(got.Time), "%s", got)
			assert.Equal(t, test.want, got.Format(time.RFC3339Nano))
			text, err := json.Marshal(got)
			require.NoError(t, err)
			assert.Equal(t, test.written, string(text))
		})
	}
	over := payvault.Timestamp{Time: time.Unix(1, 0)}
	require.NoError(t, json.Unmarshal([]byte(`null`), &over))
	assert.True(t, over.IsZero(), "null replaces what was there")
}

func TestTimestamp_refusesGarbage(t *testing.T) {
	t.Parallel()
	assertUnreadable[payvault.Timestamp](t, `"2026-01-15"`, `"2026-01-15T14:30:42"`, `"2026-01-15T25:00:00Z"`,
		`"2026-02-30T00:00:00Z"`, `"2026-01-15T14Z"`, `"2026-01-15T14:30"`,
		`"2026-01-15T14:30:42 PST"`, `"2026-01-15T14:30:42+7"`, `"Thu, 15 Jan 2026 14:30:42 GMT"`, `1768487442`, `{}`,
		`"\u0000"`, `"2026-01-15T14:30:42+99:99"`, `"+0700"`, `"T"`)
	for _, raw := range []string{``, `"`, `x`, `"abc`} {
		assert.Error(t, new(payvault.Timestamp).UnmarshalJSON([]byte(raw)), "a direct call: %s", raw)
	}
	_, err := json.Marshal(payvault.Timestamp{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	assert.Error(t, err)
}

func TestCompactTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -5*3600)
	got, err := payvault.CompactTime("20260115143042").In(zone)
	require.NoError(t, err)
	assert.Equal(t, time.Date(2026, 1, 15, 14, 30, 42, 0, zone), got)
	for _, text := range []string{
		"", "2026011514304", "202601151430422", "20260230000000", "20261301000000",
		"20260115250000", "2026-01-15T14:", "20260115143042.5", "20260115143.42", garbageCanary, "+2026011514304",
	} {
		got, err := payvault.CompactTime(text).In(time.UTC)
		if assert.Error(t, err, text) {
			assert.Equal(t, "not a date and time of 14 digits", err.Error())
		}
		assert.True(t, got.IsZero())
	}
}

func TestExpDate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		month, year int
		want        string
	}{{1, 2030, "0130"}, {12, 30, "1230"}, {9, 2000, "0900"}, {9, 0, "0900"}, {12, 2099, "1299"}, {13, 2030, "1330"}} {
		assert.Equal(t, test.want, payvault.ExpDate(test.month, test.year))
	}
	client := service.Client(t, service.Nowhere)
	for _, bad := range []string{
		payvault.ExpDate(0, 2030), payvault.ExpDate(13, 2030), payvault.ExpDate(-1, 2030), payvault.ExpDate(1, -5),
		payvault.ExpDate(1, 1999), payvault.ExpDate(1, 2100),
		payvault.ExpDate(123, 4), payvault.ExpDate(math.MaxInt, math.MinInt), "1", "123", "12345", "12/30", "+123", " 123",
		"１２３０", "12 0", "1 29", "1329", "0029", "9929", "ab29", "12ab", "0x1f", "1_29",
	} {
		_, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1, ExpDate: bad})
		service.AssertInvalid(t, err, payvault.OpTokensTokenize, service.Fields{"exp_date": {"is not of the form MMYY"}})
		assert.NotContains(t, err.Error(), bad+" ")
	}
}

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
	}
	text, err := json.Marshal(pairs)
	require.NoError(t, err)
	var inner string
	require.NoError(t, json.Unmarshal(text, &inner), "text that holds the array")
	assert.Equal(t, `[{"order":"17"},{"lane":"4"},{"order":"18"},{"a&b<c>":"\"\\ é 🙂"},{"":""},{"null":null},`+
		`{"flag":true}]`, inner, "in order, with duplicates, not escaped for HTML")

	var back payvault.Pairs
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, pairs, back)
	parsed, err := payvault.ParsePairs(inner)
	require.NoError(t, err)
	assert.Equal(t, pairs, parsed)

	assertWire(t, payvault.Pairs{}, `"[]"`)
	for _, none := range []string{`null`, `""`} {
		got, err := decode[payvault.Pairs](none)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

func TestPairs_valuesStayExact(t *testing.T) {
	t.Parallel()
	const text = `[{"n":12345678901234567890.10},{"o":{"b":1.50,"a":[9007199254740993]}},{"l":[1,"2",null]}]`
	pairs, err := payvault.ParsePairs(text)
	require.NoError(t, err)
	assert.Equal(t, json.Number("12345678901234567890.10"), pairs[0].Value)
	written, err := json.Marshal(pairs)
	require.NoError(t, err)
	var inner string
	require.NoError(t, json.Unmarshal(written, &inner))
	assert.Equal(t, `[{"n":12345678901234567890.10},{"o":{"a":[9007199254740993],"b":1.50}},{"l":[1,"2",null]}]`, inner)
}

func TestPairs_refusesOtherShapes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `{}`, `{"a":1}`, `[1]`, `["a"]`, `[null]`, `[[]]`, `[{}]`, `[{"a":1,"b":2}]`, `[{"a":1,"a":2}]`,
		`[{"a":1,"a":1}]`, `[{"a":1}]]`, `[{"a":1}] x`, `[{"a":1}`, `"[]"`, `true`,
		`[{"` + garbageCanary + `":}]`, `[{"a":"` + garbageCanary + `","b":1}]`, `[{"a":` + garbageCanary + `}]`,
		strings.Repeat("[", 100_000), "\x00", `[{"a":1},{"b":2,"c":3}]`,
	} {
		pairs, err := payvault.ParsePairs(text)
		if assert.Error(t, err, "%.80s", text) {
			assert.Equal(t, "not a JSON array of single-pair objects", err.Error())
		}
		assert.Nil(t, pairs)
	}
	assertUnreadable[payvault.Pairs](t, `[]`, `[{"a":1}]`, `{}`, `17`)
	_, err := json.Marshal(payvault.Pairs{{"f", func() {}}})
	assert.Error(t, err, "what JSON cannot write")
}

// TestValues_errorNamesTheField: a value that cannot be read is an error with operation and field, and without the
// value.
func TestValues_errorNamesTheField(t *testing.T) {
	t.Parallel()
	for i, test := range []struct{ member, want string }{
		{`"tran_time":"` + garbageCanary + `"`, "/data/1/tran_time cannot be read as Timestamp"},
		{`"amt_tran":"` + garbageCanary + `"`, "/data/1/amt_tran cannot be read as Amount"},
		{`"batch_date":"` + garbageCanary + `"`, "/data/1/batch_date cannot be read as Date"},
		{`"merchant_id":"` + garbageCanary + `"`, "/data/1/merchant_id cannot be read as MerchantID"},
		{`"batch_id":1.5`, "/data/1/batch_id cannot be read as int64"},
		{`"dispute_flag":"` + garbageCanary + `"`, "/data/1/dispute_flag cannot be read as bool"},
		{`"rmsg":{"` + garbageCanary + `":1}`, "/data/1/rmsg cannot be read as string"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			server := service.Answer(t, 200, `{"code":0,"data":[{"pg_id":"fine"},{`+test.member+`}]}`)
			_, err := service.Client(t, server.URL).Subscriptions.Transactions(t.Context(), 5, nil)
			require.ErrorIs(t, err, payvault.ErrMalformedResponse)
			assert.Contains(t, err.Error(), "subscriptions.transactions")
			assert.Contains(t, err.Error(), test.want)
			service.AssertHidden(t, err, garbageCanary)
		})
	}
}

// amount returns an exact decimal number.
func amount(text string) payvault.Amount { return payvault.AmountOf(decimal.MustParse(text)) }

// assertWire checks that a value has the given wire form, and comes back from it unchanged with either JSON package.
func assertWire[T any](t *testing.T, value T, wire string) {
	t.Helper()
	text, err := payvault.MarshalWire(value)
	require.NoError(t, err)
	assert.JSONEq(t, wire, string(text))
	var back, backV2 T
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, value, back)
	require.NoError(t, jsonv2.Unmarshal(text, &backV2))
	assert.Equal(t, value, backV2)
}

package payvault_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestDate checks that a day is written as YYYY-MM-DD, and read from the forms that services send for a day and for no
// day.
func TestDate(t *testing.T) {
	t.Parallel()
	day := payvault.Date{2026, time.February, 28}
	service.AssertWire(t, day, `"2026-02-28"`)
	service.AssertWire(t, payvault.Date{}, `""`)
	service.AssertWire(t, payvault.Date{1, 1, 2}, `"0001-01-02"`)
	for want, texts := range map[payvault.Date][]string{
		{}: {
			`null`, `false`, `" "`, `[]`, `{}`, `0`, `"0000-00-00"`, `"0000-00-00 00:00:00"`,
			`"0001-01-01"`, `"0001-01-01T00:00:00+00:00"`,
		},
		day: {
			`"20260228"`, `20260228`, `" 2026-02-28 "`, `"2026-02-28t10:20:30z"`, `"2026-02-28T10:20"`, `"2026-02-28Z"`,
			`"2026-02-28 10:20:30 +07:00"`, `"2026-02-28T10:20:30.123-07"`, `"2026-02-28 10:20:30 UTC"`, `"2026-02-28-0530"`,
		},
	} {
		for _, text := range texts {
			got := payvault.Date{1, 2, 3}
			require.NoError(t, json.Unmarshal([]byte(text), &got), text)
			assert.Equal(t, want, got, text)
		}
	}
}

// TestDate_location checks that In returns the first midnight of a day in a location, or the first instant of the day
// if clocks skip midnight. DateOf returns the day in the location of the time.
func TestDate_location(t *testing.T) {
	t.Parallel()
	day := payvault.Date{2026, time.February, 28}
	berlin := time.FixedZone("CET", 3600)
	assert.Equal(t, time.Date(2026, 2, 28, 0, 0, 0, 0, berlin), day.In(berlin))
	saoPaulo, err := time.LoadLocation("America/Sao_Paulo")
	require.NoError(t, err)
	first := time.Date(2018, 11, 4, 1, 0, 0, 0, saoPaulo) // first instant of the day, because clocks skipped midnight
	assert.Equal(t, first, payvault.Date{2018, 11, 4}.In(saoPaulo))
	asuncion, err := time.LoadLocation("America/Asuncion")
	require.NoError(t, err)
	first = time.Date(2023, 10, 1, 1, 0, 0, 0, asuncion) // as before, on the first of a month
	assert.Equal(t, first, payvault.Date{2023, 10, 1}.In(asuncion))
	amman, err := time.LoadLocation("Asia/Amman")
	require.NoError(t, err)
	midnight := time.Date(2021, 10, 28, 21, 0, 0, 0, time.UTC) // the first of two midnights in Amman
	assert.True(t, midnight.Equal(payvault.Date{2021, 10, 29}.In(amman)))
	late := time.Date(2026, 2, 28, 23, 59, 0, 0, time.FixedZone("", -3600))
	assert.Equal(t, day, payvault.DateOf(late), "the day in the location of the time")
	assert.Equal(t, payvault.Date{2026, 3, 1}, payvault.DateOf(late.UTC()))
}

// TestDate_refused checks that reading fails for a date that is not in the calendar and for a text of another form, and
// that writing fails for a date that is not in the calendar.
func TestDate_refused(t *testing.T) {
	t.Parallel()
	assertUnreadable[payvault.Date](t, `"2026-02-29"`, `"2026-13-01"`, `"2026-01-00"`, `"2026-1"`, `"2026-2-28"`,
		`"2026-01-15x"`, `"2026-01-15 at noon"`, `"2026-01-011"`, `"01/02/2026"`, `"T"`, `"10000-01-01"`,
		`"2026-01-15T24:00"`, `"2026-01-15 10:60"`, `"2026-01-15T10"`, `"2026-01-15+99:00"`, `"2026-01-15ZZ"`,
		`20260230`, `"2026010"`, `20260228.0`, `"20260228102030"`, `"20260228T102030Z"`,
		`"0000-00-01"`, `"00000000"`, `"00010101"`, `10101`, `"0000-00-00 at noon"`, `"0001-01-01x"`)
	for _, date := range []payvault.Date{
		{2026, 2, 29}, {2026, 13, 1}, {2026, 0, 1}, {2026, 1, 0}, {10000, 1, 1}, {-1, 1, 1}, {0, 0, 1},
	} {
		assert.False(t, date.Valid(), "%v", date)
		_, err := json.Marshal(date)
		assert.Error(t, err, "%v", date)
	}
	assert.False(t, payvault.Date{}.Valid(), "no date is no day")
	assert.True(t, payvault.Date{2000, 2, 29}.Valid())
}

// TestDate_otherEncodings checks that dates keep their value in XML and gob. Reading an invalid text fails in XML, and
// so does writing an invalid date.
func TestDate_otherEncodings(t *testing.T) {
	t.Parallel()
	type record struct {
		Date payvault.Date `xml:"date"`
		None payvault.Date `xml:"none"`
	}
	in := record{Date: payvault.Date{2026, time.March, 14}}
	text, err := xml.Marshal(in)
	require.NoError(t, err)
	assert.Equal(t, "<record><date>2026-03-14</date><none></none></record>", string(text))
	var out record
	require.NoError(t, xml.Unmarshal(text, &out))
	assert.Equal(t, in, out)
	assert.Error(t, xml.Unmarshal([]byte("<record><date>14.3.2026</date></record>"), new(record)))
	var gobbed bytes.Buffer
	require.NoError(t, gob.NewEncoder(&gobbed).Encode(in))
	out = record{}
	require.NoError(t, gob.NewDecoder(&gobbed).Decode(&out))
	assert.Equal(t, in, out)
	_, err = xml.Marshal(payvault.Date{2026, 2, 30})
	assert.Error(t, err)
}

// TestTimestamp checks that an instant is read from the forms that services send, and is written with the same offset.
func TestTimestamp(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"2026-01-15T14:30:42Z": {
			`"2026-01-15T14:30:42Z"`, `"2026-01-15T14:30:42+00:00"`, `"2026-01-15t14:30:42z"`, `"2026-01-15T14:30:42 Z"`,
			`"2026-01-15 14:30:42 UTC"`,
		},
		"2026-01-15T14:30:42+07:00": { // the offset is kept
			`"2026-01-15T14:30:42+07:00"`, `"2026-01-15T14:30:42+0700"`, `"2026-01-15T14:30:42+07"`,
			`"2026-01-15T14:30:42.000+0700"`, `"2026-01-15 14:30:42+07:00"`, `"2026-01-15 14:30:42 +07:00"`,
			`"2026-01-15T14:30:42\u002b07:00"`, `"2026\u002D01-15T14:30:42\u002B0700"`, // as .NET escapes it
		},
		"2026-01-15T14:30:42-05:30":           {`"2026-01-15T14:30:42-05:30"`, `"2026-01-15T14:30:42-0530"`},
		"2026-01-15T14:30:42.5Z":              {`"2026-01-15T14:30:42.5Z"`, `"2026-01-15T14:30:42,5Z"`},
		"2026-01-15T14:30:42.5-05:30":         {`"2026-01-15T14:30:42.5 -0530"`, `"2026-01-15 14:30:42.5-0530"`},
		"2026-01-15T14:30:42.123456789+07:00": {`"2026-01-15T14:30:42.123456789+07:00"`},
		"2026-01-15T14:30:00Z":                {`"2026-01-15T14:30Z"`},
		"2026-01-15T14:30:00-07:00":           {`"2026-01-15 14:30-07"`},
		"0001-01-01T00:00:00Z": {
			`"0000-00-00 00:00:00"`, `" "`, `null`, `0`, `false`, `[]`, `{}`, `"0001-01-01"`, `"0001-01-01T00:00:00-05:00"`,
		},
	} {
		for _, text := range texts {
			got := payvault.Timestamp{Time: time.Unix(1, 0)} // UnmarshalJSON replaces it, even by null
			require.NoError(t, json.Unmarshal([]byte(text), &got), text)
			assert.Equal(t, want, got.Format(time.RFC3339Nano), text)
			written, err := json.Marshal(got)
			require.NoError(t, err)
			assert.Equal(t, `"`+want+`"`, string(written))
		}
	}
}

// TestTimestamp_refused checks that reading fails for a time without an offset, for a time that does not exist, and for
// other forms. Writing fails for the year 10000.
func TestTimestamp_refused(t *testing.T) {
	t.Parallel()
	assertUnreadable[payvault.Timestamp](t, `"2026-01-15"`, `"2026-01-15T14:30:42"`, `"2026-01-15T14:30"`, `1768487442`,
		`"2026-01-15T25:00:00Z"`, `"2026-02-30T00:00:00Z"`, `"2026-01-15T24:00:00Z"`, `"2026-01-15T23:59:60Z"`,
		`"2026-01-15T14Z"`, `"2026-01-15T9:04:05Z"`, `"2026-01-15T14:30:42 PST"`, `"2026-01-15 14:30:42 +0700 UTC"`,
		`"2026-01-15T14:30:42+7"`, `"2026-01-15T14:30:42+7:00"`, `"2026-01-15T14:30:42+24:00"`, `"+0700"`, `"T"`,
		`"Thu, 15 Jan 2026 14:30:42 GMT"`, `"20260115T143042Z"`, `"20260115143042"`, `"00010101"`, `"0001-01-01x"`)
	_, err := json.Marshal(payvault.Timestamp{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	assert.Error(t, err)
}

// TestCompactTime checks that In reads 14 digits as a time in the given location, and that it refuses any other text.
func TestCompactTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -5*3600)
	got, err := payvault.CompactTime("20260115143042").In(zone)
	require.NoError(t, err)
	assert.Equal(t, time.Date(2026, 1, 15, 14, 30, 42, 0, zone), got)
	for _, text := range []string{
		"", "2026011514304", "202601151430422", "20260230000000", "20260115250000", "20260115143042.5", garbageCanary,
	} {
		got, err := payvault.CompactTime(text).In(time.UTC)
		assert.EqualError(t, err, "not a date and time of 14 digits", text)
		assert.True(t, got.IsZero())
	}
}

// TestExpDate checks that FormatExpDate returns MMYY, and that a request with an expiration date of another form is not
// sent.
func TestExpDate(t *testing.T) {
	t.Parallel()
	for date, want := range map[[2]int]string{
		{1, 2030}: "0130", {12, 30}: "1230", {9, 2000}: "0900", {9, 0}: "0900", {12, 2099}: "1299", {13, 2030}: "1330",
	} {
		assert.Equal(t, want, payvault.FormatExpDate(date[0], date[1]))
	}
	client := service.Client(t, service.Nowhere)
	for _, bad := range []string{
		payvault.FormatExpDate(0, 2030), payvault.FormatExpDate(13, 2030), payvault.FormatExpDate(-1, 2030),
		payvault.FormatExpDate(1, 1999), payvault.FormatExpDate(1, 2100), payvault.FormatExpDate(123, 4),
		"123", "12345", "12/30", "+123", "１２３０", "12 0", "0029", "ab29", "12ab",
	} {
		_, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1, ExpDate: bad})
		service.AssertInvalid(t, err, payvault.OpTokensTokenize, service.Fields{"exp_date": {"is not of the form MMYY"}})
		assert.NotContains(t, err.Error(), bad+" ")
	}
}

package payvault

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
)

var (
	errNotDate    = errors.New("not a date of the form YYYY-MM-DD")
	errNotInstant = errors.New("not an ISO 8601 time with an offset")
	errNoOffset   = errors.New("a time whose offset is missing")
	errNotCompact = errors.New("not a date and time of 14 digits")
)

// Date is a calendar day without a time zone, YYYY-MM-DD on the wire, such as Date{Year: 2026, Month: 5, Day: 1}. The
// zero Date means that there is no date. It is written as an empty string, and read from a value that means "none",
// such as null or an empty string.
type Date struct {
	Year  int        // such as 2026
	Month time.Month // time.January to time.December
	Day   int        // day of the month, from 1
}

// DateOf returns the day of t in t's own location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate reads a date of the form YYYY-MM-DD.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.RFC3339, s+"T00:00:00Z") // package time reads this form faster than time.DateOnly
	if err != nil {
		return Date{}, errNotDate
	}
	return DateOf(t), nil
}

// In returns the start of the day in loc: its first midnight, or a later hour if clocks are set forward at midnight.
func (d Date) In(loc *time.Location) time.Time {
	start := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, loc)
	switch hourBefore := start.Add(-time.Hour); {
	case start.Hour() > 12: // clocks skip midnight, so time.Date returned the evening before
		_, start = start.ZoneBounds()
	case hourBefore.Hour() == 0: // clocks were set back, and this is the second midnight
		start = hourBefore
	}
	return start
}

// Valid reports whether d is a day of the calendar in a year from 0 to 9999.
func (d Date) Valid() bool {
	return d.Year >= 0 && d.Year <= 9999 && DateOf(d.In(time.UTC)) == d
}

// String returns YYYY-MM-DD, or "" for the zero Date.
func (d Date) String() string {
	if d == (Date{}) {
		return ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)
}

// MarshalText writes the wire form, for JSON, YAML and XML. It fails for a date that is not [Date.Valid], except the
// zero Date.
func (d Date) MarshalText() ([]byte, error) {
	if d != (Date{}) && !d.Valid() {
		return nil, errNotDate
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads a date as [ParseDate] does. An empty text is read as the zero Date.
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d = Date{}
	if len(text) > 0 {
		*d, err = ParseDate(string(text))
	}
	return err
}

// dayForm matches YYYYMMDD, and YYYY-MM-DD with an optional time and an optional offset after it. The first group is
// YYYY-MM-DD, the second one YYYYMMDD.
var dayForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)` +
	`(?:[Tt ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?)?` +
	`(?: ?(?:[Zz]|UTC|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?))?$|^(\d{8})$`)

// isNoDay reports whether a text has the form of a day but means "no date": databases write 0000-00-00 for "no date",
// and .NET writes 0001-01-01.
func isNoDay(text string) bool {
	isNone := strings.HasPrefix(text, "0000-00-00") || strings.HasPrefix(text, "0001-01-01")
	return isNone && dayForm.MatchString(text)
}

// UnmarshalJSON reads YYYYMMDD, and YYYY-MM-DD with an optional time and offset after it. It reads the zero Date from
// 0, 0000-00-00, 0001-01-01 and any value that means "none", such as null.
func (d *Date) UnmarshalJSON(b []byte) error { return answer.Unfit[Date](d.read(b)) }

// UnmarshalJSONFrom is like UnmarshalJSON, but its error has the JSON pointer of the value.
func (d *Date) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return answer.UnmarshalFrom(dec, d) }

func (d *Date) read(b []byte) (err error) {
	if len(b) == len(`"2006-01-02"`) && b[0] == '"' { // perhaps the documented form, which needs no regular expression
		day, err := ParseDate(string(b[1 : len(b)-1]))
		if err == nil && day != (Date{1, 1, 1}) {
			*d = day
			return nil
		}
	}
	text := answer.Trimmed(b)
	parts := dayForm.FindStringSubmatch(text)
	switch {
	case text == "" || text == "0" || isNoDay(text):
		*d = Date{}
		return nil
	case parts == nil || text == "00010101":
		return errNotDate // no known program writes 00010101 for "no date"
	case parts[1] != "":
		*d, err = ParseDate(parts[1])
	default:
		*d, err = ParseDate(text[:4] + "-" + text[4:6] + "-" + text[6:])
	}
	return err
}

// Timestamp is an instant with the UTC offset in which the service wrote it. It is written in RFC 3339 form. It is read
// with a T or a blank after the day; seconds and their fraction are optional. The offset may be Z, UTC, +07:00, +0700
// or +07. The zero Timestamp means that there is no time. It is read from 0, from the days 0000-00-00 and 0001-01-01,
// and from any value that means "none", such as null. Any other text without an offset cannot be read, because it is
// not an instant.
type Timestamp struct {
	time.Time // its Location has the offset of the service
}

// UnmarshalJSON reads an instant, or a value that means "no time".
func (t *Timestamp) UnmarshalJSON(b []byte) error { return answer.Unfit[Timestamp](t.read(b)) }

// UnmarshalJSONFrom is like UnmarshalJSON, but its error has the JSON pointer of the value.
func (t *Timestamp) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return answer.UnmarshalFrom(dec, t)
}

func (t *Timestamp) read(b []byte) error {
	var documented time.Time // read from the form of RFC 3339, which needs no regular expression
	if err := documented.UnmarshalJSON(b); err == nil && documented.Year() > 1 && isStrict(documented, b) {
		*t = Timestamp{documented}
		return nil
	}
	text := answer.Trimmed(b)
	if text == "" || text == "0" || isNoDay(text) {
		*t = Timestamp{}
		return nil
	}
	parsed, err := parseInstant(text)
	if err != nil {
		if _, err := parseInstant(text + "Z"); err == nil {
			return errNoOffset
		}
		return err
	}
	*t = Timestamp{parsed}
	return nil
}

// isStrict reports whether the hour of a JSON string has two digits, and its offset is less than 24 hours. Package time
// has read t from the string, but also accepts an hour of one digit and a larger offset.
func isStrict(t time.Time, b []byte) bool {
	const day = 24 * 60 * 60 // seconds
	_, offset := t.Zone()
	return b[len(`"2006-01-02T15`)] == ':' && -day < offset && offset < day
}

// instantForm matches an instant. Its groups are the day, the hours and minutes, the seconds, the hours of the offset,
// and the minutes of the offset. The two groups of the offset are empty for Z and UTC.
var instantForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:[.,]\d+)?)? ?` +
	`(?:[Zz]|UTC|([+-](?:[01]\d|2[0-3]))(?::?(\d\d))?)$`)

// parseInstant reads an instant. It first writes the parts of the text in the form that package time reads.
func parseInstant(text string) (time.Time, error) {
	parts := instantForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, errNotInstant
	}
	day, minutes, seconds, offset := parts[1], parts[2], cmp.Or(parts[3], ":00"), "Z"
	if hours := parts[4]; hours != "" {
		offset = hours + ":" + cmp.Or(parts[5], "00")
	}
	parsed, err := time.Parse(time.RFC3339, day+"T"+minutes+seconds+offset)
	if err != nil { // err is not returned, because it repeats the text
		return time.Time{}, errNotInstant
	}
	return parsed, nil
}

// CompactTime is a date and time of 14 digits, YYYYMMDDhhmmss. A billing card's verified_date has this form. The
// service does not document the time zone, so the caller passes a time zone to In.
type CompactTime string

// In returns the instant at which clocks in loc showed c. In fails if c is not a date and time of 14 digits.
func (c CompactTime) In(loc *time.Location) (time.Time, error) {
	t, err := time.ParseInLocation("20060102150405", string(c), loc)
	if err != nil || len(c) != 14 {
		return time.Time{}, errNotCompact
	}
	return t, nil
}

// FormatExpDate returns a card's expiration date in the wire form MMYY. The year is given in full (2030) or by its last
// two digits (30). If the month is not 1 to 12, or the year has another form, the result fails the local check of every
// request: FormatExpDate(13, 2030) returns "1330".
func FormatExpDate(month, year int) string {
	if year >= 2000 && year <= 2099 {
		year -= 2000
	}
	return fmt.Sprintf("%02d%02d", month, year)
}

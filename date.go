package payvault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"example.com/payvault/internal/answer"
)

var (
	errNotDate    = errors.New("not a date of the form YYYY-MM-DD")
	errNotInstant = errors.New("not an ISO 8601 time with an offset")
	errNotCompact = errors.New("not a date and time of 14 digits")
)

// Date is a calendar day without a time zone, YYYY-MM-DD on the wire. The zero value is no date: it is written as an
// empty string and read from a value that stands for none, such as null or an empty string.
type Date struct {
	Year  int        // such as 2026
	Month time.Month // from time.January on
	Day   int        // of the month, from 1
}

// DateOf returns the day of t in t's own location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate reads YYYY-MM-DD.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, errNotDate
	}
	return DateOf(t), nil
}

// In returns the start of the day in loc. That is not midnight if clocks are set forward at midnight.
func (d Date) In(loc *time.Location) time.Time {
	start := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, loc)
	if start.Hour() > 12 { // an hour of the evening before, since there is no midnight
		_, start = start.ZoneBounds()
	}
	return start
}

// Valid reports whether d is a day of the calendar that has the wire form.
func (d Date) Valid() bool {
	return d.Year >= 0 && d.Year <= 9999 && DateOf(d.In(time.UTC)) == d
}

// String returns YYYY-MM-DD, or "" for no date.
func (d Date) String() string {
	if d == (Date{}) {
		return ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)
}

// MarshalText writes the wire form, also for JSON, YAML and XML; a date that is not in the calendar is an error.
func (d Date) MarshalText() ([]byte, error) {
	if d != (Date{}) && !d.Valid() {
		return nil, errNotDate
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what [ParseDate] reads, and an empty text as no date.
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d = Date{}
	if len(text) > 0 {
		*d, err = ParseDate(string(text))
	}
	return err
}

// dayForm matches YYYY-MM-DD, the first group, with what may stand behind it: a time, an offset or both. It also
// matches YYYYMMDD, the second group, which stands alone.
var dayForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)` +
	`(?:[Tt ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?)?` +
	`(?: ?(?:[Zz]|UTC|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?))?$|^(\d{8})$`)

// isNoDay reports whether a text of the form of a day stands for none: databases write 0000-00-00, and .NET 0001-01-01.
func isNoDay(text string) bool {
	isNone := strings.HasPrefix(text, "0000-00-00") || strings.HasPrefix(text, "0001-01-01")
	return isNone && dayForm.MatchString(text)
}

// UnmarshalJSON reads YYYY-MM-DD, also with a time or an offset behind it, and YYYYMMDD. A value that stands for none,
// 0, 0000-00-00 and 0001-01-01 are no date.
func (d *Date) UnmarshalJSON(b []byte) (err error) {
	text := answer.Trimmed(b)
	parts := dayForm.FindStringSubmatch(text)
	switch {
	case text == "" || text == "0" || isNoDay(text):
		*d = Date{}
		return nil
	case parts == nil || text == "00010101":
		return errNotDate // nobody is known to write 00010101 for no date
	case parts[1] != "":
		*d, err = ParseDate(parts[1])
	default:
		*d, err = ParseDate(text[:4] + "-" + text[4:6] + "-" + text[6:])
	}
	return err
}

// Timestamp is an instant with the UTC offset in which the service wrote it. It is written in RFC 3339 form. It is read
// with or without seconds and a fraction, with a blank for the T, and with the offset as Z, UTC, +07:00, +0700 or +07;
// without an offset it is no instant and cannot be read. The zero value is no time: it is read from a value that stands
// for none, from 0, and from the days 0000-00-00 and 0001-01-01.
type Timestamp struct {
	time.Time // its Location has the offset of the service
}

// UnmarshalJSON reads an instant or no time.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	text := answer.Trimmed(b)
	if text == "" || text == "0" || isNoDay(text) {
		*t = Timestamp{}
		return nil
	}
	parsed, err := parseInstant(text)
	if err != nil {
		return err
	}
	*t = Timestamp{parsed}
	return nil
}

// parseInstant reads six layouts: a time with or without seconds, with three forms of the offset. First it brings the
// text into one form: with a T and a Z in upper case, and without blanks. Then it chooses the layout by the lengths of
// the time and of the offset. A text of another form does not fit the layout that it gets, and is an error.
func parseInstant(text string) (time.Time, error) {
	const day, minutes, seconds = "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05"
	if len(text) > len(day) && text[len(day)] == ' ' {
		text = text[:len(day)] + "T" + text[len(day):]
	}
	text = strings.ReplaceAll(strings.ToUpper(text), " ", "")
	if before, isUTC := strings.CutSuffix(text, "UTC"); isUTC {
		text = before + "Z"
	}
	clock := strings.TrimRight(text, "0123456789:") // day and time, with the Z or the sign of the offset
	layout := seconds                               // also reads a fraction
	if len(clock) == len(minutes)+len("Z") {
		layout = minutes
	}
	switch len(text) - len(clock) { // the length of the offset without its sign
	case len("07"):
		layout += "Z07"
	case len("0700"):
		layout += "Z0700"
	default: // "Z" and "07:00"; a text without an offset does not fit either
		layout += "Z07:00"
	}
	parsed, err := time.Parse(layout, text)
	_, east := parsed.Zone()
	// Package time reads an offset of 24 hours, and then refuses to write it. Its own error would repeat the text.
	if err != nil || max(east, -east) >= int(24*time.Hour/time.Second) {
		return time.Time{}, errNotInstant
	}
	return parsed, nil
}

// CompactTime is a date and time of 14 digits, YYYYMMDDhhmmss, the form of a billing card's verified_date. The service
// does not document its time zone, so the caller supplies one.
type CompactTime string

// In returns the instant at which clocks in loc showed the time. Anything but 14 digits that form a
// date and a time is an error.
func (c CompactTime) In(loc *time.Location) (time.Time, error) {
	t, err := time.ParseInLocation("20060102150405", string(c), loc)
	if err != nil || len(c) != 14 {
		return time.Time{}, errNotCompact
	}
	return t, nil
}

// FormatExpDate returns a card's expiration date in the wire form MMYY. The year is given in full (2030) or by its
// last two digits (30). A month or year that cannot be written so gives a text that fails the local
// check of every request: FormatExpDate(13, 2030) is "1330".
func FormatExpDate(month, year int) string {
	if year >= 2000 && year <= 2099 {
		year -= 2000
	}
	return fmt.Sprintf("%02d%02d", month, year)
}

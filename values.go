package payvault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
	"github.com/govalues/decimal"

	"example.com/payvault/internal/redact"
)

// Integer identifiers.
type (
	// MerchantID is the ID of a merchant, as the manager portal shows it.
	// It travels as a string in the tokenize body and as an integer everywhere else.
	MerchantID int64
	// PayeeID is the ID of a payee that the service assigned.
	PayeeID int64
	// ApplicationID is the app_id of a merchant application.
	ApplicationID int64
	// SubscriptionID is the ID of a recurring-billing subscription.
	SubscriptionID int64
	// DisputeID is the control number rec_id of a dispute.
	DisputeID int64
)

// String identifiers. The interface does not show their type; a number in text form is as good as any other text.
type (
	// InvoiceID is the ID of an invoice.
	InvoiceID string
	// WebhookID is the ID of a webhook.
	WebhookID string
)

var (
	errNotInteger = errors.New("not an integer")
	errNotAmount  = errors.New("not a decimal number of at most 19 digits")
	errNotDate    = errors.New("not a date of the form YYYY-MM-DD")
	errNotInstant = errors.New("not an ISO 8601 time with an offset")
	errNotCompact = errors.New("not a date and time of 14 digits")
	errNoBSON     = errors.New("has no form in BSON; store its text")
	errNotPairs   = errors.New("not a JSON array of single-pair objects")
)

// numberText gives the text of a number that may be quoted, and none for null.
func numberText(b []byte) []byte {
	if string(b) == "null" {
		return nil
	}
	return unquote(b)
}

// textOrNone gives the text of a value that may be quoted, and none for null, or for false, as PHP may write none.
func textOrNone(b []byte) []byte {
	if string(b) == "false" {
		return nil
	}
	return bytes.TrimSpace(numberText(b))
}

// unquote gives what is between the quotes of a JSON string, and anything else as it is.
func unquote(b []byte) []byte {
	n := len(b)
	if n < 2 || b[0] != '"' || b[n-1] != '"' {
		return b
	}
	if bytes.IndexByte(b, '\\') >= 0 { // some encoders write + as \u002B
		text, _ := jsontext.AppendUnquote(nil, b) // valid, or nearly so
		return text
	}
	return b[1 : n-1]
}

// Secret is text that must not be seen: a card or bank account number, a security code, a tax or identity number.
// [NewSecret] makes one; the zero value has no text.
//
// It shows [REDACTED] under every fmt verb, in log/slog, in JSON, XML, YAML, gob and templates, and to whatever else
// knows [encoding.TextMarshaler] or [fmt.Formatter]; without a text it shows nothing. What goes by reflection finds no
// text either, also in unexported fields of your own structs, even if it knows that of another secret; it finds how
// long a text is, and which secrets of a process have the same.
//
// [Secret.Reveal] and [MarshalWire] give the text, and calls send it. A text with [REDACTED] in it is refused when a
// Secret is read and when it is sent, so that what a log shows never becomes a card number; so it is in [Pairs], in an
// [ApplicationField], in raw JSON, and where a marshaling method of your own gives it. The memory of a text is not
// wiped.
//
// Secrets of the same text are equal for [reflect.DeepEqual], but not for ==, which is for Secret{} and for copies.
//
//nolint:recvcheck // see secret
type Secret struct {
	masked *masked // nil for no text
}

const redacted = redact.Mark

var errRedacted = errors.New("a redacted secret, whose text is lost")

// NewSecret returns a secret of the given text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	m, changed := &masked{tag: maphash.String(tagKey, text)}, []byte(text)
	m.mask(changed)
	m.text = string(changed)
	return Secret{m}
}

// masked is a text that is hidden from what follows pointers, as dumpers and the differences that tests print do.
type masked struct {
	text string
	tag  uint64 // a hash of the text
}

// block is a part of a text, eight bytes long.
type block struct {
	tag uint64
	at  int
}

// The keys differ from process to process.
//
//nolint:gochecknoglobals // never changed
var tagKey, maskKey = maphash.MakeSeed(), maphash.MakeSeed()

// mask hides a text and shows it again. Texts with another tag are hidden in another way, so that one that is known
// does not show the others; secrets of the same text look the same, so that they are equal. It keeps texts from being
// seen by accident and is no encryption: package maphash promises no strength, and whoever can read the memory of the
// process can read the keys too.
func (m *masked) mask(text []byte) {
	var stream uint64
	for i := range text {
		if i%8 == 0 {
			stream = maphash.Comparable(maskKey, block{m.tag, i})
		}
		text[i] ^= byte(stream >> (i % 8 * 8)) //nolint:gosec // one byte of it
	}
}

// Reveal returns the text.
func (s Secret) Reveal() string { // is inlined, so that the text takes no memory where it is only read
	if s.masked == nil {
		return ""
	}
	text := []byte(s.masked.text)
	s.masked.mask(text)
	return string(text)
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.masked == nil }

// hasMark reports whether a text has that of a redacted secret in it, which is lost.
func hasMark(text string) bool { return strings.Contains(text, redacted) }

// secret is promoted to structs that embed one, or a pointer, which may be nil.
func (s *Secret) secret() *Secret { return s }

// Format writes the mark under every verb.
func (s Secret) Format(f fmt.State, verb rune) {
	text, _ := s.MarshalText()
	if verb == 'q' || f.Flag('#') {
		text = strconv.AppendQuote(nil, string(text))
	}
	_, _ = f.Write(text)
}

// MarshalText returns the mark, also for JSON.
func (s Secret) MarshalText() ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	return []byte(redacted), nil
}

// MarshalBinary returns the mark, for gob and CBOR.
func (s Secret) MarshalBinary() ([]byte, error) { return s.MarshalText() }

// UnmarshalBinary reads the text. The mark is an error.
func (s *Secret) UnmarshalBinary(text []byte) error { return s.UnmarshalText(text) }

// MarshalBSON fails: BSON looks for no other method, and would store nothing.
func (s Secret) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

// UnmarshalText reads the text, also from a JSON string. The mark is an error.
func (s *Secret) UnmarshalText(text []byte) error {
	if hasMark(string(text)) {
		return errRedacted
	}
	*s = NewSecret(string(text))
	return nil
}

// Amount is an exact decimal number, such as an amount of money in units of its currency (12.50). It keeps
// its scale, holds up to 19 digits, and is a JSON number on the wire; quoted numbers and null are read
// too. The zero value is 0. Arithmetic is that of [decimal.Decimal].
type Amount struct{ d decimal.Decimal }

// NewAmount returns value / 10^scale: NewAmount(1250, 2) is 12.50. A scale outside 0 to 19 is an error.
func NewAmount(value int64, scale int) (Amount, error) {
	d, err := decimal.New(value, scale)
	if err != nil {
		return Amount{}, errNotAmount
	}
	return Amount{d}, nil
}

// ParseAmount reads a decimal number such as "12.50". A number that does not fit exactly is an error.
func ParseAmount(s string) (Amount, error) { return parseAmount([]byte(s)) }

func parseAmount(text []byte) (Amount, error) {
	d, ok := exactDecimal(text)
	if !ok {
		return Amount{}, errNotAmount
	}
	return Amount{d}, nil
}

// MustAmount is ParseAmount for constants: it panics where ParseAmount fails.
func MustAmount(s string) Amount {
	a, err := ParseAmount(s)
	if err != nil {
		panic("payvault: MustAmount: " + err.Error())
	}
	return a
}

// AmountOf returns d as an Amount.
func AmountOf(d decimal.Decimal) Amount { return Amount{d} }

// exactDecimal reads a decimal number. One that does not fit exactly is refused: decimal.Parse would round it. An
// exponent, or zeros at the end that do not fit, take no memory.
func exactDecimal(text []byte) (d decimal.Decimal, ok bool) {
	e := bytes.IndexAny(text, "eE")
	switch {
	case e < 0 && len(text) <= decimal.MaxPrec:
		err := d.UnmarshalText(text)
		return d, err == nil
	case len(text) > longestValue:
		return d, false
	}
	mantissa, shift := text, 0
	if e >= 0 {
		var err error
		if shift, err = strconv.Atoi(string(text[e+1:])); err != nil || max(shift, -shift) > longestValue {
			return d, false
		}
		mantissa = text[:e]
	}
	digits := bytes.TrimLeft(mantissa, "+-")
	sign := mantissa[:len(mantissa)-len(digits)]
	whole, fraction, _ := bytes.Cut(digits, []byte("."))
	if len(sign) > 1 || len(whole)+len(fraction) == 0 {
		return d, false
	}
	var room [4 * longestValue]byte
	const zeros = "0000000000000000000000000000000000000000000000000000000000000000" // as far as the point may move
	padded := append(append(append(room[:0], zeros...), whole...), fraction...)
	end, point := len(padded), len(zeros)+len(whole)+shift
	padded = append(padded, zeros...)
	whole, fraction = bytes.TrimLeft(padded[:point], "0"), padded[point:max(point, end)]
	for len(whole)+len(fraction) > decimal.MaxPrec {
		var isZero bool
		if fraction, isZero = bytes.CutSuffix(fraction, []byte("0")); !isZero {
			return d, false
		}
	}
	var plain [decimal.MaxPrec + 3]byte
	number := append(append(append(append(append(plain[:0], sign...), '0'), whole...), '.'), fraction...)
	err := d.UnmarshalText(number)
	return d, err == nil
}

// Decimal returns the number for arithmetic and comparison.
func (a Amount) Decimal() decimal.Decimal { return a.d }

// String returns the number with all digits of its scale, without an exponent.
func (a Amount) String() string { return a.d.String() }

// MarshalText returns what String returns, for YAML and XML.
func (a Amount) MarshalText() ([]byte, error) { return a.d.AppendText(nil) }

// UnmarshalText reads what [ParseAmount] reads.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = parseAmount(text)
	return err
}

// MarshalBinary is [Amount.MarshalText], for gob and CBOR.
func (a Amount) MarshalBinary() ([]byte, error) { return a.MarshalText() }

// UnmarshalBinary is [Amount.UnmarshalText].
func (a *Amount) UnmarshalBinary(text []byte) error { return a.UnmarshalText(text) }

// MarshalBSON fails: BSON looks for no other method, and would store 0. Store the text instead.
func (a Amount) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return a.d.AppendText(nil) }

// grouped is an amount with commas between thousands. Only a point behind them tells that they are no decimal commas.
var grouped = regexp.MustCompile(`^-?\d{1,3}(,\d{3})+\.\d+$`)

// UnmarshalJSON reads a JSON number, a quoted number, also as 1,234.50, or none: null, false or an empty string.
func (a *Amount) UnmarshalJSON(b []byte) error {
	text := textOrNone(b)
	if len(text) == 0 {
		*a = Amount{}
		return nil
	}
	if bytes.IndexByte(text, ',') >= 0 && len(text) < longestValue && grouped.Match(text) {
		text = bytes.ReplaceAll(text, []byte(","), nil)
	}
	parsed, err := parseAmount(text)
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// Date is a calendar day without a time zone, YYYY-MM-DD on the wire. The zero value is no date: it is
// written as an empty string and read from one or from null.
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
	if len(s) != len(time.DateOnly) || s[4] != '-' || s[7] != '-' {
		return Date{}, errNotDate
	}
	d, ok := parseDay(s[:4], s[5:7], s[8:])
	if !ok || !d.Valid() {
		return Date{}, errNotDate
	}
	return d, nil
}

func parseDay(year, month, day string) (d Date, ok bool) {
	y, notYear := strconv.ParseUint(year, 10, 16)
	m, notMonth := strconv.ParseUint(month, 10, 8)
	n, notDay := strconv.ParseUint(day, 10, 8)
	return Date{int(y), time.Month(m), int(n)}, notYear == nil && notMonth == nil && notDay == nil
}

// In returns the start of the day in loc, which is not midnight where clocks are set forward then.
func (d Date) In(loc *time.Location) time.Time {
	start := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, loc)
	if start.Hour() > 12 { // of the evening before
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

// behindDay is a time, an offset or both, as they may stand behind a day.
var behindDay = regexp.MustCompile(`(?i)^(?:[T ](?:(?:[01]\d|2[0-3]):?[0-5]\d(?::?(?:[0-5]\d|60)(?:[.,]\d+)?)?)?)?` +
	`(?: ?(?:Z|[+-](?:[01]?\d|2[0-3])(?::?[0-5]\d)?))?(?: ?(?:UTC|GMT))?$`)

// UnmarshalJSON reads YYYY-MM-DD, also without leading zeros in month and day and with a time, an offset or a Z behind
// it, YYYYMMDD and YYYYMMDDhhmmss. An empty string, null, false, 0, 0000-00-00 and 0001-01-01 are no date.
func (d *Date) UnmarshalJSON(b []byte) error {
	text := bytes.TrimSuffix(textOrNone(b), []byte(".0")) // of a number
	if len(text) == 0 && len(b) > 0 || string(text) == "0" || isNoDay(text) {
		*d = Date{}
		return nil
	}
	if len(text) < len("2006-1-2") || len(text) > longestValue {
		return errNotDate
	}
	year, month, behind := text[:4], text[4:6], text[6:]
	if text[4] == '-' {
		month, behind, _ = bytes.Cut(text[5:], []byte("-"))
	}
	end := min(2, len(behind))
	if end == 2 && (behind[1] < '0' || behind[1] > '9') {
		end = 1
	}
	day, behind := behind[:end], behind[end:]
	parsed, ok := parseDay(string(year), string(month), string(day))
	isNone := parsed == Date{}
	if !ok || !isNone && !parsed.Valid() || !isCompact(text) && !behindDay.Match(behind) {
		return errNotDate
	}
	*d = parsed
	return nil
}

// isCompact reports whether a text is 14 digits.
func isCompact(text []byte) bool {
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	return len(text) == len("20060102150405") && bytes.IndexFunc(text, notDigit) < 0
}

const (
	noDay        = "0000-00-00" // what some databases write for none
	firstDay     = "0001-01-01" // what .NET writes for none, with a midnight behind it
	longestValue = 64           // of an instant or an amount
)

// isNoDay reports whether a text is a day that stands for none, or a time on it.
func isNoDay(text []byte) bool {
	return bytes.HasPrefix(text, []byte(noDay)) && behindDay.Match(text[len(noDay):]) ||
		bytes.HasPrefix(text, []byte(firstDay)) && behindDay.Match(text[len(firstDay):])
}

// checkDate refuses a date that is not in the calendar. No date is left to the service.
func checkDate(path string, d Date, p *problems) {
	if d != (Date{}) && !d.Valid() {
		p.add(path, errNotDate.Error())
	}
}

// Timestamp is an instant with the UTC offset in which the service wrote it. It is written in RFC 3339 form, and read
// from ISO 8601 with Z, UTC, GMT, +07:00, +0700 or +07, with or without seconds and a fraction, and in its basic form;
// without an offset it is no instant and cannot be read. 24:00:00 is the end of the day, the second 60 the next one.
// The zero value is no time: it is read from an empty string, from null, false and 0, and from the days 0000-00-00 and
// 0001-01-01.
type Timestamp struct {
	time.Time // its Location has the offset of the service
}

// UnmarshalJSON reads an instant or no time.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	text := textOrNone(b)
	if len(text) == 0 && len(b) > 0 || string(text) == "0" || isNoDay(text) {
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

// parseInstant is liberal in the offset, in letters and in blanks. It takes no memory but for the offset.
func parseInstant(b []byte) (t time.Time, err error) {
	if len(b) > longestValue {
		return t, errNotInstant
	}
	var room [2 * longestValue]byte
	text := room[:0]
	for _, c := range b {
		switch {
		case c == ' ' && len(text) == len(time.DateOnly):
			text = append(text, 'T')
		case c == ',':
			text = append(text, '.')
		case c >= 'a' && c <= 'z':
			text = append(text, c-'a'+'A')
		case c != ' ':
			text = append(text, c)
		}
	}
	if digits := len("20060102150405"); len(text) > digits && isCompact(text[:digits]) {
		text = slices.Insert(text, len("20060102"), 'T')
	}
	if len(text) > len("20060102T150405") && text[len("20060102")] == 'T' {
		text = slices.Insert(slices.Insert(text, 6, '-'), 4, '-')
		text = slices.Insert(slices.Insert(text, 15, ':'), 13, ':')
	}
	for _, zone := range []string{"+0000UTC", "UTC", "GMT"} { // the first as Go prints it
		if before, ok := bytes.CutSuffix(text, []byte(zone)); ok {
			text = append(before, 'Z')
		}
	}
	at := max(0, bytes.LastIndexAny(text, "Z+-"))
	if bytes.Count(text[:at], []byte(":")) < 2 {
		text = slices.Insert(text, at, ':', '0', '0')
		at += len(":00")
	}
	if offset := text[at:]; len(offset) == len("+7:00") && offset[2] == ':' {
		text = slices.Insert(text, at+1, '0')
	}
	switch len(text) - at {
	case len("+07"):
		text = append(text, ":00"...)
	case len("+0700"):
		text = slices.Insert(text, at+len("+07"), ':')
	}
	more := beyond(text)
	// Package time reads an offset of a whole day, and then refuses to write it.
	if t.UnmarshalText(text) != nil || t.Add(more).Year() > 9999 || isWholeDay(t) {
		return time.Time{}, errNotInstant // the standard error would repeat the text
	}
	return t.Add(more), nil
}

// isWholeDay reports whether the offset of a time is a day.
func isWholeDay(t time.Time) bool {
	_, offset := t.Zone()
	return max(offset, -offset) >= 24*60*60
}

// beyond writes 24:00:00 and the second 60, which package time does not know, as what it knows, and gives the rest.
func beyond(text []byte) time.Duration {
	clock := text[min(len("2006-01-02T"), len(text)):min(len("2006-01-02T15:04:05"), len(text))]
	switch {
	case string(clock) == "24:00:00":
		copy(clock, "00")
		return 24 * time.Hour
	case bytes.HasSuffix(clock, []byte(":60")) && len(clock) == len("15:04:60"):
		copy(clock[len("15:04:"):], "59")
		return time.Second
	}
	return 0
}

// CompactTime is a date and time of 14 digits, YYYYMMDDhhmmss, the form of a billing card's verified_date. The
// interface shows no time zone for it, so the caller supplies one.
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

// ExpDate returns a card's expiration date in the wire form MMYY. The year is given in full (2030) or by its
// last two digits (30). A month or year that cannot be written so gives a text that fails the local
// check of every request: ExpDate(13, 2030) is "1330".
func ExpDate(month, year int) string {
	if year >= 2000 && year <= 2099 {
		year -= 2000
	}
	return fmt.Sprintf("%02d%02d", month, year)
}

// Pairs is a list of names and values that travels as text: a JSON array of single-pair objects. The order is
// kept and names may repeat.
type Pairs []Pair

// Pair is one name with its value. The interface does not say which values are allowed; numbers
// are read as [encoding/json.Number].
type Pair struct {
	Name  string // of the pair
	Value any    // what JSON takes
}

// ParsePairs reads text such as [{"order":"17"},{"lane":"4"}], for example [TokenizeResponse.EchoFields]. Text of
// another form, such as an object with two pairs, also two of one name, is an error.
func ParsePairs(text string) (Pairs, error) {
	r := reader{ctx: context.Background()}
	var pairs Pairs
	if r.decode([]byte(text), (*[]Pair)(&pairs)) != nil || pairs == nil {
		return nil, errNotPairs
	}
	return pairs, nil
}

func (p *Pair) readForm(_ *reader, dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	name, err := dec.ReadToken()
	if err != nil || name.Kind() != '"' {
		return errNotPairs
	}
	p.Name = name.String()
	if err := json.UnmarshalDecode(dec, &p.Value); err != nil {
		return err
	}
	if end, err := dec.ReadToken(); err != nil || end.Kind() != '}' {
		return errNotPairs
	}
	return nil
}

// MarshalJSON writes a JSON string that holds the array, with the mark of each [Secret] in it.
func (p Pairs) MarshalJSON() ([]byte, error) { return marshalShown(p) }

func (p Pairs) writeForm(enc *jsontext.Encoder) error {
	objects := make([]map[string]any, len(p))
	for i, pair := range p {
		objects[i] = map[string]any{pair.Name: pair.Value}
	}
	text, err := json.Marshal(objects, enc.Options())
	if err == nil && isSent(enc) && isMarked(text) { // which is refused when they are read, too
		err = errRedacted
	}
	if err != nil {
		return &json.SemanticError{Err: err} // whose place is not that of an error within the text
	}
	return enc.WriteToken(jsontext.String(string(text)))
}

// UnmarshalJSON reads a JSON string that holds the array; null and an empty string are no pairs.
func (p *Pairs) UnmarshalJSON(b []byte) error { return unmarshalForm(b, p) }

func (p *Pairs) readForm(r *reader, dec *jsontext.Decoder) error {
	*p = nil
	token, err := dec.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return err
	}
	text := []byte(token.String())
	switch {
	case token.Kind() != '"':
		return errNotPairs
	case len(text) == 0:
		return nil
	case isMarked(text):
		return errRedacted
	}
	if r.within(text, (*[]Pair)(p)) != nil || *p == nil {
		*p = nil
		return errNotPairs
	}
	return nil
}

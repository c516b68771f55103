// Package redact clears texts of the service of card numbers and of the secrets that it was sent.
package redact

import (
	"bytes"
	"html"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark stands in place of what was cleared.
const Mark = "[REDACTED]"

// Lengths of secrets.
const (
	ShortSecret = 3 // shorter ones stand everywhere and are left
	LongSecret  = 8 // from this length on a secret is looked for with separators in it, and in codes
)

const (
	cardDigits    = 12 // of the shortest card number
	mostGiven     = 3  // names that are looked for one after the other; more than these only all together
	longestEscape = 32
	longestTag    = 256
)

// scripts are the signs of what is read in a text, one after the other: nothing but the text itself, its escapes, and
// its tags too.
//
//nolint:gochecknoglobals // never changed
var scripts = []string{"", "%&\\\x1b", "%&\\\x1b<"}

var (
	// codePoint is an escape with the number of a character, as JavaScript has them.
	codePoint = regexp.MustCompile(`^(?:%u([0-9A-Fa-f]{4})|\\u\{([0-9A-Fa-f]{1,6})\})`)
	// color is an escape sequence of a terminal.
	color = regexp.MustCompile(`^\x1b\[[0-9:;?]*[@-~]`)
	// noCard is what no card number is written as: a calendar day, or a list of numbers such as 10, 20, 500.
	noCard = regexp.MustCompile(`\b(?:(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])|` +
		`[1-9]\d\d?(?:, [1-9]\d\d?)+)\b`)
)

// Eraser clears texts of the service, as they stand, with their escapes read and without their tags, of
//   - every run of 12 digits or more, whatever stands between the digits, but for letters, days of the calendar, and
//     lists of numbers of two or three digits. A run that is longer than a card number may hold one. Phone numbers with
//     an extension and long IDs go too: clearing too much does no harm;
//   - the secrets, in any case;
//   - the long ones, and what a magnetic track holds, whatever stands between their letters and digits.
type Eraser struct{ exact, loose *tree }

// New returns one for some secrets.
func New(secrets []string) Eraser {
	var exact, loose []string
	for _, secret := range secrets {
		for _, signs := range scripts {
			r := read(secret, signs)
			exact = append(exact, string(r.mapped(asciiDigits).text))
			if plain := r.mapped(plain).text; len(plain) >= LongSecret {
				loose = append(loose, string(plain))
			}
		}
		loose = append(loose, trackTexts(secret)...)
	}
	isShort := func(text string) bool { return len(text) < ShortSecret }
	return Eraser{newTree(slices.DeleteFunc(exact, isShort)), newTree(slices.DeleteFunc(loose, isShort))}
}

// trackTexts returns the fields of a magnetic track, such as %B4111111111111111^DOE/JOHN Q.MR^2512101? or
// ;4111111111111111=2512101?, and the name in both orders, with the first of the given names, the first few, and all of
// them; all texts are plain. Other secrets have none.
func trackTexts(secret string) (texts []string) {
	plain := func(text string) string { return string(read(text, "").mapped(plain).text) }
	for _, track := range strings.FieldsFunc(secret, func(r rune) bool { return strings.ContainsRune("%;?", r) }) {
		fields := strings.Split(strings.ReplaceAll(track, "=", "^"), "^")
		number := strings.TrimLeftFunc(plain(fields[0]), unicode.IsLetter)
		if len(fields) == 1 || len(number) < LongSecret || strings.ContainsFunc(number, unicode.IsLetter) {
			continue
		}
		texts = append(texts, number)
		for _, field := range fields[1:] {
			texts = append(texts, plain(field))
			last, first, _ := strings.Cut(field, "/")
			names := strings.FieldsFunc(first, func(r rune) bool { return !unicode.IsLetter(r) })
			for i := range names {
				if i < mostGiven || i == len(names)-1 {
					given := strings.Join(names[:i+1], "")
					texts = append(texts, plain(last+given), plain(given+last))
				}
			}
		}
	}
	return texts
}

// Clean returns the texts with a mark in place of all that has to go, also where it is spread over several of them. The
// time it takes is in proportion to the texts.
func (e Eraser) Clean(texts ...string) []string {
	all := strings.Join(texts, "\x00")
	ends := make([]int32, len(all)) // of what has to go from a byte on
	for _, signs := range scripts {
		if signs != "" && !strings.ContainsAny(all, signs) {
			continue
		}
		r := read(all, signs)
		exact, loose := r.mapped(asciiDigits), r.mapped(plain)
		exact.mark(e.exact.find(exact.text), ends)
		loose.mark(e.loose.find(loose.text), ends)
		digits := r.without(noCard).mapped(plain)
		digits.mark(cardNumbers(digits.text), ends)
	}
	cleared, at, end := make([]string, len(texts)), 0, 0
	for i, text := range texts {
		var left strings.Builder
		isMarked := false
		for _, char := range []byte(text) {
			end = max(end, int(ends[at]))
			switch at++; {
			case at > end:
				left.WriteByte(char)
			case !isMarked:
				left.WriteString(Mark)
			}
			isMarked = at <= end
		}
		cleared[i] = left.String()
		at++ // what stands between them
	}
	return cleared
}

// reading is what was read of a text, with the place in the text from which each byte comes.
type reading struct {
	text []byte
	at   []place
}

type place struct{ from, to int32 }

// read reads a text and what begins with one of the signs in it, backwards, so that escapes of escapes (&amp;nbsp;,
// %2520) are read too.
func read(text, signs string) reading {
	r := reading{make([]byte, len(text)), make([]place, len(text))}
	first := len(text)
	for i, c := range slices.Backward([]byte(text)) {
		first--
		r.text[first], r.at[first] = c, place{int32(i), int32(i + 1)} //nolint:gosec // texts of 2 GiB are not read
		for strings.IndexByte(signs, r.text[first]) >= 0 {
			meaning, length := unescape(r.text[first:])
			if length == 0 || len(meaning) > length { // as of &nGt;, should package html learn it
				break
			}
			whole := place{r.at[first].from, r.at[first+length-1].to}
			first += length - len(meaning)
			for k := range copy(r.text[first:], meaning) {
				r.at[first+k] = whole
			}
			if meaning == "" {
				break
			}
		}
	}
	return reading{r.text[first:], r.at[first:]}
}

// unescape returns the meaning and the length of an escape or a tag at the start of a text. There is none if the length
// is 0.
func unescape(text []byte) (meaning string, length int) {
	start := string(text[:min(len(text), longestEscape)])
	if number := codePoint.FindStringSubmatch(start); number != nil {
		char, _ := strconv.ParseInt(number[1]+number[2], 16, 32)
		return string(rune(char)), len(number[0])
	}
	switch start[0] {
	case '\x1b':
		return "", len(color.FindString(start))
	case '<':
		return "", bytes.IndexByte(text[:min(len(text), longestTag)], '>') + 1
	case '%':
		if meaning, err := url.PathUnescape(start[:min(len(start), 3)]); err == nil {
			return meaning, 3
		}
	case '\\':
		if _, _, rest, err := strconv.UnquoteChar(start, 0); err == nil && start[1] > '9' { // no octal: \411 is of a number
			length = len(start) - len(rest)
			meaning, _ = strconv.Unquote(`"` + start[:length] + `"`)
		}
	case '&':
		isName := func(r rune) bool { return r == '#' || unicode.IsLetter(r) || unicode.IsDigit(r) }
		rest := strings.TrimPrefix(strings.TrimLeftFunc(start[1:], isName), ";")
		length = len(start) - len(rest)
		if meaning = html.UnescapeString(start[:length]); meaning == start[:length] {
			length = 0
		}
	}
	return meaning, length
}

// without puts letters in place of what matches.
func (r reading) without(pattern *regexp.Regexp) reading {
	letters := func(match []byte) []byte { return bytes.Repeat([]byte("x"), len(match)) }
	return reading{pattern.ReplaceAllFunc(r.text, letters), r.at}
}

// mapped changes the characters, and drops those that become negative.
func (r reading) mapped(to func(rune) rune) reading {
	m := reading{make([]byte, 0, len(r.text)), make([]place, 0, len(r.text))}
	for from := 0; from < len(r.text); {
		char, size := utf8.DecodeRune(r.text[from:])
		whole := place{r.at[from].from, r.at[from+size-1].to}
		from += size
		if char = to(char); char < 0 {
			continue
		}
		m.text = utf8.AppendRune(m.text, char)
		for len(m.at) < len(m.text) {
			m.at = append(m.at, whole)
		}
	}
	return m
}

// asciiDigits gives the digits of other scripts as those of ASCII.
func asciiDigits(char rune) rune {
	if char <= unicode.MaxASCII || !unicode.IsDigit(char) {
		return char
	}
	before := rune(0)
	for unicode.IsDigit(char - before - 1) { // they come in tens
		before++
	}
	return '0' + before%10
}

// plain keeps letters, in lower case, and digits. Numbers that are no digits become zeros. Modifier letters go, since
// some look like dashes, and letters that are not seen.
func plain(char rune) rune {
	switch char = asciiDigits(char); {
	case unicode.IsDigit(char):
	case unicode.IsNumber(char):
		return '0'
	case !unicode.IsLetter(char) || unicode.In(char, unicode.Lm, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	}
	return unicode.ToLower(char)
}

// mark notes in ends what has to go: the bytes from one to before the other.
func (r reading) mark(found iter.Seq2[int, int], ends []int32) {
	for from, to := range found {
		start := r.at[from].from
		ends[start] = max(ends[start], r.at[to-1].to)
	}
}

// cardNumbers yields the runs of digits that may hold one.
func cardNumbers(text []byte) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		digits := 0
		for i, c := range text {
			if digits++; c < '0' || c > '9' {
				digits = 0
			}
			if digits >= cardDigits && !yield(i+1-cardDigits, i+1) {
				return
			}
		}
	}
}

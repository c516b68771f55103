package payvault

import (
	"html"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/payvault/internal/words"
)

const (
	shortSecret   = 3  // shorter ones stand everywhere and are left
	longSecret    = 8  // from this length on a secret is looked for with separators in it, and in codes
	cardDigits    = 12 // of the shortest card number
	escapeSigns   = `%&\`
	longestEscape = 32
)

// eraser clears texts of the service, as they stand and with their escapes read, of
//   - every run of 12 digits or more, whatever stands between the digits, but for letters. A run that is longer than a
//     card number may hold one. Dates with times and long IDs go too: clearing too much does no harm;
//   - the secrets, in any case;
//   - the long ones, and what a magnetic track holds, whatever stands between their letters and digits.
type eraser struct{ exact, loose *words.Tree }

func newEraser(secrets []string) eraser {
	var exact, loose []string
	for _, secret := range secrets {
		for _, escapes := range []bool{false, true} {
			r := read(secret, escapes)
			exact = append(exact, string(r.text))
			if plain := r.plain().text; len(plain) >= longSecret {
				loose = append(loose, string(plain))
			}
		}
		loose = append(loose, trackTexts(secret)...)
	}
	isShort := func(text string) bool { return len(text) < shortSecret }
	return eraser{words.New(slices.DeleteFunc(exact, isShort)), words.New(slices.DeleteFunc(loose, isShort))}
}

// trackTexts returns the fields of a magnetic track, such as %B4111111111111111^DOE/JOHN Q.MR^2512101? or
// ;4111111111111111=2512101?, and the name in both orders, all of them plain. Other secrets have none.
func trackTexts(secret string) (texts []string) {
	plain := func(text string) string { return string(read(text, false).plain().text) }
	for _, track := range strings.FieldsFunc(secret, func(r rune) bool { return strings.ContainsRune("%;?", r) }) {
		fields := strings.Split(strings.ReplaceAll(track, "=", "^"), "^")
		number := strings.TrimLeftFunc(plain(fields[0]), unicode.IsLetter)
		if len(fields) == 1 || len(number) < longSecret || strings.ContainsFunc(number, unicode.IsLetter) {
			continue
		}
		texts = append(texts, number)
		for _, field := range fields[1:] {
			texts = append(texts, plain(field))
			last, first, _ := strings.Cut(field, "/")
			names := strings.FieldsFunc(first, func(r rune) bool { return !unicode.IsLetter(r) })
			for i := range names {
				given := strings.Join(names[:i+1], "")
				texts = append(texts, plain(last+given), plain(given+last))
			}
		}
	}
	return texts
}

// clean returns the text with a mark in place of all that has to go. The time it takes is in proportion to the text.
func (e eraser) clean(text string) string {
	ends := make([]int32, len(text)) // of what has to go from a byte on
	for _, escapes := range []bool{false, true} {
		if escapes && !strings.ContainsAny(text, escapeSigns) {
			break
		}
		r := read(text, escapes)
		r.mark(e.exact.Find(r.text), ends)
		r = r.plain()
		r.mark(e.loose.Find(r.text), ends)
		r.mark(cardNumbers(r.text), ends)
	}
	var cleared strings.Builder
	for i := 0; i < len(text); i++ {
		if ends[i] == 0 {
			cleared.WriteByte(text[i])
			continue
		}
		cleared.WriteString(redacted)
		for end := ends[i]; i+1 < int(end); i++ {
			end = max(end, ends[i+1])
		}
	}
	return cleared.String()
}

// reading is what was read of a text, with the place in the text from which each byte comes.
type reading struct {
	text []byte
	at   []place
}

type place struct{ from, to int32 }

// read reads a text backwards, so that escapes of escapes (&amp;nbsp;, %2520) are read too.
func read(text string, escapes bool) reading {
	r := reading{make([]byte, len(text)), make([]place, len(text))}
	first := len(text)
	for i, c := range slices.Backward([]byte(text)) {
		first--
		r.text[first], r.at[first] = c, place{int32(i), int32(i + 1)} //nolint:gosec // texts of 2 GiB are not read
		for escapes && strings.IndexByte(escapeSigns, r.text[first]) >= 0 {
			meaning, length := unescape(r.text[first:])
			if length == 0 || len(meaning) > length { // as of &nGt;, should package html learn it
				break
			}
			whole := place{r.at[first].from, r.at[first+length-1].to}
			first += length - len(meaning)
			for k := range copy(r.text[first:], meaning) {
				r.at[first+k] = whole
			}
		}
	}
	return reading{r.text[first:], r.at[first:]}
}

// unescape returns the meaning and the length of an escape at the start of a text. There is none if the length is 0.
func unescape(text []byte) (meaning string, length int) {
	start := string(text[:min(len(text), longestEscape)])
	switch start[0] {
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

// plain keeps letters, in lower case, and digits. Digits of other scripts become zeros, and modifier letters go, since
// some look like dashes.
func (r reading) plain() reading {
	p := reading{make([]byte, 0, len(r.text)), make([]place, 0, len(r.text))}
	for from := 0; from < len(r.text); {
		char, size := utf8.DecodeRune(r.text[from:])
		whole := place{r.at[from].from, r.at[from+size-1].to}
		from += size
		switch {
		case '0' <= char && char <= '9':
		case unicode.IsNumber(char):
			char = '0'
		case !unicode.IsLetter(char) || unicode.Is(unicode.Lm, char):
			continue
		}
		p.text = utf8.AppendRune(p.text, unicode.ToLower(char))
		for len(p.at) < len(p.text) {
			p.at = append(p.at, whole)
		}
	}
	return p
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

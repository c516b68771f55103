// Package redact removes card numbers, and secrets that the SDK sent, from texts of the service.
package redact

import (
	"html"
	"regexp"
	"strconv"
	"strings"
)

const (
	// Mark replaces each removed text.
	Mark = "[REDACTED]"
	// CardDigits is the length of the shortest card number.
	CardDigits = 12

	shortest = 3 // shortest secret that is removed, in bytes; shorter texts occur by chance
	rounds   = 4 // levels of nested escapes that are read; &amp;nbsp; has two
)

// separators matches the characters that may stand between the digits of a card number: blanks, dashes, dots, accents,
// and invisible characters. It also matches U+FFFD: a no-break space of Latin-1 becomes U+FFFD if it is read as UTF-8.
const separators = `[\p{Cc}\p{Z}\p{Pd}\x{2212}.\x{B7}\p{Cf}\p{M}\x{115F}\x{1160}\x{3164}\x{FFA0}\x{FFFD}]*`

var (
	// numbers matches runs of digits and separators in its first group. It also matches calendar days such as 2026-11-22,
	// outside of the group, so that their digits are not taken for a card number.
	numbers = regexp.MustCompile(`\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b|` +
		`(\d(?:` + separators + `\d)*)`)
	percent   = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	backslash = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|["\\/])`)
	tag       = regexp.MustCompile(`<[^<>]*>`)
)

// Eraser removes card numbers and some secrets from texts. It takes time in proportion to the length of the text and to
// the number of secrets. If two occurrences of a secret overlap, only the first one is removed.
type Eraser struct{ secrets []string } // each secret in all forms that New makes

// New returns an Eraser for some secrets. The Eraser removes each secret in four forms: as it is and without its
// escapes, and both also with no-break spaces (U+00A0) in place of blanks. It ignores forms of less than three bytes.
func New(secrets []string) Eraser {
	var e Eraser
	known := make(map[string]bool, len(secrets))
	for _, secret := range secrets {
		unescaped := unescapeAll(secret)
		for _, form := range []string{secret, unescaped, withNoBreakSpaces(secret), withNoBreakSpaces(unescaped)} {
			if len(form) >= shortest && !known[form] {
				known[form] = true
				e.secrets = append(e.secrets, form)
			}
		}
	}
	return e
}

func withNoBreakSpaces(text string) string { return strings.ReplaceAll(text, " ", "\u00a0") }

// Clean returns a text with [REDACTED] in place of each secret and card number. The whole result is [REDACTED] if
// escapes or tags hide a part of a secret or card number, or if escapes are nested too deep.
//
// To find what escapes hide, Clean compares the results of two orders: "unescape, then erase" and "erase, then
// unescape". If the results differ, an escape probably hides a secret or a card number. Clean unescapes up to four
// times and compares each time, because a reader may unescape more than once. To find what tags hide, it compares
// "remove the tags, then erase" with "erase, then remove the tags", before the first unescaping and after each one.
func (e Eraser) Clean(text string) string {
	cleared := e.erase(text)
	unescaped, clearedUnescaped := text, cleared
	for round := 0; ; round++ {
		escapesHide := e.erase(unescaped) != clearedUnescaped
		tagsHide := e.erase(withoutTags(unescaped)) != withoutTags(clearedUnescaped)
		if escapesHide || tagsHide {
			return Mark
		}
		next := unescape(unescaped)
		if next == unescaped { // there are no escapes left
			return cleared
		}
		if round == rounds {
			return Mark
		}
		unescaped, clearedUnescaped = next, unescape(clearedUnescaped)
	}
}

// CardNumbers replaces each card number in a text by the mark. It does not find card numbers with escapes in them.
func CardNumbers(text string) string { return Eraser{}.erase(text) }

// erase replaces each secret and card number of a text by the mark.
func (e Eraser) erase(text string) string {
	ends := make(map[int]int) // maps the position of each text to be removed to its end
	mark := func(from, to int) { ends[from] = max(ends[from], to) }
	for _, match := range numbers.FindAllStringSubmatchIndex(text, -1) {
		if from, to := match[2], match[3]; from >= 0 && mayHoldCard(text[from:to]) {
			mark(from, to)
		}
	}
	for _, secret := range e.secrets {
		for from := 0; ; {
			at := strings.Index(text[from:], secret)
			if at < 0 {
				break
			}
			mark(from+at, from+at+len(secret))
			from += at + len(secret)
		}
	}
	if len(ends) == 0 {
		return text
	}
	var left strings.Builder
	end, isMarked := 0, false
	for i := range len(text) {
		end = max(end, ends[i])
		switch {
		case i >= end:
			left.WriteByte(text[i])
			isMarked = false
		case !isMarked:
			left.WriteString(Mark)
			isMarked = true
		}
	}
	return left.String()
}

// mayHoldCard reports whether a run of digits has at least as many digits as the shortest card number.
func mayHoldCard(run string) bool {
	digits := 0
	for _, char := range run {
		if char >= '0' && char <= '9' {
			digits++
		}
	}
	return digits >= CardDigits
}

// unescapeAll replaces the escapes of a text, up to four levels deep.
func unescapeAll(text string) string {
	for range rounds {
		text = unescape(text)
	}
	return text
}

// unescape replaces percent-encoding, HTML entities, and string escapes such as \u0020 and \".
func unescape(text string) string {
	if !strings.ContainsAny(text, `%\&`) {
		return text
	}
	text = percent.ReplaceAllStringFunc(text, func(escape string) string {
		char, _ := strconv.ParseUint(escape[1:], 16, 8)
		return string([]byte{byte(char)})
	})
	text = backslash.ReplaceAllStringFunc(text, func(escape string) string {
		if len(escape) == len(`\"`) {
			return escape[1:]
		}
		char, _ := strconv.ParseUint(escape[2:], 16, 16)
		return string(rune(char))
	})
	return html.UnescapeString(text)
}

func withoutTags(text string) string { return tag.ReplaceAllString(text, "") }

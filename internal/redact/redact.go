// Package redact removes card numbers, and values that the SDK sent, from texts of the service.
package redact

import (
	"html"
	"regexp"
	"strconv"
	"strings"
)

const (
	// Mark stands in place of what was cleared.
	Mark = "[REDACTED]"
	// CardDigits is the length of the shortest card number.
	CardDigits = 12

	shortest = 3 // bytes of a secret that is cleared; a shorter one stands everywhere
	rounds   = 4 // how deep escapes within escapes are read, such as &amp;nbsp;
)

// separators are what may stand between the digits of a card number: blanks, dashes, dots, and characters that are not
// seen, such as control characters.
const separators = `[\p{Cc}\p{Z}\p{Pd}\x{2212}.\x{B7}\p{Cf}\p{M}\x{115F}\x{1160}\x{3164}\x{FFA0}]*`

var (
	// numbers matches runs of digits in its first group. Outside of the group it matches days of the calendar, so that
	// they are not taken for runs of digits.
	numbers = regexp.MustCompile(`\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b|` +
		`(\d(?:` + separators + `\d)*)`)
	percent   = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	backslash = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|["\\/])`)
	tag       = regexp.MustCompile(`<[^<>]*>`)
)

// Eraser clears texts of some secrets, as they are, and of card numbers. It takes time in proportion to the length of
// a text, and to the number of secrets.
type Eraser struct{ secrets []string }

// New returns an Eraser for some secrets. It ignores secrets of less than three bytes.
func New(secrets []string) Eraser {
	var e Eraser
	for _, secret := range secrets {
		if len(secret) < shortest {
			continue
		}
		e.secrets = append(e.secrets, secret)
		if plain := plainOf(secret); plain != secret && len(plain) >= shortest {
			e.secrets = append(e.secrets, plain)
		}
	}
	return e
}

// Clean returns a text with a mark in place of what has to go. The mark stands for the whole text if an escape or a tag
// hides anything of that, even a part, or if escapes are nested too deep to tell. They hide something if it makes a
// difference whether they are read before the text is erased or after.
func (e Eraser) Clean(text string) string {
	cleared := e.erase(text)
	plain, left := text, cleared
	for range rounds { // a reader may stop after any round
		plain, left = unescape(plain), unescape(left)
		escapesHide := e.erase(plain) != left
		tagsHide := e.erase(withoutTags(plain)) != withoutTags(left)
		if escapesHide || tagsHide {
			return Mark
		}
	}
	isTooDeep := plain != unescape(plain)
	if isTooDeep {
		return Mark
	}
	return cleared
}

// CardNumbers clears a text of card numbers that are not escaped.
func CardNumbers(text string) string { return Eraser{}.erase(text) }

// erase puts a mark in place of each stretch of a text that has to go.
func (e Eraser) erase(text string) string {
	ends := make(map[int]int) // where each stretch ends, by where it begins
	found := 0
	mark := func(from, to int) {
		ends[from] = max(ends[from], to)
		found++
	}
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
	if found == 0 {
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

// mayHoldCard reports whether a run of digits is long enough. One that is longer than a card number may hold one.
func mayHoldCard(run string) bool {
	digits := 0
	for _, char := range run {
		if char >= '0' && char <= '9' {
			digits++
		}
	}
	return digits >= CardDigits
}

// plainOf reads the escapes of a text, and those within them.
func plainOf(text string) string {
	for range rounds {
		text = unescape(text)
	}
	return text
}

// unescape reads percent-encoding, the escapes \u0020 and \" of strings, and entities.
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

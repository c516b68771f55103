package payvault

import (
	"cmp"
	"slices"
	"strings"
)

// longSecret is the length from which a secret is looked for with separators in it, and in codes.
const longSecret = 8

// eraser takes secrets out of texts that others have written. Long ones are found also with separators between their letters
// and digits and in another case, as a card number with spaces; those of one or two characters, which stand everywhere, are left.
type eraser struct {
	exact []string
	loose []loose
}

// loose is what is looked for of a secret, and what it has before and after that.
type loose struct{ plain, head, tail string }

func newEraser(secrets []string) eraser {
	var e eraser
	for _, secret := range secrets {
		plain, at := lettersAndDigits(secret)
		switch {
		case len(plain) >= longSecret:
			e.loose = append(e.loose, loose{plain, secret[:at[0]], secret[at[len(at)-1]+1:]})
		case len(secret) >= 3:
			e.exact = append(e.exact, secret)
		}
	}
	return e
}

// clean returns the text with a mark in place of each secret.
func (e eraser) clean(text string) string {
	type span struct{ from, to int }
	var spans []span
	for _, secret := range e.exact {
		for from := range indexes(text, secret) {
			spans = append(spans, span{from, from + len(secret)})
		}
	}
	if len(e.loose) > 0 {
		plain, at := lettersAndDigits(text)
		for _, secret := range e.loose {
			for from := range indexes(plain, secret.plain) {
				s := span{at[from], at[from+len(secret.plain)-1] + 1}
				if strings.HasSuffix(text[:s.from], secret.head) {
					s.from -= len(secret.head)
				}
				if strings.HasPrefix(text[s.to:], secret.tail) {
					s.to += len(secret.tail)
				}
				spans = append(spans, s)
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var cleaned strings.Builder
	end := 0
	for _, s := range spans {
		if s.from >= end {
			cleaned.WriteString(text[end:s.from] + redacted)
		}
		end = max(end, s.to)
	}
	return cleaned.String() + text[end:]
}

// indexes yields where part stands in text, also where it overlaps with itself.
func indexes(text, part string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for from := 0; ; from++ {
			next := strings.Index(text[from:], part)
			if next < 0 || !yield(from+next) {
				return
			}
			from += next
		}
	}
}

// lettersAndDigits returns those of a text in lower case, and the position of each of their bytes. What is not ASCII counts
// as a letter.
func lettersAndDigits(text string) (plain string, at []int) {
	kept := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= 0x80:
		default:
			continue
		}
		kept, at = append(kept, c), append(at, i)
	}
	return string(kept), at
}

package simulation

import (
	"html"
	"net/url"
	"strings"
)

// leaked returns the first of the secrets that the text contains, unchanged or escaped, and "" if it contains none. If
// the digits of a long number have separators in the text, leaked finds the number too.
func leaked(text string, secrets []string) string {
	unescaped := unescape(text)
	joined := joinedDigits(unescaped)
	for _, secret := range secrets {
		if strings.Contains(text, secret) || strings.Contains(unescaped, secret) {
			return secret
		}
		if isNumber(secret) && strings.Contains(joined, secret) {
			return secret
		}
	}
	return ""
}

func unescape(text string) string {
	text = html.UnescapeString(text)
	if strings.Contains(text, "%") {
		var b strings.Builder
		for i := 0; i < len(text); i++ {
			if text[i] == '%' && i+3 <= len(text) {
				if char, err := url.PathUnescape(text[i : i+3]); err == nil {
					b.WriteString(char)
					i += 2
					continue
				}
			}
			b.WriteByte(text[i])
		}
		text = b.String()
	}
	return text
}

// joinedDigits removes the separators that [die.apart] puts between digits.
func joinedDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -.\u00a0\u2013", r) {
			return -1
		}
		return r
	}, text)
}

// isNumber reports whether a text consists of at least 12 digits.
func isNumber(text string) bool { return len(text) >= 12 && strings.Trim(text, "0123456789") == "" }

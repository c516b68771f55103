// Package cardnumber finds, checks and masks card numbers.
package cardnumber

import (
	"strings"
)

const digits = "0123456789"

// Valid reports whether s is 12 to 19 digits. Check digits are not verified.
func Valid(s string) bool { return len(s) >= 12 && len(s) <= 19 && strings.Trim(s, digits) == "" }

// Mask hides all but the first four and the last six digits of a number.
func Mask(number string) string {
	if len(number) <= 10 {
		return strings.Repeat("x", len(number))
	}
	return number[:4] + strings.Repeat("x", len(number)-10) + number[len(number)-6:]
}

// Masked masks a text that is a card number, and returns any other text unchanged.
func Masked(text string) string {
	if Valid(text) {
		return Mask(text)
	}
	return text
}

// Network returns the emulator's two-letter code of a card network, or "".
func Network(number string) string {
	for prefix, code := range map[string]string{"4": "VI", "5": "MC", "2": "MC", "34": "AM", "37": "AM", "6": "DI"} {
		if strings.HasPrefix(number, prefix) {
			return code
		}
	}
	return ""
}

// OfTrack returns the card number in magnetic-stripe data, or "". The number stands after %B on track one and after ;
// on track two.
func OfTrack(swipe string) string {
	for _, start := range []string{"%B", ";"} {
		_, rest, found := strings.Cut(swipe, start)
		number := rest[:len(rest)-len(strings.TrimLeft(rest, digits))]
		if found && Valid(number) {
			return number
		}
	}
	return ""
}

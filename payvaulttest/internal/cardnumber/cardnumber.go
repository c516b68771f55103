// Package cardnumber finds, checks and masks card numbers.
package cardnumber

import (
	"strings"
)

const digits = "0123456789"

// Valid reports whether s is 12 to 19 digits. It does not verify the check digit.
func Valid(s string) bool { return len(s) >= 12 && len(s) <= 19 && strings.Trim(s, digits) == "" }

// Mask replaces every digit with x, except the first four and the last six. If there are at most ten digits, it
// replaces all of them.
func Mask(number string) string {
	if len(number) <= 10 {
		return strings.Repeat("x", len(number))
	}
	return number[:4] + strings.Repeat("x", len(number)-10) + number[len(number)-6:]
}

// Masked returns the masked card number if the text is a card number. Otherwise it returns the text unchanged.
func Masked(text string) string {
	if Valid(text) {
		return Mask(text)
	}
	return text
}

// Network returns the emulator's two-letter code for the network of a card number, such as VI. If the network is
// unknown, it returns "".
func Network(number string) string {
	for prefix, code := range map[string]string{"4": "VI", "5": "MC", "2": "MC", "34": "AM", "37": "AM", "6": "DI"} {
		if strings.HasPrefix(number, prefix) {
			return code
		}
	}
	return ""
}

// OfTrack returns the card number in the data of a magnetic stripe, or "" if there is none. On track one the number
// follows %B. On track two it follows a semicolon.
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

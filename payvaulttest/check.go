package payvaulttest

import (
	"encoding/json"
	"net/mail"
	"strings"
	"time"
)

// isBlank tells whether s has nothing that can be seen. Such a text is none where one is required.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// isDigits tells whether s consists of at least low and at most high digits.
func isDigits(s string, low, high int) bool {
	return len(s) >= low && len(s) <= high && strings.Trim(s, "0123456789") == ""
}

// isAlphanumeric tells whether s is made of ASCII letters and digits only.
func isAlphanumeric(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isNumericCode accepts the numeric code of a country or a currency, or none.
func isNumericCode(s string) bool { return s == "" || isDigits(s, 1, 3) }

func isCardNumber(s string) bool { return isDigits(s, 12, 19) }

// isExpDate tells whether s is MMYY.
func isExpDate(s string) bool {
	return isDigits(s, 4, 4) && s[:2] >= "01" && s[:2] <= "12"
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func isEmail(s string) bool {
	address, err := mail.ParseAddress(s)
	return err == nil && address.Address == s
}

// isPairs tells whether s is the text of a JSON array of single-pair objects.
func isPairs(s string) bool {
	var strict json.RawMessage // decode sees a name that is given twice
	var pairs []map[string]json.RawMessage
	if decode([]byte(s), &strict) != nil || json.Unmarshal(strict, &pairs) != nil || pairs == nil {
		return false
	}
	for _, pair := range pairs {
		if len(pair) != 1 {
			return false
		}
	}
	return true
}

// mask hides all but the first four and the last six digits of a card number.
func mask(number string) string {
	if len(number) <= 10 {
		return strings.Repeat("x", len(number))
	}
	return number[:4] + strings.Repeat("x", len(number)-10) + number[len(number)-6:]
}

// cardType gives the emulator's two-letter code of a card network, or nothing.
func cardType(number string) string {
	switch {
	case number == "":
		return ""
	case number[0] == '4':
		return "VI"
	case number[0] == '5', number[0] == '2':
		return "MC"
	case strings.HasPrefix(number, "34"), strings.HasPrefix(number, "37"):
		return "AM"
	case number[0] == '6':
		return "DI"
	}
	return ""
}

// checkEach adds a problem for every value that does not pass.
func checkEach[T any](p problems, field string, values []T, ok func(T) bool, message string) {
	for _, value := range values {
		if !ok(value) {
			p.check(false, field, message)
			return
		}
	}
}

package payvault

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"unicode"
)

var (
	errKeyEmpty   = errors.New("is empty")
	errKeyAround  = errors.New("has a blank, a line break, a quote or an invisible character around it")
	errKeyControl = errors.New("contains a control character")
)

// checkKey returns an error if key cannot be an API key. The error does not contain the key.
func checkKey(key string) error {
	switch bare := strings.TrimFunc(key, isAround); {
	case bare == "":
		return errKeyEmpty
	case bare != key:
		return errKeyAround
	case strings.ContainsFunc(key, unicode.IsControl):
		return errKeyControl
	}
	return nil
}

// isAround reports whether checkKey refuses a character before or after a key: a blank, a line break, a quote, or an
// invisible character such as a byte order mark. Such characters get there when a key is copied or read from a file.
func isAround(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`\u201a\u201e", r) ||
		unicode.In(r, unicode.Pi, unicode.Pf, unicode.Cf) // quotes such as \u201c, and invisible characters
}

// basic is the start of an Authorization header: the scheme and a blank.
const basic = "Basic "

// authorization returns the Authorization header for a key: basic authentication with an empty user name and the key as
// the password.
func authorization(key string) string {
	return basic + base64.StdEncoding.EncodeToString([]byte(":"+key))
}

// keyOf returns the key that an Authorization header contains.
func keyOf(header string) string {
	credentials, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(header, basic))
	return strings.TrimPrefix(string(credentials), ":")
}

// staticKey returns a function that returns the Authorization header for key. The header is built only once.
func staticKey(key string) func(context.Context) (string, error) {
	header := authorization(key)
	return func(context.Context) (string, error) { return header, nil }
}

// rotatingKey returns a function that asks the function source for a key on each attempt, and returns the Authorization
// header for that key.
func rotatingKey(source func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		key, err := source(ctx)
		if err != nil {
			return "", err
		}
		if err := checkKey(key); err != nil {
			return "", err
		}
		return authorization(key), ctx.Err() // an error if ctx ended before source returned
	}
}

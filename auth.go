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
	errKeyControl = errors.New("contains a control character")
)

// checkKey refuses what cannot be an API key. It never repeats the key.
func checkKey(key string) error {
	if strings.TrimSpace(key) == "" {
		return errKeyEmpty
	}
	if strings.ContainsFunc(key, unicode.IsControl) {
		return errKeyControl
	}
	return nil
}

// basic is the scheme of the Authorization header.
const basic = "Basic "

// authorization builds the header: Basic, with the key as the password of an empty user.
func authorization(key string) string {
	return basic + base64.StdEncoding.EncodeToString([]byte(":"+key))
}

// keyOf gives back the key of such a header.
func keyOf(header string) string {
	credentials, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(header, basic))
	return strings.TrimPrefix(string(credentials), ":")
}

// staticKey builds the header once.
func staticKey(key string) func(context.Context) (string, error) {
	header := authorization(key)
	return func(context.Context) (string, error) { return header, nil }
}

// rotatingKey asks for the key on each attempt.
func rotatingKey(source func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		key, err := source(ctx)
		if err != nil {
			return "", err
		}
		if err := checkKey(key); err != nil {
			return "", err
		}
		return authorization(key), ctx.Err() // it may have taken all the time
	}
}

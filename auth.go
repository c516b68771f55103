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

// checkKey returns an error if key cannot be an API key. The error does not contain the key.
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

// keyOf returns the key of an Authorization header.
func keyOf(header string) string {
	credentials, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(header, basic))
	return strings.TrimPrefix(string(credentials), ":")
}

// staticKey returns a function that returns the header of key. It builds the header once.
func staticKey(key string) func(context.Context) (string, error) {
	header := authorization(key)
	return func(context.Context) (string, error) { return header, nil }
}

// rotatingKey returns a function that asks source for the key on each attempt, and returns its header.
func rotatingKey(source func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		key, err := source(ctx)
		if err != nil {
			return "", err
		}
		if err := checkKey(key); err != nil {
			return "", err
		}
		return authorization(key), ctx.Err() // source may have returned after the end of ctx
	}
}

// Package fuzz tests the SDK with random answers, JSON values and API keys.
package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// FuzzReply gives a random answer to every call. A call may succeed only if the answer has status 2xx and the code of a
// success. The exception is Validate, which may return code 2 with messages as a result. Every failure must be an
// *Error with one line of text.
func FuzzReply(f *testing.F) {
	names, err := filepath.Glob(filepath.Join(calls.Root(), "testdata", "*", "*.json"))
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(200, text)
		f.Add(422, text)
	}
	for _, text := range []string{
		"", "[]", "{}", "[[[[", `{"code":0,"rcode":"000"}}`, `{"code":7,"code":0,"rcode":"7","rcode":"000"}`,
		`{"code":7,"CODE":0,"rcode":"7"}`, `{"code":null,"rcode":null}`, `{"code":[0],"rcode":["000"]}`,
		`{"code":"0","data":{"message":{},"customer_id":[],"app":[]}}`,
	} {
		f.Add(200, []byte(text))
	}
	f.Add(302, []byte(`{"code":0}`))
	f.Add(503, []byte(`<html>`))
	f.Add(101, []byte{})
	all := calls.All()
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 999 {
			status = 200
		}
		client := service.Client(t, service.Nowhere, service.Impatient(1), service.Over(service.Canned(status, string(body))))
		for _, c := range all {
			result, err := c.Do(t.Context(), client, calls.Documented(), c.Full)
			if err != nil {
				assert.Nil(t, result, c.Name)
				assertPlain(t, &c, err)
				continue
			}
			member, want := "code", "0"
			if c.Op == payvault.OpTokensTokenize {
				member, want = "rcode", "000"
			}
			got := codes(body, member)
			if validated, ok := result.(*payvault.Validation); ok && !validated.OK() && slices.Equal(got, []string{"2"}) {
				continue // Validate returns code 2 with messages as a result
			}
			assert.Equal(t, 2, status/100, c.Name)
			assert.Equal(t, []string{want}, got, "%s: %q", c.Name, body)
		}
	})
}

// assertPlain checks that the text of an error is one short line, and that the error matches ErrOutcomeUnknown if and
// only if its Delivery is unknown and the operation is not a read.
func assertPlain(t *testing.T, c *calls.Call, err error) {
	t.Helper()
	e := service.AsError(t, err)
	assert.Equal(t, c.Op, e.Op)
	assert.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err)
	assert.Less(t, len(err.Error()), 8000)
	unsure := e.Delivery == payvault.DeliveryUnknown && c.Replay != payvault.ReplayRead
	assert.Equal(t, unsure, errors.Is(err, payvault.ErrOutcomeUnknown))
}

// codes returns the values that a JSON object has for a name, which may be in upper or lower case. It omits null, an
// empty text before the first value, and a value that is equal to the one before. It returns nil if the body is no JSON
// object. It uses encoding/json, while the SDK reads the codes with another decoder.
func codes(body []byte, member string) (texts []string) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if start, err := dec.Token(); err != nil || start != json.Delim('{') || !json.Valid(body) {
		return nil
	}
	for dec.More() {
		var value any
		name, _ := dec.Token()
		_ = dec.Decode(&value) // body is valid JSON, so this does not fail
		isNone := value == nil || value == "" && texts == nil
		if strings.EqualFold(name.(string), member) && !isNone {
			texts = append(texts, fmt.Sprint(value))
		}
	}
	return slices.Compact(texts)
}

// FuzzValues decodes random texts. It checks that a value is encoded as JSON that decodes to the same value, and that
// errors do not repeat the input.
func FuzzValues(f *testing.F) {
	for _, text := range []string{
		`12.50`, `"12.50"`, `1e3`, `-0.0`, `null`, `""`, `"2026-01-15"`, `"2026-01-15T14:30:42+0700"`,
		`"2026-01-15 14:30:42.5Z"`, `"\u0037"`, `7`, `"9223372036854775807"`,
		`"[{\"a\":1},{\"a\":{\"b\":[null]}}]"`, `"[]"`, `[{"key":"tax_id","value":"1"},{"key":"x","value":{"a":[1.50]}}]`,
		`{"key":"ownership","value":{"interestCount":"1","owners":[{"dob":""}]},"type":"ownership"}`,
		`[{"key":"business_services_auth_time","value":" {0"}]`,
		`[{"key":"business_services_auth_time","value":"{1E30,30+},"}]`,
		"{\"value\":{\"interestCount\":\"1\",\"ow\xd3ners\":[]},\"type\":\"ownership\"}",
		`{"a":`, `"`, `x`, "\xff", `"\u00a0"`, `[{"key":"business_services_auth_time","value":"{1,30,30+}"}]`, `"0000-01-01"`,
		`"9999-12-31T23:59:60Z"`, calls.Fixture("applications/save_data.response.json"),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, value := range []any{
			payvault.Amount{},
			payvault.Date{},
			payvault.Timestamp{},
			payvault.MerchantID(0),
			payvault.Pairs{},
			payvault.Secret{},
			payvault.ApplicationData{},
			payvault.SavedField{},
			payvault.Owner{},
			payvault.Transaction{},
		} {
			roundTrip(t, reflect.TypeOf(value), text)
			// encoding/json never calls UnmarshalJSON with invalid JSON, so the test calls it directly.
			if into, ok := reflect.TypeAssert[json.Unmarshaler](reflect.New(reflect.TypeOf(value))); ok {
				if err := into.UnmarshalJSON(text); err != nil && len(text) > 12 {
					assert.NotContains(t, err.Error(), string(text), "%T", into)
				}
			}
		}
	})
}

func roundTrip(t *testing.T, typ reflect.Type, text []byte) {
	t.Helper()
	value, back := reflect.New(typ).Interface(), reflect.New(typ).Interface()
	if json.Unmarshal(text, value) != nil {
		return
	}
	written, err := payvault.MarshalWire(value)
	if err != nil && (!jsontext.Value(text).IsValid() || bytes.Contains(text, []byte("[REDACTED]"))) {
		return // a raw field with invalid JSON or [REDACTED] cannot be encoded
	}
	require.NoError(t, err, "%T of %q", value, text)
	require.NoError(t, json.Unmarshal(written, back), "%T: %q from %q", value, written, text)
	again, err := payvault.MarshalWire(back)
	require.NoError(t, err)
	assert.Equal(t, string(written), string(again), "%T of %q", value, text)
}

// FuzzKey checks that a key that NewClient accepts is sent unchanged in the Authorization header. The service repeats
// the key in its message. If the key is valid UTF-8 of at least 3 bytes, the error must have [REDACTED] instead of the
// key.
func FuzzKey(f *testing.F) {
	for _, key := range []string{
		" 00000000", "test-api-key", "", " ", "a:b", "a b", "a\nb", "\x00", "é", "\xff", "Basic abc",
		strings.Repeat("k", 5000),
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		user, password := "none", ""
		pool := service.RoundTripper(func(r *http.Request) (*http.Response, error) {
			user, password, _ = r.BasicAuth()
			message, err := json.Marshal(key)
			return service.Reply(401, `{"code":7,"message":`+string(message)+`}`), err
		})
		client, err := payvault.NewClient("https://sandbox.example.com", key, service.Over(pool))
		if err != nil {
			first, _ := utf8.DecodeRuneInString(key)
			last, _ := utf8.DecodeLastRuneInString(key)
			isPlain := unicode.In(first, unicode.L, unicode.N) && unicode.In(last, unicode.L, unicode.N)
			assert.True(t, !isPlain || strings.ContainsFunc(key, unicode.IsControl), "%q", key)
			return
		}
		_, err = client.Applications.Validate(t.Context(), 1)
		assert.Equal(t, ":"+key, user+":"+password)
		if len(key) >= 3 && utf8.ValidString(key) {
			assert.Equal(t, "[REDACTED]", service.AsError(t, err).Message)
		}
	})
}

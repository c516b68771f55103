package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

// Fields has the problems of a request, by the JSON path of the field, such as "data[0].exp_date".
type Fields = map[string][]string

// Sentinels returns all sentinels that an error can match, keyed by their names.
func Sentinels() map[string]error {
	return map[string]error{
		"ErrInvalidRequest": payvault.ErrInvalidRequest, "ErrMerchantNotSupported": payvault.ErrMerchantNotSupported,
		"ErrUnauthorized": payvault.ErrUnauthorized, "ErrForbidden": payvault.ErrForbidden,
		"ErrNotFound": payvault.ErrNotFound, "ErrConflict": payvault.ErrConflict, "ErrRateLimited": payvault.ErrRateLimited,
		"ErrRejected": payvault.ErrRejected, "ErrValidation": payvault.ErrValidation,
		"ErrUnavailable": payvault.ErrUnavailable, "ErrMalformedResponse": payvault.ErrMalformedResponse,
		"ErrResponseTooLarge": payvault.ErrResponseTooLarge, "ErrOutcomeUnknown": payvault.ErrOutcomeUnknown,
		"ErrStopped": payvault.ErrStopped,
	}
}

// AsError returns the *payvault.Error in err. It fails the test if err has none.
func AsError(tb testing.TB, err error) *payvault.Error {
	tb.Helper()
	e, ok := errors.AsType[*payvault.Error](err)
	require.True(tb, ok, "%T: %v", err, err)
	return e
}

// AssertError checks all exported fields of an error. The error must match the given sentinels and no other.
func AssertError(tb testing.TB, err error, want payvault.Error, sentinels ...error) {
	tb.Helper()
	got := AsError(tb, err)
	assert.Equal(tb, want, payvault.Error{
		Op: got.Op, StatusCode: got.StatusCode, Code: got.Code, Message: got.Message, Detail: got.Detail,
		Fields: got.Fields, Delivery: got.Delivery, Attempts: got.Attempts, RetryAfter: got.RetryAfter,
	})
	AssertMatches(tb, err, sentinels...)
}

// AssertMatches checks that an error matches the given sentinels and no other.
func AssertMatches(tb testing.TB, err error, sentinels ...error) {
	tb.Helper()
	for name, sentinel := range Sentinels() {
		assert.Equal(tb, slices.Contains(sentinels, sentinel), errors.Is(err, sentinel), "%s: %v", name, err)
	}
}

// AssertInvalid checks the error of a request that the SDK refused to send because of the given problems.
func AssertInvalid(tb testing.TB, err error, op payvault.Operation, want Fields) {
	tb.Helper()
	refused := payvault.Error{Op: op, Fields: want, Delivery: payvault.DeliveryNotSent}
	AssertError(tb, err, refused, payvault.ErrInvalidRequest)
	assert.False(tb, payvault.SafeToRetry(err))
}

// Verbs returns formats for one value, such as %v and %+x.
func Verbs() []string {
	var all []string
	for _, flags := range []string{"", "+", "#", "+#"} {
		for _, verb := range "vsqxXdtecUbogGfFEO" {
			all = append(all, "%"+flags+string(verb))
		}
	}
	return append(all, "% x", "%# X", "%-40v", "%40s", "%.90s", "%0x", "%-q", "% d", "%[1]v")
}

// Logged logs a value with the text handler and the JSON handler of log/slog: as an attribute, in a group, and by
// Logger.With. It returns the output without times and durations.
func Logged(value any) string {
	var buf bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindDuration {
			return slog.Attr{}
		}
		return a
	}}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&buf, options), slog.NewJSONHandler(&buf, options)} {
		logger, attr := slog.New(handler), slog.Any("value", value)
		logger.Info("any", attr, slog.Group("outer", attr))
		logger.WithGroup("with").With(attr).Info("with")
	}
	return buf.String()
}

// renderings returns the texts that a program may print for an error, for its fields and for the errors wrapped in it.
func renderings(err error) []string {
	if err == nil {
		return nil
	}
	texts := []string{err.Error(), Logged(err)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, err))
	}
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		texts = append(texts, fmt.Sprintf("%+v %#v", *e, *e), Logged(*e), e.Code, e.Message, e.Detail, fmt.Sprint(e.Fields))
	}
	switch wrapper := err.(type) { //nolint:errorlint // the loop unwraps errors itself
	case interface{ Unwrap() error }:
		texts = append(texts, renderings(wrapper.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, wrapped := range wrapper.Unwrap() {
			texts = append(texts, renderings(wrapped)...)
		}
	}
	return texts
}

// AssertHidden checks that err is not nil, and that no text that a program may print for it contains a hidden text.
func AssertHidden(tb testing.TB, err error, hidden ...string) {
	tb.Helper()
	require.Error(tb, err)
	shown := strings.Join(renderings(err), "\n")
	for _, secret := range hidden {
		assert.False(tb, strings.Contains(shown, secret), "%q in %.2000q", secret, shown)
	}
}

// CompareDoc checks that a document has the wanted text between the lines "<!-- name: … -->" and "<!-- end of name
// -->". If update is true, it writes the text there instead.
func CompareDoc(t *testing.T, document, name, want string, update bool) {
	t.Helper()
	document = filepath.Join(calls.Root(), document)
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	marked := regexp.MustCompile(`(?s)<!-- ` + name + `\b[^\n]*-->\n(.*?)<!-- end of ` + name + ` -->`)
	at := marked.FindSubmatchIndex(content)
	require.NotNil(t, at, document)
	begin, end := at[2], at[3]
	if update {
		//nolint:gosec // a document is read by all
		require.NoError(t, os.WriteFile(document, slices.Concat(content[:begin], []byte(want), content[end:]), 0o644))
		return
	}
	assert.Equal(t, want, string(content[begin:end]),
		"go test ./internal/tests/faults ./internal/tests/repository -update writes this part of %s anew", document)
}

// Readers returns two functions that decode JSON, one with encoding/json and one with JSON v2.
func Readers() map[string]func(text []byte, into any) error {
	return map[string]func([]byte, any) error{
		"encoding/json": json.Unmarshal,
		"JSON v2":       func(text []byte, into any) error { return jsonv2.Unmarshal(text, into) },
	}
}

// AssertWire compares the encoded value with the given JSON, but ignores members with the value false. It also checks
// that decoding the encoded value gives the same value.
func AssertWire(t *testing.T, value any, wire string) {
	t.Helper()
	text, err := payvault.MarshalWire(value)
	require.NoError(t, err)
	said := regexp.MustCompile(`,\s*"\w+":\s*false|"\w+":\s*false,?`)
	assert.JSONEq(t, said.ReplaceAllString(wire, ""), said.ReplaceAllString(string(text), ""))
	for how, unmarshal := range Readers() {
		back := reflect.New(reflect.TypeOf(value))
		require.NoError(t, unmarshal(text, back.Interface()), how)
		assert.Equal(t, value, back.Elem().Interface(), how)
	}
}

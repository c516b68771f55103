// Package fuzz looks for inputs that no one has thought of: answers, values, IDs, filters, names, base URLs and keys.
package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

var errDone = errors.New("done")

// fuzzClient returns a client whose requests are answered in memory.
func fuzzClient(t *testing.T, answer func(*http.Request) (int, []byte), opts ...payvault.Option) *payvault.Client {
	t.Helper()
	return service.Client(t, "http://127.0.0.1"+service.BasePath, append(opts, service.Over(service.RoundTripper(
		func(r *http.Request) (*http.Response, error) {
			status, body := answer(r)
			return service.Reply(status, string(body)), nil
		})))...)
}

// seedFiles adds all files of testdata of an extension.
func seedFiles(f *testing.F, extension string, add func(text []byte)) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join(calls.Root(), "testdata", "*", "*"+extension))
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		add(text)
	}
}

// FuzzReply: whatever the service answers, no operation panics, none is a success without its code, and every error is
// an *Error of one line.
func FuzzReply(f *testing.F) {
	seedFiles(f, ".json", func(text []byte) {
		f.Add(200, text)
		f.Add(422, text)
	})
	for _, text := range []string{
		"", "[]", "{}", "[[[[", `{"code":0,"rcode":"000"}}`, `{"code":7,"code":0,"rcode":"7","rcode":"000"}`,
		`{"code":7,"CODE":0,"rcode":"7"}`,
		`{"code":null,"rcode":null}`, `{"code":[0],"rcode":["000"]}`,
		`{"code":"0","data":{"message":{},"customer_id":[],"app":[]}}`,
	} {
		f.Add(200, []byte(text))
	}
	f.Add(302, []byte(`{"code":0}`))
	f.Add(503, []byte(`<html>`))
	f.Add(101, []byte{})
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 999 {
			status = 200
		}
		client := fuzzClient(t, func(*http.Request) (int, []byte) { return status, body }, service.Impatient(1))
		for _, c := range calls.All() {
			result, err := c.Do(t.Context(), client, calls.Documented(), c.Full)
			if err == nil {
				isList := strings.Contains(c.Name, " by ")
				validated, isValidation := result.(*payvault.Validation)
				switch {
				case isValidation && !validated.OK():
					assert.True(t, hasCode(body, "code", "2"), "%s: code 2 is an answer", c.Name)
				case !isList:
					assertSuccessIsReal(t, &c, status, body)
				}
				continue
			}
			assert.Nil(t, result, c.Name)
			e := service.AsError(t, err)
			assert.Equal(t, c.Op, e.Op)
			assert.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err)
			assert.Less(t, len(err.Error()), 8000)
			unsure := e.Delivery == payvault.Unknown && c.Replay != payvault.ReplayRead
			assert.Equal(t, unsure, errors.Is(err, payvault.ErrOutcomeUnknown))
		}
	})
}

// assertSuccessIsReal holds a success against the body, which it reads in another way than the package does.
func assertSuccessIsReal(t *testing.T, c *calls.Call, status int, body []byte) {
	t.Helper()
	assert.Equal(t, 2, status/100, c.Name)
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	require.True(t, json.Valid(body), "%s", c.Name)
	if c.Op == payvault.OpTokensTokenize {
		assert.True(t, hasCode(body, "rcode", "000"), "%s: %q", c.Name, body)
		return
	}
	assert.True(t, hasCode(body, "code", "0"), "%s: %q", c.Name, body)
}

// hasCode reports whether the object has the member with this value, quoted or not, and with no other value: a member
// that is there twice must agree.
func hasCode(body []byte, member, want string) bool {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return false
	}
	found := false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return false
		}
		var value any
		if dec.Decode(&value) != nil {
			return false
		}
		if name, ok := key.(string); !ok || !strings.EqualFold(name, member) {
			continue
		}
		text, isText := value.(string)
		number, isNumber := value.(json.Number)
		switch {
		case isText && text == want, isNumber && number.String() == want:
			found = true
		case value == nil, isText && text == "" && !found:
		default:
			return false
		}
	}
	return found
}

// FuzzValues: what a value type has read it writes, and reads again as the same; what it cannot read it does not
// repeat.
func FuzzValues(f *testing.F) {
	for _, text := range []string{
		`12.50`, `"12.50"`, `1e3`, `-0.0`, `null`, `""`, `"2026-01-15"`, `"2026-01-15T14:30:42+0700"`,
		`"2026-01-15 14:30:42.5Z"`, `"\u0037"`, `7`, `"9223372036854775807"`,
		`"[{\"a\":1},{\"a\":{\"b\":[null]}}]"`, `"[]"`, `[{"key":"tax_id","value":"1"},{"key":"x","value":{"a":[1.50]}}]`,
		`{"key":"ownership","value":{"interestCount":"1","owners":[{"dob":""}]},"type":"ownership"}`,
		`[{"key":"business_services_auth_time","value":" {0"}]`,
		`[{"key":"business_services_auth_time","value":"{1E30,30+},"}]`,
		"{\"value\":{\"interestCount\":\"1\",\"ow\xd3ners\":[]},\"type\":\"ownership\"}",
		`{"a":`, `"`, `x`, "\xff", `[{"key":"business_services_auth_time","value":"{1,30,30+}"}]`, `"0000-01-01"`,
		`"9999-12-31T23:59:60Z"`,
	} {
		f.Add([]byte(text))
	}
	seedFiles(f, "save_data.response.json", func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip[payvault.Amount](t, text)
		roundTrip[payvault.Date](t, text)
		roundTrip[payvault.Timestamp](t, text)
		roundTrip[payvault.MerchantID](t, text)
		roundTrip[payvault.Pairs](t, text)
		roundTrip[payvault.Secret](t, text)
		roundTrip[payvault.ApplicationData](t, text)
		roundTrip[payvault.SavedField](t, text)
		roundTrip[payvault.Owner](t, text)
		roundTrip[payvault.Transaction](t, text)
		direct(t, new(payvault.Amount), text)
		direct(t, new(payvault.Date), text)
		direct(t, new(payvault.Timestamp), text)
		direct(t, new(payvault.Pairs), text)
		direct(t, new(payvault.ApplicationData), text)
		direct(t, new(payvault.SavedField), text)
	})
}

func roundTrip[T any](t *testing.T, text []byte) {
	t.Helper()
	var value, back T
	if json.Unmarshal(text, &value) != nil {
		return
	}
	written, err := payvault.MarshalWire(value)
	if err != nil && (!jsontext.Value(text).IsValid() || bytes.Contains(text, []byte("[REDACTED]"))) {
		return // raw JSON within it that is not to be sent
	}
	require.NoError(t, err, "%T of %q", value, text)
	require.NoError(t, json.Unmarshal(written, &back), "%T: %q from %q", value, written, text)
	again, err := payvault.MarshalWire(back)
	require.NoError(t, err)
	assert.Equal(t, string(written), string(again), "%T of %q", value, text)
}

// direct calls the method as encoding/json never would, with what is no JSON.
func direct(t *testing.T, into json.Unmarshaler, text []byte) {
	t.Helper()
	err := into.UnmarshalJSON(text)
	if err != nil && len(text) > 12 {
		assert.NotContains(t, err.Error(), string(text), "%T", into)
	}
}

// FuzzFilter: a filter reaches the service as it was given, in one parameter that splits into its parts, or is refused.
func FuzzFilter(f *testing.F) {
	f.Add("customer_id", "EQ", "C1", "C2")
	f.Add("tran_date", "BETWEEN_DATES", "2026-01-01", "2026-01-31")
	f.Add("a,b", "", "%2C", "&filter=x")
	f.Add("a=b", "c d", "é", "\x00")
	f.Fuzz(func(t *testing.T, field, conditional, first, second string) {
		var raw string
		client := fuzzClient(t, func(r *http.Request) (int, []byte) {
			raw = r.URL.RawQuery
			return 200, []byte(`{"code":0,"data":[]}`)
		})
		filter := payvault.Where(field, payvault.Conditional(conditional), first, second)
		_, err := client.Customers.List(t.Context(), &payvault.ListOptions{Filters: []payvault.Filter{filter}})
		if err != nil {
			require.ErrorIs(t, err, payvault.ErrInvalidRequest)
			assert.Len(t, service.AsError(t, err).Fields["filter[0]"], 1)
			assert.Empty(t, raw, "nothing was sent")
			return
		}
		assert.NotContains(t, raw, ",", "commas are sent as %2C")
		query, err := url.ParseQuery(raw)
		require.NoError(t, err)
		require.Len(t, query, 2, "%q", raw)
		require.Len(t, query["filter"], 1)
		assert.Equal(t, []string{field, conditional, first, second}, strings.Split(query.Get("filter"), ","))
	})
}

// FuzzBaseURL: a base URL that is taken keeps its host and its path, in every request; no error repeats it.
func FuzzBaseURL(f *testing.F) {
	for _, text := range []string{
		"https://sandbox.example.com", "https://h/a/b/", "https://user:password@h", "https://h?q", "https://h/#f",
		"http://h", "http://[::1]:8080/x", "https://h/%2e%2e/a",
		"https://h//a", "https://h/a%2Fb%2F", "//h", "https:", "https://h/a;b", "https://h/!", "HTTPS://H",
		"https://h:65536", "https://h/%zz", "https://h/é", "https://h\\@other", "https://[fe80::1%25eth0]/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var sent *url.URL
		client, err := payvault.NewClient(text, service.APIKey,
			service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				sent = r.URL
				assert.Equal(t, r.URL.Host, r.Host)
				return nil, errDone
			})))
		if err != nil {
			require.ErrorIs(t, err, payvault.ErrInvalidRequest)
			if len(text) > 12 && !strings.Contains("payvault: client.new: invalid request: base_url is not an absolute http "+
				"or https URL", text) {
				assert.NotContains(t, err.Error(), text)
			}
			return
		}
		base, err := url.Parse(text)
		require.NoError(t, err)
		assert.True(t, base.Scheme == "https" || base.Hostname() == "localhost" ||
			strings.HasPrefix(base.Hostname(), "127.") || strings.Contains(base.Hostname(), ":"), "%q", text)
		_, err = client.Webhooks.AddEvent(t.Context(), "w", "e")
		require.True(t, errors.Is(err, errDone), "%v", err)
		assert.Equal(t, base.Scheme+"://"+base.Host, sent.Scheme+"://"+sent.Host)
		assert.Equal(t, strings.TrimSuffix(base.EscapedPath(), "/")+"/platform/webhook/w/event/e", sent.EscapedPath())
		assert.Empty(t, sent.RawQuery+sent.Fragment)
		assert.Nil(t, sent.User)
	})
}

// FuzzKey: a key that is taken reaches the Authorization header as it is, and is never shown.
func FuzzKey(f *testing.F) {
	for _, key := range []string{
		" 00000000", "test-api-key", "", " ", "a:b", "a\nb", "\x00", "é", "\xff",
		strings.Repeat("k", 300), "Basic abc",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		var user, password string
		var ok bool
		client, err := payvault.NewClient("https://sandbox.example.com", key,
			service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				user, password, ok = r.BasicAuth()
				return &http.Response{
					StatusCode: 401,
					Body:       io.NopCloser(strings.NewReader(`{"code":7,"message":` + quoted(t, key) + `}`)),
				}, nil
			})))
		if err != nil {
			assert.True(t, strings.TrimSpace(key) == "" || strings.ContainsFunc(key, unicode.IsControl), "%q", key)
			return
		}
		_, err = client.Applications.Validate(t.Context(), 1)
		require.ErrorIs(t, err, payvault.ErrUnauthorized)
		assert.True(t, ok)
		assert.Empty(t, user)
		assert.Equal(t, key, password)
		if len(key) >= 3 && strings.ToValidUTF8(key, "") == key {
			assert.Equal(t, "[REDACTED]", service.AsError(t, err).Message)
		}
	})
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	require.NoError(t, err)
	return string(b)
}

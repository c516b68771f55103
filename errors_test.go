package payvault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// verbs are the fmt verbs that apply to values, with and without flags.
func verbs() []string {
	var all []string
	for _, flags := range []string{"", "+", "#", "+#"} {
		for _, verb := range "vsqxXdtecUbogGfFEO" {
			all = append(all, "%"+flags+string(verb))
		}
	}
	return append(all, "% x", "%# X", "%-40v", "%40s", "%.90s", "%0x", "%-q", "% d", "%[1]v")
}

// handlers writes a record with a value through the handlers of log/slog, on its own, in a group and by With.
func handlers(value any) string {
	var buf bytes.Buffer
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey { // its digits may be anything
			return slog.Attr{}
		}
		return a
	}}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&buf, options), slog.NewJSONHandler(&buf, options)} {
		logger := slog.New(handler)
		logger.Info("any", slog.Any("value", value))
		logger.Info("group", slog.Group("outer", slog.Any("value", value)))
		logger.WithGroup("with").With(slog.Any("value", value)).Info("with")
	}
	return buf.String()
}

// renderings are all texts in which an error, or what it wraps, can be seen.
func renderings(err error) []string {
	if err == nil {
		return nil
	}
	texts := []string{err.Error(), handlers(err)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, err))
	}
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		texts = append(texts, fmt.Sprintf("%+v %#v", *e, *e), handlers(*e), string(e.Op), e.Code, e.Message, e.Detail, fmt.Sprint(e.Fields))
	}
	switch wrapper := err.(type) { //nolint:errorlint // walks the chain link by link
	case interface{ Unwrap() error }:
		texts = append(texts, renderings(wrapper.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, wrapped := range wrapper.Unwrap() {
			texts = append(texts, renderings(wrapped)...)
		}
	}
	return texts
}

// assertHidden wants none of the texts in any rendering of an error.
func assertHidden(t *testing.T, err error, hidden ...string) {
	t.Helper()
	require.Error(t, err)
	for _, text := range renderings(err) {
		for _, secret := range hidden {
			if strings.Contains(text, secret) {
				assert.Fail(t, "an error shows what it must not", "%q in %.2000q", secret, text)
				return
			}
		}
	}
}

func asError(t *testing.T, err error) *payvault.Error {
	t.Helper()
	e, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok, "%T", err)
	return e
}

// failWith calls an operation that the service answers with a status and a body.
func failWith(t *testing.T, status int, text string) error {
	t.Helper()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, status, text) })
	_, err := tableClient(t, server.URL, impatient(1)).Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent)
	require.Error(t, err)
	return err
}

func TestError_text(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status     int
		body, want string
	}{
		{404, ``, `payvault: webhooks.add_event: status 404 Not Found`},
		{200, `{"code":7,"message":"No"}`, `payvault: webhooks.add_event: status 200 OK: code 7: No`},
		{409, `{"code":7,"message":"No","data":{"message":"Because"}}`, `payvault: webhooks.add_event: status 409 Conflict: code 7: No: Because`},
		{200, `{"code":7}`, `payvault: webhooks.add_event: status 200 OK: code 7`},
		{200, `{"rcode":"905","rmsg":"Declined"}`, `payvault: webhooks.add_event: status 200 OK: code 905: Declined`},
		{200, `{"code":7,"message":{"a":["b"]}}`, `payvault: webhooks.add_event: status 200 OK: code 7: {"a":["b"]}`},
		{200, `{"code":7,"message":17}`, `payvault: webhooks.add_event: status 200 OK: code 7: 17`},
		{200, `{"code":2,"message":"Request validation failed","data":{"tax_id":["is secret"]}}`, `payvault: webhooks.add_event: status 200 OK: code 2: Request validation failed: tax_id is secret`},
		{200, `{"code":7,"message":"No","data":{"order_on":["is not a field\nof the record"],"count":["too large","not now"]}}`, `payvault: webhooks.add_event: status 200 OK: code 7: No: count too large, not now; order_on is not a field of the record`},
		{503, `<html>`, `payvault: webhooks.add_event: status 503 Service Unavailable (outcome unknown)`},
		{598, ``, `payvault: webhooks.add_event: status 598 (outcome unknown)`},
		{200, `{`, `payvault: webhooks.add_event: status 200 OK: malformed response: not JSON, or cut off (outcome unknown)`},
		{200, `{}`, `payvault: webhooks.add_event: status 200 OK: malformed response: no result code (outcome unknown)`},
		{200, `{"code":0}`, `payvault: webhooks.add_event: status 200 OK: code 0: malformed response: /data is missing (outcome unknown)`},
		{200, `{"code":0,"rcode":"051","data":{}}`, `payvault: webhooks.add_event: status 200 OK: code 0: malformed response: it says both success and failure (outcome unknown)`},
		{302, ``, `payvault: webhooks.add_event: status 302 Found: malformed response: a redirect, which is not followed (outcome unknown)`},
	}
	for _, test := range tests {
		t.Run(strconv.Itoa(test.status)+" "+test.body, func(t *testing.T) {
			t.Parallel()
			err := failWith(t, test.status, test.body)
			assert.Equal(t, test.want, err.Error())
			for _, verb := range []string{"%v", "%s", "%+v", "%#v", "%d", "%x", "%t"} {
				assert.Equal(t, test.want, fmt.Sprintf(verb, err), verb)
			}
			assert.Equal(t, strconv.Quote(test.want), fmt.Sprintf("%q", err))
		})
	}
}

func TestError_localText(t *testing.T) {
	t.Parallel()
	client := tableClient(t, "http://127.0.0.1:1")
	_, err := client.Subscriptions.Cancel(t.Context(), 0, &payvault.SubscriptionCancelRequest{})
	assert.Equal(t, "payvault: subscriptions.cancel: invalid request: customer_id is required; "+
		`subscription_id is required`, err.Error())
	_, err = client.ForMerchant(1).Applications.Validate(t.Context(), 1)
	assert.Equal(t, "payvault: applications.validate: the operation cannot act for another merchant", err.Error())
}

func TestError_hostileService(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<14) // 32 KiB
	messages := map[string]string{
		"line breaks":      "first\nsecond\r\nlevel=ERROR msg=\"forged\"\u2028third\u0085fourth",
		"control":          "\x00\x07\x1b[31mred\x1b[0m\x7f\u009b",
		"other directions": "\u202eabc\u2066def\u200b",
		"invalid UTF-8":    "\xff\xfe\xc3",
		"only white space": "\n\n\n",
		"32 KiB":           long,
		"breaks":           strings.Repeat("\n", 1<<14),
	}
	for name, message := range messages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quoted, err := json.Marshal(message)
			require.NoError(t, err)
			code, err := json.Marshal(strings.Map(func(r rune) rune {
				if strings.ContainsRune(`{}[]"\`, r) {
					return -1
				}
				return r
			}, "c"+message))
			require.NoError(t, err)
			failed := failWith(t, 200, fmt.Sprintf(`{"code":%s,"message":%s}`, code, quoted))
			require.ErrorIs(t, failed, payvault.ErrRejected)
			for _, verb := range verbs() {
				text := fmt.Sprintf(verb, failed)
				assert.Less(t, len(text), 8000, "%s", verb)
				assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", verb, text)
			}
			assert.Less(t, len(handlers(failed)), 80_000, "a log record stays small")
			var want string
			require.NoError(t, json.Unmarshal(quoted, &want))
			assert.Equal(t, want, asError(t, failed).Message, "the field keeps the text")
		})
	}
}

// TestError_holdsNothingOfTheRequest: path, query, header and body, of the request and of the answer.
func TestError_holdsNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	const canary = "canary-4f2a"
	calls := map[string]func(c *payvault.Client, opts ...payvault.CallOption) error{
		"typed": func(c *payvault.Client, opts ...payvault.CallOption) error {
			return c.Invoices.Send(t.Context(), canary, &payvault.InvoiceSendRequest{EmailAddress: []string{canary}}, opts...)
		},
		"list": func(c *payvault.Client, opts ...payvault.CallOption) error {
			_, err := c.Customers.List(t.Context(), &payvault.ListOptions{OrderOn: canary, Filters: []payvault.Filter{payvault.Where("f", "EQ", canary)}}, opts...)
			return err
		},
		"Call": func(c *payvault.Client, opts ...payvault.CallOption) error {
			return c.Call(t.Context(), payvault.Request{
				Method: "PATCH", Path: []string{canary, "x"}, Query: url.Values{canary: {canary}}, Body: map[string]string{canary: canary},
			}, nil, opts...)
		},
	}
	answers := badAnswers()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, answer := range answers {
				t.Run(answer.name, func(t *testing.T) {
					t.Parallel()
					server := observe(t, func(_ int, w http.ResponseWriter, r *http.Request) {
						w.Header().Set("X-Canary", canary)
						answer.serve(w, r)
					})
					client := tableClient(t, server.URL+"/"+canary, impatient(2), payvault.WithMaxResponseBytes(failureCap))
					if err := call(client, payvault.WithHeader("X-Canary", canary)); err != nil {
						assertHidden(t, err, canary, apiKey)
						assert.NotContains(t, err.Error(), "<html")
					}
				})
			}
			t.Run("a body that quotes the request", func(t *testing.T) {
				t.Parallel()
				for _, text := range []string{canary, `"` + canary, `{"` + canary + `":` + canary, `{"code":{"` + canary + `":1}}`, `{"code":0,"data":"` + canary + `","totalPages":"` + canary + `"}`} {
					server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, text) })
					if err := call(tableClient(t, server.URL)); err != nil {
						assertHidden(t, err, canary, apiKey)
					}
				}
			})
			t.Run("no connection", func(t *testing.T) {
				t.Parallel()
				assertHidden(t, call(tableClient(t, "http://127.0.0.1:1/"+canary)), canary, apiKey)
			})
		})
	}
}

// TestError_echo: a service that repeats what it was sent, in every text that an Error takes from it.
func TestError_echo(t *testing.T) {
	t.Parallel()
	secrets := []string{
		"4111111111111111", "123456780", "0003334440", "987654321", // those of the table
		apiKey, strings.TrimPrefix(basicToken, "Basic "),
	}
	answers := map[string]func(echo string) any{
		"message":      func(echo string) any { return map[string]any{"code": 7, "message": echo} },
		"rmsg":         func(echo string) any { return map[string]any{"rcode": "905", "rmsg": echo} },
		"data.message": func(echo string) any { return map[string]any{"code": 7, "data": map[string]any{"message": echo}} },
		"code":         func(echo string) any { return map[string]any{"code": plainCode(echo), "message": "No"} },
		"rcode":        func(echo string) any { return map[string]any{"rcode": plainCode(echo)} },
		"fields": func(echo string) any {
			return map[string]any{"code": 2, "data": map[string]any{"f": []string{"a", echo}}}
		},
		"a single field": func(echo string) any { return map[string]any{"code": 2, "data": map[string]any{"f": echo}} },
		"names of fields": func(echo string) any {
			return map[string]any{"code": 2, "data": map[string]any{echo: []string{"a"}, "f": []string{"b"}}}
		},
		"an object for a message": func(echo string) any { return map[string]any{"code": 7, "message": map[string]any{echo: echo}} },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					for _, status := range []int{200, 400, 503} {
						var server *observer
						server = observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
							echo := fmt.Sprintf("%s %s", server.seen()[n-1].body, r.Header.Get("Authorization"))
							text, _ := json.Marshal(answer(echo))
							say(w, status, string(text))
						})
						result, err := c.call(t.Context(), tableClient(t, server.URL, impatient(1)))
						if c.op == payvault.OpApplicationsValidate && err == nil {
							assert.NotContains(t, fmt.Sprintf("%v", result), apiKey)
							continue // the problems that it asked for
						}
						assertHidden(t, err, secrets...)
						e := asError(t, err)
						assert.Contains(t, fmt.Sprint(e.Code, e.Message, e.Detail, e.Fields), "[REDACTED]")
					}
				})
			}
		})
	}
}

// plainCode takes out what a code cannot contain.
func plainCode(text string) string {
	return strings.NewReplacer("{", "", "}", "", "[", "", "]", "", `"`, "", `\`, "").Replace(text)
}

// TestError_echoOfSecretsThatOverlap: a security code may be the start of the card number, or stand within it.
func TestError_echoOfSecretsThatOverlap(t *testing.T) {
	t.Parallel()
	for _, cvv := range []payvault.Secret{payvault.NewSecret("411"), payvault.NewSecret("1111"), payvault.NewSecret("4111111111111111")} {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			say(w, 200, `{"rcode":"905","rmsg":"card 4111111111111111 with code `+cvv.Reveal()+`"}`)
		})
		_, err := tableClient(t, server.URL).Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{CVV2: cvv, CardNumber: payvault.NewSecret("4111111111111111")})
		assert.Equal(t, "card [REDACTED] with code [REDACTED]", asError(t, err).Message)
	}
}

func TestError_echoOfRotatedKey(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		say(w, 400, `{"code":7,"message":"`+r.Header.Get("Authorization")+` and rotated-key"}`)
	})
	source := func(context.Context) (string, error) { return "rotated-key", nil }
	_, err := tableClient(t, server.URL, payvault.WithKeySource(source)).Applications.Validate(t.Context(), 1)
	assertHidden(t, err, "rotated-key", base64.StdEncoding.EncodeToString([]byte(":rotated-key")))
	assert.Equal(t, "Basic [REDACTED] and [REDACTED]", asError(t, err).Message)
}

// TestError_echoOfEveryKey: the key of an earlier attempt may still be valid.
func TestError_echoOfEveryKey(t *testing.T) {
	t.Parallel()
	server := observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n < 3 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		say(w, 400, `{"code":7,"message":"rotated-key-1 then rotated-key-2 then `+r.Header.Get("Authorization")+`"}`)
	})
	var asked atomic.Int64
	source := func(context.Context) (string, error) {
		return "rotated-key-" + strconv.FormatInt(asked.Add(1), 10), nil
	}
	_, err := tableClient(t, server.URL, payvault.WithKeySource(source)).Applications.Validate(t.Context(), 1)
	assert.Equal(t, "[REDACTED] then [REDACTED] then Basic [REDACTED]", asError(t, err).Message)
}

// TestError_echoInAnotherForm: a number with separators of any length, and a text in another case.
func TestError_echoInAnotherForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4111---1111 - 1111... 1111 is no card": "[REDACTED] is no card",
		"WALLET PAYLOAD 5KQ0X":                  "[REDACTED]",
		"cvv 937, 9 3 7":                        "cvv [REDACTED], 9 3 7",
		"41111111111111111":                     "[REDACTED]",
	} {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"rcode":"905","rmsg":"`+text+`"}`) })
		_, err := tableClient(t, server.URL).Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{
			CardNumber: payvault.NewSecret("4111111111111111"), CVV2: payvault.NewSecret("937"), PayloadWalletOnePay: payvault.NewSecret("wallet-payload-5Kq0x"),
		})
		assert.Equal(t, want, asError(t, err).Message)
	}
}

// TestError_echoOfQuery: of the query only what names no data may be repeated, raw or as it was sent.
func TestError_echoOfQuery(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		text, _ := json.Marshal(map[string]any{"code": 7, "message": r.URL.RawQuery + " " + fmt.Sprint(r.URL.Query())})
		say(w, 400, string(text))
	})
	client := tableClient(t, server.URL)
	_, err := client.Customers.List(t.Context(), &payvault.ListOptions{
		OrderOn: "customer_id", Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", "jane@example.com")},
	})
	assertHidden(t, err, "jane@example.com", "jane%40example.com")
	assert.Contains(t, asError(t, err).Message, "order_on=customer_id")
	for _, query := range []url.Values{
		{"filter": {"private value"}}, {"filter": {"field,private value"}}, {"filter": {""}}, {"filter": {"field,EQUALS,private value"}}, {"q": {"private value"}, "page": {"0"}},
	} {
		err = client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}, Query: query}, nil)
		require.ErrorIs(t, err, payvault.ErrRejected)
		if query.Has("q") || strings.Count(query.Get("filter"), ",") == 2 {
			assertHidden(t, err, "private value", "private+value")
		}
	}
}

// roundTripper is a transport made by hand.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestError_echoOfWire: net/http quotes what it cannot read, here the request itself.
func TestError_echoOfWire(t *testing.T) {
	t.Parallel()
	prefixes := []string{"", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\nContent-Length: ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: ", "HTTP/1.1 200 OK\r\n\r\r"}
	for _, prefix := range prefixes {
		t.Run(strconv.Quote(prefix), func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					var server *observer
					server = observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
						conn, _, err := http.NewResponseController(w).Hijack()
						if err != nil {
							panic(err)
						}
						defer func() { _ = conn.Close() }()
						_, _ = fmt.Fprintf(conn, "%s%s %s %s %s\r\n\r\n", prefix, r.Header.Get("Authorization"), r.RequestURI, server.seen()[n-1].body, r.Method)
					})
					_, err := c.call(t.Context(), tableClient(t, server.URL+"/quoted-path", impatient(2)))
					assertHidden(t, err, apiKey, "OnRlc3Q", "quoted-path", "4111111111111111", "/70005", "invoice-12")
					assertOutcomeUnknown(t, c, err)
				})
			}
		})
	}
}

// TestError_hidesURL: net/http wraps every failure in a *url.Error, with path and query.
func TestError_hidesURL(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("quotes /quoted-path?q=1")
	client := tableClient(t, "http://127.0.0.1/quoted-path", payvault.WithHTTPClient(&http.Client{
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: errOwn}
		}),
	}))
	for _, c := range opCases() {
		_, err := c.call(t.Context(), client)
		assertHidden(t, err, "quoted-path", "/70010")
		_, found := errors.AsType[*url.Error](err)
		assert.False(t, found, "errors.As must not dig it out")
		assert.ErrorIs(t, err, errOwn, "what the transport said can still be matched")
		assert.Contains(t, err.Error(), "connection failed")
		assertOutcomeUnknown(t, c, err)
	}
}

func TestError_notSent(t *testing.T) {
	t.Parallel()
	untrusted := unstarted(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := observe(t, func(int, http.ResponseWriter, *http.Request) { t.Error("a request came") })
	unresolved := &net.DNSError{Err: "no such host", Name: "unknown.example.com", IsNotFound: true}
	dialer := func(err error) payvault.Option {
		return payvault.WithHTTPClient(&http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err },
		}})
	}
	errVault := errors.New("the vault is sealed")
	keys := func(key string, err error) payvault.Option {
		return payvault.WithKeySource(func(context.Context) (string, error) { return key, err })
	}
	tests := []struct {
		name, url string
		option    payvault.Option
		repeated  bool
		text      string
		cause     error
	}{
		{name: "connection refused", url: "http://127.0.0.1:1", repeated: true, text: "dial tcp 127.0.0.1:1: connect: connection refused (not sent)"},
		{
			name: "host not found", url: "https://unknown.example.com", repeated: true, cause: unresolved,
			option: dialer(&net.OpError{Op: "dial", Net: "tcp", Err: unresolved}), text: "lookup unknown.example.com: no such host (not sent)",
		},
		{name: "host not found, not wrapped", url: "https://unknown.example.com", repeated: true, cause: unresolved, option: dialer(unresolved), text: "lookup unknown.example.com: no such host (not sent)"},
		{name: "dialer with an error of its own", url: "https://a.example.com", repeated: true, cause: errVault, option: dialer(errVault), text: "connection failed (not sent)"},
		{name: "certificate of an unknown authority", url: untrusted.URL, text: "tls: failed to verify certificate: x509: certificate signed by unknown authority (not sent)"},
		{name: "no TLS at the other end", url: "https" + strings.TrimPrefix(plain.URL, "http"), repeated: true, text: "connection failed (not sent)"},
		{name: "key source fails", url: plain.URL, option: keys("", errVault), cause: errVault, text: "no API key: the vault is sealed (not sent)"},
		{name: "key source gives no key", url: plain.URL, option: keys("", nil), text: "no API key: is empty (not sent)"},
		{name: "key source gives a bad key", url: plain.URL, option: keys("new-key\r\n", nil), text: "no API key: contains a control character (not sent)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				client := tableClient(t, test.url, impatient(3), option(test.option))
				var raw payvault.Response
				result, err := c.call(t.Context(), client, payvault.WithResponse(&raw))
				want := outcome{delivery: payvault.NotSent, safe: always, cause: test.cause}
				if test.repeated {
					assert.Equal(t, 3, raw.Attempts)
					client = tableClient(t, test.url, impatient(2), option(test.option))
					result, err = c.call(t.Context(), client, payvault.WithResponse(&raw))
					want.repeated = always
				}
				assertFailure(t, c, want, result, err, raw)
				assert.True(t, strings.HasSuffix(err.Error(), test.text), "%s", err)
				assertHidden(t, err, apiKey, "new-key")
			}
		})
	}
}

// option is opt, or none.
func option(opt payvault.Option) payvault.Option {
	if opt == nil {
		return payvault.WithDeveloperID("")
	}
	return opt
}

// TestError_transportThatProvesNothing: a RoundTripper that calls no httptrace hooks may have sent the request.
func TestError_transportThatProvesNothing(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	answers := map[string]roundTripper{
		"an error":              func(*http.Request) (*http.Response, error) { return nil, errors.New("cannot connect") },
		"an error of a dial":    func(*http.Request) (*http.Response, error) { return nil, refused },
		"neither":               func(*http.Request) (*http.Response, error) { return nil, nil }, //nolint:nilnil // the broken contract is the point
		"both, without a body":  func(*http.Request) (*http.Response, error) { return &http.Response{}, errors.New("both") },
		"a body that panics on": func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				client := tableClient(t, "http://127.0.0.1", impatient(2), payvault.WithHTTPClient(&http.Client{Transport: answer}))
				var raw payvault.Response
				result, err := c.call(t.Context(), client, payvault.WithResponse(&raw))
				assertFailure(t, c, lost(0), result, err, raw)
			}
		})
	}
}

// TestError_responseWithoutBody: a RoundTripper made by hand may leave the body out.
func TestError_responseWithoutBody(t *testing.T) {
	t.Parallel()
	client := tableClient(t, "http://127.0.0.1", payvault.WithHTTPClient(&http.Client{
		Transport: roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 404}, nil }),
	}))
	_, err := client.Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent)
	assert.Equal(t, []string{"ErrNotFound"}, kinds(err))
}

func TestError_deadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := tableClient(t, "http://127.0.0.1:1").Webhooks.AddEvent(ctx, tableWebhook, tableEvent)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotErrorIs(t, err, context.Canceled)
	assert.Equal(t, "payvault: webhooks.add_event: context deadline exceeded (not sent)", err.Error())
}

// TestError_endOfContextKeepsTheAnswer: the caller ends while the next attempt waits; the answer before it counts.
func TestError_endOfContextKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		body   string
		want   outcome
	}{
		{429, `{"code":7,"rcode":"7"}`, outcome{code: "7", kinds: []string{"ErrRateLimited", "ErrRejected"}, delivery: payvault.Answered, safe: always}},
		{429, ``, outcome{kinds: []string{"ErrRateLimited"}, delivery: payvault.Answered, safe: always}},
		{503, ``, outcome{kinds: []string{"ErrUnavailable", "ErrOutcomeUnknown"}, delivery: payvault.Unknown, safe: ifReplayable}},
	}
	for _, test := range tests {
		t.Run(strconv.Itoa(test.status)+" "+test.body, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				if test.status == 503 && !c.replay {
					continue // it does not wait for another attempt
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						pool := pipeServer(t, func(w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("Retry-After", "3600")
							say(w, test.status, test.body)
						})
						ctx, cancel := context.WithCancelCause(t.Context())
						go func() {
							synctest.Wait() // the call waits for its next attempt
							cancel(errShutdown)
						}()
						client := tableClient(t, "http://127.0.0.1", payvault.WithHTTPClient(pool), payvault.WithRetryPolicy(payvault.RetryPolicy{MaxRetryAfter: time.Hour, IgnoreOverload: true}))
						var raw payvault.Response
						result, err := c.call(ctx, client, payvault.WithResponse(&raw))
						want := test.want
						want.status, want.cause, want.raw = test.status, context.Canceled, new(test.body)
						assertFailure(t, c, want, result, err, raw)
						assert.ErrorIs(t, err, errShutdown)
						assert.Equal(t, time.Hour, asError(t, err).RetryAfter)
					})
				})
			}
		})
	}
}

func TestSafeToRetry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"an error of another package", io.ErrUnexpectedEOF, false},
		{"context.Canceled alone", context.Canceled, false},
		{"the zero Error: nothing is known", &payvault.Error{}, false},
		{"not sent", &payvault.Error{Delivery: payvault.NotSent, Attempts: 1}, true},
		{"not sent, wrapped", fmt.Errorf("charge: %w", &payvault.Error{Delivery: payvault.NotSent, Attempts: 1}), true},
		{"not sent, joined", errors.Join(io.EOF, &payvault.Error{Delivery: payvault.NotSent, Attempts: 1}), true},
		{"429", &payvault.Error{Delivery: payvault.Answered, StatusCode: 429}, true},
		{"503 of what is not replayable", &payvault.Error{StatusCode: 503}, false},
		{"404", &payvault.Error{Delivery: payvault.Answered, StatusCode: 404}, false},
		{"a rejection", &payvault.Error{Delivery: payvault.Answered, StatusCode: 200, Code: "7"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, payvault.SafeToRetry(test.err))
		})
	}
	t.Run("local checks", func(t *testing.T) {
		t.Parallel()
		client := tableClient(t, "http://127.0.0.1:1")
		_, err := client.Webhooks.AddEvent(t.Context(), "", "")
		assert.Equal(t, []string{"ErrInvalidRequest"}, kinds(err))
		assert.False(t, payvault.SafeToRetry(err), "the same request would fail again")
		_, err = client.ForMerchant(1).Webhooks.AddEvent(t.Context(), "w", "e")
		assert.Equal(t, []string{"ErrMerchantNotSupported"}, kinds(err))
		assert.False(t, payvault.SafeToRetry(err))
	})
	t.Run("WithReplay does not make another call harmless", func(t *testing.T) {
		t.Parallel()
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
		client := tableClient(t, server.URL)
		_, err := client.Webhooks.AddEvent(t.Context(), "w", "e")
		assert.False(t, payvault.SafeToRetry(err))
		_, err = client.Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithReplay())
		assert.False(t, payvault.SafeToRetry(err))
	})
	t.Run("429 after a lost attempt", func(t *testing.T) {
		t.Parallel()
		for _, c := range opCases() {
			server := observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(map[bool]int{true: 503, false: 429}[n == 1])
			})
			_, err := c.call(t.Context(), tableClient(t, server.URL), payvault.WithReplay(), payvault.WithAttempts(2))
			assert.Equal(t, 2, asError(t, err).Attempts)
			assert.Equal(t, c.replay, payvault.SafeToRetry(err), c.name)
		}
	})
}

// TestError_validation: code 2 with its fields, of any operation.
func TestError_validation(t *testing.T) {
	t.Parallel()
	text := fixture(t, "errors/validation_fields.json")
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, text) })
			result, err := c.call(t.Context(), tableClient(t, server.URL))
			if c.op == payvault.OpApplicationsValidate {
				require.NoError(t, err)
				assert.False(t, result.(*payvault.Validation).OK())
				return
			}
			e := asError(t, err)
			want := []string{"ErrRejected", "ErrValidation"}
			if c.op == payvault.OpTokensTokenize {
				want = want[:1] // an rcode has no such meaning
			}
			assert.Equal(t, want, kinds(err))
			assert.Equal(t, "Request validation failed", e.Message)
			assert.Equal(t, map[string][]string{
				"legal_name":     {"Example text: legal_name is required"},
				"business_email": {"Example text: business_email is required", "Example text: business_email is not an email address"},
				"tax_id":         {"Example text: tax_id is not valid"},
			}, e.Fields)
			assert.Contains(t, err.Error(), "tax_id Example text: tax_id is not valid")
		})
	}
}

func TestDelivery_String(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "unknown not sent answered unknown",
		fmt.Sprint(payvault.Unknown, payvault.NotSent, payvault.Answered, payvault.Delivery(99)))
	var zero payvault.Delivery
	assert.Equal(t, payvault.Unknown, zero, "what is not known is not taken for unsent")
}

package payvault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// failWith calls an operation that the service answers with a status and a body.
func failWith(t *testing.T, status int, text string) error {
	t.Helper()
	client := service.Client(t, service.Answer(t, status, text).URL, service.Impatient(1))
	_, err := client.Webhooks.AddEvent(t.Context(), "w", "e")
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
		{
			409, `{"code":7,"message":"No","data":{"message":"Because"}}`,
			`payvault: webhooks.add_event: status 409 Conflict: code 7: No: Because`,
		},
		{200, `{"code":7}`, `payvault: webhooks.add_event: status 200 OK: code 7`},
		{200, `{"rcode":"905","rmsg":"Declined"}`, `payvault: webhooks.add_event: status 200 OK: code 905: Declined`},
		{200, `{"code":7,"message":{"a":["b"]}}`, `payvault: webhooks.add_event: status 200 OK: code 7: {"a":["b"]}`},
		{200, `{"code":7,"message":17}`, `payvault: webhooks.add_event: status 200 OK: code 7: 17`},
		{
			200, `{"code":2,"message":"Request validation failed","data":{"tax_id":["is secret"]}}`,
			`payvault: webhooks.add_event: status 200 OK: code 2: Request validation failed: tax_id is secret`,
		},
		{200, `{"code":7,"message":"No","data":{"order_on":["is not a field\nof the record"],"count":["too large","not ` +
			`now"]}}`, `payvault: webhooks.add_event: status 200 OK: code 7: No: count too large, not now; order_on is not a ` +
			`field of the record`},
		{503, `<html>`, `payvault: webhooks.add_event: status 503 Service Unavailable (outcome unknown)`},
		{598, ``, `payvault: webhooks.add_event: status 598 (outcome unknown)`},
		{200, `{`, `payvault: webhooks.add_event: status 200 OK: malformed response: not JSON, or cut off (outcome unknown)`},
		{200, `{}`, `payvault: webhooks.add_event: status 200 OK: malformed response: no result code (outcome unknown)`},
		{200, `{"code":0}`, `payvault: webhooks.add_event: status 200 OK: code 0: malformed response: /data is missing ` +
			`(outcome unknown)`},
		{
			200, `{"code":0,"rcode":"051","data":{}}`,
			`payvault: webhooks.add_event: status 200 OK: code 0: malformed response: it says both success and failure ` +
				`(outcome unknown)`,
		},
		{302, ``, `payvault: webhooks.add_event: status 302 Found: malformed response: a redirect, which is not followed ` +
			`(outcome unknown)`},
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
	client := service.Client(t, service.Nowhere)
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
			for _, verb := range service.Verbs() {
				text := fmt.Sprintf(verb, failed)
				assert.Less(t, len(text), 8000, "%s", verb)
				assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", verb, text)
			}
			assert.Less(t, len(service.Logged(failed)), 80_000, "a log record stays small")
			var want string
			require.NoError(t, json.Unmarshal(quoted, &want))
			assert.Equal(t, want, service.AsError(t, failed).Message, "the field keeps the text")
		})
	}
}

func TestError_notSent(t *testing.T) {
	t.Parallel()
	untrusted := service.Unstarted(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := service.Observe(t, func(int, http.ResponseWriter, *http.Request) { t.Error("a request came") })
	unresolved := &net.DNSError{Err: "no such host", Name: "unknown.example.com", IsNotFound: true}
	dialer := func(err error) payvault.Option {
		return service.Over(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
			error,
		) {
			return nil, err
		}})
	}
	keys := func(key string, err error) payvault.Option {
		return payvault.WithKeySource(func(context.Context) (string, error) { return key, err })
	}
	const elsewhere = "https://unknown.example.com"
	for _, test := range []struct {
		url    string
		option payvault.Option
		text   string
	}{
		{service.Nowhere, nil, "dial tcp 127.0.0.1:1: connect: connection refused"},
		{
			elsewhere, dialer(&net.OpError{Op: "dial", Net: "tcp", Err: unresolved}),
			"dial tcp: lookup unknown.example.com: no such host",
		},
		{elsewhere, dialer(unresolved), "lookup unknown.example.com: no such host"},
		{elsewhere, dialer(errShutdown), "connection failed"},
		{untrusted.URL, nil, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"https" + strings.TrimPrefix(plain.URL, "http"), nil, "connection failed"},
		{plain.URL, keys("", errShutdown), "no API key: the program shuts down"},
		{plain.URL, keys("", nil), "no API key: is empty"},
		{plain.URL, keys("new-key\r\n", nil), "no API key: contains a control character"},
	} {
		_, err := service.Client(t, test.url, service.Impatient(1), test.option).Webhooks.AddEvent(t.Context(), "w", "e")
		assert.EqualError(t, err, "payvault: webhooks.add_event: "+test.text+" (not sent)")
	}
}

var errShutdown = errors.New("the program shuts down")

// TestError_responseWithoutBody: a RoundTripper made by hand may leave the body out.
func TestError_responseWithoutBody(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere, service.Over(service.RoundTripper(
		func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 404}, nil })))
	_, err := client.Webhooks.AddEvent(t.Context(), "w", "e")
	service.AssertMatches(t, err, payvault.ErrNotFound)
}

func TestError_deadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := service.Client(t, service.Nowhere).Webhooks.AddEvent(ctx, "w", "e")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotErrorIs(t, err, context.Canceled)
	assert.Equal(t, "payvault: webhooks.add_event: context deadline exceeded (not sent)", err.Error())
}

// TestError_endOfContextKeepsTheAnswer: the caller ends while the next attempt waits; the answer before it counts.
func TestError_endOfContextKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range calls.All() {
		for _, want := range []payvault.Error{
			{StatusCode: 429, Code: "7", Delivery: payvault.Answered}, {StatusCode: 503, Delivery: payvault.Unknown},
		} {
			if want.StatusCode == 503 && !c.Repeats {
				continue // it does not wait for another attempt
			}
			t.Run(c.Name+strconv.Itoa(want.StatusCode), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					body := map[string]string{"": "", "7": `{"code":7,"rcode":"7"}`}[want.Code]
					pool := service.Pipe(t, func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Retry-After", "3600")
						service.Say(w, want.StatusCode, body)
					})
					ctx, cancel := context.WithCancelCause(t.Context())
					go func() {
						synctest.Wait() // the call waits for its next attempt
						cancel(errShutdown)
					}()
					client := service.Client(t, service.Nowhere, payvault.WithHTTPClient(pool), payvault.WithRetryPolicy(
						payvault.RetryPolicy{MaxRetryAfter: time.Hour, IgnoreOverload: true}))
					var raw payvault.Response
					result, err := c.Do(ctx, client, calls.Documented(), c.Full, payvault.WithResponse(&raw))
					assert.Nil(t, result)
					want.Op, want.Attempts, want.RetryAfter = c.Op, 1, time.Hour
					sentinels := []error{payvault.ErrRateLimited, payvault.ErrRejected}
					if want.StatusCode == 503 {
						if sentinels = []error{payvault.ErrUnavailable}; c.Replay != payvault.ReplayRead {
							sentinels = append(sentinels, payvault.ErrOutcomeUnknown)
						}
					}
					service.AssertError(t, err, want, sentinels...)
					assert.True(t, payvault.SafeToRetry(err))
					require.ErrorIs(t, err, context.Canceled)
					require.ErrorIs(t, err, errShutdown)
					assert.Equal(t, body, string(raw.Body))
				})
			})
		}
	}
}

// TestError_large: what a failure says is read within bounds of memory and time, however many secrets it may repeat.
func TestError_large(t *testing.T) {
	t.Parallel()
	cards := make([]payvault.AccountUpdaterCard, payvault.MaxAccountUpdaterCards)
	for i := range cards {
		cards[i] = payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(fmt.Sprintf("4444444444444%03d", i)),
			ExpDate:    "1230",
		}
	}
	for name, test := range map[string]struct {
		text     string
		rejected bool
	}{
		"digits": {`{"code":7,"message":"` + strings.Repeat("4", 1<<20) + `"}`, true},
		"large":  {`{"code":7,"message":"` + strings.Repeat("x", 3<<20) + `"}`, true},
	} {
		client := service.Client(t, service.Answer(t, 200, test.text).URL)
		_, err := client.AccountUpdater.Submit(t.Context(), cards)
		require.Error(t, err, name)
		assert.Equal(t, test.rejected, errors.Is(err, payvault.ErrRejected), name)
		assert.NotEqual(t, test.rejected, errors.Is(err, payvault.ErrOutcomeUnknown), name)
	}
}

// TestError_zeroLikeCode: a code that looks like zero is no refusal, for the service may well have performed the
// operation.
func TestError_zeroLikeCode(t *testing.T) {
	t.Parallel()
	for _, code := range []string{`"0.0"`, `"-0"`, `"00"`, `" 0"`, `"000"`} {
		err := failWith(t, 200, `{"code":`+code+`,"data":{"message":"x"}}`)
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown)
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
		client := service.Client(t, service.Nowhere)
		_, err := client.Webhooks.AddEvent(t.Context(), "", "")
		service.AssertMatches(t, err, payvault.ErrInvalidRequest)
		assert.False(t, payvault.SafeToRetry(err), "the same request would fail again")
		_, err = client.ForMerchant(1).Webhooks.AddEvent(t.Context(), "w", "e")
		service.AssertMatches(t, err, payvault.ErrMerchantNotSupported)
		assert.False(t, payvault.SafeToRetry(err))
	})
	t.Run("WithReplay does not make another call harmless", func(t *testing.T) {
		t.Parallel()
		server := service.Answer(t, 500, "")
		client := service.Client(t, server.URL)
		_, err := client.Webhooks.AddEvent(t.Context(), "w", "e")
		assert.False(t, payvault.SafeToRetry(err))
		_, err = client.Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithReplay())
		assert.False(t, payvault.SafeToRetry(err))
	})
	t.Run("429 after a lost attempt", func(t *testing.T) {
		t.Parallel()
		for _, c := range calls.All() {
			server := service.Observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(map[bool]int{true: 503, false: 429}[n == 1])
			})
			_, err := c.Do(t.Context(), service.Client(t, server.URL), calls.Documented(), c.Full, payvault.WithReplay(),
				payvault.WithAttempts(2))
			assert.Equal(t, 2, service.AsError(t, err).Attempts)
			assert.Equal(t, c.Repeats, payvault.SafeToRetry(err), c.Name)
		}
	})
}

// TestSafeToRetry_earlyAnswer: where it is not known whether a 408 was sent before the request came, it decides
// nothing.
func TestSafeToRetry_earlyAnswer(t *testing.T) {
	t.Parallel()
	early := service.Client(t, service.Nowhere, service.Over(service.Canned(http.StatusRequestTimeout, "")))
	_, err := early.Customers.List(t.Context(), nil)
	require.Error(t, err)
	assert.True(t, payvault.SafeToRetry(err), err)
	err = early.Payees.Delete(t.Context(), 7)
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	assert.False(t, payvault.SafeToRetry(err), err)
}

func TestDelivery_String(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "unknown not sent answered unknown",
		fmt.Sprint(payvault.Unknown, payvault.NotSent, payvault.Answered, payvault.Delivery(99)))
	var zero payvault.Delivery
	assert.Equal(t, payvault.Unknown, zero, "what is not known is not taken for unsent")
}

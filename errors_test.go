package payvault_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

func TestError_text(t *testing.T) {
	t.Parallel()
	const malformed, unknown = "malformed response: ", " (outcome unknown)"
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{404, ``, `404 Not Found`},
		{200, `{"code":7,"message":"No"}`, `200 OK: code 7: No`},
		{409, `{"code":7,"message":"No","data":{"message":"Because"}}`, `409 Conflict: code 7: No: Because`},
		{200, `{"code":7}`, `200 OK: code 7`},
		{200, `{"rcode":"905","rmsg":"Declined"}`, `200 OK: code 905: Declined`},
		{200, `{"code":7,"message":{"a":["b"]}}`, `200 OK: code 7: {"a":["b"]}`},
		{200, `{"code":7,"message":17}`, `200 OK: code 7: 17`},
		{200, `{"code":2,"message":"Bad","data":{"tax_id":["is secret"]}}`, `200 OK: code 2: Bad: tax_id is secret`},
		{
			200, `{"code":7,"data":{"order_on":["is not a field\nof the record"],"count":["too large","not now"]}}`,
			`200 OK: code 7: count too large, not now; order_on is not a field of the record`,
		},
		{
			200, `{"code":7,"message":"no","data":{"41111111":["11111111 bad"]}}`,
			`200 OK: code 7: no: [REDACTED] bad`, // a number that is spread over a name and its message
		},
		{200, `{"code":7,"data":{"order_on":["is unknown"],"x":null}}`, `200 OK: code 7: order_on is unknown`},
		{200, `{"code":7,"data":{"order_on":["is unknown"],"line":3}}`, `200 OK: code 7`}, // may be a record
		{200, `{"code":7,"message":"No","data":"order_on is unknown"}`, `200 OK: code 7: No: order_on is unknown`},
		{200, `{"code":2,"data":["a is bad","b is\nodd"]}`, `200 OK: code 2: a is bad, b is odd`},
		{200, `{"code":7,"rmsg":"Bad"}`, `200 OK: code 7: Bad`},
		{200, `{"code":7,"data":{"payee_id":4,"payee_name":"Jane Doe","payee_email":["a@b"]}}`, `200 OK: code 7`}, // records
		{200, `{"code":7,"data":{"tax_id":"12-3456789","note":"two words","list":["a"]}}`, `200 OK: code 7`},
		{200, `{"code":7,"data":{"message":"Because","name":"Jane Doe"}}`, `200 OK: code 7: Because`},
		{503, `<html>`, `503 Service Unavailable` + unknown},
		{598, ``, `598` + unknown},
		{200, `{`, `200 OK: ` + malformed + `not JSON, or cut off` + unknown},
		{200, `{}`, `200 OK: ` + malformed + `no result code` + unknown},
		{200, `{"code":0}`, `200 OK: code 0: ` + malformed + `/data is missing` + unknown},
		{
			200, `{"code":0,"rcode":"051","data":{}}`,
			`200 OK: code 0: ` + malformed + `it says both success and failure` + unknown,
		},
		{302, ``, `302 Found: ` + malformed + `a redirect, which is not followed` + unknown},
	} {
		err := addEvent(t, answering(t, test.status, test.body))
		want := "payvault: webhooks.add_event: status " + test.want
		for _, verb := range []string{"%v", "%s", "%+v", "%#v", "%d", "%x", "%t"} {
			assert.Equal(t, want, fmt.Sprintf(verb, err), verb)
		}
		assert.Equal(t, strconv.Quote(want), fmt.Sprintf("%q", err))
	}
}

// TestError_hostileService: the text is one short line whatever the service says; the field keeps what it says.
func TestError_hostileService(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"first\nsecond\r\nlevel=ERROR msg=\"forged\"\u2028third\u0085fourth", "\x00\x07\x1b[31mred\x1b[0m\x7f\u009b",
		"\u202eabc\u2066def\u200b", "\n\n\n", strings.Repeat("é", 1<<14), strings.Repeat("\n", 1<<14),
	} {
		code := strings.NewReplacer("{", "", "}", "", "[", "", "]", "", `"`, "", `\`, "").Replace("c" + message)
		answer, err := json.Marshal(map[string]string{"code": code, "message": message})
		require.NoError(t, err)
		failed := addEvent(t, answering(t, 200, string(answer)))
		require.ErrorIs(t, failed, payvault.ErrRejected)
		for _, verb := range service.Verbs() {
			text := fmt.Sprintf(verb, failed)
			assert.Less(t, len(text), 8000, verb)
			assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", verb, text)
		}
		assert.Less(t, len(service.Logged(failed)), 80_000, "a log record stays small")
		assert.Equal(t, message, service.AsError(t, failed).Message)
	}
}

func TestError_notSent(t *testing.T) {
	t.Parallel()
	untrusted := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	unresolved := &net.DNSError{Err: "no such host", Name: "unknown.example.com", IsNotFound: true}
	dialer := func(err error) payvault.Option {
		return service.Over(&http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err },
		})
	}
	keys := func(key string, err error) payvault.Option {
		return payvault.WithKeySource(func(context.Context) (string, error) { return key, err })
	}
	for _, test := range []struct {
		url    string
		option payvault.Option
		text   string
	}{
		{service.Nowhere, nil, "dial tcp 127.0.0.1:1: connect: connection refused"},
		{
			service.Nowhere, dialer(&net.OpError{Op: "dial", Net: "tcp", Err: unresolved}),
			"dial tcp: lookup unknown.example.com: no such host",
		},
		{service.Nowhere, dialer(errShutdown), "connection failed"},
		{
			service.Nowhere, dialer(untrusted),
			"tls: failed to verify certificate: x509: certificate signed by unknown authority",
		},
		{service.Nowhere, keys("", errShutdown), "no API key: the program shuts down"},
		{service.Nowhere, keys("", errors.New("the vault\nis\u2028sealed")), "no API key: the vault is sealed"},
		{service.Nowhere, keys("", nil), "no API key: is empty"},
		{service.Nowhere, keys("new-key\r\n", nil), "no API key: contains a control character"},
	} {
		err := addEvent(t, service.Client(t, test.url, service.Impatient(1), test.option))
		assert.EqualError(t, err, "payvault: webhooks.add_event: "+test.text+" (not sent)")
	}
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	_, err := service.Client(t, service.Nowhere).Webhooks.AddEvent(late, "w", "e")
	assert.EqualError(t, err, "payvault: webhooks.add_event: context deadline exceeded (not sent)")
	assert.NotErrorIs(t, err, context.Canceled)
	neither := func(*http.Request) (*http.Response, error) { return nil, nil } //nolint:nilnil // the point
	err = addEvent(t, service.Client(t, service.Nowhere, service.Over(service.RoundTripper(neither))))
	assert.EqualError(t, err, "payvault: webhooks.add_event: connection failed (outcome unknown)")
}

// TestError_endOfContextKeepsTheAnswer: the caller ends while the next attempt waits; the answer before it counts.
func TestError_endOfContextKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := service.Pipe(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			service.Say(w, http.StatusTooManyRequests, `{"code":7}`)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			synctest.Wait() // the call waits for its next attempt
			cancel(errShutdown)
		}()
		err := service.Client(t, service.Nowhere, payvault.WithHTTPClient(pool), payvault.WithRetryPolicy(
			payvault.RetryPolicy{MaxRetryAfter: time.Hour, IgnoreOverload: true})).Invoices.Send(ctx, "I1", nil)
		service.AssertError(t, err, payvault.Error{
			Op: payvault.OpInvoicesSend, StatusCode: 429, Code: "7", Delivery: payvault.Answered, Attempts: 1,
			RetryAfter: time.Hour,
		}, payvault.ErrRateLimited, payvault.ErrRejected)
		assert.True(t, payvault.SafeToRetry(err))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errShutdown)
	})
}

func TestSafeToRetry(t *testing.T) {
	t.Parallel()
	notSent := &payvault.Error{Delivery: payvault.NotSent, Attempts: 1}
	for _, err := range []error{
		notSent, fmt.Errorf("wrapped: %w", notSent), errors.Join(io.EOF, notSent),
		&payvault.Error{Delivery: payvault.Answered, StatusCode: 429},
	} {
		assert.True(t, payvault.SafeToRetry(err), "%#v", err)
	}
	for _, err := range []error{
		nil, io.ErrUnexpectedEOF, context.Canceled, (*payvault.Error)(nil),
		&payvault.Error{}, &payvault.Error{StatusCode: 503}, // of what is not replayable
		&payvault.Error{Delivery: payvault.Answered, StatusCode: 404},
		&payvault.Error{Delivery: payvault.Answered, StatusCode: 200, Code: "7"},
	} {
		assert.False(t, payvault.SafeToRetry(err), "%T", err)
	}
	for _, c := range calls.All() { // turned away after an attempt that may have performed it
		_, err := c.Do(t.Context(), service.Client(t, service.Nowhere, inTurn(503, 429)), calls.Documented(), c.Full,
			payvault.WithReplay(), payvault.WithAttempts(2))
		assert.Equal(t, 2, service.AsError(t, err).Attempts)
		assert.Equal(t, c.Repeats, payvault.SafeToRetry(err), c.Name)
	}
}

func TestDelivery_String(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "unknown not sent answered unknown",
		fmt.Sprint(payvault.Unknown, payvault.NotSent, payvault.Answered, payvault.Delivery(99)))
	assert.Zero(t, payvault.Unknown, "what is not known is not taken for unsent")
}

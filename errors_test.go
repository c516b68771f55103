package payvault_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/pool"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestError_text checks that the text of an error has status, code, message, detail, fields and cause on one line,
// under every verb of fmt. The text does not contain a record that is in the data of the answer.
func TestError_text(t *testing.T) {
	t.Parallel()
	const malformed, unknown = "malformed response: ", " (outcome unknown)"
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{404, ``, `404 Not Found`},
		{
			409, `{"code":7,"message":"No","rcode":"905","rmsg":"Declined","data":{"Message":"Because"}}`,
			`409 Conflict: code 7: No: Because`,
		},
		{200, `{"rcode":"905","rmsg":"Declined"}`, `200 OK: code 905: Declined`},
		{200, `{"code":7,"rmsg":"Bad"}`, `200 OK: code 7: Bad`},
		{200, `{"code":7,"message":false,"rmsg":"Bad"}`, `200 OK: code 7: Bad`},
		{200, `{"code":7,"message":[],"data":{}}`, `200 OK: code 7`},
		{200, `{"code":7,"message":{"a":["b"]}}`, `200 OK: code 7: {"a":["b"]}`},
		{
			200, `{"code":7,"data":{"order_on":["is not a field\nof the record"],"count":["count is odd","not now"],"x":null}}`,
			`200 OK: code 7: count is odd, not now; order_on is not a field of the record`,
		},
		{
			200, `{"code":7,"message":"no","data":{"41111111":["11111111 bad"]}}`,
			`200 OK: code 7: no: [REDACTED] bad`, // one half of the card number is the name, the other half is in the message
		},
		{200, `{"code":7,"message":"No","data":"order_on is unknown"}`, `200 OK: code 7: No: order_on is unknown`},
		{200, `{"code":2,"data":["a is bad","b is\nodd"]}`, `200 OK: code 2: a is bad, b is odd`},
		{200, `{"code":7,"data":{"order_on":["is unknown"],"lines":[3]}}`, `200 OK: code 7`}, // data is a record
		{200, `{"code":7,"data":{"message":"Because","name":"Jane Doe"}}`, `200 OK: code 7: Because`},
		{200, `{"data":{"message":"Jane Doe"}}`, `200 OK: ` + malformed + `no result code` + unknown},
		{598, ``, `598` + unknown},
		{
			300, `{"code":0,"data":{}}`,
			`300 Multiple Choices: code 0: ` + malformed + `a redirect, which is not followed` + unknown,
		},
	} {
		err := addEvent(t, answering(t, test.status, test.body))
		want := "payvault: webhooks.add_event: status " + test.want
		for _, verb := range []string{"%v", "%s", "%+v", "%#v", "%d", "%x", "%t"} {
			assert.Equal(t, want, fmt.Sprintf(verb, err), verb)
		}
		assert.Equal(t, strconv.Quote(want), fmt.Sprintf("%q", err))
	}
}

// TestError_gateway checks the errors of answers that come from a gateway and not from the service. The text of an
// error has the first line of a plain text, a JSON string, the messages of a JSON object, or a Content-Type that is not
// JSON. Card numbers and IDs in these texts are redacted.
func TestError_gateway(t *testing.T) {
	t.Parallel()
	const html, plain = "text/html; charset=utf-8", "text/plain"
	const problem, js = "application/problem+json", "application/json"
	for _, test := range []struct {
		status           int
		kind, body, want string
	}{
		{403, html, `<html><h1>Blocked by rule 920171`, `403 Forbidden: the answer is text/html, not JSON (outcome unknown)`},
		{503, html, `<html>`, `503 Service Unavailable: the answer is text/html, not JSON (outcome unknown)`},
		{403, plain, "RBAC: access denied\nrequest 7", `403 Forbidden: RBAC: access denied (outcome unknown)`},
		{403, plain, "\xff denied for 4111 1111 1111 1111", "403 Forbidden: \ufffd denied for [REDACTED] (outcome unknown)"},
		{403, plain, strings.Repeat("x", 5000), `403 Forbidden: ` + strings.Repeat("x", 300) + "… (outcome unknown)"},
		{403, plain, "denied\r\nrequest 7", `403 Forbidden: denied (outcome unknown)`},
		{400, plain, `{"code":7,"data":{"customer_first_name":"Jane"}}`, `400 Bad Request: code 7`},
		{400, plain, `{"code":7,"data":{"customer_first_name":"Jane"`, `400 Bad Request: the answer is text/plain, not JSON`},
		{400, plain, `{}`, `400 Bad Request`},
		{403, js, `"denied for 4111111111111111"`, `403 Forbidden: denied for [REDACTED] (outcome unknown)`},
		{
			429, problem, `{"type":"about:blank","title":"Quota","detail":"5 a second"}`,
			`429 Too Many Requests: Quota: 5 a second`,
		},
		{
			401, js, `{"error":{"message":"no transaction_status_updated for secret-webhook"}}`,
			`401 Unauthorized: no transaction_status_updated for [REDACTED]`,
		},
		{401, js, `{"error":"invalid_token"}`, `401 Unauthorized: invalid_token`},
		{
			400, js, `{"errors":["one",{"message":"two"},{"title":"three","detail":"four"},5]}`,
			`400 Bad Request: one: two: three: four`,
		},
		{400, js, `{"message":"Wrong","errors":["one"]}`, `400 Bad Request: Wrong`},
		{
			400, js, `{"errors":{"card_number":["4111111111111111 is bad"],"b":["c","d"]}}`,
			`400 Bad Request: b c, d; card_number [REDACTED] is bad`,
		},
		{401, js, `{"error":"invalid_token","error_description":"expired"}`, `401 Unauthorized: invalid_token: expired`},
		{403, js, `{"msg":"one","reason":"two"}`, `403 Forbidden: one: two (outcome unknown)`},
		{
			403, js, `{"title":{"name":"Jane Doe"},"error":{"message":{"name":"Jane Doe"}},"msg":["Jane Doe"]}`,
			`403 Forbidden (outcome unknown)`,
		},
		{400, js, `{"error":{"customer":{"name":"Jane Doe"}},"errors":{"name":"Jane Doe"}}`, `400 Bad Request`},
		{403, js, ``, `403 Forbidden (outcome unknown)`},
		{403, js, `{"cod`, `403 Forbidden (outcome unknown)`},
		{200, html, `<html>`, `200 OK: malformed response: the answer is text/html, not JSON (outcome unknown)`},
		{200, plain, `OK`, `200 OK: malformed response: the answer is text/plain, not JSON (outcome unknown)`},
		{200, js, ` `, `200 OK: malformed response: the answer is empty (outcome unknown)`},
		{200, js, `{"cod`, `200 OK: malformed response: not JSON, or cut off (outcome unknown)`},
		{200, "forged\x00type", `OK`, `200 OK: malformed response: not JSON, or cut off (outcome unknown)`},
	} {
		rt := service.RoundTripper(func(*http.Request) (*http.Response, error) {
			answer := service.Reply(test.status, test.body)
			answer.Header.Set("Content-Type", test.kind)
			return answer, nil
		})
		client := service.Client(t, service.Nowhere, service.Impatient(1), service.Over(rt))
		_, err := client.Webhooks.AddEvent(t.Context(), "secret-webhook", payvault.EventTransactionStatusUpdated)
		assert.EqualError(t, err, "payvault: webhooks.add_event: status "+test.want)
	}
}

// TestError_compressed checks that the error of an answer with a compression that was not asked for names the
// compression. The error does not repeat a name that is not of the usual form.
func TestError_compressed(t *testing.T) {
	t.Parallel()
	for encoding, want := range map[string]string{
		"br":       "the answer has the Content-Encoding br, which the SDK does not decode",
		"identity": "not JSON, or cut off",
		"4111":     "not JSON, or cut off",
	} {
		rt := service.RoundTripper(func(*http.Request) (*http.Response, error) {
			answer := service.Reply(http.StatusOK, "\x0b\x02\x80{}")
			answer.Header.Set("Content-Encoding", encoding)
			return answer, nil
		})
		err := addEvent(t, service.Client(t, service.Nowhere, service.Over(rt)))
		require.ErrorIs(t, err, payvault.ErrMalformedResponse)
		assert.ErrorContains(t, err, "malformed response: "+want+" (outcome unknown)")
	}
}

// TestError_longPlainText checks that the message has no part of a card number, even if the line is long or the body
// breaks off. If the body breaks off, the text of the error says so.
func TestError_longPlainText(t *testing.T) {
	t.Parallel()
	const card = "4111111111111111"
	for _, length := range []int{990, 64<<10 - 8} {
		for _, breaksOff := range []bool{false, true} {
			rt := service.RoundTripper(func(*http.Request) (*http.Response, error) {
				answer := service.Reply(http.StatusForbidden, strings.Repeat("x", length)+" "+card)
				answer.Header.Set("Content-Type", "text/plain")
				if breaksOff {
					part := io.LimitReader(answer.Body, int64(length+8))
					answer.Body = io.NopCloser(io.MultiReader(part, iotest.ErrReader(io.ErrUnexpectedEOF)))
				}
				return answer, nil
			})
			err := service.AsError(t, addEvent(t, service.Client(t, service.Nowhere, service.Over(rt))))
			assert.NotContains(t, err.Message, "4111")
			assert.Equal(t, length < 1000 && !breaksOff, strings.HasSuffix(err.Message, "x [REDACTED]"))
			assert.Equal(t, breaksOff, strings.Contains(err.Error(), "cut off"), "%.200s", err)
		}
	}
}

// TestError_hostileService checks that the text of an error is printable and limited in length, even if the text of the
// service is neither. Error.Message has the whole text of the service.
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

// TestError_notSent checks that the text of an error says why a request was not sent. The text repeats an error of the
// key source. It does not repeat a connection error that the SDK does not recognize.
func TestError_notSent(t *testing.T) {
	t.Parallel()
	const unknownAuthority = "x509: certificate signed by unknown authority"
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
		option payvault.Option
		text   string
	}{
		{nil, "dial tcp 127.0.0.1:1: connect: connection refused"},
		{dialer(unresolved), "lookup unknown.example.com: no such host"},
		{dialer(errShutdown), "connection failed"},
		{dialer(errors.New("tls: failed to parse certificate from server: 4111")), "the TLS handshake failed"},
		{
			dialer(errors.New("stream error: stream ID 1; REFUSED_STREAM; received from peer")),
			"the server refused the HTTP/2 stream",
		},
		{dialer(untrusted), "tls: failed to verify certificate: " + unknownAuthority},
		{keys("", errors.New("the vault\nis\u2028sealed")), "no API key: the vault is sealed"},
		{keys("", nil), "no API key: is empty"},
		{keys("new-key\r\n", nil), "no API key: has a blank, a line break, a quote or an invisible character around it"},
	} {
		err := addEvent(t, service.Client(t, service.Nowhere, service.Impatient(1), test.option))
		assert.EqualError(t, err, "payvault: webhooks.add_event: "+test.text+" (not sent)")
	}
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	_, err := service.Client(t, service.Nowhere).Webhooks.AddEvent(late, "w", "e")
	assert.EqualError(t, err, "payvault: webhooks.add_event: context deadline exceeded (not sent)")
	assert.NotErrorIs(t, err, context.Canceled)
	neither := func(*http.Request) (*http.Response, error) { return nil, nil } //nolint:nilnil // on purpose
	err = addEvent(t, service.Client(t, service.Nowhere, service.Over(service.RoundTripper(neither))))
	assert.EqualError(t, err, "payvault: webhooks.add_event: the RoundTripper service.RoundTripper failed (errors.Is and "+
		"errors.As find its error) (outcome unknown)")
}

// TestError_setup checks the texts of the errors for common mistakes in the setup of a client. The texts do not repeat
// what the peer has sent.
func TestError_setup(t *testing.T) {
	t.Parallel()
	plain := service.Answer(t, http.StatusOK, `{"code":0}`)
	speaks := func(text string) http.RoundTripper { // a server that answers with text and closes the connection
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				_, _ = server.Read(make([]byte, 4096))
				_, _ = io.WriteString(server, text)
				_ = server.Close()
			}()
			return client, nil
		}}
	}
	proxied := func(answer string) http.RoundTripper {
		tr := speaks(answer).(*http.Transport)
		tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"})
		return tr
	}
	own := pool.New()
	own.DialContext, own.Proxy = proxied("HTTP/1.1 407 Log in first\r\n\r\n").(*http.Transport).DialContext,
		http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"})
	noVersion := speaks("").(*http.Transport)
	noVersion.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13 + 1}
	passOn := func(rt http.RoundTripper) http.RoundTripper { return service.RoundTripper(rt.RoundTrip) }
	fails := func(err error) http.RoundTripper {
		return service.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	const roundTripper = "the RoundTripper service.RoundTripper failed"
	errToken := errors.New("no token")
	var mistake *url.Error
	for name, test := range map[string]struct {
		url  string
		rt   http.RoundTripper
		text string
		is   error
	}{
		"a proxy that wants a password": {
			"https://service.test", own, "the proxy refused CONNECT with status 407 (not sent)", nil,
		},
		"a proxy and a Transport of the caller": {
			"https://service.test", proxied("HTTP/1.1 502 Bad Gateway\r\n\r\n"),
			"the proxy refused CONNECT with status 502 (not sent)", nil,
		},
		"a proxy with a reason phrase of its own": {
			"https://service.test", proxied("HTTP/1.1 504 Gateway Time-out\r\n\r\n"),
			"the proxy refused CONNECT with status 504 (not sent)", nil,
		},
		"a proxy and a wrapper": {
			"https://service.test", passOn(proxied("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")),
			roundTripper + ": the proxy refused CONNECT with status 407 (outcome unknown)", nil,
		},
		"a proxy, NewTransport and a wrapper": {
			"https://service.test", passOn(own), "add_event: the proxy refused CONNECT with status 407 (outcome unknown)", nil,
		},
		"https to a port without TLS, and a wrapper": {
			"https" + strings.TrimPrefix(plain.URL, "http"), passOn(http.DefaultTransport),
			roundTripper + ": the server does not speak TLS (outcome unknown)", http.ErrSchemeMismatch,
		},
		"a wrapper and a refused port": {
			service.Nowhere, passOn(pool.New()), "add_event: dial tcp 127.0.0.1:1: connect: connection refused",
			syscall.ECONNREFUSED,
		},
		"a token that is refused with a status text": {
			service.Nowhere, fails(errors.New("Unauthorized")),
			roundTripper + " (errors.Is and errors.As find its error) (outcome unknown)", nil,
		},
		"a token server that cannot be reached": {
			service.Nowhere, fails(fmt.Errorf("%w: %w", errToken, &url.Error{
				URL: "https://user:password@token.test", Err: &net.OpError{Op: "dial", Err: errors.New("refused")},
			})),
			roundTripper + ": dial: refused (outcome unknown)", errToken,
		},
		"a token server that closes the connection": {
			service.Nowhere, fails(fmt.Errorf("%w: %w", errToken, io.EOF)),
			roundTripper + ": no complete answer: EOF (outcome unknown)", errToken,
		},
		"an attempt that is too slow": {
			service.Nowhere, fails(context.DeadlineExceeded),
			"add_event: an attempt took too long: context deadline exceeded (outcome unknown)", context.DeadlineExceeded,
		},
		"a handshake for a token": {
			service.Nowhere, fails(fmt.Errorf("get a token: %w", errors.New("tls: bad record"))),
			roundTripper + ": the TLS handshake failed (outcome unknown)", nil,
		},
		"a token server that is too slow": {
			service.Nowhere, fails(fmt.Errorf("%w: %w", errToken, context.DeadlineExceeded)),
			roundTripper + ": timeout (outcome unknown)", errToken,
		},
		"https to a port without TLS": {
			"https" + strings.TrimPrefix(plain.URL, "http"), http.DefaultTransport, "the server does not speak TLS (not sent)",
			http.ErrSchemeMismatch,
		},
		"https to a port of another protocol": {
			"https://127.0.0.1", speaks("SSH-2.0-OpenSSH"), "the server does not speak TLS (not sent)", nil,
		},
		"http to a port of another protocol": {
			"http://127.0.0.1", speaks("SSH-2.0-OpenSSH\r\n\r\n"), "the answer is not HTTP/1.1 (outcome unknown)", nil,
		},
		"versions of TLS that exclude each other": {
			"https://127.0.0.1", noVersion,
			"the TLS settings of the client and of the server have nothing in common (not sent)", nil,
		},
		"plain text that is announced as gzip": {
			"http://127.0.0.1", speaks("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n0123456789"),
			"the body of the answer does not have the announced Content-Encoding (outcome unknown)", gzip.ErrHeader,
		},
		"a refusal in plain text that is announced as gzip": {
			"http://127.0.0.1", speaks("HTTP/1.1 403 No\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n0123456789"),
			"403 Forbidden: the body of the answer does not have the announced Content-Encoding", nil,
		},
		"a RoundTripper of the caller": {
			service.Nowhere, service.RoundTripper(func(*http.Request) (*http.Response, error) {
				return nil, &url.Error{Op: "Post", URL: "https://user:password@service.test", Err: errShutdown}
			}),
			"the RoundTripper service.RoundTripper failed (errors.Is and errors.As find its error) (outcome unknown)",
			errShutdown,
		},
	} {
		err := addEvent(t, service.Client(t, test.url, service.Impatient(1), service.Over(test.rt)))
		require.ErrorContains(t, err, test.text, name)
		assert.False(t, errors.As(err, &mistake), "%s: a url.Error has the URL", name)
		if timeout, ok := errors.AsType[net.Error](err); ok {
			assert.NotContains(t, timeout.Error(), "password", name)
		}
		if test.is != nil {
			assert.ErrorIs(t, err, test.is, name)
		} else {
			assert.NotErrorIs(t, err, http.ErrSchemeMismatch, name)
		}
		for _, secret := range []string{"Log in", "SSH", "password", "0123456789"} {
			assert.NotContains(t, err.Error(), secret)
		}
	}
}

// TestError_endOfContextKeepsTheReason checks that the text says why the last attempt failed if the context ends before
// the next attempt. The error does not match this reason.
func TestError_endOfContextKeepsTheReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		pool := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, refused },
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait() // until the call waits for its next attempt
			cancel()
		}()
		patient := payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: time.Hour, MaxBackoff: time.Hour})
		err := service.Client(t, service.Nowhere, service.Over(pool), patient).Payees.Delete(ctx, 1)
		require.EqualError(t, err,
			"payvault: payees.delete: context canceled, after: dial: connection refused (not sent)")
		require.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, refused)
	})
}

// TestError_endOfContextKeepsTheAnswer ends the context of one call while its next attempt waits, and of a second call
// while the body of a refusal is read. Both errors must have the status of the refusal, and must match
// context.Canceled.
func TestError_endOfContextKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := service.Pipe(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			service.Say(w, http.StatusTooManyRequests, `{"code":7}`)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			synctest.Wait() // until the call waits for its next attempt
			cancel(errShutdown)
		}()
		err := service.Client(t, service.Nowhere, payvault.WithHTTPClient(pool), service.WithoutOverloadLimits(),
			payvault.WithRetryPolicy(payvault.RetryPolicy{MaxRetryAfter: time.Hour})).Invoices.Send(ctx, "I1", nil)
		service.AssertError(t, err, payvault.Error{
			Op: payvault.OpInvoicesSend, StatusCode: 429, Code: "7", Delivery: payvault.DeliveryAnswered, Attempts: 1,
			RetryAfter: time.Hour,
		}, payvault.ErrRateLimited, payvault.ErrRejected)
		assert.True(t, payvault.SafeToRetry(err))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, errShutdown.Error())
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
		cancel(errShutdown) // before the body is read
		resp := service.Reply(http.StatusNotFound, "")
		resp.Body = io.NopCloser(iotest.ErrReader(context.Canceled))
		return resp, nil
	}))
	err := service.Client(t, service.Nowhere, ended).Invoices.Send(ctx, "I1", nil)
	service.AssertError(t, err, payvault.Error{
		Op: payvault.OpInvoicesSend, StatusCode: 404, Delivery: payvault.DeliveryAnswered, Attempts: 1,
	}, payvault.ErrNotFound)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, errShutdown.Error())
}

// joined joins errors as avast/retry-go does: WrappedErrors returns all errors, and Unwrap returns only the last error.
// hashicorp/go-multierror has the method WrappedErrors too.
type joined []error

func (j joined) Error() string { return fmt.Sprint([]error(j)) }

func (j joined) WrappedErrors() []error { return j }

func (j joined) Unwrap() error { return j[len(j)-1] }

// listed joins errors as go.uber.org/multierr 1.9 does: it has a method Errors and no Unwrap.
type listed []error

func (l listed) Error() string { return fmt.Sprint([]error(l)) }

func (l listed) Errors() []error { return l }

// TestSafeToRetry checks that SafeToRetry is true if nothing was performed, or if a second call does no harm and may
// succeed. An Error that a test makes itself has the replay class of its operation.
func TestSafeToRetry(t *testing.T) {
	t.Parallel()
	notSent := &payvault.Error{Delivery: payvault.DeliveryNotSent, Attempts: 1}
	for _, err := range []error{
		notSent, fmt.Errorf("wrapped: %w", notSent), errors.Join(io.EOF, notSent),
		joined{io.EOF, notSent, notSent},
		listed{notSent, notSent},
		&payvault.Error{Delivery: payvault.DeliveryAnswered, StatusCode: 429},
		&payvault.Error{Op: payvault.OpCustomersList, StatusCode: 408}, // the server may not have got the request
	} {
		assert.True(t, payvault.SafeToRetry(err), "%#v", err)
	}
	for _, err := range []error{
		nil, io.ErrUnexpectedEOF, context.Canceled, (*payvault.Error)(nil),
		&payvault.Error{}, &payvault.Error{StatusCode: 503}, // not replayable
		&payvault.Error{Delivery: payvault.DeliveryAnswered, StatusCode: 404},
		&payvault.Error{Op: payvault.OpCustomersList, StatusCode: 408, Delivery: payvault.DeliveryAnswered},
		&payvault.Error{Op: payvault.OpCustomersList, StatusCode: 404}, // the answer to an earlier attempt was lost
		&payvault.Error{Delivery: payvault.DeliveryAnswered, StatusCode: 200, Code: "7"},
		errors.Join(notSent, &payvault.Error{}), errors.Join(&payvault.Error{}, notSent), // errors of two calls
		joined{notSent, &payvault.Error{}},
		joined{notSent, &payvault.Error{}, notSent},
		listed{notSent, &payvault.Error{}},
		listed{&payvault.Error{}, io.EOF},
		joined{notSent, fmt.Errorf("wrapped: %w", errors.Join(notSent, &payvault.Error{})), notSent},
	} {
		assert.False(t, payvault.SafeToRetry(err), "%T", err)
	}
	replayable := []payvault.Replay{payvault.ReplaySame, payvault.ReplayRead}
	for _, op := range append(payvault.Operations(), payvault.OperationInfo{Op: payvault.OpCall}) { // errors of a fake
		err := &payvault.Error{Op: op.Op, StatusCode: 502}
		assert.Equal(t, slices.Contains(replayable, op.Replay), payvault.SafeToRetry(err), op.Op)
		assert.Equal(t, op.Replay != payvault.ReplayRead, errors.Is(err, payvault.ErrOutcomeUnknown), op.Op)
	}
	for _, c := range calls.All() { // a 429 after a 503, which may have performed the operation
		_, err := c.Do(t.Context(), service.Client(t, service.Nowhere, inTurn(503, 429)), calls.Documented(), c.Full,
			payvault.WithReplay(), payvault.WithMaxAttempts(2))
		assert.Equal(t, 2, service.AsError(t, err).Attempts)
		assert.Equal(t, c.Repeats, payvault.SafeToRetry(err), c.Name)
	}
}

const (
	strangerCard = "5105105105105100"
	mark         = "[REDACTED]"
)

type object = map[string]any

// refusal returns the error of Tokenize for a service that refuses the request with the given answer.
func refusal(t *testing.T, req payvault.TokenizeRequest, answer object) *payvault.Error {
	t.Helper()
	body, err := json.Marshal(answer)
	require.NoError(t, err)
	req.MerchantID = 1
	_, err = answering(t, http.StatusOK, string(body)).Tokens.Tokenize(t.Context(), &req)
	return service.AsError(t, err)
}

// TestError_cleared checks that card numbers and secrets of the request are redacted in each field of an error that has
// texts of the service.
func TestError_cleared(t *testing.T) {
	t.Parallel()
	none := payvault.TokenizeRequest{}
	for text, want := range map[string]string{
		"card 5105 1051 0510 5100 is known":         "card [REDACTED] is known",
		"card %35105&#49;05105105100 is known":      mark, // all is redacted, because an escape hides the number
		"card 12345678901 is too short to be known": "card 12345678901 is too short to be known",
	} {
		message := refusal(t, none, object{"rcode": "905", "rmsg": text, "data": object{"message": text}})
		fields := refusal(t, none, object{"rcode": "2", "data": object{text: []string{"a", text}}})
		code := refusal(t, none, object{"rcode": text})
		assert.Equal(t, []string{want, want, want}, []string{message.Message, message.Detail, code.Code})
		assert.Equal(t, service.Fields{want: {"a", want}}, fields.Fields)
		for _, err := range []error{message, fields, code} {
			if want != text {
				service.AssertHidden(t, err, text)
			}
		}
	}
	swipe := payvault.NewSecret(";5105105105105100=25121?")
	req := payvault.TokenizeRequest{CardSwipe: swipe, CVV2: payvault.NewSecret("937")}
	e := refusal(t, req, object{"rcode": "905", "rmsg": "cvv 937, track ;5105105105105100=25121?"})
	assert.Equal(t, "cvv [REDACTED], track [REDACTED]", e.Message)
	e = refusal(t, none, object{"rcode": "2", "data": object{ // after redaction two names are equal
		strangerCard: []string{"first"}, strangerCard + "1": []string{"second"}, "17": []string{"third"}, "d": []string{},
	}})
	assert.Equal(t, service.Fields{mark: {"first", "second"}, "17": {"third"}, "d": {}}, e.Fields)
}

// TestError_echoOfTheCaller uses a service whose message repeats the whole request. It checks that IDs in the path,
// values of filters and of the query, and header values are redacted. Names of fields, the paging parameters and
// merchant_id stay.
func TestError_echoOfTheCaller(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere, service.Over(service.RoundTripper(
		func(r *http.Request) (*http.Response, error) {
			echo := fmt.Sprint(r.URL.Path, " ", r.Header.Get("X-Trace"), " ", r.URL.RawQuery, " ", r.URL.Query())
			quoted, err := json.Marshal(echo)
			return service.Reply(400, `{"code":9,"message":`+string(quoted)+`}`), err
		})))
	const private = "ada ä+b%y&ron@example.com"
	sent := client.Invoices.Send(t.Context(), "inv-secret", nil, payvault.WithHeader("X-Trace", "hunter2-token"))
	_, listed := client.Customers.List(t.Context(), &payvault.ListOptions{
		OrderOn: "customer_id", OrderBy: payvault.Ascending,
		Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", private)},
	})
	errs := []error{sent, listed}
	for _, query := range []url.Values{{"filter": {"field,EQUALS," + private}}, {"q": {private}, "page": {"0"}}} {
		request := payvault.Request{Method: "GET", Path: []string{"x"}, Query: query}
		errs = append(errs, client.Call(t.Context(), request, nil))
	}
	for _, err := range errs {
		require.ErrorIs(t, err, payvault.ErrRejected)
		service.AssertHidden(t, err, "inv-secret", "hunter2-token", "ada", "C3", "ron", "example.com")
	}
	assert.Contains(t, service.AsError(t, listed).Message, "order_on=customer_id")
	assert.Contains(t, service.AsError(t, listed).Message, "customer_email")
	kept := url.Values{
		"order_on": {"customer_id"}, "order_by": {"desc"}, "count": {"100"}, "page": {"117"}, "merchant_id": {"4711"},
	}
	err := client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}, Query: kept}, nil)
	assert.Contains(t, service.AsError(t, err).Message, kept.Encode(), "what names nobody's data stays")
}

// TestError_everyKey checks that the API keys of all attempts are redacted, because an earlier key may still be valid.
func TestError_everyKey(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		service.Say(w, []int{429, 429, 400}[n-1],
			`{"code":7,"message":"rotated-key-1 then rotated-key-2 then `+r.Header.Get("Authorization")+`"}`)
	})
	asked := 0
	source := func(context.Context) (string, error) {
		asked++
		return "rotated-key-" + strconv.Itoa(asked), nil
	}
	_, err := service.Client(t, server.URL, payvault.WithKeySource(source)).Applications.Validate(t.Context(), 1)
	service.AssertHidden(t, err, "rotated-key", base64.StdEncoding.EncodeToString([]byte(":rotated-key-3")))
	assert.Equal(t, "[REDACTED] then [REDACTED] then Basic [REDACTED]", service.AsError(t, err).Message)
}

// TestError_longSwipe checks that redacting an error allocates less than 20 MB if the request has a card swipe of 8
// KB. The SDK looks for each part of the swipe in the error.
//
//nolint:paralleltest // it counts the allocations of the process
func TestError_longSwipe(t *testing.T) {
	client := service.Client(t, service.Nowhere, service.Over(service.Canned(200, `{"rcode":"905","rmsg":"bad"}`)))
	for shape, unit := range map[string]string{"names": "A ", "fields": "A/B C^", "tracks": ";411111111=A/B C?"} {
		swipe := "%B4111111111111111^DOE/" + strings.Repeat(unit, 8<<10/len(unit)) + "^2512?"
		request := &payvault.TokenizeRequest{MerchantID: 1, CardSwipe: payvault.NewSecret(swipe)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := client.Tokens.Tokenize(t.Context(), request)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, payvault.ErrRejected)
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(20), "MB for a swipe of 8 KB: %s", shape)
	}
}

// TestError_long checks that an Error does not keep a message or data of more than 64 KiB, and that the text of an
// Error has the messages of at most 20 fields.
func TestError_long(t *testing.T) {
	t.Parallel()
	none, long := payvault.TokenizeRequest{}, strings.Repeat("x", 64<<10)
	e := refusal(t, none, object{"rcode": "2", "rmsg": long, "data": object{"a": []string{"b"}}})
	assert.ErrorIs(t, e, payvault.ErrRejected)
	assert.Empty(t, e.Message)
	assert.Equal(t, service.Fields{"a": {"b"}}, e.Fields)
	e = refusal(t, none, object{"rcode": "2", "rmsg": long[2:], "data": object{"a": []string{long}}})
	assert.Equal(t, long[2:], e.Message)
	assert.Empty(t, e.Fields)
	for n, end := range map[int]string{20: "; field_19 is odd", 25: "; field_19 is odd; and 5 more"} {
		data := object{}
		for i := range n {
			data[fmt.Sprintf("field_%02d", i)] = []string{"is odd"}
		}
		e := refusal(t, none, object{"rcode": "2", "data": data})
		assert.Len(t, e.Fields, n)
		assert.True(t, strings.HasSuffix(e.Error(), end), e.Error())
	}
}

// TestError_code checks that an rcode that means zero but looks like a card number is dropped: [REDACTED] in its place
// would look like a refusal. A short rcode is not redacted, even if it equals a secret of the request. For Tokenize, an
// error has the rcode and its text, and not the code.
func TestError_code(t *testing.T) {
	t.Parallel()
	none := payvault.TokenizeRequest{}
	for _, code := range []string{"000000000000", "0e4111111111111111"} {
		e := refusal(t, none, object{"rcode": code})
		service.AssertMatches(t, e, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown)
		assert.Empty(t, e.Code)
	}
	e := refusal(t, none, object{"rcode": strangerCard})
	service.AssertMatches(t, e, payvault.ErrRejected)
	assert.Equal(t, mark, e.Code)
	e = refusal(t, payvault.TokenizeRequest{CVV2: payvault.NewSecret("117")}, object{"rcode": "117"})
	assert.Equal(t, "117", e.Code)
	e = refusal(t, none, object{"code": "5", "message": "of the code", "rcode": "905", "rmsg": "of the rcode"})
	assert.Equal(t, "905 of the rcode", e.Code+" "+e.Message)
}

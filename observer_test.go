package payvault_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
)

// diary records the values that its observer gets. The calls must be made one after another.
type diary struct {
	calls          []payvault.CallInfo
	attempts, ends []payvault.CallResult
}

type diaryKey struct{}

// option returns the option that adds an observer which writes into the diary. Start of the observer adds a value to
// the context of a call.
func (d *diary) option() payvault.Option {
	return payvault.WithObserver(payvault.Observer{
		Start: func(ctx context.Context, call payvault.CallInfo) context.Context {
			d.calls = append(d.calls, call)
			return context.WithValue(ctx, diaryKey{}, "of the call")
		},
		Attempt: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) {
			d.attempts = append(d.attempts, r)
		},
		End: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) { d.ends = append(d.ends, r) },
	})
}

// TestObserver_callInfo checks that observers get the operation, the method, the server and the template of the path.
// For Client.Call they get no path, because its path may contain IDs.
func TestObserver_callInfo(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://sandbox.example.com/v1": "sandbox.example.com:443", "http://localhost": "localhost:80",
		"https://[::1]:8443": "[::1]:8443",
	} {
		var d diary
		client := service.Client(t, base, d.option(), service.Over(service.Canned(http.StatusTeapot, "")))
		for i, c := range calls.All() {
			_, err := c.Do(t.Context(), client, calls.Documented(), c.Full)
			require.Error(t, err)
			assert.Equal(t, payvault.CallInfo{Op: c.Op, Method: c.Method, Path: c.Path, Server: want}, d.calls[i])
		}
		require.Error(t, client.Call(t.Context(), payvault.Request{Method: "PUT", Path: []string{"thing", "4711"}}, nil))
		assert.Equal(t, payvault.CallInfo{Op: payvault.OpCall, Method: "PUT", Server: want}, d.calls[len(d.calls)-1])
	}
}

// TestObserver_panic checks that End of an observer is called, and that the call is logged, if a key source panics in
// the call.
func TestObserver_panic(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][3]string{
		"webhooks.add_event":    {"level=ERROR", "webhooks.add_event: panic (outcome unknown)", "outcome_unknown"},
		"applications.validate": {"level=WARN", "applications.validate: panic", "panic"},
	} {
		var d diary
		var log bytes.Buffer
		client := service.Client(t, service.Nowhere, d.option(),
			payvault.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			payvault.WithKeySource(func(context.Context) (string, error) { panic("no key") }))
		assert.PanicsWithValue(t, "no key", func() { _, _ = named(t, name)(client) })
		require.Len(t, d.ends, 1)
		assert.EqualError(t, d.ends[0].Err, "payvault: "+want[1])
		assert.Equal(t, payvault.DeliveryUnknown, d.ends[0].Delivery)
		assert.Equal(t, want[2], d.ends[0].ErrorClass())
		assert.Contains(t, log.String(), want[0])
		assert.Contains(t, log.String(), want[1])
	}
}

// TestObserver_context checks that key sources, transports and log handlers get the context that Start returns. The log
// records are written before End of the observer is called.
func TestObserver_context(t *testing.T) {
	t.Parallel()
	var d diary
	var seen []string
	look := func(ctx context.Context) {
		seen = append(seen, fmt.Sprintf("%v %d", ctx.Value(diaryKey{}), len(d.ends)))
	}
	source := func(ctx context.Context) (string, error) { look(ctx); return service.APIKey, nil }
	pool := service.RoundTripper(func(r *http.Request) (*http.Response, error) {
		look(r.Context())
		return service.Reply(http.StatusOK, `{"code":0,"data":{}}`), nil
	})
	log := slog.New(&notes{Handler: slog.DiscardHandler, from: slog.LevelDebug, look: look})
	require.NoError(t, addEvent(t, service.Client(t, service.Nowhere, d.option(), payvault.WithKeySource(source),
		service.Over(pool), payvault.WithLogger(log))))
	assert.Equal(t, slices.Repeat([]string{"of the call 0"}, 4), seen, "key source, transport, and two records")
}

// TestObserver_severalInOrder checks that observers are called in the order in which they were given, and that nil
// functions are not called. A Start that returns nil does not change the context.
func TestObserver_severalInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) payvault.Option {
		return payvault.WithObserver(payvault.Observer{
			Start: func(ctx context.Context, _ payvault.CallInfo) context.Context {
				order = append(order, "start "+name)
				return ctx
			},
			End: func(context.Context, payvault.CallInfo, payvault.CallResult) { order = append(order, "end "+name) },
		})
	}
	none := payvault.WithObserver(payvault.Observer{
		Start: func(context.Context, payvault.CallInfo) context.Context { return nil },
	})
	require.NoError(t, addEvent(t, answering(t, 200, `{"code":0,"data":{}}`, note("1"), none, note("2"))))
	assert.Equal(t, []string{"start 1", "start 2", "end 1", "end 2"}, order)
}

// TestObserver_hiddenURL has a RoundTripper that wraps an error in a *url.Error. It checks that the errors of a call
// and of its attempt match the wrapped error but not the *url.Error, and that they show neither the URL nor the text of
// the wrapped error.
func TestObserver_hiddenURL(t *testing.T) {
	t.Parallel()
	var d diary
	own := errors.New("broken by " + canary.Secret)
	client := service.Client(t, service.Nowhere, d.option(),
		service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: own}
		})))
	err := client.Invoices.Send(t.Context(), canary.Secret, nil)
	for _, err := range []error{err, d.attempts[0].Err} {
		require.ErrorIs(t, err, own, "what the transport said can still be matched")
		_, found := errors.AsType[*url.Error](err)
		assert.False(t, found, "errors.As must not dig it out")
		service.AssertHidden(t, err, canary.Forms(canary.Secret)...)
	}
	assert.ErrorContains(t, err, "the RoundTripper service.RoundTripper failed")
	assert.Empty(t, canary.Find(fmt.Sprintf("%+v %#v", d.attempts[0], d.calls[0]), canary.Forms(canary.Secret)))
}

// TestCallResult_ErrorClass checks the class of each kind of error except "stopped" and "panic". An error with a code
// that refuses is not "rejected" if its outcome is unknown or its status is 429.
func TestCallResult_ErrorClass(t *testing.T) {
	t.Parallel()
	noKey := addEvent(t, service.Client(t, service.Nowhere, payvault.WithKeySource(
		func(context.Context) (string, error) { return "", context.Canceled })))
	refused := &payvault.Error{
		Op: payvault.OpInvoicesSend, StatusCode: 409, Code: "7", Delivery: payvault.DeliveryAnswered,
	}
	read := func(status int) *payvault.Error {
		return &payvault.Error{Op: payvault.OpCustomersList, StatusCode: status}
	}
	for _, test := range []struct {
		want   string
		result payvault.CallResult
	}{
		{"", payvault.CallResult{StatusCode: http.StatusServiceUnavailable}},
		{"invalid_request", payvault.CallResult{Err: fmt.Errorf("x: %w", payvault.ErrInvalidRequest)}},
		{"merchant_not_supported", payvault.CallResult{Err: addEvent(t, service.Client(t, service.Nowhere).ForMerchant(1))}},
		{"outcome_unknown", payvault.CallResult{StatusCode: 409, Err: &payvault.Error{
			Op: payvault.OpInvoicesSend, StatusCode: 409, Code: "7", // of the last attempt; an earlier one was lost
		}}},
		{"outcome_unknown", payvault.CallResult{StatusCode: 503, Err: &payvault.Error{
			Op: payvault.OpInvoicesSend, StatusCode: 503, Code: "7",
		}}},
		{"rate_limited", payvault.CallResult{StatusCode: 429, Err: &payvault.Error{
			Op: payvault.OpInvoicesSend, StatusCode: 429, Code: "7", Delivery: payvault.DeliveryAnswered,
		}}},
		{"rate_limited", payvault.CallResult{StatusCode: 429, Err: read(429)}},
		{"canceled", payvault.CallResult{Err: context.Canceled}},
		{"timeout", payvault.CallResult{Err: &net.OpError{Err: &net.DNSError{IsTimeout: true}}}},
		{"rejected", payvault.CallResult{StatusCode: 409, Err: refused}},
		{"status", payvault.CallResult{StatusCode: 503, Err: read(503)}},
		{"response_too_large", payvault.CallResult{StatusCode: 200, Err: payvault.ErrResponseTooLarge}},
		{"malformed_response", payvault.CallResult{StatusCode: 200, Err: payvault.ErrMalformedResponse}},
		{"no_key", payvault.CallResult{Err: noKey}},
		{"certificate", payvault.CallResult{Err: x509.UnknownAuthorityError{}}},
		{"dns", payvault.CallResult{Err: &net.OpError{Err: &net.DNSError{IsNotFound: true}}}},
		{"connection", payvault.CallResult{Err: io.ErrUnexpectedEOF}},
	} {
		assert.Equal(t, test.want, test.result.ErrorClass(), "%v", test.result.Err)
	}
}

// TestCallResult_NotRepeated checks the field NotRepeated in the result of a call, and in the result of its last
// attempt. The two differ if the body decides between success and failure, and if the call ends while it waits for a
// retry. The reason "budget" has a test in internal/tests/bulk.
func TestCallResult_NotRepeated(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, c *payvault.Client) { _, _ = c.Applications.Validate(ctx, 7) }
	write := func(ctx context.Context, c *payvault.Client) { _, _ = c.Webhooks.AddEvent(ctx, "W", "e") }
	canceled := func(ctx context.Context, c *payvault.Client) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		write(ctx, c)
	}
	answer := func(status int, body, retryAfter string) service.RoundTripper {
		return func(*http.Request) (*http.Response, error) {
			resp := service.Reply(status, body)
			resp.Header.Set("Retry-After", retryAfter)
			return resp, nil
		}
	}
	lost := service.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, errShutdown })
	hangs := service.RoundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	for name, test := range map[string]struct {
		rt            service.RoundTripper
		call          func(context.Context, *payvault.Client)
		attempt, want string
	}{
		"success":            {answer(200, `{"code":0}`, ""), write, "", ""},
		"answer of Validate": {answer(400, `{"code":2,"data":{"a":["b"]}}`, ""), read, "final", ""},
		"refusal":            {answer(404, `{}`, ""), read, "final", "final"},
		"not a success":      {answer(200, `<html>`, ""), write, "", "final"},
		"lost write":         {lost, write, "not_replayable", "not_replayable"},
		"write, unavailable": {answer(503, ``, ""), write, "not_replayable", "not_replayable"},
		"read, unavailable":  {answer(503, ``, ""), read, "attempts", "attempts"},
		"wait is too long":   {answer(503, ``, "3600"), read, "retry_after", "retry_after"},
		"after the deadline": {answer(503, ``, "29"), read, "deadline", "deadline"},
		"429, deadline":      {answer(429, ``, "29"), read, "deadline", "deadline"},
		"ends in an attempt": {hangs, read, "context", "context"},
		"canceled in a wait": {answer(429, ``, "10"), canceled, "", "wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var attempts, calls []string
				observer := payvault.Observer{
					Attempt: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) {
						attempts = append(attempts, r.NotRepeated)
					},
					End: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) {
						calls = append(calls, r.NotRepeated)
					},
				}
				policy := payvault.RetryPolicy{MaxAttempts: 2, MaxRetryAfter: 30 * time.Second}
				client, err := payvault.NewClient(service.Nowhere, service.APIKey, service.Over(test.rt),
					payvault.WithObserver(observer), payvault.WithRetryPolicy(policy))
				require.NoError(t, err)
				test.call(ctx, client)
				assert.Equal(t, test.attempt, attempts[len(attempts)-1])
				assert.Equal(t, []string{test.want}, calls)
			})
		})
	}
}

// notes is a log handler that keeps the records from a level on, each as a line of text.
type notes struct {
	slog.Handler

	from  slog.Level
	look  func(context.Context)
	lines []string
}

func (n *notes) Enabled(_ context.Context, level slog.Level) bool { return level >= n.from }

func (n *notes) Handle(ctx context.Context, r slog.Record) error {
	if n.look != nil {
		n.look(ctx)
	}
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "duration" && a.Value.Duration() > 0:
			line += " took"
		case a.Key == "error": // the tests of errors check the text
			line += " error"
		default:
			line += " " + a.Value.String()
		}
		return true
	})
	n.lines = append(n.lines, line)
	return nil
}

// TestLogger checks that the log has a record of each attempt and of each call, at the documented levels.
func TestLogger(t *testing.T) {
	t.Parallel()
	read, write := named(t, "applications.validate"), named(t, "webhooks.add_event")
	refused := func(c *payvault.Client, _ ...payvault.CallOption) (any, error) {
		return nil, c.Payees.Delete(t.Context(), 0)
	}
	for _, test := range []struct { // a line has level, message, operation, status, code, attempts, delivery
		statuses []int
		call     call
		want     []string
	}{
		{[]int{200}, write, []string{
			"DEBUG payvault attempt webhooks.add_event 200  1 answered took",
			"DEBUG payvault call webhooks.add_event 200 0 1 answered took",
		}},
		{[]int{0, 200}, read, []string{
			"DEBUG payvault attempt applications.validate 0  1 unknown took connection error",
			"DEBUG payvault attempt applications.validate 200  2 answered took",
			"DEBUG payvault call applications.validate 200 0 2 answered took",
		}},
		{[]int{429}, write, []string{
			"DEBUG payvault attempt webhooks.add_event 429  1 answered took",
			"DEBUG payvault attempt webhooks.add_event 429  2 answered took attempts",
			"WARN payvault call webhooks.add_event 429 0 2 answered took rate_limited error attempts",
		}},
		{[]int{0}, write, []string{
			"DEBUG payvault attempt webhooks.add_event 0  1 unknown took connection error not_replayable",
			"ERROR payvault call webhooks.add_event 0  1 unknown took outcome_unknown error not_replayable",
		}},
		{[]int{302}, write, []string{
			"DEBUG payvault attempt webhooks.add_event 302  1 unknown took final",
			"ERROR payvault call webhooks.add_event 302 0 1 unknown took outcome_unknown error final",
		}},
		{nil, refused, []string{"WARN payvault call payees.delete 0  0 not sent took invalid_request error"}},
	} {
		for from, want := range map[slog.Level][]string{
			slog.LevelDebug: test.want,
			slog.LevelInfo:  slices.DeleteFunc(slices.Clone(test.want), func(s string) bool { return s[0] == 'D' }),
			slog.LevelError: slices.DeleteFunc(slices.Clone(test.want), func(s string) bool { return s[0] != 'E' }),
		} {
			log := notes{Handler: slog.DiscardHandler, from: from, lines: []string{}}
			_, _ = test.call(service.Client(t, service.Nowhere, service.Impatient(2), inTurn(test.statuses...),
				payvault.WithLogger(slog.New(&log))))
			assert.Equal(t, want, log.lines)
		}
	}
}

// TestLogger_oneLine checks that the two-line error of a key source is logged on one line, both for the attempt and for
// the call.
func TestLogger_oneLine(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	sealed := func(context.Context) (string, error) { return "", errors.New("the vault\nis sealed") }
	client := service.Client(t, service.Nowhere, payvault.WithKeySource(sealed), payvault.WithLogger(logger))
	require.Error(t, addEvent(t, client))
	assert.Equal(t, 2, strings.Count(log.String(), "the vault is sealed"), log.String())
}

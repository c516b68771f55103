package payvault_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/payvaulttest"
)

// told is what an observer was told.
type told struct {
	call     payvault.CallInfo
	attempts []payvault.CallResult
	end      []payvault.CallResult
}

// diary is an observer that keeps what it is told, per call.
type diary struct {
	mu    sync.Mutex
	calls []*told
}

type diaryKey struct{}

// entry finds the call by the context that start has made.
func (d *diary) entry(ctx context.Context) *told {
	entry, _ := ctx.Value(diaryKey{}).(*told)
	return entry
}

func (d *diary) observer() payvault.Observer {
	return payvault.Observer{
		Start: func(ctx context.Context, call payvault.CallInfo) context.Context {
			entry := &told{call: call}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.calls = append(d.calls, entry)
			return context.WithValue(ctx, diaryKey{}, entry)
		},
		Attempt: func(ctx context.Context, _ payvault.CallInfo, r payvault.CallResult) {
			d.entry(ctx).attempts = append(d.entry(ctx).attempts, r)
		},
		End: func(ctx context.Context, _ payvault.CallInfo, r payvault.CallResult) {
			d.entry(ctx).end = append(d.entry(ctx).end, r)
		},
	}
}

// observed returns the client of an emulator, and what it tells.
func observed(t *testing.T) (*payvaulttest.Server, *payvault.Client, *diary) {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	var d diary
	return srv, srv.Client(payvault.WithObserver(d.observer()), impatient(3)), &d
}

// documentedPaths are the paths of the interface by operation.
func documentedPaths(t *testing.T) map[payvault.Operation]string {
	t.Helper()
	text, err := os.ReadFile("testdata/operations.txt")
	require.NoError(t, err)
	paths := map[payvault.Operation]string{}
	for line := range strings.Lines(string(text)) {
		if column := strings.Fields(line); !strings.HasPrefix(line, "#") {
			paths[payvault.Operation(column[1])] = strings.ReplaceAll(column[3], "{appId}", "{appId}")
		}
	}
	return paths
}

func TestObserver_callInfo(t *testing.T) {
	t.Parallel()
	paths := documentedPaths(t)
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, http.StatusTeapot, "") })
	for _, c := range opCases() {
		var d diary
		_, err := c.call(t.Context(), tableClient(t, server.URL+basePath, payvault.WithObserver(d.observer())))
		require.Error(t, err)
		require.Len(t, d.calls, 1, c.name)
		assert.Equal(t, c.op, d.calls[0].call.Op)
		assert.Equal(t, paths[c.op], d.calls[0].call.Path)
		assert.Equal(t, server.URL, "http://"+d.calls[0].call.Server)
	}
	for i, r := range server.seen() {
		assert.NotEmpty(t, r.method, i)
	}
}

// TestObserver_callInfoOfCall: the path of an operation that is not typed is the caller's, and may hold IDs.
func TestObserver_callInfoOfCall(t *testing.T) {
	t.Parallel()
	srv, client, d := observed(t)
	err := client.Call(t.Context(), payvault.Request{Method: "PUT", Path: []string{"platform", "thing", "4711"}}, nil)
	require.ErrorIs(t, err, payvault.ErrNotFound)
	want := payvault.CallInfo{Op: payvault.OpCall, Method: "PUT", Server: strings.TrimPrefix(srv.URL, "http://")}
	assert.Equal(t, want, d.calls[0].call)
}

// TestObserver_panic: a call ends also when the caller's own code panics in it.
func TestObserver_panic(t *testing.T) {
	t.Parallel()
	var d diary
	client := tableClient(t, "http://127.0.0.1:1", payvault.WithObserver(d.observer()),
		payvault.WithKeySource(func(context.Context) (string, error) { panic("no key") }))
	assert.PanicsWithValue(t, "no key", func() { _, _ = client.Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent) })
	require.Len(t, d.calls, 1)
	require.Len(t, d.calls[0].end, 1)
	assert.EqualError(t, d.calls[0].end[0].Err, "payvault: webhooks.add_event: panic (outcome unknown)")
	assert.Equal(t, payvault.Unknown, d.calls[0].end[0].Delivery)
}

// TestLogger_panic: also a logger that does not want Debug records learns of it.
func TestLogger_panic(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var text strings.Builder
		logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))
		client := tableClient(t, "http://127.0.0.1:1", payvault.WithLogger(logger),
			payvault.WithKeySource(func(context.Context) (string, error) { panic("no key") }))
		assert.PanicsWithValue(t, "no key", func() { _, _ = client.Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent) })
		assert.Contains(t, text.String(), "level=ERROR")
		assert.Contains(t, text.String(), "webhooks.add_event: panic (outcome unknown)")
	}
}

// TestObserver_undecided: after an attempt with another status than 2xx or 4xx the operation may have been performed; attempt
// and call agree on it.
func TestObserver_undecided(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]payvault.Delivery{
		302: payvault.Unknown, 304: payvault.Unknown, 500: payvault.Unknown, 503: payvault.Unknown, 600: payvault.Unknown,
		400: payvault.Answered, 404: payvault.Answered, 429: payvault.Answered,
	} {
		var d diary
		rt := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ProtoMajor: 1}, nil
		})
		client := tableClient(t, "http://127.0.0.1", payvault.WithHTTPClient(&http.Client{Transport: rt}), payvault.WithObserver(d.observer()))
		_, err := client.Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent, payvault.WithAttempts(1))
		require.Error(t, err)
		assert.Equal(t, want, d.calls[0].attempts[0].Delivery, status)
		assert.Equal(t, want, d.calls[0].end[0].Delivery, status)
	}
}

func TestObserver_serverHasAPort(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://sandbox.example.com/v1": "sandbox.example.com:443",
		"http://localhost":               "localhost:80",
		"https://[::1]:8443":             "[::1]:8443",
	} {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tableClient(t, base, payvault.WithObserver(d.observer())).Webhooks.AddEvent(ctx, tableWebhook, tableEvent)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, want, d.calls[0].call.Server)
	}
}

func TestObserver_successAfterRetries(t *testing.T) {
	t.Parallel()
	srv, client, d := observed(t)
	inject(t, srv, payvaulttest.Fault{Operation: payvault.OpCustomersList, Kind: payvaulttest.DropBeforeCommit, Times: 1})
	inject(t, srv, payvaulttest.Fault{Operation: payvault.OpCustomersList, Kind: payvaulttest.RateLimit, Times: 1})
	_, err := client.Customers.List(t.Context(), nil)
	require.NoError(t, err)

	got := d.calls[0]
	require.Len(t, got.attempts, 3)
	for i, want := range []payvault.CallResult{
		{Attempts: 1, Delivery: payvault.Unknown, Err: got.attempts[0].Err},
		{StatusCode: 429, Attempts: 2, Delivery: payvault.Answered},
		{StatusCode: 200, Attempts: 3, Delivery: payvault.Answered},
	} {
		assert.Positive(t, got.attempts[i].Duration)
		want.Duration = got.attempts[i].Duration
		assert.Equal(t, want, got.attempts[i])
	}
	assert.Equal(t, "connection", got.attempts[0].ErrorClass())
	require.Len(t, got.end, 1)
	assert.GreaterOrEqual(t, got.end[0].Duration, got.attempts[0].Duration+got.attempts[1].Duration+got.attempts[2].Duration)
	assert.Equal(t, payvault.CallResult{StatusCode: 200, Code: "0", Attempts: 3, Delivery: payvault.Answered, Duration: got.end[0].Duration}, got.end[0])
}

func TestObserver_failure(t *testing.T) {
	t.Parallel()
	srv, client, d := observed(t)
	inject(t, srv, payvaulttest.Fault{Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1})
	err := client.Invoices.Send(t.Context(), "", nil)
	require.ErrorIs(t, err, payvault.ErrInvalidRequest)
	err = client.Invoices.Send(t.Context(), srv.Invoices.Seed(payvaulttest.Invoice{}).ID, &payvault.InvoiceSendRequest{})
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)

	assert.Empty(t, d.calls[0].attempts, "it was not sent")
	local, lost := d.calls[0].end[0], d.calls[1].end[0]
	assert.Equal(t, "invalid_request", local.ErrorClass())
	assert.Equal(t, payvault.NotSent, local.Delivery)
	assert.Zero(t, local.Attempts)
	assert.Same(t, err, lost.Err, "what the caller gets")
	assert.Equal(t, payvault.Unknown, lost.Delivery)
	assert.Equal(t, 1, lost.Attempts)
}

// TestObserver_code shows the result code of each kind of answer.
func TestObserver_code(t *testing.T) {
	t.Parallel()
	srv, client, d := observed(t)
	ctx := t.Context()
	_, err := client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"})
	require.NoError(t, err)
	_, err = client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{CardNumber: payvault.NewSecret("1"), ExpDate: "1230"})
	require.ErrorIs(t, err, payvault.ErrRejected)
	_, err = client.Webhooks.AddEvent(ctx, srv.Webhooks.Seed(payvaulttest.Webhook{}).ID, payvault.EventTransactionStatusUpdated)
	require.NoError(t, err)
	for i, want := range []string{"000", "400", "0"} {
		assert.Equal(t, want, d.calls[i].end[0].Code)
	}
}

// TestObserver_validation: an application that does not pass is a success with code 2, whatever the status is.
func TestObserver_validation(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusUnprocessableEntity} {
		var d diary
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			say(w, status, `{"code":2,"message":"Request validation failed","data":{"tax_id":["is required"]}}`)
		})
		_, err := tableClient(t, server.URL, payvault.WithObserver(d.observer())).Applications.Validate(t.Context(), tableApplication)
		require.NoError(t, err)
		assert.Equal(t, "2", d.calls[0].end[0].Code)
		assert.NoError(t, d.calls[0].end[0].Err)
	}
}

// TestObserver_requestsGetTheContext: a transport that traces sees the span of the call, and so does the key source.
func TestObserver_requestsGetTheContext(t *testing.T) {
	t.Parallel()
	var d diary
	seen := 0
	look := func(ctx context.Context) {
		if d.entry(ctx) != nil {
			seen++
		}
	}
	client := tableClient(t, "http://127.0.0.1", payvault.WithObserver(d.observer()),
		payvault.WithKeySource(func(ctx context.Context) (string, error) { look(ctx); return apiKey, nil }),
		payvault.WithHTTPClient(&http.Client{Transport: doFunc(func(r *http.Request) (*http.Response, error) {
			look(r.Context())
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"code":0,"data":{}}`))}, nil
		})}))
	_, err := client.Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent)
	require.NoError(t, err)
	assert.Equal(t, 2, seen)
}

type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestObserver_severalInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) payvault.Observer {
		return payvault.Observer{
			Start: func(ctx context.Context, _ payvault.CallInfo) context.Context {
				order = append(order, "start "+name)
				return ctx
			},
			Attempt: func(context.Context, payvault.CallInfo, payvault.CallResult) { order = append(order, "attempt "+name) },
			End:     func(context.Context, payvault.CallInfo, payvault.CallResult) { order = append(order, "end "+name) },
		}
	}
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	client := srv.Client(payvault.WithObserver(note("1")), payvault.WithObserver(payvault.Observer{}), payvault.WithObserver(note("2")))
	_, err := client.Customers.List(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"start 1", "start 2", "attempt 1", "attempt 2", "end 1", "end 2"}, order)
}

func TestObserver_pagesBatchesAndGoroutines(t *testing.T) {
	t.Parallel()
	srv, client, d := observed(t)
	together(func() { _, _ = client.Customers.List(t.Context(), nil) })
	assert.Len(t, d.calls, callers)
	for batch := range client.AccountUpdater.SubmitAll(t.Context(), func(yield func(payvault.AccountUpdaterCard) bool) {
		for range 2*payvault.MaxAccountUpdaterCards + 1 {
			if !yield(payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}) {
				return
			}
		}
	}, nil) {
		require.NoError(t, batch.Err)
	}
	assert.Len(t, d.calls, callers+3)
	assert.Equal(t, 3, srv.Commits(payvault.OpAccountUpdaterSubmit))
}

// TestObserver_nilContext: there is no context to start from, and nothing to tell.
func TestObserver_nilContext(t *testing.T) {
	t.Parallel()
	_, client, d := observed(t)
	var none context.Context
	_, err := client.Customers.List(none, nil)
	require.ErrorIs(t, err, payvault.ErrInvalidRequest)
	assert.Empty(t, d.calls)
}

// TestObserver_attemptShowsNothing: a transport may put the URL into its error.
func TestObserver_attemptShowsNothing(t *testing.T) {
	t.Parallel()
	var d diary
	own := errors.New("broken by " + canary.Secret)
	client := tableClient(t, "http://127.0.0.1", payvault.WithObserver(d.observer()), impatient(1),
		payvault.WithHTTPClient(&http.Client{Transport: doFunc(func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: own}
		})}))
	_, err := client.Webhooks.AddEvent(t.Context(), canary.Secret, tableEvent)
	require.Error(t, err)
	attempt := d.calls[0].attempts[0]
	require.ErrorIs(t, attempt.Err, own)
	assertSilent(t, fmt.Sprintf("%+v %#v", attempt, d.calls[0].call), "attempt", canary.Forms(canary.Secret))
}

func TestCallResult_ErrorClass(t *testing.T) {
	t.Parallel()
	_, badKey := tableClient(t, "http://127.0.0.1", payvault.WithKeySource(func(context.Context) (string, error) {
		return "", errors.New("vault is sealed")
	})).Customers.List(t.Context(), nil)
	_, forMerchant := tableClient(t, "http://127.0.0.1").ForMerchant(1).AccountUpdater.Submit(t.Context(), minimalCards())
	tests := map[string]payvault.CallResult{
		"":                       {StatusCode: http.StatusServiceUnavailable},
		"invalid_request":        {Err: fmt.Errorf("x: %w", payvault.ErrInvalidRequest)},
		"merchant_not_supported": {Err: forMerchant},
		"canceled":               {Err: context.Canceled},
		"timeout":                {Err: context.DeadlineExceeded},
		"rejected":               {StatusCode: 400, Err: &payvault.Error{StatusCode: 400, Code: "7"}},
		"status":                 {StatusCode: 503, Err: &payvault.Error{StatusCode: 503}},
		"response_too_large":     {StatusCode: 200, Err: payvault.ErrResponseTooLarge},
		"malformed_response":     {StatusCode: 200, Err: payvault.ErrMalformedResponse},
		"no_key":                 {Err: badKey},
		"certificate":            {Err: certificateError(t)},
		"dns":                    {Err: &net.OpError{Err: &net.DNSError{IsNotFound: true}}},
		"connection":             {Err: io.ErrUnexpectedEOF},
	}
	for want, result := range tests {
		assert.Equal(t, want, result.ErrorClass())
	}
	assert.Equal(t, "timeout", payvault.CallResult{Err: &net.OpError{Err: &net.DNSError{IsTimeout: true}}}.ErrorClass())
}

// certificateError is that of a server whose certificate nobody trusts.
func certificateError(t *testing.T) error {
	t.Helper()
	srv := payvaulttest.NewServer(payvaulttest.WithTLS())
	t.Cleanup(srv.Close)
	client, err := payvault.NewClient(srv.URL, apiKey)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	_, err = client.Customers.List(t.Context(), nil)
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	require.True(t, ok, "%v", err)
	return err
}

// BenchmarkObserver shows what watching costs: nothing if nobody does.
func BenchmarkObserver(b *testing.B) {
	for name, opts := range map[string][]payvault.Option{
		"none":    nil,
		"present": {payvault.WithObserver((&diary{}).observer())},
	} {
		b.Run(name, func(b *testing.B) {
			opts = append(opts, payvault.WithHTTPClient(&http.Client{Transport: doFunc(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"code":0,"data":{}}`))}, nil
			})}))
			client := tableClient(b, "http://127.0.0.1", opts...)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = client.Webhooks.AddEvent(b.Context(), tableWebhook, tableEvent)
			}
		})
	}
}

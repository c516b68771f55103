package payvault_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
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
	return srv, srv.Client(payvault.WithObserver(d.observer()), service.Impatient(3)), &d
}

// inject makes requests fail as the fault says.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) {
	t.Helper()
	_, err := srv.Inject(fault)
	require.NoError(t, err)
}

func TestObserver_callInfo(t *testing.T) {
	t.Parallel()
	server := service.Answer(t, http.StatusTeapot, "")
	for _, c := range calls.All() {
		var d diary
		client := service.Client(t, server.URL+service.BasePath, payvault.WithObserver(d.observer()))
		_, err := c.Do(t.Context(), client, calls.Documented(), c.Full)
		require.Error(t, err)
		require.Len(t, d.calls, 1, c.Name)
		want := payvault.CallInfo{Op: c.Op, Method: c.Method, Path: c.Path, Server: strings.TrimPrefix(server.URL, "http://")}
		assert.Equal(t, want, d.calls[0].call)
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
	client := service.Client(t, service.Nowhere, payvault.WithObserver(d.observer()),
		payvault.WithKeySource(func(context.Context) (string, error) { panic("no key") }))
	assert.PanicsWithValue(t, "no key", func() { _, _ = client.Webhooks.AddEvent(t.Context(), "w", "e") })
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
		client := service.Client(t, service.Nowhere, payvault.WithLogger(logger),
			payvault.WithKeySource(func(context.Context) (string, error) { panic("no key") }))
		assert.PanicsWithValue(t, "no key", func() { _, _ = client.Webhooks.AddEvent(t.Context(), "w", "e") })
		assert.Contains(t, text.String(), "level=ERROR")
		assert.Contains(t, text.String(), "webhooks.add_event: panic (outcome unknown)")
	}
}

// TestObserver_undecided: after an attempt with another status than 2xx or 4xx the operation may have been performed;
// attempt and call agree on it.
func TestObserver_undecided(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]payvault.Delivery{
		302: payvault.Unknown, 304: payvault.Unknown, 500: payvault.Unknown, 503: payvault.Unknown, 600: payvault.Unknown,
		400: payvault.Answered, 404: payvault.Answered, 429: payvault.Answered,
	} {
		var d diary
		rt := service.RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")),
				ProtoMajor: 1,
			}, nil
		})
		client := service.Client(t, "http://127.0.0.1", service.Over(rt), payvault.WithObserver(d.observer()))
		_, err := client.Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithAttempts(1))
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
		_, err := service.Client(t, base, payvault.WithObserver(d.observer())).Webhooks.AddEvent(ctx, "w", "e")
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
	assert.GreaterOrEqual(t, got.end[0].Duration,
		got.attempts[0].Duration+got.attempts[1].Duration+got.attempts[2].Duration)
	assert.Equal(t, payvault.CallResult{
		StatusCode: 200, Code: "0", Attempts: 3, Delivery: payvault.Answered,
		Duration: got.end[0].Duration,
	}, got.end[0])
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
	_, err := client.Tokens.Tokenize(ctx,
		&payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"})
	require.NoError(t, err)
	_, err = client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{CardNumber: payvault.NewSecret("1"), ExpDate: "1230"})
	require.ErrorIs(t, err, payvault.ErrRejected)
	_, err = client.Webhooks.AddEvent(ctx, srv.Webhooks.Seed(payvaulttest.Webhook{}).ID,
		payvault.EventTransactionStatusUpdated)
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
		server := service.Answer(t, status, `{"code":2,"message":"failed","data":{"tax_id":["is required"]}}`)
		_, err := service.Client(t, server.URL, payvault.WithObserver(d.observer())).Applications.Validate(t.Context(), 1)
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
	client := service.Client(t, "http://127.0.0.1", payvault.WithObserver(d.observer()),
		payvault.WithKeySource(func(ctx context.Context) (string, error) { look(ctx); return service.APIKey, nil }),
		service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
			look(r.Context())
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"code":0,"data":{}}`))}, nil
		})))
	_, err := client.Webhooks.AddEvent(t.Context(), "w", "e")
	require.NoError(t, err)
	assert.Equal(t, 2, seen)
}

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
	client := srv.Client(payvault.WithObserver(note("1")), payvault.WithObserver(payvault.Observer{}),
		payvault.WithObserver(note("2")))
	_, err := client.Customers.List(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"start 1", "start 2", "attempt 1", "attempt 2", "end 1", "end 2"}, order)
}

func TestObserver_pagesBatchesAndGoroutines(t *testing.T) {
	t.Parallel()
	srv, client, d := observed(t)
	service.Together(func() { _, _ = client.Customers.List(t.Context(), nil) })
	assert.Len(t, d.calls, service.Callers)
	for batch := range client.AccountUpdater.SubmitAll(t.Context(), func(yield func(payvault.AccountUpdaterCard) bool) {
		for range 2*payvault.MaxAccountUpdaterCards + 1 {
			if !yield(payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}) {
				return
			}
		}
	}, nil) {
		require.NoError(t, batch.Err)
	}
	assert.Len(t, d.calls, service.Callers+3)
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
	client := service.Client(t, "http://127.0.0.1", payvault.WithObserver(d.observer()), service.Impatient(1),
		service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: own}
		})))
	_, err := client.Webhooks.AddEvent(t.Context(), canary.Secret, "e")
	require.Error(t, err)
	attempt := d.calls[0].attempts[0]
	require.ErrorIs(t, attempt.Err, own)
	assert.Empty(t, canary.Find(fmt.Sprintf("%+v %#v", attempt, d.calls[0].call), canary.Forms(canary.Secret)))
}

func TestCallResult_ErrorClass(t *testing.T) {
	t.Parallel()
	_, badKey := service.Client(t, "http://127.0.0.1", payvault.WithKeySource(func(context.Context) (string, error) {
		return "", errors.New("vault is sealed")
	})).Customers.List(t.Context(), nil)
	forMerchant := service.Client(t, "http://127.0.0.1").ForMerchant(1).Invoices.Send(t.Context(), "i", nil)
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
	client, err := payvault.NewClient(srv.URL, service.APIKey)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	_, err = client.Customers.List(t.Context(), nil)
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	require.True(t, ok, "%v", err)
	return err
}

// record is a log record but for its time, its duration and the text of its error.
type record map[string]any

// logged makes one call of an emulator with a logger and returns the records from a level on.
func logged(
	t *testing.T, from slog.Level, fault *payvaulttest.Fault, call func(ctx context.Context, c *payvault.Client) error,
) []record {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	if fault != nil {
		inject(t, srv, *fault)
	}
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: from}))
	_ = call(t.Context(), srv.Client(payvault.WithLogger(logger), service.Impatient(2)))
	var records []record
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var r record
		require.NoError(t, decoder.Decode(&r))
		assert.Positive(t, r["duration"])
		assert.Equal(t, r["error_class"] == nil, r["error"] == nil)
		for _, key := range []string{slog.TimeKey, "duration", "error"} {
			delete(r, key)
		}
		records = append(records, r)
	}
	return records
}

// entry is a record of one attempt or call.
func entry(
	level, message string, op payvault.Operation, status int, code string, attempts int, delivery string,
) record {
	return record{
		slog.LevelKey: level, slog.MessageKey: message, "operation": string(op), "status": float64(status), "code": code,
		"attempts": float64(attempts), "delivery": delivery,
	}
}

func (r record) with(class string) record {
	r["error_class"] = class
	return r
}

func list(ctx context.Context, c *payvault.Client) error {
	_, err := c.Customers.List(ctx, nil)
	return err
}

func send(ctx context.Context, c *payvault.Client) error {
	_, err := c.AccountUpdater.Submit(ctx,
		[]payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}})
	return err
}

const (
	attemptLogged = "payvault attempt"
	callLogged    = "payvault call"
)

func TestLogger(t *testing.T) {
	t.Parallel()
	const listing, submission = payvault.OpCustomersList, payvault.OpAccountUpdaterSubmit
	tests := map[string]struct {
		fault *payvaulttest.Fault
		call  func(ctx context.Context, c *payvault.Client) error
		want  []record
	}{
		"success": {nil, list, []record{
			entry("DEBUG", attemptLogged, listing, 200, "", 1, "answered"),
			entry("DEBUG", callLogged, listing, 200, "0", 1, "answered"),
		}},
		"success after a retry": {
			&payvaulttest.Fault{Operation: listing, Kind: payvaulttest.DropBeforeCommit, Times: 1}, list,
			[]record{
				entry("DEBUG", attemptLogged, listing, 0, "", 1, "unknown").with("connection"),
				entry("DEBUG", attemptLogged, listing, 200, "", 2, "answered"),
				entry("DEBUG", callLogged, listing, 200, "0", 2, "answered"),
			},
		},
		"turned away": {&payvaulttest.Fault{Kind: payvaulttest.RateLimit}, send, []record{
			entry("DEBUG", attemptLogged, submission, 429, "", 1, "answered"),
			entry("DEBUG", attemptLogged, submission, 429, "", 2, "answered"),
			entry("WARN", callLogged, submission, 429, "429", 2, "answered").with("rejected"),
		}},
		"rejected": {
			&payvaulttest.Fault{Operation: submission, Kind: payvaulttest.OtherCode, Code: 7}, send,
			[]record{
				entry("DEBUG", attemptLogged, submission, 200, "", 1, "answered"),
				entry("WARN", callLogged, submission, 200, "7", 1, "answered").with("rejected"),
			},
		},
		"outcome unknown": {
			&payvaulttest.Fault{Operation: submission, Kind: payvaulttest.DropAfterCommit}, send,
			[]record{
				entry("DEBUG", attemptLogged, submission, 0, "", 1, "unknown").with("connection"),
				entry("ERROR", callLogged, submission, 0, "", 1, "unknown").with("connection"),
			},
		},
		"not sent": {nil, func(ctx context.Context, c *payvault.Client) error {
			_, err := c.AccountUpdater.Submit(ctx, nil)
			return err
		}, []record{
			entry("WARN", callLogged, submission, 0, "", 0, "not sent").with("invalid_request"),
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, logged(t, slog.LevelDebug, test.fault, test.call))
		})
	}
}

// TestLogger_levels: at Info nothing is logged of what goes well.
func TestLogger_levels(t *testing.T) {
	t.Parallel()
	assert.Empty(t, logged(t, slog.LevelInfo, nil, list))
	lost := &payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit}
	assert.Len(t, logged(t, slog.LevelInfo, lost, send), 1)
	assert.Empty(t, logged(t, slog.LevelError, &payvaulttest.Fault{Kind: payvaulttest.RateLimit}, send))
}

// TestLogger_seesTheContextOfObservers: a handler that adds the IDs of a trace finds them.
func TestLogger_seesTheContextOfObservers(t *testing.T) {
	t.Parallel()
	var d diary
	seen := &contextHandler{Handler: slog.DiscardHandler, diary: &d}
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	client := srv.Client(payvault.WithObserver(d.observer()), payvault.WithLogger(slog.New(seen)))
	require.NoError(t, list(t.Context(), client))
	assert.Equal(t, 2, seen.open, "attempt and call, both while the observer's call is open")
}

// contextHandler counts records of calls that a diary knows and whose end it has not been told.
type contextHandler struct {
	slog.Handler

	diary *diary
	open  int
}

func (*contextHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *contextHandler) Handle(ctx context.Context, _ slog.Record) error {
	if entry := h.diary.entry(ctx); entry != nil && len(entry.end) == 0 {
		h.open++
	}
	return nil
}

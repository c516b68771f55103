package payvault_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func TestNewClient_baseURL(t *testing.T) {
	t.Parallel()
	for want, refused := range map[string][]string{
		"is not an absolute http or https URL": {
			"", "sandbox.example.com", "/path", "//sandbox.example.com", "https:", "https://", "https:///path", "https://:443",
			"https:sandbox.example.com", "ftp://sandbox.example.com", "ws://sandbox.example.com", "file:///etc/passwd",
			"unix:/run/x.sock",
		},
		"has user information": {
			"https://hunter2@sandbox.example.com", "https://user:hunter2@sandbox.example.com", "https://@sandbox.example.com",
		},
		"has a query or a fragment": {
			"https://sandbox.example.com?hunter2", "https://sandbox.example.com/?", "https://sandbox.example.com#hunter2",
			"https://sandbox.example.com/#",
		},
		"is plain http to a host that is not loopback; see WithInsecureHTTP": {
			"http://sandbox.example.com", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com",
			"http://[2001:db8::1]", "http://0.0.0.0", "HTTP://sandbox.example.com",
		},
		"has a path segment that is empty or a dot segment": {
			"https://sandbox.example.com//", "https://sandbox.example.com//a", "https://sandbox.example.com/a//",
			"https://sandbox.example.com/a//b", "https://sandbox.example.com/.", "https://sandbox.example.com/a/../b",
			"https://sandbox.example.com/%2e%2E/b",
		},
		"is not a URL": {
			"https://sandbox.example.com/%", "https://sandbox.example.com:port", "https://[::1",
			"https://sandbox.example.com/a b\x00",
			"https://user:hunter2@sandbox.example.com/\r\n", " https://sandbox.example.com",
		},
	} {
		for _, text := range refused {
			client, err := payvault.NewClient(text, service.APIKey)
			assert.Nil(t, client)
			service.AssertInvalid(t, err, payvault.OpNewClient, service.Fields{"base_url": {want}})
			service.AssertHidden(t, err, "hunter2", service.APIKey)
			if len(text) > 8 {
				service.AssertHidden(t, err, text)
			}
		}
	}
	for _, text := range []string{
		"https://sandbox.example.com", "https://sandbox.example.com/", "https://sandbox.example.com:8443/a/b/",
		"HTTPS://SANDBOX.example.com", "https://10.0.0.1", "http://localhost:8080", "http://127.0.0.1", "http://127.8.8.8/x",
		"http://[::1]:80/", "https://sandbox.example.com/a%2Fb", "https://sandbox.example.com/a%20b",
	} {
		_, err := payvault.NewClient(text, service.APIKey)
		assert.NoError(t, err, text)
	}
	_, err := payvault.NewClient("http://sandbox.example.com", service.APIKey, payvault.WithInsecureHTTP())
	assert.NoError(t, err)
}

func TestNewClient_key(t *testing.T) {
	t.Parallel()
	for want, refused := range map[string][]string{
		"is empty": {"", "  ", "\t\n"},
		"contains a control character": {
			"hunter2\n", "hunter2\r\nX: y", "hunter2\x00", "\u0085hunter2", "hunter2\x7f",
		},
	} {
		for _, key := range refused {
			client, err := payvault.NewClient("https://sandbox.example.com", key)
			assert.Nil(t, client)
			service.AssertInvalid(t, err, payvault.OpNewClient, service.Fields{"api_key": {want}})
			service.AssertHidden(t, err, "hunter2")
		}
	}
	for _, key := range []string{"k", "with:colon", "with space", "ünïcödé", strings.Repeat("k", 5000)} {
		server := service.Answer(t, 200, `{"code":0,"data":{}}`)
		client, err := payvault.NewClient(server.URL, key)
		require.NoError(t, err)
		t.Cleanup(client.CloseIdleConnections)
		_, err = client.Applications.Validate(t.Context(), 1)
		require.NoError(t, err)
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+key))
		assert.Equal(t, []string{want}, server.Seen()[0].Header.Values("Authorization"), "an empty user part, and the key")
	}
}

func TestNewClient_options(t *testing.T) {
	t.Parallel()
	policy := payvault.WithRetryPolicy
	for _, test := range []struct {
		name, want string
		option     payvault.Option
	}{
		{"WithHTTPClient", "is nil", payvault.WithHTTPClient(nil)},
		{"WithRetryPolicy", "has a negative field", policy(payvault.RetryPolicy{MaxAttempts: -1})},
		{"WithRetryPolicy", "has a negative field", policy(payvault.RetryPolicy{MinBackoff: -1})},
		{"WithRetryPolicy", "has a negative field", policy(payvault.RetryPolicy{MaxBackoff: -1})},
		{"WithRetryPolicy", "has a negative field", policy(payvault.RetryPolicy{MaxRetryAfter: -1})},
		{"WithTimeout", "is not positive", payvault.WithTimeout(0)},
		{"WithTimeout", "is not positive", payvault.WithTimeout(-1)},
		{"WithKeySource", "is nil", payvault.WithKeySource(nil)},
		{"WithMerchantID", "is not positive", payvault.WithMerchantID(0)},
		{"WithVendorID", "is not positive", payvault.WithVendorID(-1)},
		{"WithLogger", "is nil", payvault.WithLogger(nil)},
		{"WithUserAgent", "contains a control character", payvault.WithUserAgent("acme\r\nX: y")},
		{"WithMaxResponseBytes", "is not positive", payvault.WithMaxResponseBytes(0)},
	} {
		client, err := payvault.NewClient("https://sandbox.example.com", service.APIKey, test.option)
		assert.Nil(t, client)
		service.AssertInvalid(t, err, payvault.OpNewClient, service.Fields{test.name: {test.want}})
	}
	_, err := payvault.NewClient("", "", payvault.WithTimeout(0), nil, payvault.WithLogger(nil))
	service.AssertInvalid(t, err, payvault.OpNewClient, service.Fields{
		"base_url": {"is not an absolute http or https URL"}, "api_key": {"is empty"},
		"WithTimeout": {"is not positive"}, "WithLogger": {"is nil"},
	})
	_, err = payvault.NewClient("https://sandbox.example.com", service.APIKey, nil)
	assert.NoError(t, err, "a nil option is none")
}

// TestNewClient_noIO: nothing is dialed, asked or read before the first call.
func TestNewClient_noIO(t *testing.T) {
	t.Parallel()
	client, err := payvault.NewClient("https://sandbox.example.com", "",
		payvault.WithKeySource(func(context.Context) (string, error) {
			t.Error("the key source was asked")
			return "", nil
		}),
		service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
			t.Error("a request was sent")
			return nil, errShutdown
		})))
	require.NoError(t, err, "the key may be empty if there is a source")
	client.ForMerchant(1).CloseIdleConnections()
}

func TestClient_pathPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"": "", "/": "", "/gateway": "/gateway", "/gateway/v1/": "/gateway/v1", "/a%2Fb": "/a%2Fb", "/a%2Fb%2F": "/a%2Fb%2F",
		"/caf%C3%A9": "/caf%C3%A9", "/with%20space": "/with%20space", "/100%25": "/100%25", "/a;b=c": "/a;b=c",
	} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			server := service.Answer(t, 200, `{"code":0,"data":{}}`)
			require.NoError(t, service.Client(t, server.URL+prefix).Invoices.Send(t.Context(), "a/b", nil))
			assert.Equal(t, want+"/platform/invoice/a%2Fb/send", server.Seen()[0].Path)
		})
	}
}

func TestWithHTTPClient(t *testing.T) {
	t.Parallel()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	pool := &http.Transport{}
	own := &http.Client{Transport: pool, Timeout: 0, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		t.Error("a redirect was considered")
		return nil
	}}
	before := *own
	server := service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Cookies(), "cookies are not kept")
		w.Header().Set("Set-Cookie", "session=1")
		if n == 1 {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		service.Say(w, 200, `{"code":0,"data":{}}`)
	})
	client := service.Client(t, server.URL, payvault.WithHTTPClient(own))
	_, err = client.Applications.Validate(t.Context(), 1)
	require.ErrorIs(t, err, payvault.ErrMalformedResponse)
	_, err = client.Applications.Validate(t.Context(), 1)
	require.NoError(t, err)
	assert.Len(t, server.Seen(), 2)
	assert.Empty(t, jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(server.URL, "http://"), Path: "/"}))
	assert.Same(t, pool, own.Transport)
	assert.Equal(t, [3]any{before.Timeout, before.Jar, before.Transport}, [3]any{own.Timeout, own.Jar, own.Transport},
		"the caller's client is unchanged")
	assert.NotNil(t, own.CheckRedirect)
	// Nor does it matter what the caller does to it later.
	own.Transport, own.Timeout = service.RoundTripper(func(*http.Request) (*http.Response, error) {
		return nil,
			errShutdown
	}), 1
	_, err = client.Applications.Validate(t.Context(), 1)
	require.NoError(t, err)
	client.CloseIdleConnections()
}

func TestWithUserAgent(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]string{
		"acme-billing/2.1": `^acme-billing/2\.1 payvault-go/` + payvault.Version + ` \(go[^;]+; \w+\)$`,
		"":                 `^payvault-go/` + payvault.Version + ` \(go[^;]+; \w+\)$`,
	} {
		server := service.Answer(t, 200, `{"code":0,"data":{}}`)
		_, err := service.Client(t, server.URL, payvault.WithUserAgent(product)).Applications.Validate(t.Context(), 1)
		require.NoError(t, err)
		assert.Regexp(t, want, server.Seen()[0].Header.Get("User-Agent"))
	}
}

func TestWithHeader(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		service.Say(w, 200, `{"code":0,"data":{}}`)
	})
	client := service.Client(t, server.URL)
	opts := []payvault.CallOption{
		payvault.WithHeader("x-request-id", "7"), payvault.WithHeader("X-Tag", "a"),
		payvault.WithHeader("X-Tag", "b\tc"), nil,
	}
	_, err := client.Webhooks.AddEvent(t.Context(), "w", "e", opts...)
	require.NoError(t, err)
	_, err = client.Webhooks.AddEvent(t.Context(), "w", "e")
	require.NoError(t, err)
	requests := server.Seen()
	for _, r := range requests[:2] { // of each attempt
		assert.Equal(t, []string{"7"}, r.Header.Values("X-Request-Id"))
		assert.Equal(t, []string{"a", "b\tc"}, r.Header.Values("X-Tag"))
		assert.Equal(t, []string{service.BasicToken}, r.Header.Values("Authorization"))
	}
	assert.Empty(t, requests[2].Header.Get("X-Tag"), "of this call only")
}

func TestWithHeader_refused(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere)
	refused := [][2]string{
		{"X-A", "a\r\nX-B: hunter2"},
		{"X-A", "hunter2\n"},
		{"X-A", "\x00hunter2"},
		{"X-A\r\nX-B", "hunter2"},
		{"X A", "x"},
		{"", "x"},
		{"X-É", "x"},
		{"X:", "x"},
	}
	for name := range strings.FieldsSeq(`Authorization authorization AUTHORIZATION Host host Content-Type content-length
		Content-Encoding Content-Anything Accept Accept-Encoding User-Agent Connection Transfer-Encoding Te Trailer Upgrade
		Expect Proxy-Authorization Proxy-Connection Keep-Alive Idempotency-Key idempotency-key X-Idempotency-Key`) {
		refused = append(refused, [2]string{name, "hunter2"})
	}
	for _, header := range refused {
		_, err := client.Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithHeader(header[0], header[1]))
		require.ErrorIs(t, err, payvault.ErrInvalidRequest, "%q", header)
		assert.Len(t, service.AsError(t, err).Fields["WithHeader"], 1)
		service.AssertHidden(t, err, "hunter2")
	}
}

func TestWithAttempts(t *testing.T) {
	t.Parallel()
	for attempts, policy := range map[int]int{1: 4, 2: 1, 7: 3} {
		server := service.Answer(t, http.StatusTooManyRequests, "")
		var raw payvault.Response
		_, err := service.Client(t, server.URL, service.Impatient(policy)).Webhooks.AddEvent(t.Context(), "w", "e",
			payvault.WithAttempts(attempts), payvault.WithResponse(&raw))
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Len(t, server.Seen(), attempts)
		assert.Equal(t, attempts, raw.Attempts)
	}
	_, err := service.Client(t, service.Nowhere).Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithAttempts(0))
	service.AssertInvalid(t, err, payvault.OpWebhooksAddEvent, service.Fields{"WithAttempts": {"is not positive"}})
	server := service.Answer(t, http.StatusTooManyRequests, "")
	_, err = service.Client(t, server.URL).Webhooks.AddEvent(t.Context(), "w", "e")
	require.Error(t, err)
	assert.Len(t, server.Seen(), 4, "the default")
}

func TestWithResponse(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Trace", "t1")
		service.Say(w, 201, `{"code":0,"unknown":[1.50]}`)
	})
	raw := payvault.Response{StatusCode: 99, Body: []byte("of the call before")}
	require.NoError(t, service.Client(t, server.URL).Invoices.Send(t.Context(), "i", nil, payvault.WithResponse(&raw)))
	assert.Equal(t, 201, raw.StatusCode)
	assert.Equal(t, "t1", raw.Header.Get("X-Trace"))
	assert.Equal(t, `{"code":0,"unknown":[1.50]}`, string(raw.Body), "nothing that the service sent is out of reach")
	assert.Equal(t, 1, raw.Attempts)
	assert.Positive(t, raw.Duration)

	require.Error(t, service.Client(t, server.URL).Invoices.Send(t.Context(), "", nil, payvault.WithResponse(&raw)))
	raw.Duration = 0
	assert.Equal(t, payvault.Response{}, raw, "a request that fails a local check has no answer")
}

func TestCall(t *testing.T) {
	t.Parallel()
	server := service.Answer(t, 200, `{"code":0,"message":"Success","data":{"invoice_id":"I1","amount":12.50}}`)
	var out struct {
		Message string
		Data    struct {
			InvoiceID payvault.InvoiceID `json:"invoice_id"`
			Amount    payvault.Amount    `json:"amount"`
		}
	}
	request := payvault.Request{
		Method: "POST", Path: []string{"platform", "invoice", "add"},
		Query: url.Values{"merchant_id": {"7"}, "a b": {"c,d", "é&="}},
		Body:  map[string]any{"amount": 1},
	}
	require.NoError(t, service.Client(t, server.URL+service.BasePath).Call(t.Context(), request, &out))
	assert.Equal(t, "Success I1 12.50", fmt.Sprint(out.Message, " ", out.Data.InvoiceID, " ", out.Data.Amount))
	got := server.Seen()[0]
	assert.Equal(t, "POST "+service.BasePath+"/platform/invoice/add", got.Method+" "+got.Path)
	assert.Equal(t, request.Query, got.Query)
	assert.JSONEq(t, `{"amount":1}`, string(got.Body))
	assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
	assert.Equal(t, "application/json", got.Header.Get("Accept"))
	assert.Equal(t, service.BasicToken, got.Header.Get("Authorization"))
	assert.False(t, got.Chunked)
}

// TestCall_withoutBody: no body, no Content-Type, and nothing that announces a body.
func TestCall_withoutBody(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, replay := range []bool{false, true} {
			server := service.Answer(t, 200, `{"code":0,"data":{}}`)
			require.NoError(t, service.Client(t, server.URL).Call(t.Context(),
				payvault.Request{Method: method, Path: []string{"x"}, Replay: replay}, nil))
			got := server.Seen()[0]
			assert.Equal(t, method, got.Method)
			assert.Empty(t, got.Body)
			assert.False(t, got.Chunked, method)
			assert.Empty(t, got.Header.Get("Content-Type"))
			if length := got.Header.Get("Content-Length"); length != "" {
				assert.Equal(t, "0", length)
			}
		}
	}
}

func TestCall_envelopes(t *testing.T) {
	t.Parallel()
	malformed := []error{payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown}
	for _, test := range []struct {
		status     int
		body, code string
		kinds      []error // none of a success
	}{
		{200, `{"code":0}`, "", nil},
		{200, `{"code":"0","data":[]}`, "", nil},
		{200, `{"rcode":"000"}`, "", nil},
		{201, `{"rcode":"000","code":0}`, "", nil},
		{200, `{"code":7,"rcode":"000"}`, "7", []error{payvault.ErrRejected}},
		{200, `{"code":0,"rcode":"905"}`, "0", malformed}, // it contradicts itself
		{200, `{"rcode":"905","rmsg":"No"}`, "905", []error{payvault.ErrRejected}},
		{200, `{"code":2,"data":{"a":["b"]}}`, "2", []error{payvault.ErrRejected, payvault.ErrValidation}},
		{200, `{"message":"hello"}`, "", malformed},
		{200, `[]`, "", malformed},
		{204, ``, "", malformed},
		{404, `{"code":0}`, "0", []error{payvault.ErrNotFound}},
		{500, `{"code":0}`, "0", []error{payvault.ErrUnavailable, payvault.ErrOutcomeUnknown}},
	} {
		server := service.Answer(t, test.status, test.body)
		var out map[string]any
		err := service.Client(t, server.URL).Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}}, &out)
		if test.kinds == nil {
			require.NoError(t, err)
			assert.NotEmpty(t, out)
			continue
		}
		service.AssertMatches(t, err, test.kinds...)
		assert.Equal(t, payvault.OpCall, service.AsError(t, err).Op)
		assert.Equal(t, test.code, service.AsError(t, err).Code)
		assert.Nil(t, out, "a failure leaves the result alone")
	}
}

func TestCall_refused(t *testing.T) {
	t.Parallel()
	client, path := service.Client(t, service.Nowhere), []string{"x"}
	const noMethod, noPointer = "is not an HTTP method", "is not a pointer"
	for _, test := range []struct {
		request payvault.Request
		out     any
		want    service.Fields
	}{
		{payvault.Request{Path: path}, nil, service.Fields{"method": {noMethod}}},
		{payvault.Request{Method: "GET /x HTTP/1.1\r\nA:", Path: path}, nil, service.Fields{"method": {noMethod}}},
		{payvault.Request{Method: "CONNECT", Path: path}, nil, service.Fields{"method": {noMethod}}},
		{payvault.Request{Method: "GET"}, nil, service.Fields{"path": {"is required"}}},
		{
			payvault.Request{Method: "POST", Path: path, Body: math.NaN()},
			nil,
			service.Fields{"body": {"cannot be written as JSON: unsupported value: NaN"}},
		},
		{payvault.Request{Method: "GET", Path: path}, map[string]any{}, service.Fields{"out": {noPointer}}},
		{payvault.Request{Method: "GET", Path: path}, struct{}{}, service.Fields{"out": {noPointer}}},
		{payvault.Request{Method: "GET", Path: path}, (*int)(nil), service.Fields{"out": {noPointer}}},
		{payvault.Request{Path: []string{"", "x", ".."}}, 1, service.Fields{
			"method": {noMethod}, "out": {noPointer}, "path[0]": {calls.BadSegment}, "path[2]": {calls.BadSegment},
		}},
	} {
		service.AssertInvalid(t, client.Call(t.Context(), test.request, test.out), payvault.OpCall, test.want)
	}
	get := payvault.Request{Method: "GET", Path: path}
	var none context.Context
	service.AssertInvalid(t, client.Call(none, get, nil), payvault.OpCall, service.Fields{"context": {"is nil"}})
	err := client.ForMerchant(7).Call(t.Context(), get, nil)
	service.AssertError(t, err, payvault.Error{Op: payvault.OpCall, Delivery: payvault.NotSent},
		payvault.ErrMerchantNotSupported)
}

// TestCall_outOfAnotherShape: the request was performed, so the outcome is not lost but unknown.
func TestCall_outOfAnotherShape(t *testing.T) {
	t.Parallel()
	server := service.Answer(t, 200, `{"code":0,"data":"4111garbage1111"}`)
	var out struct{ Data int }
	err := service.Client(t, server.URL).Call(t.Context(), payvault.Request{Method: "POST", Path: []string{"x"}}, &out)
	service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown)
	service.AssertHidden(t, err, "4111garbage1111")
}

func TestCall_replay(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "OPTIONS", "TRACE"} {
		for replay, want := range map[bool]int{true: 4, false: 1} {
			server := service.Answer(t, 503, "")
			err := service.Client(t, server.URL).Call(t.Context(),
				payvault.Request{Method: method, Path: []string{"x"}, Replay: replay}, nil)
			require.ErrorIs(t, err, payvault.ErrUnavailable)
			assert.Len(t, server.Seen(), want, "%s: the caller's word counts, not the method", method)
			assert.Equal(t, replay, payvault.SafeToRetry(err))
		}
	}
}

// TestReplay_reusedConnection: net/http itself sends a request again when a connection that it has used before is
// closed instead of answered. That must not happen behind the back of the caller, who states what may be repeated.
func TestReplay_reusedConnection(t *testing.T) {
	t.Parallel()
	for _, r := range []payvault.Request{
		{Method: "GET"},
		{Method: "HEAD"},
		{Method: "OPTIONS"},
		{Method: "TRACE"},
		{Method: "GET", Body: 1},
		{Method: "OPTIONS", Body: 1},
		{Method: "POST"},
		{Method: "POST", Body: 1},
		{Method: "DELETE"},
	} {
		r.Path = []string{"x"}
		assertSentOnce(t, func(c *payvault.Client) error { return c.Call(t.Context(), r, nil) })
	}
}

// assertSentOnce makes a call on a connection that was used before and is closed when the request has come.
func assertSentOnce(t *testing.T, call func(c *payvault.Client) error) {
	t.Helper()
	var connections atomic.Int64
	server := &service.Server{}
	server.Server = service.Unstarted(t, func(w http.ResponseWriter, r *http.Request) {
		if server.Add(r) > 1 {
			panic(http.ErrAbortHandler)
		}
		service.Say(w, 200, `{"code":0}`)
	})
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := service.Client(t, server.URL, service.Impatient(1)) // so that only net/http could send it again
	require.NoError(t, client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"warm"}}, nil))
	require.Equal(t, payvault.Unknown, service.AsError(t, call(client)).Delivery)
	assert.Len(t, server.Seen(), 2, "sent once")
	assert.EqualValues(t, 1, connections.Load(), "on the connection that was used before")
}

// TestWithKeySource_rotation: each attempt asks, and a key that has changed is used at once. All else of the request is
// the same.
func TestWithKeySource_rotation(t *testing.T) {
	t.Parallel()
	for _, c := range calls.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			server := service.Observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				service.Say(w, 200, c.Answer())
			})
			var asked atomic.Int64
			type contextKey struct{}
			client := service.Client(t, server.URL, payvault.WithKeySource(func(ctx context.Context) (string, error) {
				assert.Equal(t, "value", ctx.Value(contextKey{}), "the context of the call")
				return "key-" + strconv.FormatInt(asked.Add(1), 10), nil
			}))
			_, err := c.Do(context.WithValue(t.Context(), contextKey{}, "value"), client, calls.Documented(), c.Full)
			require.NoError(t, err)
			requests := server.Seen()
			require.Len(t, requests, 2)
			for i, r := range requests {
				want := "Basic " + base64.StdEncoding.EncodeToString([]byte(":key-"+strconv.Itoa(i+1)))
				assert.Equal(t, []string{want}, r.Header.Values("Authorization"))
				r.Header.Del("Authorization")
			}
			assert.Equal(t, requests[0], requests[1])
		})
	}
}

// TestWithKeySource_failsLater: nothing more is sent, and what was sent before still counts.
func TestWithKeySource_failsLater(t *testing.T) {
	t.Parallel()
	errVault := errors.New("the vault is sealed")
	for status, want := range map[int]struct {
		delivery payvault.Delivery
		safe     bool
	}{429: {payvault.NotSent, true}, 503: {payvault.Unknown, true}} {
		server := service.Answer(t, status, "")
		var asked atomic.Int64
		client := service.Client(t, server.URL, payvault.WithKeySource(func(context.Context) (string, error) {
			if asked.Add(1) > 1 {
				return "", errVault
			}
			return service.APIKey, nil
		}))
		_, err := client.Applications.Validate(t.Context(), 1)
		require.ErrorIs(t, err, errVault)
		e := service.AsError(t, err)
		assert.Equal(t, want.delivery.String(), e.Delivery.String())
		assert.Equal(t, want.safe, payvault.SafeToRetry(err))
		assert.Equal(t, 2, e.Attempts)
		assert.Len(t, server.Seen(), 1)
		assert.EqualValues(t, 2, asked.Load())
	}
}

// TestWithKeySource_deadline: the source has the time of the attempt, and what it takes too long for was not sent.
func TestWithKeySource_deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		client := service.Client(t, "http://127.0.0.1", payvault.WithTimeout(time.Second), service.Impatient(2),
			service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, io.ErrUnexpectedEOF
			})),
			payvault.WithKeySource(func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return service.APIKey, nil // late
			}))
		_, err := client.Webhooks.AddEvent(t.Context(), "w", "e")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, service.AsError(t, err).Attempts, "a source that fails is not asked again")
		assert.Equal(t, payvault.NotSent, service.AsError(t, err).Delivery)
		assert.True(t, payvault.SafeToRetry(err))
		assert.Zero(t, sent)
	})
}

func TestClient_CloseIdleConnections(t *testing.T) {
	t.Parallel()
	server := service.Unstarted(t,
		func(w http.ResponseWriter, _ *http.Request) { service.Say(w, 200, `{"code":0,"data":{}}`) })
	closed := make(chan struct{}, 8)
	var opened atomic.Int64
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state { //nolint:exhaustive // only the ends count
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := service.Client(t, server.URL)
	other := client.ForMerchant(7)
	for range 3 {
		require.NoError(t, client.Invoices.Send(t.Context(), "i", nil))
		require.NoError(t, other.Payees.Delete(t.Context(), 1))
	}
	before := opened.Load()
	assert.Less(t, before, int64(3), "shared with the client of ForMerchant")
	other.CloseIdleConnections()
	for range before {
		<-closed
	}
	require.NoError(t, client.Invoices.Send(t.Context(), "i", nil), "the client can still be used")
	assert.Equal(t, before+1, opened.Load())
}

// TestClient_failureKeepsConnections: neither a failing call nor a bad answer closes the connections of other callers.
func TestClient_failureKeepsConnections(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"status 404 with a body": func(w http.ResponseWriter,
			_ *http.Request,
		) {
			service.Say(w, 404, strings.Repeat("x", 3000))
		},
		"status 503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"a redirect with a body": func(w http.ResponseWriter,
			r *http.Request,
		) {
			http.Redirect(w, r, "/x", http.StatusFound)
		},
		"200 without JSON": func(w http.ResponseWriter, _ *http.Request) { service.Say(w, 200, "<html>") },
		"a body of unknown size": func(w http.ResponseWriter,
			_ *http.Request,
		) {
			service.Say(w, 400, strings.Repeat("x", 5000))
		},
		"a success with the rest": func(w http.ResponseWriter, _ *http.Request) {
			service.Say(w, 200, `{"code":0,"data":{}}`+strings.Repeat(" ", 3000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			server := service.Unstarted(t, answer)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)
			client := service.Client(t, server.URL)
			for range 5 {
				_, _ = client.Webhooks.AddEvent(t.Context(), "w", "e")
				_, _ = client.Applications.Validate(t.Context(), 1)
			}
			assert.Less(t, opened.Load(), int64(4), "connections for ten calls and their repetitions")
		})
	}
}

// TestClient_concurrency shares a client, the requests and the options between 64 goroutines.
func TestClient_concurrency(t *testing.T) {
	t.Parallel()
	const goroutines = 64
	answers := map[string]string{}
	for _, o := range calls.Table() {
		answers[o.Method+calls.Documented().In(o.Path)] = o.Answer()
	}
	var failures atomic.Int64
	server := service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%5 == 0 {
			failures.Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		service.Say(w, 200, answers[r.Method+r.URL.Path])
	})
	client := service.Client(t, server.URL, service.Impatient(50))
	opts := []payvault.CallOption{payvault.WithHeader("X-Shared", "1"), payvault.WithReplay()}
	request := &payvault.CustomerCreateRequest{
		ID: "C1", FirmName: "Firm",
		BillingCards: []payvault.BillingCardRequest{{CardNumber: payvault.NewSecret("4111111111111111")}},
	}
	copyOf, err := json.Marshal(request)
	require.NoError(t, err)
	all := calls.All()
	var running sync.WaitGroup
	for i := range goroutines {
		running.Go(func() {
			c := &all[i%len(all)]
			var raw payvault.Response
			_, err := c.Do(t.Context(), client, calls.Documented(), c.Full,
				append(slices.Clip(opts), payvault.WithResponse(&raw))...)
			assert.NoError(t, err, c.Name)
			assert.Equal(t, c.Answer(), string(raw.Body), "each call gets its own answer")
			_, err = client.ForMerchant(payvault.MerchantID(i+1)).Customers.Create(t.Context(), request, opts...)
			assert.NoError(t, err)
			_ = fmt.Sprint(client, request)
		})
	}
	running.Wait()
	after, err := json.Marshal(request)
	require.NoError(t, err)
	assert.Equal(t, string(copyOf), string(after), "what is passed in stays as it is")
	assert.Positive(t, failures.Load())
	merchants := map[string]int{}
	for _, r := range server.Seen() {
		var body struct {
			MerchantID json.Number `json:"merchant_id"`
		}
		if r.Path == "/platform/vault/customer" && r.Method == "POST" && json.Unmarshal(r.Body, &body) == nil &&
			body.MerchantID != "" {
			merchants[body.MerchantID.String()]++
		}
	}
	delete(merchants, "212346") // of the table
	assert.Len(t, merchants, goroutines, "each client of ForMerchant sends its own merchant")
}

// TestWithTimeout_isOfOneAttempt: the Timeout of the caller's http.Client is one of an attempt too, and the shorter
// counts.
func TestWithTimeout_isOfOneAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ofClient, ofOption, want time.Duration
	}{
		"of the http.Client":         {5 * time.Second, 0, 5 * time.Second},
		"of the option":              {0, 3 * time.Second, 3 * time.Second},
		"the shorter, of the option": {5 * time.Second, 3 * time.Second, 3 * time.Second},
		"the shorter, of the client": {2 * time.Second, 3 * time.Second, 2 * time.Second},
		"the default":                {0, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hc := service.Pipe(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				hc.Timeout = test.ofClient
				opts := []payvault.Option{payvault.WithHTTPClient(hc), service.Impatient(2)}
				if test.ofOption > 0 {
					opts = append(opts, payvault.WithTimeout(test.ofOption))
				}
				start := time.Now()
				_, err := service.Client(t, "http://127.0.0.1", opts...).Applications.Validate(t.Context(), 1)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, 2*test.want, time.Since(start).Round(time.Millisecond), "two attempts")
				assert.Equal(t, test.ofClient, hc.Timeout)
			})
		})
	}
}

// TestClient_answersKeepTheirMemory: what a call has returned does not change when later answers are read.
func TestClient_answersKeepTheirMemory(t *testing.T) {
	t.Parallel()
	const first = `{"code":0,"message":"first","data":{"app":{"app_id":1,"app_status":"FIRST"},` +
		`"pricing":{"plan":{"of":"first"}}}}`
	server := service.Observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= 4 {
			service.Say(w, 200, first)
			return
		}
		service.Say(w, 200, strings.ReplaceAll(strings.ReplaceAll(first, "first", "other"), "FIRST", "OTHER"))
	})
	client := service.Client(t, server.URL)
	request := &payvault.ApplicationCreateRequest{ChannelID: 1, SalesRep: 1}
	created, err := client.Applications.Create(t.Context(), request)
	require.NoError(t, err)
	var raw payvault.Response
	_, err = client.Applications.Create(t.Context(), request, payvault.WithResponse(&raw))
	require.NoError(t, err)
	var out json.RawMessage
	require.NoError(t, client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}}, &out))
	_, failed := client.Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "n"})
	require.ErrorIs(t, failed, payvault.ErrMalformedResponse)
	text := failed.Error()
	for range 50 {
		_, err := client.Applications.Create(t.Context(), request)
		require.NoError(t, err)
	}
	assert.Equal(t, payvault.ApplicationStatus("FIRST"), created.App.Status)
	assert.Equal(t, `{"of":"first"}`, string(created.Pricing.Plan))
	assert.Equal(t, first, string(raw.Body))
	assert.Equal(t, first, string(out))
	assert.Equal(t, text, failed.Error())
}

// TestCall_dense: what an operation that is not documented answers is the caller's to judge.
func TestCall_dense(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Answer(t, 200, `{"code":0,"data":[`+strings.Repeat("1,", 100_000)+`1]}`).URL)
	var out struct {
		Data []int `json:"data"`
	}
	require.NoError(t, client.Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"numbers"}}, &out))
	assert.Len(t, out.Data, 100_001)
}

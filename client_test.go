package payvault_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
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
)

func TestNewClient_baseURL(t *testing.T) {
	t.Parallel()
	const (
		notAbsolute = "is not an absolute http or https URL"
		plainHTTP   = "is plain http to a host that is not loopback; see WithInsecureHTTP"
		extra       = "has a query or a fragment"
		userInfo    = "has user information"
		dots        = "has a path segment that is empty or a dot segment"
	)
	refused := map[string]string{
		"": notAbsolute, "sandbox.example.com": notAbsolute, "/path": notAbsolute, "//sandbox.example.com": notAbsolute, "https:": notAbsolute,
		"https://": notAbsolute, "https:///path": notAbsolute, "https://:443": notAbsolute, "https:sandbox.example.com": notAbsolute,
		"ftp://sandbox.example.com": notAbsolute, "ws://sandbox.example.com": notAbsolute, "file:///etc/passwd": notAbsolute, "unix:/run/x.sock": notAbsolute,
		"https://hunter2@sandbox.example.com": userInfo, "https://user:hunter2@sandbox.example.com": userInfo, "https://@sandbox.example.com": userInfo,
		"https://sandbox.example.com?hunter2": extra, "https://sandbox.example.com/?": extra, "https://sandbox.example.com#hunter2": extra, "https://sandbox.example.com/#": extra,
		"http://sandbox.example.com": plainHTTP, "http://10.0.0.1": plainHTTP, "http://localhost.example.com": plainHTTP, "http://127.0.0.1.example.com": plainHTTP,
		"http://[2001:db8::1]": plainHTTP, "http://0.0.0.0": plainHTTP, "HTTP://sandbox.example.com": plainHTTP,
		"https://sandbox.example.com//": dots, "https://sandbox.example.com//a": dots, "https://sandbox.example.com/a//": dots, "https://sandbox.example.com/a//b": dots,
		"https://sandbox.example.com/.": dots, "https://sandbox.example.com/a/../b": dots, "https://sandbox.example.com/%2e%2E/b": dots,
		"https://sandbox.example.com/%": "is not a URL", "https://sandbox.example.com:port": "is not a URL", "https://[::1": "is not a URL",
		"https://sandbox.example.com/a b\x00": "is not a URL", "https://user:hunter2@sandbox.example.com/\r\n": "is not a URL", " https://sandbox.example.com": "is not a URL",
	}
	for text, want := range refused {
		t.Run(strconv.Quote(text), func(t *testing.T) {
			t.Parallel()
			client, err := payvault.NewClient(text, apiKey)
			assert.Nil(t, client)
			assertInvalid(t, err, payvault.OpNewClient, fields{"base_url": {want}})
			assertHidden(t, err, "hunter2", apiKey)
			if text != "" && text != "https:" && text != "/path" {
				assertHidden(t, err, text)
			}
		})
	}
	for _, text := range []string{
		"https://sandbox.example.com", "https://sandbox.example.com/", "https://sandbox.example.com:8443/a/b/", "HTTPS://SANDBOX.example.com", "https://10.0.0.1",
		"http://localhost:8080", "http://127.0.0.1", "http://127.8.8.8/x", "http://[::1]:80/", "https://sandbox.example.com/a%2Fb", "https://sandbox.example.com/a%20b",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := payvault.NewClient(text, apiKey)
			assert.NoError(t, err)
		})
	}
	_, err := payvault.NewClient("http://sandbox.example.com", apiKey, payvault.WithInsecureHTTP())
	assert.NoError(t, err)
}

func TestNewClient_key(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"": "is empty", "  ": "is empty", "\t\n": "is empty", "hunter2\n": "contains a control character", "hunter2\r\nX: y": "contains a control character",
		"hunter2\x00": "contains a control character", "\u0085hunter2": "contains a control character", "hunter2\x7f": "contains a control character",
	} {
		client, err := payvault.NewClient("https://sandbox.example.com", key)
		assert.Nil(t, client)
		assertInvalid(t, err, payvault.OpNewClient, fields{"api_key": {want}})
		assertHidden(t, err, "hunter2")
	}
	for _, key := range []string{"k", "with:colon", "with space", "ünïcödé", strings.Repeat("k", 5000)} {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
		client, err := payvault.NewClient(server.URL, key)
		require.NoError(t, err)
		t.Cleanup(client.CloseIdleConnections)
		_, err = client.Applications.Validate(t.Context(), 1)
		require.NoError(t, err)
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+key))
		assert.Equal(t, []string{want}, server.seen()[0].header.Values("Authorization"), "an empty user part, and the key")
	}
}

func TestNewClient_options(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		option payvault.Option
		want   fields
	}{
		"WithHTTPClient(nil)":          {payvault.WithHTTPClient(nil), fields{"WithHTTPClient": {"is nil"}}},
		"WithRetryPolicy attempts":     {payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: -1}), fields{"WithRetryPolicy": {"has a negative field"}}},
		"WithRetryPolicy min":          {payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: -1}), fields{"WithRetryPolicy": {"has a negative field"}}},
		"WithRetryPolicy max":          {payvault.WithRetryPolicy(payvault.RetryPolicy{MaxBackoff: -1}), fields{"WithRetryPolicy": {"has a negative field"}}},
		"WithRetryPolicy retry-after":  {payvault.WithRetryPolicy(payvault.RetryPolicy{MaxRetryAfter: -1}), fields{"WithRetryPolicy": {"has a negative field"}}},
		"WithTimeout(0)":               {payvault.WithTimeout(0), fields{"WithTimeout": {"is not positive"}}},
		"WithTimeout(-1)":              {payvault.WithTimeout(-1), fields{"WithTimeout": {"is not positive"}}},
		"WithKeySource(nil)":           {payvault.WithKeySource(nil), fields{"WithKeySource": {"is nil"}}},
		"WithMerchantID(0)":            {payvault.WithMerchantID(0), fields{"WithMerchantID": {"is not positive"}}},
		"WithVendorID(-1)":             {payvault.WithVendorID(-1), fields{"WithVendorID": {"is not positive"}}},
		"WithLogger(nil)":              {payvault.WithLogger(nil), fields{"WithLogger": {"is nil"}}},
		"WithUserAgent with a newline": {payvault.WithUserAgent("acme\r\nX: y"), fields{"WithUserAgent": {"contains a control character"}}},
		"WithMaxResponseBytes(0)":      {payvault.WithMaxResponseBytes(0), fields{"WithMaxResponseBytes": {"is not positive"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := payvault.NewClient("https://sandbox.example.com", apiKey, test.option)
			assert.Nil(t, client)
			assertInvalid(t, err, payvault.OpNewClient, test.want)
		})
	}
	t.Run("all problems at once", func(t *testing.T) {
		t.Parallel()
		_, err := payvault.NewClient("", "", payvault.WithTimeout(0), nil, payvault.WithLogger(nil))
		assertInvalid(t, err, payvault.OpNewClient, fields{
			"base_url": {"is not an absolute http or https URL"}, "api_key": {"is empty"}, "WithTimeout": {"is not positive"}, "WithLogger": {"is nil"},
		})
	})
	t.Run("a nil option is none", func(t *testing.T) {
		t.Parallel()
		_, err := payvault.NewClient("https://sandbox.example.com", apiKey, nil)
		assert.NoError(t, err)
	})
}

// TestNewClient_noIO: nothing is dialed, asked or read before the first call.
func TestNewClient_noIO(t *testing.T) {
	t.Parallel()
	client, err := payvault.NewClient("https://sandbox.example.com", "",
		payvault.WithKeySource(func(context.Context) (string, error) {
			t.Error("the key source was asked")
			return "", nil
		}),
		payvault.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			t.Error("a request was sent")
			return nil, errShutdown
		})}))
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
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
			require.NoError(t, tableClient(t, server.URL+prefix).Invoices.Send(t.Context(), "a/b", nil))
			assert.Equal(t, want+"/platform/invoice/a%2Fb/send", server.seen()[0].path)
		})
	}
}

// TestClient_hostileIDs: whatever an ID is, it stays one segment, or is refused.
func TestClient_hostileIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"../droplets?tag=prod": "..%2Fdroplets%3Ftag=prod", "x?y=1": "x%3Fy=1", "a/b": "a%2Fb", "a#b": "a%23b", "a%2Fb": "a%252Fb", "%2e%2e": "%252e%252e",
		"a b": "a%20b", "a\r\nX: y": "a%0D%0AX:%20y", "é": "%C3%A9", "\xff": "%FF", "...": "...", "a;b": "a%3Bb", `..\..`: "..%5C..", "http://other": "http:%2F%2Fother", "\x00": "%00",
	} {
		t.Run(strconv.Quote(id), func(t *testing.T) {
			t.Parallel()
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
			client := tableClient(t, server.URL+basePath)
			require.NoError(t, client.Invoices.Send(t.Context(), payvault.InvoiceID(id), nil))
			_, err := client.Webhooks.AddEvent(t.Context(), payvault.WebhookID(id), payvault.Event(id))
			require.NoError(t, err)
			require.NoError(t, client.Call(t.Context(), payvault.Request{Method: "PUT", Path: []string{"x", id}}, nil))
			var paths []string
			for _, r := range server.seen() {
				paths = append(paths, r.path)
				assert.Empty(t, r.query)
				assert.Empty(t, r.header.Get("X"))
			}
			assert.Equal(t, []string{
				basePath + "/platform/invoice/" + want + "/send", basePath + "/platform/webhook/" + want + "/event/" + want, basePath + "/x/" + want,
			}, paths)
		})
	}
	for _, id := range []string{"", ".", ".."} {
		client := tableClient(t, "http://127.0.0.1:1")
		problem := []string{`must not be empty, "." or ".."`}
		assertInvalid(t, client.Invoices.Send(t.Context(), payvault.InvoiceID(id), nil), payvault.OpInvoicesSend, fields{"invoice_id": problem})
		_, err := client.Webhooks.AddEvent(t.Context(), payvault.WebhookID(id), payvault.Event(id))
		assertInvalid(t, err, payvault.OpWebhooksAddEvent, fields{"webhook_id": problem, "event": problem})
		err = client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x", id}}, nil)
		assertInvalid(t, err, payvault.OpCall, fields{"path[1]": problem})
	}
	for _, id := range []int64{0, -1, math.MinInt64} {
		err := tableClient(t, "http://127.0.0.1:1").Payees.Delete(t.Context(), payvault.PayeeID(id))
		assertInvalid(t, err, payvault.OpPayeesDelete, fields{"payee_id": badID(id)})
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
	server := observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Cookies(), "cookies are not kept")
		w.Header().Set("Set-Cookie", "session=1")
		if n == 1 {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		say(w, 200, `{"code":0,"data":{}}`)
	})
	client := tableClient(t, server.URL, payvault.WithHTTPClient(own))
	_, err = client.Applications.Validate(t.Context(), 1)
	require.ErrorIs(t, err, payvault.ErrMalformedResponse)
	_, err = client.Applications.Validate(t.Context(), 1)
	require.NoError(t, err)
	assert.Len(t, server.seen(), 2)
	assert.Empty(t, jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(server.URL, "http://"), Path: "/"}))
	assert.Same(t, pool, own.Transport)
	assert.Equal(t, [3]any{before.Timeout, before.Jar, before.Transport}, [3]any{own.Timeout, own.Jar, own.Transport}, "the caller's client is unchanged")
	assert.NotNil(t, own.CheckRedirect)
	client.CloseIdleConnections()
}

// TestWithHTTPClient_later: what the caller does to its client after NewClient changes nothing.
func TestWithHTTPClient_later(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	own := &http.Client{Transport: pool}
	client := tableClient(t, server.URL, payvault.WithHTTPClient(own))
	own.Transport, own.Timeout = roundTripper(func(*http.Request) (*http.Response, error) { return nil, errShutdown }), 1
	_, err := client.Applications.Validate(t.Context(), 1)
	assert.NoError(t, err)
}

func TestWithUserAgent(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]string{
		"acme-billing/2.1": `^acme-billing/2\.1 payvault-go/` + payvault.Version + ` \(go[^;]+; \w+\)$`,
		"":                 `^payvault-go/` + payvault.Version + ` \(go[^;]+; \w+\)$`,
	} {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
		_, err := tableClient(t, server.URL, payvault.WithUserAgent(product)).Applications.Validate(t.Context(), 1)
		require.NoError(t, err)
		assert.Regexp(t, want, server.seen()[0].header.Get("User-Agent"))
	}
}

func TestWithHeader(t *testing.T) {
	t.Parallel()
	server := observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		say(w, 200, `{"code":0,"data":{}}`)
	})
	client := tableClient(t, server.URL)
	opts := []payvault.CallOption{payvault.WithHeader("x-request-id", "7"), payvault.WithHeader("X-Tag", "a"), payvault.WithHeader("X-Tag", "b\tc"), nil}
	_, err := client.Webhooks.AddEvent(t.Context(), "w", "e", opts...)
	require.NoError(t, err)
	_, err = client.Webhooks.AddEvent(t.Context(), "w", "e")
	require.NoError(t, err)
	requests := server.seen()
	for _, r := range requests[:2] { // of each attempt
		assert.Equal(t, []string{"7"}, r.header.Values("X-Request-Id"))
		assert.Equal(t, []string{"a", "b\tc"}, r.header.Values("X-Tag"))
		assert.Equal(t, []string{basicToken}, r.header.Values("Authorization"))
	}
	assert.Empty(t, requests[2].header.Get("X-Tag"), "of this call only")
}

func TestWithHeader_refused(t *testing.T) {
	t.Parallel()
	client := tableClient(t, "http://127.0.0.1:1")
	for _, header := range [][2]string{
		{"Authorization", "Basic hunter2"},
		{"authorization", "hunter2"},
		{"AUTHORIZATION", "hunter2"},
		{"Host", "other"},
		{"host", "other"},
		{"Content-Type", "text/plain"},
		{"content-length", "5"},
		{"Content-Encoding", "gzip"},
		{"Content-Anything", "x"},
		{"Accept", "*/*"},
		{"Accept-Encoding", "br"},
		{"User-Agent", "x"},
		{"Connection", "close"},
		{"Transfer-Encoding", "chunked"},
		{"Te", "x"},
		{"Trailer", "x"},
		{"Upgrade", "x"},
		{"Expect", "100-continue"},
		{"Proxy-Authorization", "hunter2"},
		{"Proxy-Connection", "x"},
		{"Keep-Alive", "x"},
		{"Idempotency-Key", "1"},
		{"idempotency-key", "1"},
		{"X-Idempotency-Key", "1"},
		{"X-A", "a\r\nX-B: hunter2"},
		{"X-A", "hunter2\n"},
		{"X-A", "\x00hunter2"},
		{"X-A\r\nX-B", "hunter2"},
		{"X A", "x"},
		{"", "x"},
		{"X-É", "x"},
		{"X:", "x"},
	} {
		_, err := client.Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithHeader(header[0], header[1]))
		require.ErrorIs(t, err, payvault.ErrInvalidRequest, "%q", header)
		assert.Len(t, asError(t, err).Fields["WithHeader"], 1)
		assertHidden(t, err, "hunter2")
	}
}

func TestWithAttempts(t *testing.T) {
	t.Parallel()
	for attempts, policy := range map[int]int{1: 4, 2: 1, 7: 3} {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
		var raw payvault.Response
		_, err := tableClient(t, server.URL, impatient(policy)).Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithAttempts(attempts), payvault.WithResponse(&raw))
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Len(t, server.seen(), attempts)
		assert.Equal(t, attempts, raw.Attempts)
	}
	_, err := tableClient(t, "http://127.0.0.1:1").Webhooks.AddEvent(t.Context(), "w", "e", payvault.WithAttempts(0))
	assertInvalid(t, err, payvault.OpWebhooksAddEvent, fields{"WithAttempts": {"is not positive"}})
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	_, err = tableClient(t, server.URL).Webhooks.AddEvent(t.Context(), "w", "e")
	require.Error(t, err)
	assert.Len(t, server.seen(), 4, "the default")
}

func TestWithResponse(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Trace", "t1")
		say(w, 201, `{"code":0,"unknown":[1.50]}`)
	})
	raw := payvault.Response{StatusCode: 99, Body: []byte("of the call before")}
	require.NoError(t, tableClient(t, server.URL).Invoices.Send(t.Context(), "i", nil, payvault.WithResponse(&raw)))
	assert.Equal(t, 201, raw.StatusCode)
	assert.Equal(t, "t1", raw.Header.Get("X-Trace"))
	assert.Equal(t, `{"code":0,"unknown":[1.50]}`, string(raw.Body), "nothing that the service sent is out of reach")
	assert.Equal(t, 1, raw.Attempts)
	assert.Positive(t, raw.Duration)

	require.Error(t, tableClient(t, server.URL).Invoices.Send(t.Context(), "", nil, payvault.WithResponse(&raw)))
	raw.Duration = 0
	assert.Equal(t, payvault.Response{}, raw, "a request that fails a local check has no answer")
}

func TestCall(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		say(w, 200, `{"code":0,"message":"Success","data":{"invoice_id":"I1","amount":12.50}}`)
	})
	var out struct {
		Message string
		Data    struct {
			InvoiceID payvault.InvoiceID `json:"invoice_id"`
			Amount    payvault.Amount    `json:"amount"`
		}
	}
	request := payvault.Request{
		Method: "POST", Path: []string{"platform", "invoice", "add"}, Query: url.Values{"merchant_id": {"7"}, "a b": {"c,d", "é&="}},
		Body: map[string]any{"amount": 1},
	}
	require.NoError(t, tableClient(t, server.URL+basePath).Call(t.Context(), request, &out))
	assert.Equal(t, "Success I1 12.50", fmt.Sprint(out.Message, " ", out.Data.InvoiceID, " ", out.Data.Amount))
	got := server.seen()[0]
	assert.Equal(t, "POST "+basePath+"/platform/invoice/add", got.method+" "+got.path)
	assert.Equal(t, request.Query, got.query)
	assert.JSONEq(t, `{"amount":1}`, string(got.body))
	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
	assert.Equal(t, "application/json", got.header.Get("Accept"))
	assert.Equal(t, basicToken, got.header.Get("Authorization"))
	assert.False(t, got.chunked)
}

// TestCall_withoutBody: no body, no Content-Type, and nothing that announces a body.
func TestCall_withoutBody(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, replay := range []bool{false, true} {
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
			require.NoError(t, tableClient(t, server.URL).Call(t.Context(), payvault.Request{Method: method, Path: []string{"x"}, Replay: replay}, nil))
			got := server.seen()[0]
			assert.Equal(t, method, got.method)
			assert.Empty(t, got.body)
			assert.False(t, got.chunked, method)
			assert.Empty(t, got.header.Get("Content-Type"))
			if length := got.header.Get("Content-Length"); length != "" {
				assert.Equal(t, "0", length)
			}
		}
	}
}

func TestCall_envelopes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status  int
		body    string
		success bool
		kinds   []string
		code    string
	}{
		{200, `{"code":0}`, true, nil, ""},
		{200, `{"code":"0","data":[]}`, true, nil, ""},
		{200, `{"rcode":"000"}`, true, nil, ""},
		{201, `{"rcode":"000","code":0}`, true, nil, ""},
		{200, `{"code":7,"rcode":"000"}`, false, []string{"ErrRejected"}, "7"},
		{200, `{"code":0,"rcode":"905"}`, false, []string{"ErrMalformedResponse", "ErrOutcomeUnknown"}, "0"}, // it contradicts itself
		{200, `{"rcode":"905","rmsg":"No"}`, false, []string{"ErrRejected"}, "905"},
		{200, `{"code":2,"data":{"a":["b"]}}`, false, []string{"ErrRejected", "ErrValidation"}, "2"},
		{200, `{"message":"hello"}`, false, []string{"ErrMalformedResponse", "ErrOutcomeUnknown"}, ""},
		{200, `[]`, false, []string{"ErrMalformedResponse", "ErrOutcomeUnknown"}, ""},
		{204, ``, false, []string{"ErrMalformedResponse", "ErrOutcomeUnknown"}, ""},
		{404, `{"code":0}`, false, []string{"ErrNotFound"}, "0"},
		{500, `{"code":0}`, false, []string{"ErrUnavailable", "ErrOutcomeUnknown"}, "0"},
	}
	for _, test := range tests {
		t.Run(strconv.Itoa(test.status)+" "+test.body, func(t *testing.T) {
			t.Parallel()
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, test.status, test.body) })
			var out map[string]any
			err := tableClient(t, server.URL).Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}}, &out)
			if test.success {
				require.NoError(t, err)
				assert.NotEmpty(t, out)
				return
			}
			e := asError(t, err)
			assert.Equal(t, payvault.OpCall, e.Op)
			assert.Equal(t, test.kinds, kinds(err))
			assert.Equal(t, test.code, e.Code)
			assert.Nil(t, out, "a failure leaves the result alone")
		})
	}
}

func TestCall_refused(t *testing.T) {
	t.Parallel()
	client := tableClient(t, "http://127.0.0.1:1")
	path := []string{"x"}
	tests := map[string]struct {
		request payvault.Request
		out     any
		want    fields
	}{
		"no method":          {payvault.Request{Path: path}, nil, fields{"method": {"is not an HTTP method"}}},
		"a bad method":       {payvault.Request{Method: "GET /x HTTP/1.1\r\nA:", Path: path}, nil, fields{"method": {"is not an HTTP method"}}},
		"CONNECT":            {payvault.Request{Method: "CONNECT", Path: path}, nil, fields{"method": {"is not an HTTP method"}}},
		"no path":            {payvault.Request{Method: "GET"}, nil, fields{"path": {"is required"}}},
		"a bad body":         {payvault.Request{Method: "POST", Path: path, Body: math.NaN()}, nil, fields{"body": {"cannot be written as JSON: unsupported value: NaN"}}},
		"no pointer":         {payvault.Request{Method: "GET", Path: path}, map[string]any{}, fields{"out": {"is not a pointer"}}},
		"a struct":           {payvault.Request{Method: "GET", Path: path}, struct{}{}, fields{"out": {"is not a pointer"}}},
		"a nil pointer":      {payvault.Request{Method: "GET", Path: path}, (*int)(nil), fields{"out": {"is not a pointer"}}},
		"all that was wrong": {payvault.Request{Path: []string{"", "x", ".."}}, 1, fields{"method": {"is not an HTTP method"}, "out": {"is not a pointer"}, "path[0]": {`must not be empty, "." or ".."`}, "path[2]": {`must not be empty, "." or ".."`}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertInvalid(t, client.Call(t.Context(), test.request, test.out), payvault.OpCall, test.want)
		})
	}
	t.Run("a nil context", func(t *testing.T) {
		t.Parallel()
		var none context.Context
		assertInvalid(t, client.Call(none, payvault.Request{Method: "GET", Path: path}, nil), payvault.OpCall, fields{"context": {"is nil"}})
	})
	t.Run("for a merchant", func(t *testing.T) {
		t.Parallel()
		err := client.ForMerchant(7).Call(t.Context(), payvault.Request{Method: "GET", Path: path}, nil)
		assertNoMerchant(t, err, payvault.OpCall)
	})
}

// TestCall_outOfAnotherShape: the request was performed, so the outcome is not lost but unknown.
func TestCall_outOfAnotherShape(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		say(w, 200, `{"code":0,"data":"`+garbageCanary+`"}`)
	})
	var out struct{ Data int }
	err := tableClient(t, server.URL).Call(t.Context(), payvault.Request{Method: "POST", Path: []string{"x"}}, &out)
	assert.Equal(t, []string{"ErrMalformedResponse", "ErrOutcomeUnknown"}, kinds(err))
	assertHidden(t, err, garbageCanary)
}

func TestCall_replay(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "OPTIONS", "TRACE"} {
		for replay, want := range map[bool]int{true: 4, false: 1} {
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
			err := tableClient(t, server.URL).Call(t.Context(), payvault.Request{Method: method, Path: []string{"x"}, Replay: replay}, nil)
			require.ErrorIs(t, err, payvault.ErrUnavailable)
			assert.Len(t, server.seen(), want, "%s: the caller's word counts, not the method", method)
			assert.Equal(t, replay, payvault.SafeToRetry(err))
		}
	}
}

// TestReplay_reusedConnection: net/http itself sends a request again when a connection that it has used before is
// closed instead of answered. That must not happen behind the back of the replay rules.
func TestReplay_reusedConnection(t *testing.T) {
	t.Parallel()
	call := func(r payvault.Request) func(context.Context, *payvault.Client) error {
		return func(ctx context.Context, c *payvault.Client) error { return c.Call(ctx, r, nil) }
	}
	body := map[string]int{"a": 1}
	tests := map[string]struct {
		call   func(context.Context, *payvault.Client) error
		replay bool
	}{
		"GET":                  {call(payvault.Request{Method: "GET", Path: []string{"x"}}), false},
		"HEAD":                 {call(payvault.Request{Method: "HEAD", Path: []string{"x"}}), false},
		"OPTIONS":              {call(payvault.Request{Method: "OPTIONS", Path: []string{"x"}}), false},
		"TRACE":                {call(payvault.Request{Method: "TRACE", Path: []string{"x"}}), false},
		"GET with a body":      {call(payvault.Request{Method: "GET", Path: []string{"x"}, Body: body}), false},
		"OPTIONS with a body":  {call(payvault.Request{Method: "OPTIONS", Path: []string{"x"}, Body: body}), false},
		"POST":                 {call(payvault.Request{Method: "POST", Path: []string{"x"}}), false},
		"POST with a body":     {call(payvault.Request{Method: "POST", Path: []string{"x"}, Body: body}), false},
		"DELETE":               {call(payvault.Request{Method: "DELETE", Path: []string{"x"}}), false},
		"GET that may be sent": {call(payvault.Request{Method: "GET", Path: []string{"x"}, Replay: true}), true},
	}
	for _, c := range opCases() {
		tests[c.name] = struct {
			call   func(context.Context, *payvault.Client) error
			replay bool
		}{func(ctx context.Context, client *payvault.Client) error {
			_, err := c.call(ctx, client)
			return err
		}, c.replay}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := closeAfterFirst(t)
			client := tableClient(t, server.url, impatient(1)) // so that only net/http could send it again
			require.NoError(t, client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"warm"}}, nil))
			err := test.call(t.Context(), client)
			require.Equal(t, payvault.Unknown, asError(t, err).Delivery)
			if !test.replay {
				assert.EqualValues(t, 1, server.requests.Load()-1, "sent once")
				assert.EqualValues(t, 1, server.connections.Load(), "on the connection that was used before")
			}
		})
	}
}

// closingServer answers the first request of each connection and closes it when it has read the second. Of further
// connections it closes each after the first request, so that nothing ever succeeds on them.
type closingServer struct {
	url                   string
	connections, requests atomic.Int64
}

func closeAfterFirst(t *testing.T) *closingServer {
	t.Helper()
	listener := listenAlone(t)
	s := &closingServer{url: "http://" + listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			first := s.connections.Add(1) == 1
			running.Go(func() { s.serve(conn, first) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return s
}

func (s *closingServer) serve(conn net.Conn, answerFirst bool) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		s.requests.Add(1)
		if !answerFirst {
			return
		}
		answerFirst = false
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"code\":0}")
	}
}

// TestWithKeySource_rotation: each attempt asks, and a key that has changed is used at once.
func TestWithKeySource_rotation(t *testing.T) {
	t.Parallel()
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				say(w, 200, c.success)
			})
			var asked atomic.Int64
			type contextKey struct{}
			client, err := payvault.NewClient(server.URL, "", impatient(0), payvault.WithMerchantID(1), payvault.WithKeySource(func(ctx context.Context) (string, error) {
				assert.Equal(t, "value", ctx.Value(contextKey{}), "the context of the call")
				return "key-" + strconv.FormatInt(asked.Add(1), 10), nil
			}))
			require.NoError(t, err)
			t.Cleanup(client.CloseIdleConnections)
			_, err = c.call(context.WithValue(t.Context(), contextKey{}, "value"), client)
			require.NoError(t, err)
			requests := server.seen()
			require.Len(t, requests, 2)
			for i, r := range requests {
				want := "Basic " + base64.StdEncoding.EncodeToString([]byte(":key-"+strconv.Itoa(i+1)))
				assert.Equal(t, []string{want}, r.header.Values("Authorization"))
			}
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
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		var asked atomic.Int64
		client := tableClient(t, server.URL, payvault.WithKeySource(func(context.Context) (string, error) {
			if asked.Add(1) > 1 {
				return "", errVault
			}
			return apiKey, nil
		}))
		_, err := client.Applications.Validate(t.Context(), 1)
		require.ErrorIs(t, err, errVault)
		e := asError(t, err)
		assert.Equal(t, want.delivery.String(), e.Delivery.String())
		assert.Equal(t, want.safe, payvault.SafeToRetry(err))
		assert.Equal(t, 2, e.Attempts)
		assert.Len(t, server.seen(), 1)
		assert.EqualValues(t, 2, asked.Load())
	}
}

// TestWithKeySource_deadline: the source has the time of the attempt, and what it takes too long for was not sent.
func TestWithKeySource_deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		client := tableClient(t, "http://127.0.0.1", payvault.WithTimeout(time.Second), impatient(2),
			payvault.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, io.ErrUnexpectedEOF
			})}),
			payvault.WithKeySource(func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return apiKey, nil // late
			}))
		_, err := client.Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, asError(t, err).Attempts, "a source that fails is not asked again")
		assert.Equal(t, payvault.NotSent, asError(t, err).Delivery)
		assert.True(t, payvault.SafeToRetry(err))
		assert.Zero(t, sent)
	})
}

// TestClient_keyGoesToTheBaseURLOnly: not to the target of a redirect, nor anywhere but the Authorization header.
func TestClient_keyGoesToTheBaseURLOnly(t *testing.T) {
	t.Parallel()
	for _, c := range opCases() {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) })
		_, err := c.call(t.Context(), tableClient(t, server.URL))
		require.NoError(t, err)
		got := server.seen()[0]
		header := maps.Clone(got.header)
		delete(header, "Authorization")
		for _, text := range []string{got.path, fmt.Sprint(got.query), fmt.Sprint(header), string(got.body)} {
			assert.NotContains(t, text, apiKey)
			assert.NotContains(t, text, strings.TrimPrefix(basicToken, "Basic "))
		}
	}
}

func TestClient_CloseIdleConnections(t *testing.T) {
	t.Parallel()
	server := unstarted(t, func(w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"code":0,"data":{}}`) })
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
	client := tableClient(t, server.URL)
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
		"status 404 with a body": func(w http.ResponseWriter, _ *http.Request) { say(w, 404, strings.Repeat("x", 3000)) },
		"status 503":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"a redirect with a body": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) },
		"200 without JSON":       func(w http.ResponseWriter, _ *http.Request) { say(w, 200, "<html>") },
		"a body of unknown size": func(w http.ResponseWriter, _ *http.Request) { say(w, 400, strings.Repeat("x", 5000)) },
		"a success with the rest": func(w http.ResponseWriter, _ *http.Request) {
			say(w, 200, `{"code":0,"data":{}}`+strings.Repeat(" ", 3000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			server := unstarted(t, answer)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)
			client := tableClient(t, server.URL)
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
	for _, c := range opCases() {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) })
		_, err := c.call(t.Context(), tableClient(t, server.URL))
		require.NoError(t, err)
		answers[server.seen()[0].method+server.seen()[0].path] = c.success
	}
	var failures atomic.Int64
	server := observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%5 == 0 {
			failures.Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		say(w, 200, answers[r.Method+r.URL.Path])
	})
	client := tableClient(t, server.URL, impatient(50))
	opts := []payvault.CallOption{payvault.WithHeader("X-Shared", "1"), payvault.WithReplay()}
	request := &payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm", BillingCards: []payvault.BillingCardRequest{{CardNumber: payvault.NewSecret("4111111111111111")}}}
	copyOf, err := json.Marshal(request)
	require.NoError(t, err)
	var running sync.WaitGroup
	for i := range goroutines {
		running.Go(func() {
			c := opCases()[i%len(opCases())]
			var raw payvault.Response
			_, err := c.call(t.Context(), client, append(slices.Clip(opts), payvault.WithResponse(&raw))...)
			assert.NoError(t, err, c.name)
			assert.Equal(t, c.success, string(raw.Body), "each call gets its own answer")
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
	for _, r := range server.seen() {
		var body struct {
			MerchantID json.Number `json:"merchant_id"`
		}
		if r.path == "/platform/vault/customer" && r.method == "POST" && json.Unmarshal(r.body, &body) == nil && body.MerchantID != "" {
			merchants[body.MerchantID.String()]++
		}
	}
	assert.Len(t, merchants, goroutines, "each client of ForMerchant sends its own merchant")
}

func TestForMerchant(t *testing.T) {
	t.Parallel()
	client := tableClient(t, "http://127.0.0.1:1")
	for _, id := range []payvault.MerchantID{0, -1} {
		err := client.ForMerchant(id).Payees.Delete(t.Context(), 1)
		assertInvalid(t, err, payvault.OpPayeesDelete, fields{"merchant_id": {"of ForMerchant is not positive"}})
	}
	_, err := client.ForMerchant(7).Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 8})
	assertInvalid(t, err, payvault.OpTokensTokenize, fields{"merchant_id": {"names another merchant than ForMerchant"}})
	_, err = client.ForMerchant(7).ForMerchant(8).Customers.List(t.Context(), &payvault.ListOptions{MerchantID: 7})
	assertInvalid(t, err, payvault.OpCustomersList, fields{"merchant_id": {"names another merchant than ForMerchant"}})
}

// TestWithTimeout_isOfOneAttempt: the Timeout of the caller's http.Client is one of an attempt too, and the shorter counts.
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
				hc := pipeServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				hc.Timeout = test.ofClient
				opts := []payvault.Option{payvault.WithHTTPClient(hc), impatient(2)}
				if test.ofOption > 0 {
					opts = append(opts, payvault.WithTimeout(test.ofOption))
				}
				start := time.Now()
				_, err := tableClient(t, "http://127.0.0.1", opts...).Applications.Validate(t.Context(), 1)
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
	const first = `{"code":0,"message":"first","data":{"app":{"app_id":1,"app_status":"FIRST"},"pricing":{"plan":{"of":"first"}}}}`
	server := observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= 4 {
			say(w, 200, first)
			return
		}
		say(w, 200, strings.ReplaceAll(strings.ReplaceAll(first, "first", "other"), "FIRST", "OTHER"))
	})
	client := tableClient(t, server.URL)
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

// TestClientThatIsNone: calls of a client that NewClient did not make fail, and never panic.
func TestClientThatIsNone(t *testing.T) {
	t.Parallel()
	for _, client := range []*payvault.Client{nil, {}} {
		other := client.ForMerchant(1)
		for _, c := range opCases() {
			_, err := c.call(t.Context(), other)
			assertInvalid(t, err, c.op, fields{"client": {"was not made by NewClient"}})
			if client != nil {
				_, err = c.call(t.Context(), client)
				assertInvalid(t, err, c.op, fields{"client": {"was not made by NewClient"}})
			}
		}
		err := client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}}, nil)
		assertInvalid(t, err, payvault.OpCall, fields{"client": {"was not made by NewClient"}})
		client.CloseIdleConnections()
		assert.Equal(t, "not made by NewClient", client.LogValue().String())
	}
}

// TestFileOfTypedNil: a nil pointer in an interface is no content.
func TestFileOfTypedNil(t *testing.T) {
	t.Parallel()
	for _, content := range []io.ReaderAt{(*os.File)(nil), (*bytes.Reader)(nil)} {
		file := &payvault.File{Name: "a.pdf", Content: content, Size: 5}
		err := tableClient(t, "http://127.0.0.1:1").Disputes.Respond(t.Context(), 1, &payvault.DisputeResponse{Message: "m", Evidence: file})
		assertInvalid(t, err, payvault.OpDisputesRespond, fields{"file": {"is empty"}})
		assert.NoError(t, file.Close())
	}
}

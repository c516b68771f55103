package payvault_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

const sandbox = "https://sandbox.example.com"

// assertNoClient checks that NewClient returns an error with the problems in want, and that the error contains no key
// and no password.
func assertNoClient(t *testing.T, want service.Fields, baseURL, key string, opts ...payvault.Option) {
	t.Helper()
	client, err := payvault.NewClient(baseURL, key, opts...)
	assert.Nil(t, client)
	service.AssertInvalid(t, err, "client.new", want)
	service.AssertHidden(t, err, "hunter2", service.APIKey)
}

// TestNewClient_baseURL checks that NewClient takes only an absolute http or https URL with a host, an optional port
// and an optional path. NewClient takes plain http only for a loopback host or with WithInsecureHTTP.
func TestNewClient_baseURL(t *testing.T) {
	t.Parallel()
	for want, refused := range map[string][]string{
		"is not an absolute http or https URL": {
			"", "sandbox.example.com", "//sandbox.example.com", "https:///path", "https://:443", "ftp://sandbox.example.com",
		},
		"has user information":      {"https://hunter2@example.com", "https://a:hunter2@example.com", "https://@example.com"},
		"has a query or a fragment": {sandbox + "?hunter2", sandbox + "/?", sandbox + "#hunter2", sandbox + "/#"},
		"is plain http to a host that is not loopback; see WithInsecureHTTP": {
			"HTTP://sandbox.example.com", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com",
		},
		"has a path segment that is empty or a dot segment": {
			sandbox + "//", sandbox + "/a//b", sandbox + "/.", sandbox + "/a/../b", sandbox + "/%2e%2E/b",
		},
		"ends in the path of an operation, which each request adds: leave out /platform or /pg": {
			sandbox + "/platform", sandbox + "/pg/", sandbox + "/gateway/platform/vault", sandbox + "/pg/tokenize",
			sandbox + "/platform/vault/customer",
		},
		"is not a URL": {sandbox + "/%", sandbox + ":port", "https://user:hunter2@example.com/\r\n", " " + sandbox},
	} {
		for _, text := range refused {
			assertNoClient(t, service.Fields{"base_url": {want}}, text, service.APIKey)
		}
	}
	for _, text := range []string{
		sandbox + ":8443/a/b/", "HTTPS://SANDBOX.example.com/", "http://localhost:8080", "http://127.8.8.8/x",
		"http://[::1]:80/", sandbox + "/a%2Fb", sandbox + "/platform/v1", sandbox + "/platforms",
	} {
		_, err := payvault.NewClient(text, service.APIKey)
		assert.NoError(t, err, text)
	}
	_, err := payvault.NewClient("http://sandbox.example.com", service.APIKey, payvault.WithInsecureHTTP())
	assert.NoError(t, err)
}

// TestNewClient_options checks that NewClient refuses options and keys with invalid values, and that the error names
// all problems.
func TestNewClient_options(t *testing.T) {
	t.Parallel()
	type policy = payvault.RetryPolicy
	for problem, options := range map[string][]payvault.Option{
		"WithHTTPClient is nil":                                {payvault.WithHTTPClient(nil)},
		"WithHTTPClient has a Transport that is a nil pointer": {service.Over((*http.Transport)(nil))},
		"WithRetryPolicy has a negative field": {
			payvault.WithRetryPolicy(policy{MaxAttempts: -1}), payvault.WithRetryPolicy(policy{MinBackoff: -1}),
			payvault.WithRetryPolicy(policy{MaxBackoff: -1}), payvault.WithRetryPolicy(policy{MaxRetryAfter: -1}),
			payvault.WithRetryPolicy(policy{MaxBulkRetryAfter: -1}),
		},
		"WithRetryPolicy has a MaxRetryAfter of 24 hours or more": {
			payvault.WithRetryPolicy(policy{MaxRetryAfter: 24 * time.Hour}),
		},
		"WithRetryPolicy has a MaxBulkRetryAfter of 24 hours or more": {
			payvault.WithRetryPolicy(policy{MaxBulkRetryAfter: 24 * time.Hour}),
		},
		"WithTimeout is not positive":                {payvault.WithTimeout(0), payvault.WithTimeout(-1)},
		"WithKeySource is nil":                       {payvault.WithKeySource(nil)},
		"WithMerchantID is not positive":             {payvault.WithMerchantID(0)},
		"WithVendorID is not positive":               {payvault.WithVendorID(0)},
		"WithLogger is nil":                          {payvault.WithLogger(nil)},
		"WithUserAgent contains a control character": {payvault.WithUserAgent("acme\r\nX: y")},
		"WithMaxResponseBytes is not positive":       {payvault.WithMaxResponseBytes(0)},
		"WithRateLimit has a rate that is not positive and finite": {
			payvault.WithRateLimit(0, 1), payvault.WithRateLimit(-1, 1), payvault.WithRateLimit(math.NaN(), 1),
			payvault.WithRateLimit(math.Inf(1), 1), payvault.WithRateLimit(math.Inf(-1), 1),
		},
		"WithRateLimit has a burst that is not positive": {payvault.WithRateLimit(1, 0), payvault.WithRateLimit(1, -1)},
	} {
		name, text, _ := strings.Cut(problem, " ")
		for _, option := range options {
			assertNoClient(t, service.Fields{name: {text}}, sandbox, service.APIKey, option)
		}
	}
	for _, key := range []string{"hunter2\r\nX: y", "hunter2\u0085x"} {
		assertNoClient(t, service.Fields{"api_key": {"contains a control character"}}, sandbox, key)
	}
	around := service.Fields{"api_key": {"has a blank, a line break, a quote or an invisible character around it"}}
	for _, mistake := range []string{
		" ", "\t", "\r\n", "\"", "'", "`", "\u201c", "\u2019", "\u201e", "\u00a0", "\u2003", "\ufeff", "\u200b",
	} {
		assertNoClient(t, around, sandbox, mistake+"hunter2")
		assertNoClient(t, around, sandbox, "hunter2"+mistake)
		assertNoClient(t, service.Fields{"api_key": {"is empty"}}, sandbox, mistake+mistake)
	}
	assertNoClient(t, service.Fields{
		"base_url": {"is not an absolute http or https URL"}, "api_key": {"is empty"},
		"WithTimeout": {"is not positive"}, "WithLogger": {"is nil"},
	}, "", " ", payvault.WithTimeout(0), nil, payvault.WithLogger(nil))
	longest := payvault.WithRetryPolicy(policy{MaxRetryAfter: 24*time.Hour - 1})
	_, err := payvault.NewClient(sandbox, service.APIKey, longest, nil)
	assert.NoError(t, err, "a nil option is none")
}

// TestNewClient_noIO checks that NewClient sends no request and does not ask for a key.
func TestNewClient_noIO(t *testing.T) {
	t.Parallel()
	pool := service.RoundTripper(func(*http.Request) (*http.Response, error) { panic("a request was sent") })
	source := func(context.Context) (string, error) { panic("the key source was asked") }
	client, err := payvault.NewClient(sandbox, "", payvault.WithKeySource(source), service.Over(pool))
	require.NoError(t, err, "the key may be empty if there is a source")
	client.ForMerchant(1).CloseIdleConnections()
}

// TestClient_print checks that a client prints its base URL and the merchant of ForMerchant, and nothing else, under
// every verb.
func TestClient_print(t *testing.T) {
	t.Parallel()
	client := service.Client(t, sandbox+"/gateway")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		assert.Equal(t, "[base_url="+sandbox+"/gateway]", fmt.Sprintf(format, client))
		assert.Equal(t, "[base_url="+sandbox+"/gateway for_merchant=7]", fmt.Sprintf(format, client.ForMerchant(7)))
	}
}

// TestNewTransport checks that a client trusts the certificates that were set in a transport of NewTransport, and that
// it still uses HTTP/1.1. Another transport of NewTransport does not trust these certificates, and keeps up to 128 idle
// connections per host.
func TestNewTransport(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 1, r.ProtoMajor)
		service.Say(w, 200, `{"code":0,"data":{}}`)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // it reports the refused certificate
	srv.StartTLS()
	defer srv.Close()
	own := payvault.NewTransport()
	own.TLSClientConfig.RootCAs = x509.NewCertPool()
	own.TLSClientConfig.RootCAs.AddCert(srv.Certificate())
	require.NoError(t, addEvent(t, service.Client(t, srv.URL, service.Over(own))))
	other := payvault.NewTransport()
	require.ErrorContains(t, addEvent(t, service.Client(t, srv.URL, service.Over(other))), "certificate")
	assert.Equal(t, 128, other.MaxIdleConnsPerHost)
}

// TestWithHTTPClient checks that the client follows no redirect and keeps no cookie, even if the given http.Client
// would do so. NewClient does not change the http.Client, and later changes by the caller have no effect.
func TestWithHTTPClient(t *testing.T) {
	t.Parallel()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	own := &http.Client{Transport: &http.Transport{}, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		panic("a redirect was considered")
	}}
	server := service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Cookies())
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Location", "/elsewhere")
		service.Say(w, []int{http.StatusTemporaryRedirect, 200, 200}[n-1], `{"code":0,"data":{}}`)
	})
	client := service.Client(t, server.URL, payvault.WithHTTPClient(own))
	require.ErrorIs(t, addEvent(t, client), payvault.ErrMalformedResponse)
	require.NoError(t, addEvent(t, client))
	assert.NotNil(t, own.CheckRedirect)
	assert.Same(t, jar, own.Jar)
	own.Transport, own.Timeout = nil, 1
	require.NoError(t, addEvent(t, client), "what the caller does to it later does not matter")
	assert.Len(t, server.Seen(), 3)
}

// TestWithUserAgent checks that the User-Agent header has the product of the caller before payvault-go.
func TestWithUserAgent(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]string{"acme/2.1": `^acme/2\.1 payvault-go/`, "": "^payvault-go/"} {
		server := service.Answer(t, 200, `{"code":0,"data":{}}`)
		require.NoError(t, addEvent(t, service.Client(t, server.URL, payvault.WithUserAgent(product))))
		assert.Regexp(t, want+payvault.Version+` \(go[^;]+; \w+\)$`, server.Seen()[0].Header.Get("User-Agent"))
	}
}

// TestWithHeader checks that a header is sent with each attempt of its call, and with no other call.
func TestWithHeader(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		service.Say(w, map[bool]int{true: http.StatusTooManyRequests, false: 200}[n == 1], `{"code":0,"data":{}}`)
	})
	client := service.Client(t, server.URL)
	require.NoError(t, addEvent(t, client, payvault.WithHeader("x-request-id", "7"), payvault.WithHeader("X-Tag", "a"),
		payvault.WithHeader("X-Tag", "b\tc"), nil))
	require.NoError(t, addEvent(t, client))
	requests := server.Seen()
	for _, r := range requests[:2] {
		assert.Equal(t, []string{"7"}, r.Header.Values("X-Request-Id"))
		assert.Equal(t, []string{"a", "b\tc"}, r.Header.Values("X-Tag"))
		assert.Equal(t, []string{service.BasicToken}, r.Header.Values("Authorization"))
	}
	assert.Empty(t, requests[2].Header.Get("X-Tag"))
}

// TestWithHeader_refused checks that a call fails if WithHeader gets a reserved header, an invalid name or an invalid
// value. The error does not repeat the value.
func TestWithHeader_refused(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere)
	refused := map[string][]string{
		"X-A": {"a\r\nX-B: hunter2", "hunter2\n", "\x00hunter2"}, "X-A\r\nX-B": {"hunter2"}, "X A": {"hunter2"},
		"": {"hunter2"}, "X-É": {"hunter2"}, "X:": {"hunter2"},
	}
	for name := range strings.FieldsSeq(`authorization Host Content-Type content-length Content-Anything Accept
		Accept-Encoding User-Agent Connection Transfer-Encoding Te Trailer Upgrade Expect Proxy-Authorization
		Proxy-Connection Keep-Alive Idempotency-Key X-Idempotency-Key`) {
		refused[name] = []string{"hunter2"}
	}
	for name, values := range refused {
		for _, value := range values {
			err := addEvent(t, client, payvault.WithHeader(name, value))
			require.ErrorIs(t, err, payvault.ErrInvalidRequest, "%q: %q", name, value)
			assert.Len(t, service.AsError(t, err).Fields["WithHeader"], 1)
			service.AssertHidden(t, err, "hunter2")
		}
	}
}

// TestWithMaxAttempts checks that WithMaxAttempts of a call overrides the RetryPolicy of the client.
func TestWithMaxAttempts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy, want int
		option       payvault.CallOption
	}{
		{4, 1, payvault.WithMaxAttempts(1)},
		{1, 2, payvault.WithMaxAttempts(2)},
		{3, 7, payvault.WithMaxAttempts(7)},
		{0, 4, nil}, // the default value
	} {
		var raw payvault.Response
		client := answering(t, http.StatusTooManyRequests, "", service.Impatient(test.policy))
		err := addEvent(t, client, test.option, payvault.WithResponse(&raw))
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Equal(t, test.want, raw.Attempts)
	}
	err := addEvent(t, service.Client(t, service.Nowhere), payvault.WithMaxAttempts(0))
	service.AssertInvalid(t, err, payvault.OpWebhooksAddEvent, service.Fields{"WithMaxAttempts": {"is not positive"}})
}

// TestWithResponse checks that WithResponse gives the whole answer, or a Response with nothing but a Duration if
// nothing was sent.
func TestWithResponse(t *testing.T) {
	t.Parallel()
	const body = `{"code":0,"data":{},"unknown":[1.50]}`
	raw := payvault.Response{StatusCode: 99, Body: []byte("of the call before")}
	client := answering(t, 201, body)
	require.NoError(t, addEvent(t, client, payvault.WithResponse(&raw)))
	assert.Positive(t, raw.Duration)
	assert.Equal(t, payvault.Response{
		StatusCode: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body), Attempts: 1,
		Duration: raw.Duration,
	}, raw)
	require.Error(t, client.Invoices.Send(t.Context(), "", nil, payvault.WithResponse(&raw)))
	assert.Equal(t, payvault.Response{Duration: raw.Duration}, raw, "a request that fails a local check has no answer")
}

// TestClient_ForMerchant checks that the clients that ForMerchant returns share the connections of the first client,
// and that each of them sends its own merchant_id.
func TestClient_ForMerchant(t *testing.T) {
	t.Parallel()
	connections := map[string]bool{}
	server := service.Observe(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		service.Say(w, 200, `{"code":0,"data":{}}`)
	})
	client := service.Client(t, server.URL)
	other := client.ForMerchant(7)
	for i, c := range []*payvault.Client{client, other, client.ForMerchant(8), client} {
		require.NoError(t, c.Payees.Delete(t.Context(), 1))
		assert.Equal(t, []string{"", "7", "8", ""}[i], server.Seen()[i].Query.Get("merchant_id"))
	}
	assert.Len(t, connections, 1, "they share connections")
	other.CloseIdleConnections()
	require.NoError(t, addEvent(t, client), "the client can still be used")
	assert.Len(t, connections, 2)
}

// TestClient_ForMerchant_refused checks that a call fails if the ID that ForMerchant got is not positive.
func TestClient_ForMerchant_refused(t *testing.T) {
	t.Parallel()
	for _, id := range []payvault.MerchantID{0, -1} {
		err := service.Client(t, service.Nowhere).ForMerchant(id).Payees.Delete(t.Context(), 1)
		want := service.Fields{"merchant_id": {"of ForMerchant is not positive"}}
		service.AssertInvalid(t, err, payvault.OpPayeesDelete, want)
	}
}

// TestWithRetryPolicy_maxBackoff checks that no wait before a retry is longer than MaxBackoff, so that a call makes all
// its attempts shortly before its deadline.
func TestWithRetryPolicy_maxBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		refused := service.RoundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		})
		client := service.Client(t, service.Nowhere, service.Over(refused), payvault.WithRetryPolicy(
			payvault.RetryPolicy{MaxAttempts: 4, MinBackoff: time.Hour, MaxBackoff: time.Millisecond}))
		start := time.Now()
		_, err := client.Applications.Validate(ctx, 1)
		assert.Equal(t, 4, service.AsError(t, err).Attempts)
		assert.LessOrEqual(t, time.Since(start), 3*time.Millisecond)
	})
}

// TestWithTimeout_isOfOneAttempt checks that WithTimeout and the Timeout of the caller's http.Client both limit a
// single attempt. If both are set, the shorter timeout ends the attempt.
func TestWithTimeout_isOfOneAttempt(t *testing.T) {
	t.Parallel()
	const none, second = time.Duration(0), time.Second
	for _, test := range []struct{ ofClient, ofOption, want time.Duration }{
		{5 * second, none, 5 * second},
		{none, 3 * second, 3 * second},
		{2 * second, 3 * second, 2 * second},
		{5 * second, 3 * second, 3 * second},
		{none, none, time.Minute}, // the default value
	} {
		synctest.Test(t, func(t *testing.T) {
			hc := service.Pipe(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			hc.Timeout = test.ofClient
			opts := []payvault.Option{payvault.WithHTTPClient(hc), service.Impatient(2)}
			if test.ofOption > 0 {
				opts = append(opts, payvault.WithTimeout(test.ofOption))
			}
			start := time.Now()
			_, err := service.Client(t, service.Nowhere, opts...).Applications.Validate(t.Context(), 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "an attempt took too long", "the text must not look like the end of the context")
			assert.Equal(t, 2*test.want, time.Since(start).Round(time.Millisecond), "two attempts")
		})
	}
}

package payvault_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

const (
	apiKey     = "test-api-key"
	basicToken = "Basic OnRlc3QtYXBpLWtleQ==" // of ":test-api-key"
	basePath   = "/gateway/v1"

	// actingFor is the merchant_id of the request fixtures.
	actingFor  payvault.MerchantID = 212346
	thirdParty payvault.MerchantID = 999999
	thirdNamed                     = "names another merchant than ForMerchant"
	badSegment                     = `must not be empty, "." or ".."`
	noID                           = "is required"
	badExpDate                     = "is not of the form MMYY"
	badDate                        = "not a date of the form YYYY-MM-DD"
)

// exchanges stands for the payment service in one test. It lives under a base path, takes the requests that it
// expects, and fails the test on any other and on those that do not come.
type exchanges struct {
	t         *testing.T
	server    *httptest.Server
	mu        sync.Mutex
	exchanges []*exchange
}

// exchange is an expected request and its answer.
type exchange struct {
	method, target string
	left           int
	status         int
	header         http.Header // besides those of every request
	serve          http.HandlerFunc
}

// newService starts a service that expects nothing yet.
func newService(t *testing.T) *exchanges {
	t.Helper()
	s := &exchanges{t: t}
	s.server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.server.Close()
		for _, e := range s.exchanges {
			if e.left > 0 {
				t.Errorf("missing %d times: %s %s", e.left, e.method, e.target)
			}
		}
	})
	return s
}

// client returns a client of the service.
func (s *exchanges) client(opts ...payvault.Option) *payvault.Client {
	s.t.Helper()
	c, err := payvault.NewClient(s.server.URL+basePath, apiKey, opts...)
	require.NoError(s.t, err)
	s.t.Cleanup(c.CloseIdleConnections)
	return c
}

// expect makes the service take one request with exactly this method, target (the escaped path below the base path,
// with the query), JSON body and no unusual header. Body and answer name files of testdata or are JSON
// themselves; an empty body stands for none.
func (s *exchanges) expect(method, target, body, answer string) *exchange {
	s.t.Helper()
	wantBody, reply := fixture(s.t, body), fixture(s.t, answer)
	var e *exchange
	e = s.handle(method, target, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		assert.NoError(s.t, err)
		contentType := ""
		if wantBody == "" {
			assert.Empty(s.t, string(got))
		} else {
			contentType = "application/json"
			assert.JSONEq(s.t, wantBody, string(got))
		}
		s.checkHeader(r, contentType, e.header)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.status)
		_, _ = io.WriteString(w, reply)
	})
	return e
}

// handle makes the service take one request to a target and leaves the rest to serve.
func (s *exchanges) handle(method, target string, serve http.HandlerFunc) *exchange {
	e := &exchange{method: method, target: target, left: 1, status: http.StatusOK, header: http.Header{}, serve: serve}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = append(s.exchanges, e)
	return e
}

// ServeHTTP finds the first exchange that is left for a request.
func (s *exchanges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := s.next(r)
	if e == nil {
		s.t.Errorf("unexpected request: %s %s", r.Method, r.RequestURI)
		http.Error(w, "unexpected", http.StatusNotFound)
		return
	}
	e.serve(w, r)
}

func (s *exchanges) next(r *http.Request) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.exchanges {
		if e.left > 0 && e.method == r.Method && basePath+e.target == r.RequestURI {
			e.left--
			return e
		}
	}
	return nil
}

// checkHeader holds a request against the exact headers that it may have.
func (s *exchanges) checkHeader(r *http.Request, contentType string, extra http.Header) {
	want := extra.Clone()
	want.Set("Accept", "application/json")
	want.Set("Accept-Encoding", "gzip")
	want.Set("Authorization", basicToken)
	want.Set("User-Agent", r.UserAgent())
	if contentType != "" {
		want.Set("Content-Type", contentType)
	}
	if r.Method == http.MethodPost {
		want.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	assert.Equal(s.t, want, r.Header)
	assert.Empty(s.t, r.TransferEncoding)
	assert.Regexp(s.t, `^payvault-go/\d+\.\d+\.\d+ \(go.*\)$`, r.UserAgent())
}

// fixture returns a file of testdata. What starts like JSON is returned as it is.
func fixture(t *testing.T, nameOrJSON string) string {
	t.Helper()
	if nameOrJSON == "" || strings.ContainsAny(nameOrJSON[:1], `{["`) {
		return nameOrJSON
	}
	text, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(nameOrJSON)))
	require.NoError(t, err)
	return strings.TrimSuffix(string(text), "\n")
}

// assertWire checks that a value has the given wire form, and comes back from it unchanged with either JSON package.
func assertWire[T any](t *testing.T, value T, wire string) {
	t.Helper()
	text, err := payvault.MarshalWire(value)
	require.NoError(t, err)
	assert.JSONEq(t, wire, string(text))
	var back, backV2 T
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, value, back)
	require.NoError(t, jsonv2.Unmarshal(text, &backV2))
	assert.Equal(t, value, backV2)
}

// assertError checks all exported fields of an *Error.
func assertError(t *testing.T, err error, want payvault.Error) {
	t.Helper()
	got, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, want, payvault.Error{
		Op: got.Op, StatusCode: got.StatusCode, Code: got.Code, Message: got.Message, Detail: got.Detail,
		Fields: got.Fields, Delivery: got.Delivery, Attempts: got.Attempts, RetryAfter: got.RetryAfter,
	})
}

// fields are the problems of a request, keyed by wire path.
type fields = map[string][]string

// assertInvalid checks the error of a request that was not sent.
func assertInvalid(t *testing.T, err error, op payvault.Operation, want fields) {
	t.Helper()
	assertError(t, err, payvault.Error{Op: op, Fields: want, Delivery: payvault.NotSent})
	assert.ErrorIs(t, err, payvault.ErrInvalidRequest)
	assert.False(t, payvault.SafeToRetry(err))
}

// assertNoMerchant checks the error of an operation that cannot act for another merchant.
func assertNoMerchant(t *testing.T, err error, op payvault.Operation) {
	t.Helper()
	assertError(t, err, payvault.Error{Op: op, Delivery: payvault.NotSent})
	assert.ErrorIs(t, err, payvault.ErrMerchantNotSupported)
	assert.False(t, payvault.SafeToRetry(err))
}

// callers is how many goroutines share one request in a test.
const callers = 8

// amount returns an exact decimal number.
func amount(text string) payvault.Amount { return payvault.AmountOf(decimal.MustParse(text)) }

// canned is a RoundTripper that reads the request and answers at once, always in the same way.
type canned struct {
	header http.Header
	body   []byte
}

func newCanned(body []byte) *canned {
	return &canned{http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}, body}
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: c.header, ContentLength: int64(len(c.body)),
		Body: io.NopCloser(bytes.NewReader(c.body)), Request: req,
	}, nil
}

type roundTripper = service.RoundTripper

func asError(tb testing.TB, err error) *payvault.Error { tb.Helper(); return service.AsError(tb, err) }

func assertHidden(tb testing.TB, err error, hidden ...string) {
	tb.Helper()
	service.AssertHidden(tb, err, hidden...)
}

func observe(tb testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *service.Server {
	tb.Helper()
	return service.Observe(tb, answer)
}

func say(w http.ResponseWriter, status int, body string) { service.Say(w, status, body) }

func tableCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}}
}

func tableClient(tb testing.TB, baseURL string, opts ...payvault.Option) *payvault.Client {
	tb.Helper()
	return service.Client(tb, baseURL, append([]payvault.Option{payvault.WithMerchantID(4242)}, opts...)...)
}

func cannedClient(tb testing.TB, rt http.RoundTripper) *payvault.Client {
	tb.Helper()
	c, err := payvault.NewClient("https://service.test/gateway/v1", "test-api-key", service.Over(rt),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: time.Microsecond, MaxBackoff: time.Microsecond}))
	require.NoError(tb, err)
	return c
}

func newGates(n, open int) []chan struct{} {
	gates := make([]chan struct{}, n)
	for i := range gates {
		if gates[i] = make(chan struct{}); i < open {
			close(gates[i])
		}
	}
	return gates
}

func plainCode(text string) string {
	return strings.NewReplacer("{", "", "}", "", "[", "", "]", "", `"`, "", `\`, "").Replace(text)
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	require.NoError(t, err)
	return string(b)
}

func fuzzClient(t *testing.T, answer func(*http.Request) (int, []byte), opts ...payvault.Option) *payvault.Client {
	t.Helper()
	return tableClient(t, "http://127.0.0.1"+basePath, append(opts, service.Over(roundTripper(func(r *http.Request) (*http.Response, error) {
		status, body := answer(r)
		return service.Reply(status, string(body)), nil
	})))...)
}

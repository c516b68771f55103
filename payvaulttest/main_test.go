package payvaulttest_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	merchantID = 100001
	secondID   = 100002
	partnerID  = 900001

	customers = "/platform/vault/customer"
	payees    = "/platform/vault/payee"
)

// An api uses the key of one account to send HTTP requests to a server.
type api struct {
	srv *payvaulttest.Server
	key string
}

func newAPI(t *testing.T, opts ...payvaulttest.Option) api {
	t.Helper()
	opts = append([]payvaulttest.Option{payvaulttest.WithBasePath("/api/v1")}, opts...)
	srv := payvaulttest.NewServer(opts...)
	t.Cleanup(srv.Close)
	return api{srv: srv, key: srv.Merchant().APIKey}
}

// as returns an api that uses the key of another account.
func (a api) as(account payvaulttest.Account) api {
	a.key = account.APIKey
	return a
}

func (a api) partner() api { return a.as(a.srv.Partner()) }

func (a api) second(t *testing.T) api {
	t.Helper()
	accounts := a.srv.Accounts()
	require.Len(t, accounts, 3)
	return a.as(accounts[2])
}

func (a api) request(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, a.srv.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Accept", "application/json")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.SetBasicAuth("", a.key)
	return r
}

// A reply is an answer whose body has been read.
type reply struct {
	status int
	header http.Header
	body   string
}

func (a api) send(t *testing.T, r *http.Request) reply {
	t.Helper()
	got, err := a.try(t, r)
	require.NoError(t, err)
	return got
}

// try sends a request. It returns the part of the answer that arrived, and the error of the transport.
func (a api) try(t *testing.T, r *http.Request) (reply, error) {
	t.Helper()
	resp, err := a.srv.HTTPClient().Do(r)
	if err != nil {
		return reply{}, err //nolint:wrapcheck // as it is
	}
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err //nolint:wrapcheck // as it is
}

// start sends a request in the background. It returns a channel that gets nil when the whole answer has arrived, or the
// error of the transport.
func (a api) start(r *http.Request) <-chan error {
	ended := make(chan error, 1)
	go func() {
		resp, err := a.srv.HTTPClient().Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
		ended <- err
	}()
	return ended
}

func (a api) do(t *testing.T, method, path, body string) reply {
	t.Helper()
	return a.send(t, a.request(t, method, path, body))
}

func (a api) post(t *testing.T, path, body string) reply {
	t.Helper()
	return a.do(t, http.MethodPost, path, body)
}

func (a api) get(t *testing.T, path string) reply {
	t.Helper()
	return a.do(t, http.MethodGet, path, "")
}

// ok checks that a platform operation was performed, and returns the data of the answer.
func (r reply) ok(t *testing.T) map[string]any {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.body)
	var envelope struct {
		Code    json.Number    `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.body), &envelope), r.body)
	require.Equal(t, json.Number("0"), envelope.Code, r.body)
	require.Equal(t, "Success", envelope.Message)
	return envelope.Data
}

// refused checks that a platform operation was refused with the status and with a message for each of the fields.
func (r reply) refused(t *testing.T, status int, fields ...string) {
	t.Helper()
	require.Equal(t, status, r.status, r.body)
	assert.Equal(t, "application/json", r.header.Get("Content-Type"))
	var envelope struct {
		Code    int                 `json:"code"`
		Message string              `json:"message"`
		Data    map[string][]string `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.body), &envelope), r.body)
	assert.Equal(t, status, envelope.Code)
	assert.NotEmpty(t, envelope.Message)
	for _, field := range fields {
		assert.NotEmpty(t, envelope.Data[field], "%s in %s", field, r.body)
	}
}

// tokenized checks that a tokenize request was performed, and returns the answer.
func (r reply) tokenized(t *testing.T) map[string]any {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.body)
	answer := r.object(t)
	require.Equal(t, "000", answer["rcode"], r.body)
	return answer
}

func (r reply) object(t *testing.T) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.body), &object), r.body)
	return object
}

// A form is the beginning of a multipart body with the boundary b. The closing boundary is still missing.
type form string

// part returns the form with one more part. A part with a file name has the content type of a PDF.
func (f form) part(name, file, content string) form {
	f += form("--b\r\nContent-Disposition: form-data; name=\"" + name + "\"")
	if file != "" {
		f += form("; filename=\"" + file + "\"\r\nContent-Type: application/pdf")
	}
	return f + form("\r\n\r\n"+content+"\r\n")
}

func (a api) postForm(t *testing.T, path string, f form) reply {
	t.Helper()
	r := a.request(t, http.MethodPost, path, string(f+"--b--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	return a.send(t, r)
}

// query returns a URL query with its question mark, from pairs of a name and a value.
func query(pairs ...string) string {
	values := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		values.Add(pair[0], pair[1])
	}
	return "?" + values.Encode()
}

// inject injects a fault and returns the function that removes it.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) func() {
	t.Helper()
	remove, err := srv.Inject(fault)
	require.NoError(t, err)
	return remove
}

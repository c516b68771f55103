package payvaulttest_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestPaths checks that a path must match exactly: the server neither cleans the path nor ignores case.
func TestPaths(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, path := range []string{
		"", "/pg/tokenize/", "/pg//tokenize", "/platform/../pg/tokenize", "/PG/tokenize", "/platform/invoice//send",
	} {
		a.post(t, path, newCard).refused(t, http.StatusNotFound)
	}
	r := a.request(t, http.MethodPost, "", newCard)
	r.URL.Path = "/pg/tokenize" // the path lacks the base path
	a.send(t, r).refused(t, http.StatusNotFound)
	assert.Empty(t, a.srv.AllCommits())
}

// TestBodies checks that an operation with a JSON body accepts only one well-formed JSON object of at most 1 MiB.
func TestBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const payee = `{"payee_name":"P"}`
	padded := func(n int) string { return `{"payee_name":"` + strings.Repeat("x", n-17) + `"}` }
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"1 MiB":         {padded(1 << 20), 200},
		"much more":     {strings.Repeat("x", 4<<20), 413},
		"more":          {padded(1<<20 + 1), 413},
		"nothing":       {"", 415},
		"two values":    {payee + payee, 400},
		"cut":           {payee[:len(payee)-1], 400},
		"null":          {`null`, 400},
		"invalid UTF-8": {"{\"payee_name\":\"\xff\"}", 400},
		"a deep well":   {`{"payee_name":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := a.post(t, payees, test.body)
			assert.Equal(t, test.status, got.status, got.body)
		})
	}
}

// TestContentTypes checks which content types are accepted.
func TestContentTypes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for contentType, status := range map[string]int{
		"application/json":                  http.StatusOK,
		"Application/JSON;charset=UTF-8":    http.StatusOK,
		"":                                  http.StatusUnsupportedMediaType,
		"application/x-www-form-urlencoded": http.StatusUnsupportedMediaType,
	} {
		r := a.request(t, http.MethodPost, payees, `{"payee_name":"P"}`)
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", "text/html") // must make no difference
		assert.Equal(t, status, a.send(t, r).status, contentType)
	}
}

// TestTLSAndHTTP2 checks that WithTLS serves HTTP/2, and that a client trusts the server only if the client has the
// server's certificate.
func TestTLSAndHTTP2(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithTLS())
	assert.True(t, strings.HasPrefix(a.srv.URL, "https://127.0.0.1:"))
	a.post(t, "/pg/tokenize", newCard).tokenized(t)
	assert.Equal(t, "HTTP/2.0", a.srv.Requests()[0].Proto)
	_, err := http.DefaultClient.Do(a.request(t, http.MethodGet, "/", "")) //nolint:bodyclose // there is no answer
	require.Error(t, err, "no one else trusts it")
	roots := x509.NewCertPool()
	roots.AddCert(a.srv.Certificate())
	own := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	t.Cleanup(own.CloseIdleConnections)
	_, err = a.srv.Client(payvault.WithHTTPClient(own)).Customers.List(t.Context(), nil)
	require.NoError(t, err)
	assert.Nil(t, newAPI(t).srv.Certificate())
}

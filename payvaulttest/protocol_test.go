package payvaulttest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, path := range []string{
		"", "/", "/pg", "/pg/tokenize/", "/pg//tokenize", "/platform/../pg/tokenize", "/PG/tokenize", "/platform/vault/payee/",
		"/platform/invoice//send", "/platform/aus/add/x",
	} {
		a.post(t, path, newCard).refused(t, http.StatusNotFound)
	}
	r := a.request(t, http.MethodPost, "", newCard)
	r.URL.Path = "/pg/tokenize"
	a.send(t, r).refused(t, http.StatusNotFound)
	assert.Empty(t, a.srv.AllCommits())
}

func TestMethods(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for path, allow := range map[string]string{
		"/pg/tokenize": "POST", "/platform/vault/customer": "GET, POST", "/platform/vault/payee/1": "DELETE",
		"/platform/application/1/validate": "GET", "/platform/webhook/1/event/e": "POST",
	} {
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodOptions} {
			got := a.do(t, method, path, "")
			assert.Equal(t, http.StatusMethodNotAllowed, got.status)
			assert.Equal(t, allow, got.header.Get("Allow"))
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, body := range map[string]string{
		"no JSON":          `card_number=4111111111111111`,
		"two values":       newCard + newCard,
		"garbage":          newCard + "x",
		"a bracket":        newCard + "}",
		"cut":              newCard[:len(newCard)-1],
		"an array":         `[` + newCard + `]`,
		"a text":           `"text"`,
		"null":             `null`,
		"invalid UTF-8":    "{\"merchant_id\":\"100001\",\"cardholder_name\":\"\xff\"}",
		"a trailing comma": `{"merchant_id":"100001",}`,
		"blanks":           "   ",
		"a deep well":      `{"echo_fields":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := a.post(t, "/pg/tokenize", body)
			assert.Equal(t, http.StatusBadRequest, got.status)
			assert.Equal(t, "400", got.object(t)["rcode"])
		})
	}
	a.post(t, payees, "\t{\"payee_name\": \"P\"} \r\n").ok(t)
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	padding := func(n int) string { return `{"payee_name":"` + strings.Repeat("x", n-17) + `"}` }
	a.post(t, payees, padding(1<<20+1)).refused(t, http.StatusRequestEntityTooLarge)
	a.post(t, payees, padding(1<<20)).ok(t)
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for contentType, status := range map[string]int{
		"application/json":                  http.StatusOK,
		"application/json; charset=utf-8":   http.StatusOK,
		"Application/JSON;charset=UTF-8":    http.StatusOK,
		"":                                  http.StatusUnsupportedMediaType,
		"text/plain":                        http.StatusUnsupportedMediaType,
		"application/json; charset=latin1":  http.StatusUnsupportedMediaType,
		"application/x-www-form-urlencoded": http.StatusUnsupportedMediaType,
		"application/json;;":                http.StatusUnsupportedMediaType,
	} {
		r := a.request(t, http.MethodPost, payees, `{"payee_name":"P"}`)
		r.Header.Set("Content-Type", contentType)
		assert.Equal(t, status, a.send(t, r).status, contentType)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for accept, status := range map[string]int{
		"application/json":               http.StatusOK,
		"*/*":                            http.StatusOK,
		"text/html, application/*;q=0.5": http.StatusOK,
		"":                               http.StatusNotAcceptable,
		"text/html":                      http.StatusNotAcceptable,
	} {
		r := a.request(t, http.MethodGet, "/platform/vault/customer", "")
		r.Header.Set("Accept", accept)
		assert.Equal(t, status, a.send(t, r).status, accept)
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithTLS())
	assert.True(t, strings.HasPrefix(a.srv.URL, "https://127.0.0.1:"))
	a.post(t, "/pg/tokenize", newCard).tokenized(t)
	assert.Equal(t, "HTTP/2.0", a.srv.Requests()[0].Proto)
	_, err := http.DefaultClient.Do(a.request(t, http.MethodGet, "/", "")) //nolint:bodyclose // there is no answer
	require.Error(t, err, "no one else trusts it")
}

func TestIDs(t *testing.T) {
	t.Parallel()
	run := func(opts ...payvaulttest.Option) [3]any {
		a := newAPI(t, opts...)
		card := a.post(t, "/pg/tokenize", newCard).tokenized(t)
		payee := a.post(t, payees, `{"payee_name":"P"}`).ok(t)
		return [3]any{card["card_id"], card["pg_id"], payee["payee_id"]}
	}
	assert.Equal(t, run(), run())
	assert.Equal(t, run(payvaulttest.WithIDs(7)), run(payvaulttest.WithIDs(7)))
	assert.NotEqual(t, run(), run(payvaulttest.WithIDs(7)))
}

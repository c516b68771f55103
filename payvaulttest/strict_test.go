package payvaulttest_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// raw sends a text as it is and returns the status of the answer.
func (a api) raw(t *testing.T, text string) int {
	t.Helper()
	u, err := url.Parse(a.srv.URL)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close()) }()
	_, err = fmt.Fprint(conn, text)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestOptionsOfTheServer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	assert.Equal(t, http.StatusNotFound, a.raw(t, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	require.Len(t, a.srv.Requests(), 1)
	assert.Equal(t, "*", a.srv.Requests()[0].Path)
}

func TestEscapedPaths(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	a.get(t, "/%70latform/vault/customer").refused(t, http.StatusNotFound)
	a.get(t, "/platform/vault/custome%72").refused(t, http.StatusNotFound)
	a.post(t, "/platform/invoice/%49NV-1/send", "").ok(t)
}

func TestQualities(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for accept, status := range map[string]int{
		"application/json;q=0":               http.StatusNotAcceptable,
		"application/json; q=0.0, text/html": http.StatusNotAcceptable,
		"application/json;q=none":            http.StatusNotAcceptable,
		"*/*, application/json;q=0":          http.StatusNotAcceptable,
		"application/json;q=0, */*":          http.StatusNotAcceptable,
		"application/*;q=0, */*":             http.StatusNotAcceptable,
		"*/*;q=0, application/*;q=0.1":       http.StatusOK,
		"APPLICATION/JSON;Q=0.001":           http.StatusOK,
	} {
		r := a.request(t, http.MethodGet, "/platform/vault/customer", "")
		r.Header.Set("Accept", accept)
		assert.Equal(t, status, a.send(t, r).status, accept)
	}
}

func TestHeadersOfBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, values := range map[string][]string{
		"Content-Type":     {"application/json", "text/html"},
		"Content-Encoding": {"gzip"},
	} {
		r := a.request(t, http.MethodPost, payees, `{"payee_name":"P"}`)
		r.Header[name] = values
		a.send(t, r).refused(t, http.StatusUnsupportedMediaType)
	}
	assert.Empty(t, a.srv.Payees(merchantID))
}

func TestWhatFollowsAForm(t *testing.T) {
	t.Parallel()
	const form = "--b\r\nContent-Disposition: form-data; name=\"disputeResponse\"\r\n\r\n{\"cbr_response_type\":\"ND\"}\r\n--b--"
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"nothing":             {form, http.StatusOK},
		"a line break":        {form + "\r\n", http.StatusOK},
		"a preamble":          {"preamble\r\n" + form, http.StatusOK},
		"two line breaks":     {form + "\r\n\r\n", http.StatusBadRequest},
		"a blank":             {form + " \r\n", http.StatusBadRequest},
		"a second form":       {form + "\r\n" + form, http.StatusBadRequest},
		"one after a text":    {form + "\r\njunk\r\n" + form + "\r\n", http.StatusBadRequest},
		"one after LF":        {strings.ReplaceAll(form, "\r\n", "\n") + "\n" + form, http.StatusBadRequest},
		"one far behind":      {form + "\r\n" + strings.Repeat("x", 100_000) + "\r\n" + form, http.StatusBadRequest},
		"an end that is none": {strings.Replace(form, "--b--", "--b--x", 1), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
			r := a.request(t, http.MethodPost, path, test.body)
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			assert.Equal(t, test.status, a.send(t, r).status)
		})
	}
}

func TestSeedIsReadLikeARequest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`null`:                             "null",
		`{"accounts":[null]}`:              "accounts[0]",
		`{"accounts":[{"merchant_id":5}]}`: "accounts[0]: an account needs an API key",
		`{"accounts":[{"merchant_id":-5,"api_key":"k"}]}`:                                "accounts[0]: an account needs a merchant ID",
		`{"accounts":[{"merchant_id":5,"api_key":"k","sms":null}]}`:                      "accounts[0].sms",
		`{"accounts":[{"merchant_id":5,"api_key":"k"},{"merchant_id":6,"api_key":"k"}]}`: "share one key",
		`{"ACCOUNTS":[]}`: "ACCOUNTS",
		`{"accounts":[{"Merchant_ID":5,"api_key":"k"}]}`:            "accounts[0].Merchant_ID",
		`{"invoices":[{"invoice_id":"A"}],"invoices":[]}`:           "invoices is given twice",
		`{"invoices":[{"invoice_id":"A","invoice_id":"B"}]}`:        "invoices[0].invoice_id is given twice",
		`{"subscriptions":[{"transactions":[{"tran_time":{}}]}]}`:   "tran_time must be a string",
		`{"subscriptions":[{"transactions":[{"tran_time":null}]}]}`: "tran_time must be a string",
		`{"webhooks":[{"events":["Not an event"]}]}`:                "events",
		`{"webhooks":[{"events":[""]}]}`:                            "events",
		`{"webhooks":[{"events":["transactions_status_updated"]}]}`: "events",
	} {
		_, err := payvaulttest.LoadSeed(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
	seed, err := payvaulttest.LoadSeed(strings.NewReader(`{"invoices":null,"webhooks":[{"events":null}]}`))
	require.NoError(t, err, "lists that are not set")
	assert.Len(t, seed.Webhooks, 1)
	many := `{"invoices":[{}` + strings.Repeat(`,{}`, 2000) + `]}`
	seed, err = payvaulttest.LoadSeed(strings.NewReader(many))
	require.NoError(t, err, "a seed may be long")
	assert.Len(t, seed.Invoices, 2001)
}

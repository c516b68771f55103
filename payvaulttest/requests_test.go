package payvaulttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestRequests checks the fields of the requests that Server.Requests returns. Their Header has a redacted API key.
func TestRequests(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	a.post(t, "/pg/tokenize", newCard).tokenized(t)
	a.get(t, customers+"?count=5&order_on=nonsense").refused(t, http.StatusBadRequest)
	a.post(t, "/nowhere", `{"a":1}`).refused(t, http.StatusNotFound)

	requests := a.srv.Requests()
	require.Len(t, requests, 3)
	first := requests[0]
	assert.Equal(t, payvault.OpTokensTokenize, first.Operation)
	assert.Equal(t, []string{"POST", "/api/v1/pg/tokenize"}, []string{first.Method, first.Path})
	assert.Equal(t, "application/json", first.Header.Get("Content-Type"))
	assert.Equal(t, "[redacted]", first.Header.Get("Authorization"))
	assert.Equal(t, basic(":"+a.key), first.Authorization())
	assert.Equal(t, newCard, string(first.Body()))
	assert.Equal(t, int64(len(newCard)), first.Size)
	assert.Equal(t, int64(len(newCard)), first.ContentLength)
	assert.True(t, first.Complete)
	assert.True(t, first.Time.Equal(noon()))
	first.Body()[0] = 'x'
	assert.Equal(t, newCard, string(first.Body()), "a copy")

	assert.Equal(t, "5", requests[1].Query.Get("count"))
	assert.Empty(t, requests[1].Body())
	assert.Empty(t, requests[2].Operation)
}

// TestRequestHistory checks that Server.Requests returns only the newest requests, as many as WithRequestHistory
// permits.
func TestRequestHistory(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 3} {
		a := newAPI(t, payvaulttest.WithRequestHistory(limit))
		for i := range 5 {
			a.get(t, fmt.Sprintf("%s?page=%d", customers, i))
		}
		pages := []string{}
		for _, request := range a.srv.Requests() {
			pages = append(pages, request.Query.Get("page"))
		}
		assert.Equal(t, []string{"2", "3", "4"}[:limit], pages)
	}
}

// secretBody is a tokenize request with secrets that must not be printed. The tests search for the cvv2 with its
// quotes, because the three digits alone may occur by chance.
const secretBody = `{"merchant_id":"100001","card_number":"4929000000006","exp_date":"1229","cvv2":"987"}`

func assertNoSecrets(t *testing.T, printed, how string) {
	t.Helper()
	for _, secret := range []string{
		"4929000000006", `"987"`, "cvv2", "merchant-api-key", "partner-vendor-key", "OnBhcnRuZXI", "Om1lcmNoYW50",
		"99-1111111", "TOP",
		fmt.Sprintf("%x", "4929000000006"), fmt.Sprintf("%X", "merchant-api-key"), fmt.Sprintf("%d", []byte("4929000000006")),
	} {
		assert.NotContains(t, printed, secret, how)
	}
}

// TestNothingPrintsSecrets checks that no fmt verb, no log handler and no JSON encoding shows the secrets of requests,
// accounts and records.
func TestNothingPrintsSecrets(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.post(t, "/pg/tokenize", secretBody).tokenized(t)
	a.postForm(t, respond, answer("TOP"))
	app := a.srv.Applications.Seed(payvaulttest.Application{})
	a.partner().save(t, fmt.Sprintf("/platform/application/%d", app.ID), `{"key":"tax_id","value":"99-1111111"}`)

	requests := a.srv.Requests()
	for _, value := range []any{
		requests, requests[0], &requests[0], a.srv, a.srv.Accounts(), a.srv.Merchant(), a.srv.Cards.All(),
		requests[1].Parts, requests[1].Parts[0], a.srv.Applications.All(),
		struct{ Request payvaulttest.Request }{requests[0]},
		struct{ request payvaulttest.Request }{requests[0]},
	} {
		how := fmt.Sprintf("%T", value)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			assertNoSecrets(t, fmt.Sprintf(verb, value), verb+" of "+how)
		}
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("record", "value", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("record", "value", value)
		assertNoSecrets(t, out.String(), "slog of "+how)
		if encoded, err := json.Marshal(value); err == nil { // a server cannot be encoded
			assertNoSecrets(t, string(encoded), "JSON of "+how)
		}
	}
}

// TestLog checks that each request makes one log record, without path, query and body.
func TestLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newAPI(t, payvaulttest.WithLogger(slog.New(slog.NewJSONHandler(&out, nil))))
	a.post(t, "/pg/tokenize", secretBody).tokenized(t)
	a.post(t, "/TOP/merchant-api-key?TOP=987", secretBody).refused(t, http.StatusNotFound)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit})
	_, err := a.try(t, a.request(t, http.MethodPost, "/pg/tokenize", secretBody))
	require.Error(t, err)
	a.srv.Close() // waits until the records are written

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	assertNoSecrets(t, out.String(), "log")
	var record map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &record))
	delete(record, "time")
	delete(record, "duration")
	assert.Equal(t, map[string]any{
		"level": "INFO", "msg": "request", "operation": "tokens.tokenize", "method": "POST", "route": "/pg/tokenize",
		"status": 200.0, "merchant_id": float64(merchantID), "request_bytes": float64(len(secretBody)),
		"code": 0.0, "performed": true,
	}, record)
	assert.Contains(t, lines[1], `"route":"none","status":404`)
	assert.Contains(t, lines[1], `"performed":false,"code":404`)
	assert.Contains(t, lines[2], `"status":0`)
	assert.Contains(t, lines[2], `"performed":true,"fault":"drop after commit"`)
}

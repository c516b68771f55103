package payvaulttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestRequests checks what the history has of each request. The key is redacted.
func TestRequests(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	a.post(t, "/pg/tokenize", newCard).tokenized(t)
	a.get(t, "/platform/vault/customer?count=5&order_on=nonsense").refused(t, http.StatusBadRequest)
	a.post(t, "/nowhere", `{"a":1}`).refused(t, http.StatusNotFound)

	requests := a.srv.Requests()
	require.Len(t, requests, 3)
	first := requests[0]
	assert.Equal(t, payvault.OpTokensTokenize, first.Operation)
	assert.Equal(t, http.MethodPost, first.Method)
	assert.Equal(t, "/api/v1/pg/tokenize", first.Path)
	assert.Equal(t, "application/json", first.Header.Get("Content-Type"))
	assert.Equal(t, "[redacted]", first.Header.Get("Authorization"))
	assert.Equal(t, basic(":"+a.key), first.Authorization())
	assert.Equal(t, newCard, string(first.Body()))
	assert.Equal(t, int64(len(newCard)), first.Size)
	assert.Equal(t, int64(len(newCard)), first.ContentLength)
	assert.True(t, first.Complete)
	assert.True(t, first.Time.Equal(noon()))
	var body struct {
		CVV string `json:"cvv2"`
	}
	require.NoError(t, json.Unmarshal(first.Body(), &body))
	assert.Equal(t, "123", body.CVV)

	assert.Equal(t, "5", requests[1].Query.Get("count"))
	assert.Empty(t, requests[1].Body())
	assert.Empty(t, requests[2].Operation)

	first.Body()[0] = 'x'
	assert.Equal(t, newCard, string(first.Body()), "a copy")
}

// TestRequestParts checks that the history has the parts of a form.
func TestRequestParts(t *testing.T) {
	t.Parallel()
	a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
	a.postForm(t, path, newForm().part(t, "file", "a.pdf", pdf).part(t, "disputeResponse", "",
		`{"cbr_response_type":"ND"}`)).ok(t)
	request := a.srv.Requests()[0]
	require.Len(t, request.Parts, 2)
	part := request.Parts[0]
	assert.Equal(t, "file", part.Name)
	assert.Equal(t, "a.pdf", part.FileName)
	assert.Equal(t, "application/pdf", part.ContentType)
	assert.Equal(t, pdf, string(part.Content()))
	assert.Contains(t, string(request.Body()), pdf)
}

// TestRequestHistory checks that the history keeps the newest requests, up to its limit.
func TestRequestHistory(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 3} {
		a := newAPI(t, payvaulttest.WithRequestHistory(limit))
		for i := range 5 {
			a.get(t, fmt.Sprintf("/platform/vault/customer?page=%d", i))
		}
		var pages []string
		for _, request := range a.srv.Requests() {
			pages = append(pages, request.Query.Get("page"))
		}
		assert.Equal(t, []string{"2", "3", "4"}[:limit], append([]string{}, pages...))
	}
}

// secretBody has the secrets that must not be printed. The tests search for the cvv2 with its quotation marks, since
// three digits alone may occur by chance.
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

// TestNothingPrintsSecrets checks that no verb of fmt, no log handler and no JSON shows a secret of requests, accounts
// and records.
func TestNothingPrintsSecrets(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.post(t, "/pg/tokenize", secretBody).tokenized(t)
	a.postForm(t, "/platform/dispute/1/respond", newForm().part(t, "disputeResponse", "", "TOP"))
	partner := a.partner()
	app, _ := partner.post(t, "/platform/application/add", `{"channel_id":1,"sales_rep":1}`).ok(t)["app"].(map[string]any)
	partner.post(t, fmt.Sprintf("/platform/application/%.0f/data", app["app_id"]),
		`{"data":[{"key":"tax_id","value":"99-1111111"}]}`).ok(t)

	requests := a.srv.Requests()
	part := requests[1].Parts[0]
	values := []any{
		requests, requests[0], &requests[0], a.srv, a.srv.Accounts(), a.srv.Merchant(), a.srv.Cards.All(), part,
		requests[1].Parts, a.srv.Applications.All(),
		struct{ Request payvaulttest.Request }{requests[0]},
		struct{ account payvaulttest.Request }{requests[0]},
	}
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			assertNoSecrets(t, fmt.Sprintf(verb, value), fmt.Sprintf("%s of %T", verb, value))
		}
		if _, isAccount := value.(payvaulttest.Account); !isAccount {
			// fmt prints the fields of a struct with %p without calling its methods. The verb is built here because vet reports
			// it.
			assertNoSecrets(t, fmt.Sprintf("%"+"p", value), fmt.Sprintf("%%p of %T", value))
		}
		var out bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).Info("record", "value", value)
		}
		assertNoSecrets(t, out.String(), fmt.Sprintf("slog of %T", value))
		encoded, err := json.Marshal(value)
		if err == nil {
			assertNoSecrets(t, string(encoded), fmt.Sprintf("JSON of %T", value))
		}
	}
}

// lockedBuffer is a bytes.Buffer for concurrent writers.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p) //nolint:wrapcheck // a buffer of tests
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.buffer.String()), "\n")
}

// TestLog checks that each request has one log record, without secrets.
func TestLog(t *testing.T) {
	t.Parallel()
	out := &lockedBuffer{}
	a := newAPI(t, payvaulttest.WithLogger(slog.New(slog.NewJSONHandler(out, nil))))
	a.post(t, "/pg/tokenize", secretBody).tokenized(t)
	a.post(t, "/TOP/merchant-api-key?TOP=987", secretBody).refused(t, http.StatusNotFound)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit})
	r := a.request(t, http.MethodPost, "/pg/tokenize", secretBody)
	_, err := a.srv.HTTPClient().Do(r) //nolint:bodyclose // there is no answer
	require.Error(t, err)
	a.srv.Close()

	lines := out.lines()
	require.Len(t, lines, 3, "one record per request")
	assertNoSecrets(t, strings.Join(lines, "\n"), "log")
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
	assert.Contains(t, lines[2], `"performed":true,"fault"`, "no code was sent")
	assert.Contains(t, lines[2], `"fault":"drop after commit"`)
}

package payvaulttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func ExampleInspect() {
	srv := payvaulttest.NewServer()
	page := httptest.NewServer(payvaulttest.Inspect(srv))
	defer page.Close()
	defer srv.Close() // runs before page.Close

	fmt.Println("look at", page.URL[:len("http://127.0.0.1:")])
	// Output: look at http://127.0.0.1:
}

// inspected is an api together with the page of its server.
type inspected struct {
	api

	page http.Handler
}

func inspect(t *testing.T) inspected {
	t.Helper()
	a := newAPI(t)
	return inspected{a, payvaulttest.Inspect(a.srv)}
}

func (i inspected) ask(t *testing.T, method, target, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:5000", "127.0.0.1:8701"
	w := httptest.NewRecorder()
	i.page.ServeHTTP(w, r)
	return w.Body.String()
}

// newest returns the newest request that the page shows.
func (i inspected) newest(t *testing.T) map[string]any {
	t.Helper()
	var news struct {
		Requests []map[string]any `json:"requests"`
	}
	require.NoError(t, json.Unmarshal([]byte(i.ask(t, "GET", "/requests", "")), &news))
	require.NotEmpty(t, news.Requests)
	return news.Requests[len(news.Requests)-1]
}

// TestInspectRequests checks that the page shows the operation, the status and the field names of a request, but no
// value of a field.
func TestInspectRequests(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	i.post(t, "/pg/tokenize", `{"merchant_id":"100001","card_number":"4111111111111111","single_use":true}`).tokenized(t)
	got := i.newest(t)
	delete(got, "time")
	delete(got, "milliseconds")
	assert.Equal(t, map[string]any{
		"number": 1.0, "operation": "tokens.tokenize", "method": "POST", "route": "/pg/tokenize", "status": 200.0,
		"code": 0.0, "merchant_id": 100001.0, "request_bytes": 75.0, "fault": "", "performed": true, "failed": false,
		"shape": map[string]any{"body": map[string]any{"merchant_id": "•••", "card_number": "•••", "single_use": "flag"}},
		"curl": "curl -u :merchant-api-key -H 'Content-Type: application/json' -d " +
			`'{"card_number":"fillIn","merchant_id":"fillIn","single_use":true}' ` + i.srv.URL + "/pg/tokenize",
	}, got)

	i.get(t, customers+"?page=1&canary=2")
	got = i.newest(t)
	assert.Equal(t, map[string]any{"query": map[string]any{"page": "•••", "?": "1 unknown"}}, got["shape"])
	assert.Equal(t, []any{400.0, 400.0, false, "Invalid request: canary is not a known field"},
		[]any{got["status"], got["code"], got["performed"], got["why"]})
	assert.Equal(t, "curl -u :merchant-api-key '"+i.srv.URL+customers+"?page=fillIn'", got["curl"])

	dispute := i.srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval})
	form := form("").part("disputeResponse", "", `{"message":"canary"}`).part("file", "canary.pdf", "%PDF-canary")
	i.postForm(t, fmt.Sprintf("/platform/dispute/%d/respond", dispute.ID), form).ok(t)
	got = i.newest(t)
	parts := map[string]any{"disputeResponse": map[string]any{"message": "•••"}, "file": "•••"}
	assert.Equal(t, map[string]any{"form": parts}, got["shape"])
	assert.Contains(t, got["curl"], `--form-string 'disputeResponse={"message":"fillIn"}' -F file=@fillIn`)
}

// TestInspectRefusals checks the reasons that the page shows for refusals, with ? in place of a field name that might
// be a secret.
func TestInspectRefusals(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	const card = `"card_number":"4111111111111111","exp_date":"1230"`
	for body, want := range map[string]string{
		`{"canary":1,"data":[]}`:                           "canary is not a known field",
		`{"c4nary":1,"data":[]}`:                           "? is not a known field",
		`{"` + strings.Repeat("x", 33) + `":1,"data":[]}`:  "? is not a known field",
		`{"data":[{` + card + `,"cardId":"c4nary"}]}`:      "data[].cardId is not a known field",
		`{"data":[{"exp_date":"1230"},{"exp_date":"12"}]}`: "data[].card_number is required; data[].exp_date must match ",
	} {
		i.post(t, "/platform/aus/add", body)
		assert.Contains(t, i.newest(t)["why"], "Invalid request: "+want, body)
	}
}

// TestInspectFaults checks that the page shows the status and the code of an answer that a fault changed, and whether
// the operation was performed.
func TestInspectFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault     string
		status    float64
		code      any
		performed bool
	}{
		{`{"kind":"drop after commit"}`, 0, nil, true},
		{`{"kind":"drop before commit"}`, 0, nil, false},
		{`{"kind":"other code","code":7,"after_commit":true}`, 200, 7.0, true},
		{`{"kind":"respond","body":"{\"code\":-5}"}`, 200, -5.0, false},
		{`{"kind":"cut body","after_commit":true}`, 200, 0.0, true},
		{`{"kind":"slow drip","delay":"1us"}`, 200, 0.0, false},
	} {
		i := inspect(t)
		i.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})
		i.arm(t, test.fault)
		_, _ = i.trySend(t)
		i.srv.Close() // waits until the request has been recorded
		got := i.newest(t)
		assert.Equal(t, []any{test.status, test.code, test.performed}, []any{got["status"], got["code"], got["performed"]},
			test.fault)
		assert.Contains(t, test.fault, got["fault"])
		assert.Contains(t, i.ask(t, "GET", "/faults", ""), `"struck":1,"left":-1`)
	}
}

// TestInspectArms checks that the page injects, lists and removes faults, and refuses invalid ones.
func TestInspectArms(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	for text, want := range map[string]string{
		`{"kind":"delay"}`:            "the delay is not above zero",
		`{"Kind":"hang"}`:             "a fault is a JSON object such as ",
		`{"kind":"hang","skip":1e9}`:  "/skip",
		`{"kind":"hang","delay":"2"}`: "the delay is no duration",
	} {
		assert.Contains(t, i.ask(t, "POST", "/faults", text), want)
	}
	long := i.ask(t, "POST", "/faults", `{"kind":"hang"`+strings.Repeat(" ", 64<<10)+"}")
	assert.Contains(t, long, "the fault is too long")
	assert.Empty(t, i.srv.Faults())
	for _, text := range []string{
		`{"kind":"hang","times":3}`, `{"kind":"slow drip","delay":"2s"}`,
		`{"kind":"permit rate","rate":0.25,"retry_after":"120"}`, `{"kind":"oversized body","size":1000,"skip":4}`,
	} {
		i.arm(t, text)
	}
	i.ask(t, "DELETE", "/faults/1", "")
	for _, path := range []string{"/faults/1", "/faults/x"} {
		assert.Contains(t, i.ask(t, "DELETE", path, ""), "there is no such fault")
	}
	require.Len(t, i.srv.Faults(), 3)
	assert.Equal(t, 2*time.Second, i.srv.Faults()[0].Delay)
	armed := i.ask(t, "GET", "/faults", "")
	for _, fields := range []string{
		`"delay":"2s","struck":0`, `"rate":0.25,"retry_after":"120","struck":0,"left":-1`, `"size":1000,"skip":4,"struck":0`,
	} {
		assert.Contains(t, armed, fields)
	}
	i.ask(t, "DELETE", "/faults", "")
	assert.Empty(t, i.srv.Faults())
}

// TestInspectRecords checks that the page shows the newest 100 records of each store, but no free text of callers.
func TestInspectRecords(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	const number = "4929123456781234"
	i.srv.Cards.Seed(payvaulttest.Card{ID: "C", CardNumber: number, ExpDate: "1230", CardholderName: "canary"})
	i.srv.Customers.Seed(payvaulttest.Customer{
		ID: number, FirmName: "canary", Comments: "canary", RecID: 9,
		BillingCards:      []map[string]any{{"card_id": "C", "billing_city": "canary"}},
		ShippingAddresses: []map[string]any{{"shipping_city": "canary"}, {}},
	})
	i.srv.Payees.Seed(payvaulttest.Payee{ID: 4, Name: "canary", Email: []string{"canary"}, HasAccount: true})
	i.srv.Applications.Seed(payvaulttest.Application{ID: 3})
	i.partner().saveAll(t, "/platform/application/3")
	i.partner().save(t, "/platform/application/3", `{"key":"legal_name","value":""},{"key":"my_key","value":"canary"}`)
	i.srv.Subscriptions.Seed(payvaulttest.Subscription{
		ID: 5, CustomerID: number, Transactions: []payvaulttest.Transaction{{CardholderLastName: "canary"}},
	})
	i.srv.Invoices.Seed(payvaulttest.Invoice{
		ID: "I", Emails: []string{"canary"}, Phones: []int64{1, 2}, SMS: []int64{1, 2, 3},
	})
	i.srv.AccountUpdaterRequests.Seed(payvaulttest.AccountUpdaterRequest{
		RequestID: "A", Cards: []payvaulttest.UpdaterCard{{CardID: "canary"}},
	})
	i.srv.Webhooks.Seed(payvaulttest.Webhook{
		ID: "W", NotificationURL: "https://canary:canary@example.com/canary?canary", Events: []payvault.Event{"e", "f"},
	})
	for range 150 {
		i.srv.Disputes.Seed(payvaulttest.Dispute{})
	}
	i.srv.Disputes.Seed(payvaulttest.Dispute{ID: 7, Response: &payvaulttest.DisputeResponse{Message: "canary"}})

	text := i.ask(t, "GET", "/state", "")
	assert.NotContains(t, text, "canary")
	var state struct {
		Tables []struct {
			Name    string   `json:"name"`
			Total   int      `json:"total"`
			Columns []string `json:"columns"`
			Rows    [][]any  `json:"rows"`
		} `json:"tables"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	newest, totals := map[string][]any{}, map[string]int{}
	for _, table := range state.Tables {
		totals[table.Name] = table.Total
		if len(table.Rows) > 0 {
			newest[table.Name] = table.Rows[0]
			assert.Len(t, table.Columns, len(table.Rows[0]), table.Name)
			assert.Len(t, table.Rows, min(100, table.Total), table.Name)
		}
	}
	assert.Len(t, newest, reflect.TypeFor[payvaulttest.Records]().NumField(), "Tables in inspect.go has each store")
	assert.Equal(t, 151, totals["disputes"])
	const m = 100001.0
	assert.Equal(t, map[string][]any{
		"tokens":           {"C", m, "card", "4929xxxxxx781234", "1230", "VI", 0.0},
		"customers":        {"4929xxxxxx781234", m, 9.0, "4929xxxxxx781234", 1.0, 2.0},
		"payees":           {4.0, m, true, 1.0},
		"applications":     {3.0, 900001.0, "INCOMPLETE", 36.0, "legal_name"},
		"subscriptions":    {5.0, m, "4929xxxxxx781234", "active", 1.0},
		"invoices":         {"I", m, "saved", 1.0, 2.0, 3.0},
		"updater requests": {"A", m, 1.0},
		"disputes":         {7.0, m, "first_time", true},
		"webhooks":         {"W", m, "example.com", "e f"},
	}, newest)
}

// TestInspectShowsNoSecrets checks that the page shows none of the secrets in requests and records.
func TestInspectShowsNoSecrets(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	i.post(t, "/pg/tokenize", secretBody).tokenized(t)
	i.post(t, "/TOP/merchant-api-key?TOP=987", secretBody).refused(t, http.StatusNotFound)
	i.post(t, "/pg/tokenize?TOP-1=TOP", secretBody)
	i.post(t, "/platform/vault/customer",
		`{"customer_id":"4929000000006","4929000000006":{"TOP":"TOP"},"customer_firm_name":"TOP"}`)
	i.post(t, "/platform/vault/customer",
		`{"customer_id":"4929000000006","customer_firm_name":"TOP","comments":"TOP"}`).ok(t)
	i.srv.Webhooks.Seed(payvaulttest.Webhook{ID: "W", NotificationURL: "http://127.0.0.1:1/TOP"})
	i.post(t, "/platform/webhook/W/event/4929000000006", "").ok(t)
	assert.Equal(t, 1, i.srv.TriggerEvent(100001, "4929000000006", "TOP"))
	require.NoError(t, i.srv.WaitDeliveries(t.Context()))
	i.postForm(t, "/platform/dispute/1/respond", form("").part("TOP-1", "", "TOP").
		part("disputeResponse", "", "TOP"))
	r := i.request(t, http.MethodPost, "/pg/tokenize", secretBody)
	r.Header.Set("TOP", "TOP")
	i.send(t, r)
	i.as(payvaulttest.Account{APIKey: "TOP"}).post(t, "/platform/aus/add", secretBody).refused(t, http.StatusUnauthorized)
	assert.Contains(t, i.newest(t)["curl"], "curl -u :fillIn ", "the key may be one of the service")
	page := i.ask(t, "GET", "/requests", "") + i.ask(t, "GET", "/state", "") + i.ask(t, "GET", "/faults", "")
	for _, secret := range []string{"4929000000006", "TOP"} {
		assert.NotContains(t, page, secret)
	}
}

// TestInspectPresets checks that each preset, a fault that the page offers, fits its label and its Go code.
func TestInspectPresets(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	var presets []struct {
		Label string          `json:"label"`
		Fault json.RawMessage `json:"fault"`
		Go    string          `json:"go"`
	}
	text := i.ask(t, "GET", "/presets?operation=invoices.send&times=3&skip=2", "")
	require.NoError(t, json.Unmarshal([]byte(text), &presets))
	got := map[string]payvaulttest.Fault{}
	for _, preset := range presets {
		assert.Equal(t, preset.Go, i.arm(t, string(preset.Fault)))
		fault := i.srv.Faults()[0].Fault
		assert.Equal(t, payvault.OpInvoicesSend, fault.Operation)
		assert.Equal(t, 2, fault.Skip)
		fault.Operation, fault.Skip = "", 0
		got[preset.Label] = fault
		i.srv.ClearFaults()
	}
	assert.Equal(t, map[string]payvaulttest.Fault{
		"Lose the answer of what is performed": {Kind: payvaulttest.DropAfterCommit, Times: 3},
		"429 with Retry-After: 1":              {Kind: payvaulttest.RateLimit, RetryAfter: "1", Times: 3},
		"503":                                  {Kind: payvaulttest.Respond, Status: 503, Times: 3},
		"Hang until the client gives up":       {Kind: payvaulttest.Hang, Times: 3},
		"Cut the answer of what is performed":  {Kind: payvaulttest.CutBody, AfterCommit: true, Times: 3},
		"Permit 5 requests a second until disarmed": {
			Kind: payvaulttest.PermitRate, Rate: 5, RetryAfter: "1",
		},
	}, got)
	assert.Contains(t, i.ask(t, "GET", "/presets", ""), `"fault":{"kind":"hang","times":1}`, "once, if nothing is said")
	for query, want := range map[string]string{
		"operation=nothing": "the operation does not exist", "skip=1.5": "times and skip are whole numbers",
		"times=-1": "below zero",
	} {
		assert.Contains(t, i.ask(t, "GET", "/presets?"+query, ""), want, query)
	}
}

// writes is an io.Writer that only calls a function.
type writes func()

func (f writes) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestInspectPending checks that the page shows a hanging request as pending until its log record is written, although
// the fault has already been removed.
func TestInspectPending(t *testing.T) {
	t.Parallel()
	var i inspected
	var logged string // JSON of /state at the moment when the log record is written
	look := writes(func() { logged = i.ask(t, "GET", "/state", "") })
	i.api = newAPI(t, payvaulttest.WithLogger(slog.New(slog.NewTextHandler(look, nil))))
	i.page = payvaulttest.Inspect(i.srv)
	inject(t, i.srv, payvaulttest.Fault{Kind: payvaulttest.Hang, Times: 1})
	ctx, cancel := context.WithCancel(t.Context())
	lost := i.start(i.request(t, http.MethodPost, sendPath, "{}").WithContext(ctx))
	state := func() string { return i.ask(t, "GET", "/state", "") }
	const shown = `"pending":[{"operation":"invoices.send","fault":"hang","seconds":`
	require.Eventually(t, func() bool { return strings.Contains(state(), shown) }, 10*time.Second, 10*time.Millisecond)
	assert.Empty(t, i.srv.Faults())
	cancel()
	require.ErrorIs(t, <-lost, context.Canceled)
	i.srv.Close() // waits until the request has been recorded
	assert.Contains(t, logged, shown, "until then")
	assert.Contains(t, state(), `"pending":[]`)
}

// arm asks the page to inject a fault, and returns the Go code that the page shows for the fault.
func (i inspected) arm(t *testing.T, fault string) string {
	t.Helper()
	var armed struct {
		Go string `json:"go"`
	}
	require.NoError(t, json.Unmarshal([]byte(i.ask(t, "POST", "/faults", fault)), &armed))
	require.NotEmpty(t, armed.Go, fault)
	return armed.Go
}

// documentedFaults returns the kinds of faults in the README of cmd/payvault-emulator, each with the fields that it
// reads.
func documentedFaults(t *testing.T) map[string][]string {
	t.Helper()
	readme, err := os.ReadFile("../cmd/payvault-emulator/README.md")
	require.NoError(t, err)
	kinds := map[string][]string{}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| ([a-z_, ]*)\\|$")
	for _, row := range rows.FindAllStringSubmatch(string(readme), -1) {
		kinds[row[1]] = strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	return kinds
}

// faultText returns the JSON of a fault of the kind with the given fields.
func faultText(t *testing.T, kind string, fields ...string) string {
	t.Helper()
	values := map[string]any{
		"status": 303, "header": http.Header{"X": {"y"}}, "body": "z", "delay": "1500us", "retry_after": "120",
		"code": 7, "message": "m", "size": 1000, "rate": 0.5,
	}
	fault := map[string]any{"kind": kind, "times": 2}
	for _, field := range fields {
		require.Contains(t, values, field)
		fault[field] = values[field]
	}
	text, err := json.Marshal(fault)
	require.NoError(t, err)
	return string(text)
}

// TestInspectFaultFields checks that each kind of fault accepts its documented fields and refuses those of other kinds.
func TestInspectFaultFields(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	documented := documentedFaults(t)
	kinds := fmt.Sprintf("the kinds are %q", slices.Sorted(maps.Keys(documented)))
	assert.Contains(t, strings.ReplaceAll(i.ask(t, "POST", "/faults", "{}"), `\"`, `"`), kinds)
	for kind, fields := range documented {
		i.arm(t, faultText(t, kind, fields...))
		for field := range strings.FieldsSeq("status header body delay retry_after code message size rate") {
			if !slices.Contains(fields, field) {
				answer := i.ask(t, "POST", "/faults", faultText(t, kind, append([]string{field}, fields...)...))
				assert.Contains(t, answer, `"error":"the kind does not read `, "%s: %s", kind, field)
			}
		}
	}
}

// TestInspectGoLines checks that the Go code that the page shows compiles, for each kind of fault and each operation.
func TestInspectGoLines(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	var lines strings.Builder
	arm := func(fault string) { lines.WriteString(i.arm(t, fault) + "\n") }
	for _, info := range payvault.Operations() {
		arm(fmt.Sprintf(`{"kind":"hang","operation":%q}`, info.Op))
	}
	for kind, fields := range documentedFaults(t) {
		arm(faultText(t, kind, fields...))
	}
	arm(`{"kind":"rate limit","retry_after":"120","skip":2,"times":1}`)
	source := `package lines

import (
	"net/http"
	"testing"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

var _, _ = time.Second, http.StatusOK

func use(t *testing.T, srv *payvaulttest.Server) {
` + lines.String() + "}\n"
	name := filepath.Join(t.TempDir(), "lines.go")
	require.NoError(t, os.WriteFile(name, []byte(source), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", name) //nolint:gosec // a file of its own
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
}

// TestCloseEndsStreams checks that closing a server ends the event streams of its page.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	page := httptest.NewServer(payvaulttest.Inspect(srv))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page.URL+"/events", nil)
	require.NoError(t, err)
	resp, err := page.Client().Do(r)
	require.NoError(t, err)
	srv.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	page.Close()
}

// TestInspectConnection checks that the page shows the URL and the API keys of the server, and how to send a first
// request.
func TestInspectConnection(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	var got struct {
		URL      string                 `json:"url"`
		Accounts []payvaulttest.Account `json:"accounts"`
		Curl     string                 `json:"curl"`
		Go       string                 `json:"go"`
	}
	require.NoError(t, json.Unmarshal([]byte(i.ask(t, "GET", "/connection", "")), &got))
	assert.Equal(t, i.srv.URL, got.URL)
	require.Len(t, got.Accounts, 3)
	assert.Equal(t, i.srv.Partner().APIKey, got.Accounts[1].APIKey)
	assert.Equal(t, i.srv.Partner().ActsFor, got.Accounts[1].ActsFor)
	assert.Equal(t, "curl -u :merchant-api-key "+i.srv.URL+"/platform/vault/customer", got.Curl)
	assert.Contains(t, got.Go, fmt.Sprintf("payvault.NewClient(\n\t%q,\n\t%q,\n)", i.srv.URL, i.key))
}

// TestInspectReset checks that a reset restores the initial state, so that the same requests get the same answers.
func TestInspectReset(t *testing.T) {
	t.Parallel()
	seed := payvaulttest.Seed{Invoices: []payvaulttest.Invoice{{ID: "INV-1"}}}
	i := inspected{newAPI(t, payvaulttest.WithSeed(seed)), nil}
	i.page = payvaulttest.Inspect(i.srv)
	use := func() (answers [2]string) {
		answers[0] = i.post(t, sendPath, "").body
		answers[1] = i.post(t, "/pg/tokenize", newCard).body
		return answers
	}
	before := use()
	i.srv.Webhooks.Seed(payvaulttest.Webhook{NotificationURL: "http://127.0.0.1:1", Events: []payvault.Event{"e"}})
	i.srv.TriggerEvent(merchantID, "e", nil)
	require.NoError(t, i.srv.WaitDeliveries(t.Context()))
	inject(t, i.srv, payvaulttest.Fault{Kind: payvaulttest.RateLimit})
	require.NoError(t, i.srv.Retire(i.srv.Merchant()))

	assert.Empty(t, i.ask(t, "PUT", "/bodies?shown=true", ""))
	assert.Empty(t, i.ask(t, "POST", "/reset", ""))
	assert.Contains(t, i.ask(t, "GET", "/state", ""), `"bodies":false`)
	assert.Empty(t, i.srv.Faults())
	assert.Empty(t, i.srv.Requests())
	assert.Empty(t, i.srv.Deliveries())
	assert.Empty(t, i.srv.AllCommits())
	assert.Empty(t, i.srv.Cards.All())
	assert.Empty(t, i.srv.Webhooks.All())
	assert.Contains(t, i.ask(t, "GET", "/requests", ""), `"requests":[],"matching":0,"total":0`)
	assert.Contains(t, i.ask(t, "GET", "/state", ""), `{"name":"deliveries","total":0,`)
	assert.Equal(t, before, use())
}

// TestInspectBodies checks that the page shows a body only if the request arrived while bodies were turned on.
func TestInspectBodies(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	i.srv.Disputes.Seed(payvaulttest.Dispute{ID: 7})
	send := func() string {
		i.post(t, "/pg/tokenize?T0P=1", secretBody)
		i.post(t, "/T0P", "T0P")
		i.postForm(t, "/platform/dispute/7/respond", form("").part("disputeResponse", "", `{"message":"T0P's"}`).
			part("file", "T0P.pdf", "%PDF-\x00"))
		return i.ask(t, "GET", "/requests", "")
	}
	assert.NotContains(t, send(), "T0P")
	assert.Contains(t, i.ask(t, "PUT", "/bodies?shown=yes", ""), "shown is true or false")
	i.ask(t, "PUT", "/bodies?shown=true", "")
	assert.Contains(t, i.ask(t, "GET", "/state", ""), `"bodies":true`)
	send()
	var shown struct {
		Requests []struct {
			Path   string `json:"path"`
			Body   string `json:"body"`
			Answer string `json:"answer"`
			Curl   string `json:"curl"`
		} `json:"requests"`
	}
	require.NoError(t, json.Unmarshal([]byte(i.ask(t, "GET", "/requests?search=t0p", "")), &shown))
	require.Len(t, shown.Requests, 3, "of before there are none")
	token, nowhere, dispute := shown.Requests[0], shown.Requests[1], shown.Requests[2]
	assert.Equal(t, "/api/v1/pg/tokenize?T0P=1", token.Path)
	assert.Equal(t, secretBody, token.Body)
	assert.Contains(t, token.Answer, "T0P is not a known field")
	url := strings.TrimSuffix(i.srv.URL, "/api/v1")
	assert.Equal(t, "curl -u :merchant-api-key -H 'Content-Type: application/json' -d '"+secretBody+"' '"+url+
		"/api/v1/pg/tokenize?T0P=1'", token.Curl)
	assert.Equal(t, "T0P", nowhere.Body)
	assert.Empty(t, nowhere.Curl, "curl would take another body for a file")
	assert.Equal(t, "disputeResponse: {\"message\":\"T0P's\"}\nfile: T0P.pdf, 6 bytes", dispute.Body)
	assert.Equal(t, `curl -u :merchant-api-key --form-string 'disputeResponse={"message":"T0P'\''s"}' -F file=@T0P.pdf `+
		url+"/api/v1/platform/dispute/7/respond", dispute.Curl)

	i.ask(t, "PUT", "/bodies?shown=false", "")
	assert.Contains(t, i.ask(t, "GET", "/requests", ""), `"requests":[]`)
	assert.NotContains(t, send(), "T0P")
}

package payvault_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// opCase is one way to call one operation with a valid request.
type opCase struct {
	name    string // of its subtests
	op      payvault.Operation
	replay  bool   // by the design, it is repeated by itself
	noData  string // why whatever stands in data is a success; "" if data has a documented shape
	success string // the smallest body that is a success
	// call returns nil for a nil result, whatever its type.
	call func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error)
}

// info is the line of the operation in the table of the package.
func (c opCase) info() payvault.OperationInfo {
	all := payvault.Operations()
	return all[slices.IndexFunc(all, func(o payvault.OperationInfo) bool { return o.Op == c.op })]
}

// assertOutcomeUnknown holds an error to what it says of an operation that may have been performed. One that changes
// nothing has no outcome to be unsure of.
func assertOutcomeUnknown(t *testing.T, c opCase, err error) {
	t.Helper()
	unsure := c.info().Replay != payvault.ReplayRead
	assert.Equal(t, unsure, errors.Is(err, payvault.ErrOutcomeUnknown), "%v", err)
	assert.Equal(t, unsure, strings.Contains(err.Error(), "(outcome unknown)"), "%v", err)
	assert.Equal(t, payvault.Unknown, asError(t, err).Delivery)
}

// The IDs in the paths of the table, and the parameters that they stand for in testdata/operations.txt.
const (
	tablePayee        payvault.PayeeID        = 70005
	tableApplication  payvault.ApplicationID  = 70007
	tableDispute      payvault.DisputeID      = 70009
	tableSubscription payvault.SubscriptionID = 70010
	tableInvoice      payvault.InvoiceID      = "invoice-12"
	tableWebhook      payvault.WebhookID      = "webhook-14"
	tableEvent                                = payvault.EventTransactionStatusUpdated
)

func tableParameters() map[string]string {
	return map[string]string{
		"70005": "{payee_id}", "70007": "{appId}", "70009": "{rec_id}", "70010": "{subscription_id}",
		string(tableInvoice): "{invoice_id}", string(tableWebhook): "{webhook_id}", string(tableEvent): "{event}",
	}
}

const (
	customersPage    = `{"code":0,"totalPages":1,"totalRecords":1,"data":[{"customer_id":"C1"}]}`
	transactionsPage = `{"code":0,"totalPages":1,"totalRecords":1,"data":[{"pg_id":"P1"}]}`
	noDocumentedData = "the interface documents no data for it"
)

// opCases is the one table of all operations, in the order of interface §4.
func opCases() []opCase {
	return []opCase{
		{
			name: "tokens.tokenize without card_id", op: payvault.OpTokensTokenize, success: `{"rcode":"000","card_id":"CARD1"}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}, opts...))
			},
		},
		{
			name: "tokens.tokenize with card_id", op: payvault.OpTokensTokenize, replay: true, success: `{"rcode":"000","card_id":"CARD1"}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{CardID: "CARD1", CardNumber: payvault.NewSecret("4111111111111111")}, opts...))
			},
		},
		{
			name: "customers.create", op: payvault.OpCustomersCreate, success: `{"code":0,"data":{"customer_id":"C1"}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Customers.Create(ctx, &payvault.CustomerCreateRequest{
					ID: "C1", FirmName: "Firm",
					BillingCards: []payvault.BillingCardRequest{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230", CVV2: payvault.NewSecret("123")}},
				}, opts...))
			},
		},
		{
			name: "customers.list", op: payvault.OpCustomersList, replay: true, success: customersPage,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Customers.List(ctx, &payvault.ListOptions{Count: 10}, opts...))
			},
		},
		{
			name: "customers.list by All", op: payvault.OpCustomersList, replay: true, success: customersPage,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return firstOf(c.Customers.All(ctx, &payvault.ListOptions{Count: 10}, opts...))
			},
		},
		{
			name: "payees.create", op: payvault.OpPayeesCreate, success: `{"code":0,"data":{"payee_id":1}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Payees.Create(ctx, &payvault.PayeeCreateRequest{
					Name: "Payee", Account: payvault.PayeeAccount{TRNumber: payvault.NewSecret("123456780"), DDANumber: payvault.NewSecret("0003334440")},
				}, opts...))
			},
		},
		{
			name: "payees.delete", op: payvault.OpPayeesDelete, success: `{"code":0}`,
			noData: "the documented data is an empty object, of which nothing is used",
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return nothingOf(c.Payees.Delete(ctx, tablePayee, opts...))
			},
		},
		{
			name: "applications.create", op: payvault.OpApplicationsCreate, success: `{"code":0,"data":{"app":{"app_id":1}}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: 1, SalesRep: 2}, opts...))
			},
		},
		{
			name: "applications.save_data", op: payvault.OpApplicationsSaveData, replay: true, success: `{"code":0,"data":{"fields":[]}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				saved, err := c.Applications.SaveData(ctx, tableApplication, payvault.ApplicationData{LegalName: "Legal Person", TaxID: payvault.NewSecret("987654321")}, opts...)
				if saved == nil {
					return nil, err
				}
				return saved, err
			},
		},
		{
			name: "applications.validate", op: payvault.OpApplicationsValidate, replay: true, success: `{"code":0}`,
			noData: noDocumentedData,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Applications.Validate(ctx, tableApplication, opts...))
			},
		},
		{
			name: "disputes.respond", op: payvault.OpDisputesRespond, success: `{"code":0}`, noData: noDocumentedData,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return nothingOf(c.Disputes.Respond(ctx, tableDispute, &payvault.DisputeResponse{
					Message: "Message", Evidence: payvault.FileFromBytes("evidence.pdf", []byte("%PDF-1.7\n%%EOF\n")),
				}, opts...))
			},
		},
		{
			name: "subscriptions.transactions", op: payvault.OpSubscriptionsTransactions, replay: true, success: transactionsPage,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Subscriptions.Transactions(ctx, tableSubscription, nil, opts...))
			},
		},
		{
			name: "subscriptions.transactions by AllTransactions", op: payvault.OpSubscriptionsTransactions, replay: true, success: transactionsPage,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return firstOf(c.Subscriptions.AllTransactions(ctx, tableSubscription, nil, opts...))
			},
		},
		{
			name: "subscriptions.cancel", op: payvault.OpSubscriptionsCancel, success: `{"code":0,"data":{"message":"Canceled"}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Subscriptions.Cancel(ctx, tableSubscription, &payvault.SubscriptionCancelRequest{CustomerID: "C1"}, opts...))
			},
		},
		{
			name: "invoices.send", op: payvault.OpInvoicesSend, success: `{"code":0}`, noData: noDocumentedData,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return nothingOf(c.Invoices.Send(ctx, tableInvoice, &payvault.InvoiceSendRequest{EmailAddress: []string{"a@example.com"}}, opts...))
			},
		},
		{
			name: "account_updater.submit", op: payvault.OpAccountUpdaterSubmit, success: `{"code":0,"data":{"request_id":"R1"}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.AccountUpdater.Submit(ctx, tableCards(), opts...))
			},
		},
		{
			name: "account_updater.submit by SubmitAll", op: payvault.OpAccountUpdaterSubmit, success: `{"code":0,"data":{"request_id":"R1"}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (result any, err error) {
				for batch := range c.AccountUpdater.SubmitAll(ctx, slices.Values(tableCards()), nil, opts...) {
					if err = batch.Err; batch.RequestID != "" {
						result = batch
					}
				}
				return result, err
			},
		},
		{
			name: "webhooks.add_event", op: payvault.OpWebhooksAddEvent, success: `{"code":0,"data":{"message":"Added"}}`,
			call: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				return resultOf(c.Webhooks.AddEvent(ctx, tableWebhook, tableEvent, opts...))
			},
		},
	}
}

func tableCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}}
}

func resultOf[T any](v *T, err error) (any, error) {
	if v == nil {
		return nil, err
	}
	return v, err
}

// firstOf takes the first item of a list.
func firstOf[T any](items func(yield func(*T, error) bool)) (any, error) {
	for item, err := range items {
		return resultOf(item, err)
	}
	return nil, nil //nolint:nilnil // an empty list, which no test expects
}

// nothingOf stands for the result of an operation that has none.
func nothingOf(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

// tableClient returns a client that does not wait between attempts.
func tableClient(tb testing.TB, baseURL string, opts ...payvault.Option) *payvault.Client {
	tb.Helper()
	opts = append([]payvault.Option{payvault.WithMerchantID(4242), impatient(0)}, opts...)
	c, err := payvault.NewClient(baseURL, apiKey, opts...)
	require.NoError(tb, err)
	tb.Cleanup(c.CloseIdleConnections)
	return c
}

// impatient is a policy without waits; 0 attempts are the default.
func impatient(attempts int) payvault.Option {
	return payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: attempts, MinBackoff: 1, MaxBackoff: 1, MaxRetryAfter: 1, IgnoreOverload: true})
}

// seen is a request as it arrived.
type seen struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	chunked      bool
}

// observer is a server that remembers what arrives and answers by a function that is told how many requests came so
// far, 1 for the first.
type observer struct {
	*httptest.Server

	mu   sync.Mutex
	list []seen
}

func observe(tb testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *observer {
	tb.Helper()
	o := &observer{}
	o.Server = unstarted(tb, func(w http.ResponseWriter, r *http.Request) { answer(o.add(r), w, r) })
	o.Start()
	tb.Cleanup(o.Close)
	return o
}

// unstarted returns a server that has a port of its own: see listenAlone.
func unstarted(tb testing.TB, serve http.HandlerFunc) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(serve)
	_ = server.Listener.Close()
	server.Listener = listenAlone(tb)
	return server
}

// listenAlone listens on the loopback address of IPv6 if there is one. Tests that count requests must not see those of
// other tests and programs, whose clients knock at ports of 127.0.0.1 that another server has just left.
func listenAlone(tb testing.TB) net.Listener {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "[::1]:0")
	if err != nil {
		listener, err = new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	}
	require.NoError(tb, err)
	return listener
}

// add reads the whole request.
func (o *observer) add(r *http.Request) int {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, seen{
		method: r.Method, path: r.URL.EscapedPath(), query: r.URL.Query(), header: r.Header.Clone(), body: body,
		chunked: len(r.TransferEncoding) > 0,
	})
	return len(o.list)
}

func (o *observer) seen() []seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

// say answers with a JSON body.
func say(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = strings.NewReader(body).WriteTo(w)
}

// TestOperations_interface runs every operation and holds what the service sees against the hand-written list.
func TestOperations_interface(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "operations.txt"))
	require.NoError(t, err)
	var want []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	require.Len(t, want, 14)

	var got []string
	for _, cases := range casesByOperation() {
		var replay, merchant, endpoint []string
		for _, c := range cases {
			replay = append(replay, observedReplay(t, c))
			merchant = append(merchant, observedMerchant(t, c))
			endpoint = append(endpoint, observedEndpoint(t, c))
		}
		if cases[0].op == payvault.OpTokensTokenize && slices.Equal(replay, []string{"no", "yes"}) {
			replay = []string{"card_id"}
		}
		line := []string{strconv.Itoa(len(got) + 1), string(cases[0].op)}
		for _, column := range [][]string{endpoint, replay, merchant} {
			column = slices.Compact(column) // all ways to call it agree
			require.Len(t, column, 1, "%s", cases[0].op)
			line = append(line, column[0])
		}
		got = append(got, strings.Join(line, "\t"))
	}
	assert.Equal(t, want, got)
}

// casesByOperation groups the table, in its order.
func casesByOperation() [][]opCase {
	var groups [][]opCase
	for _, c := range opCases() {
		if n := len(groups); n > 0 && groups[n-1][0].op == c.op {
			groups[n-1] = append(groups[n-1], c)
		} else {
			groups = append(groups, []opCase{c})
		}
	}
	return groups
}

func observedEndpoint(t *testing.T, c opCase) string {
	t.Helper()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) })
	result, err := c.call(t.Context(), tableClient(t, server.URL+basePath))
	require.NoError(t, err)
	require.NotNil(t, result)
	requests := server.seen()
	require.Len(t, requests, 1)
	path, ok := strings.CutPrefix(requests[0].path, basePath)
	require.True(t, ok)
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if parameter, isID := tableParameters()[segment]; isID {
			segments[i] = parameter
		}
	}
	assert.False(t, requests[0].chunked, "%s: every length is known", c.name)
	return requests[0].method + "\t" + strings.Join(segments, "/")
}

func observedReplay(t *testing.T, c opCase) string {
	t.Helper()
	server := observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		say(w, 200, c.success)
	})
	_, err := c.call(t.Context(), tableClient(t, server.URL+basePath))
	if err == nil {
		return "yes"
	}
	return "no"
}

// observedMerchant tells where an operation puts the merchant of ForMerchant.
func observedMerchant(t *testing.T, c opCase) string {
	t.Helper()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) })
	_, err := c.call(t.Context(), tableClient(t, server.URL+basePath).ForMerchant(99))
	if err != nil {
		require.ErrorIs(t, err, payvault.ErrMerchantNotSupported)
		require.Empty(t, server.seen())
		return "-"
	}
	requests := server.seen()
	require.Len(t, requests, 1)
	if requests[0].query.Get("merchant_id") == "99" {
		return "query"
	}
	var body struct {
		MerchantID json.RawMessage `json:"merchant_id"`
	}
	require.NoError(t, json.Unmarshal(requests[0].body, &body))
	return map[string]string{`99`: "body", `"99"`: "body-string"}[string(body.MerchantID)]
}

func TestOperations_constants(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for _, file := range rootSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !isIdent(spec.Type, "Operation") {
				return true
			}
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			want[value] = true
			return true
		})
	}
	require.True(t, want[string(payvault.OpCall)] && want[string(payvault.OpNewClient)])
	delete(want, string(payvault.OpCall))
	delete(want, string(payvault.OpNewClient))
	got := map[string]bool{}
	for _, c := range opCases() {
		got[string(c.op)] = true
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
}

// rootSources parses the package without its tests, by file name.
func rootSources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
	}
	require.Greater(t, len(files), 15)
	return files
}

func isIdent(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

// selector gives "http.NewRequest" for the expression of that text, "" for others.
func selector(e ast.Node) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

// TestOperations_onePlaceForPaths: paths stand in the table of operations only, and internal/urlpath, which escapes, fills them.
func TestOperations_onePlaceForPaths(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{ // what would build a path, and the only function that may use it
		"url.Parse": "checkBaseURL", "urlpath.Fill": "newRequest", "url.URL{}": "", "url.ParseRequestURI": "", "url.JoinPath": "",
		"url.PathEscape": "", "http.NewRequest": "", "http.NewRequestWithContext": "", "path.Join": "", "path.Clean": "",
		"http.Get": "", "http.Post": "", "http.PostForm": "", "http.Head": "", "http.DefaultClient": "", "http.DefaultTransport": "",
	}
	for name, file := range rootSources(t) {
		for _, decl := range file.Decls {
			function := ""
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				function = decl.Name.Name
			case *ast.GenDecl:
				if decl.Tok == token.IMPORT {
					continue
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				text := selector(n)
				if literal, ok := n.(*ast.CompositeLit); ok {
					text = selector(literal.Type) + "{}"
				}
				if only, guarded := allowed[text]; guarded {
					assert.Equal(t, only, function, "%s uses %s", name, text)
				}
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && function != "userAgent" && name != "operations.go" {
					for _, part := range []string{"/pg", "/platform", "/%", "vault/", "%s/"} {
						assert.NotContains(t, literal.Value, part, "%s: %s", name, function)
					}
				}
				return true
			})
		}
	}
}

// TestOperations_onePlaceForErrors keeps the fields of an Error consistent: errors.go builds them all.
func TestOperations_onePlaceForErrors(t *testing.T) {
	t.Parallel()
	for name, file := range rootSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				assert.False(t, isIdent(n.Type, "Error") && name != "errors.go", "%s builds an Error", name)
			case *ast.CallExpr:
				made := isIdent(n.Fun, "new") && len(n.Args) == 1 && isIdent(n.Args[0], "Error")
				assert.False(t, made && name != "errors.go", "%s builds an Error", name)
			}
			return true
		})
	}
}

// repeats says for which operations a failure is repeated.
type repeats int

const (
	never repeats = iota
	ifReplayable
	always
)

func (r repeats) forCase(replayable bool) bool { return r == always || r == ifReplayable && replayable }

func TestReplay(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	failures := []struct {
		name     string
		serve    http.HandlerFunc
		repeated repeats
	}{
		{"status 502", status(502), ifReplayable},
		{"status 503", status(503), ifReplayable},
		{"status 504", status(504), ifReplayable},
		{"status 503 with Retry-After", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		}, never}, // it asks for more than the client waits
		{"connection dropped after the request was read", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ifReplayable},
		{"connection dropped within the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, ifReplayable},
		{"status 429 with Retry-After", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		}, never},
		{"status 429", status(429), always},
		{"status 500", status(500), never},
		{"status 501", status(501), never},
		{"status 408", status(408), never},
		{"status 425", status(425), never},
		{"no JSON", status(200), never},
	}
	for _, failure := range failures {
		t.Run(failure.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					check := func(want bool, opts ...payvault.CallOption) {
						server := observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
							if n <= 2 {
								failure.serve(w, r)
								return
							}
							say(w, 200, c.success)
						})
						result, err := c.call(t.Context(), tableClient(t, server.URL+basePath), opts...)
						assertRepeated(t, want, result, err, server.seen())
					}
					check(failure.repeated.forCase(c.replay))
					check(failure.repeated.forCase(true), payvault.WithReplay())
				})
			}
		})
	}
}

// assertRepeated checks a call whose third attempt would be a success.
func assertRepeated(t *testing.T, want bool, result any, err error, requests []seen) {
	t.Helper()
	if !want {
		require.Error(t, err)
		assert.Nil(t, result)
		assert.Len(t, requests, 1)
		return
	}
	require.NoError(t, err)
	assert.NotNil(t, result)
	require.Len(t, requests, 3)
	for _, r := range requests[1:] {
		assert.Equal(t, requests[0].method+requests[0].path, r.method+r.path)
		assert.Equal(t, requests[0].query, r.query)
		assert.Equal(t, requests[0].header, r.header)
		assert.Equal(t, string(requests[0].body), string(r.body), "the whole body is sent again")
	}
}

func TestReplay_attemptTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				check := func(want bool, opts ...payvault.CallOption) {
					o := &observer{}
					pool := pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
						if o.add(r) <= 2 {
							<-r.Context().Done()
							return
						}
						say(w, 200, c.success)
					})
					client := tableClient(t, "http://127.0.0.1"+basePath, payvault.WithHTTPClient(pool), payvault.WithTimeout(7*time.Second))
					start := time.Now()
					result, err := c.call(t.Context(), client, opts...)
					assertRepeated(t, want, result, err, o.seen())
					if want {
						assert.InDelta(t, 14, time.Since(start).Seconds(), 0.1)
						return
					}
					assert.InDelta(t, 7, time.Since(start).Seconds(), 0.1)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assertOutcomeUnknown(t, c, err)
				}
				check(c.replay)
				check(true, payvault.WithReplay())
			})
		})
	}
}

// pipeServer is a server without a network, for tests in a bubble of synctest. It returns the only client that
// reaches it.
func pipeServer(t *testing.T, serve http.HandlerFunc) *http.Client {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: serve, ReadHeaderTimeout: time.Hour}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) })
	pool := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		pool.CloseIdleConnections()
		_ = server.Close()
		running.Wait()
	})
	return &http.Client{Transport: pool}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// TestOperations_result: the result of each operation stands where the table says. One of another shape is a malformed answer
// that names the place, unless there is no ID in it and the operation was performed.
func TestOperations_result(t *testing.T) {
	t.Parallel()
	cases := opCases()
	for _, info := range payvault.Operations() {
		i := slices.IndexFunc(cases, func(c opCase) bool { return c.op == info.Op })
		require.GreaterOrEqual(t, i, 0, "%s: no case", info.Op)
		member := strings.Split(info.Result, "/")
		if len(member) == 1 { // none, or the whole answer
			assert.Equal(t, info.Result == "-", cases[i].noData != "", info.Op)
			continue
		}
		odd := "17"
		for _, name := range slices.Backward(member[1:]) {
			odd = `{"` + name + `":` + odd + `}`
		}
		client := cannedClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
			body := `{"code":0,` + odd[1:]
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body))}, nil
		}))
		var response payvault.Response
		_, err := cases[i].call(t.Context(), client, payvault.WithResponse(&response))
		switch info.Op {
		case payvault.OpSubscriptionsCancel, payvault.OpWebhooksAddEvent, payvault.OpApplicationsSaveData:
			require.NoError(t, err, info.Op)
			assert.Equal(t, []string{info.Result}, response.Unread, info.Op)
			continue
		}
		require.ErrorIs(t, err, payvault.ErrMalformedResponse, info.Op)
		assert.Regexp(t, info.Result+"(/.*)? (is missing|cannot be read)", err.Error(), info.Op)
	}
}

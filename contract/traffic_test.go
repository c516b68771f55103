package contract

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/payvaulttest"
)

// A checker is a RoundTripper that checks each request and its answer against the document. It keeps the last answer.
type checker struct {
	*contract

	t    *testing.T
	base http.RoundTripper
	last any
}

// RoundTrip implements [http.RoundTripper].
func (c *checker) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	ctx := r.Context()
	r = r.Clone(ctx)
	if r.Body != nil {
		sent = readAll(c.t, r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	received := readAll(c.t, resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(received))
	in, err := c.checkRequest(ctx, r, sent)
	assert.NoError(c.t, err, "the request %s %s", r.Method, r.URL.Path)
	if in != nil {
		assert.NoError(c.t, checkAnswer(ctx, in, resp.Header, received), "the answer to %s %s", r.Method, r.URL.Path)
	}
	c.last = decode(c.t, string(received))
	return resp, nil
}

func readAll(t *testing.T, body io.ReadCloser) []byte {
	t.Helper()
	content, err := io.ReadAll(body)
	assert.NoError(t, err)
	assert.NoError(t, body.Close())
	return content
}

// newServer starts an emulator with the cards that testdata names, and with an account that may perform all operations.
// The returned client sends its requests through the returned checker.
func newServer(t *testing.T, c *contract) (*payvaulttest.Server, *payvault.Client, *checker) {
	t.Helper()
	account := payvaulttest.Account{
		MerchantID: calls.ActingFor, APIKey: "key", PayeeVault: true, SMS: true, SecondWallet: true,
		Partner: true, VendorID: 1003, ActsFor: []payvault.MerchantID{212345, 212347, 212348},
	}
	other := payvaulttest.Account{MerchantID: 212345, APIKey: "other", Partner: true, VendorID: 1003, SecondWallet: true}
	srv := payvaulttest.NewServer(payvaulttest.WithAccount(account), payvaulttest.WithAccount(other))
	t.Cleanup(srv.Close)
	for id, merchant := range map[string]payvault.MerchantID{
		"CARDID1004": other.MerchantID, "CARDID2004": account.MerchantID, "CARDID2006": account.MerchantID,
	} {
		srv.Cards.Seed(payvaulttest.Card{ID: id, MerchantID: merchant})
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	wire := &checker{contract: c, t: t, base: transport}
	return srv, srv.PartnerClient(payvault.WithHTTPClient(&http.Client{Transport: wire})), wire
}

// subscription returns a subscription with one transaction. The emulator returns this transaction with every field of
// the document.
func subscription() payvaulttest.Subscription {
	return payvaulttest.Subscription{CustomerID: "CUST6101", Transactions: []payvaulttest.Transaction{{
		AuthCode: "123456", RMsg: "Approved", CardNumber: "4111111111111111", PurchaseID: "order-17", PGID: "PG1",
		CardholderFirstName: "Jane", CardholderLastName: "Doe", AmtTran: payvault.MustParseAmount("25.50"),
		BatchNumber: 12, MerchRefNum: "ref-1", BatchID: 700012, BatchDate: "2026-01-31", SettleDate: "2026-02-01",
	}}}
}

// TestSuccesses makes all calls against the emulator. It checks that all requests and answers match the document, and
// that the last answer of an operation has every field of the document, except the fields in unknown.
func TestSuccesses(t *testing.T) {
	t.Parallel()
	c := loadClosed(t)
	unknown := map[payvault.Operation][]string{
		payvault.OpApplicationsCreate:   {".data.app.dba_name"},
		payvault.OpPayeesCreate:         {".data.payee_phone"},
		payvault.OpApplicationsSaveData: {".data.fields[].settings.options[].disabled"},
	}
	for _, o := range calls.Table() {
		t.Run(string(o.Op), func(t *testing.T) {
			t.Parallel()
			srv, client, wire := newServer(t, c)
			requests := []any{o.Minimal, o.Full}
			if o.Lists() {
				// the minimal request comes last, because the emulator refuses the filters of the full one
				slices.Reverse(requests)
				customers := calls.Of(payvault.OpCustomersCreate)
				_, err := customers.Do(t.Context(), client, calls.Seeded(srv), customers.Full)
				require.NoError(t, err)
			}
			var err error // of the last request: the emulator refuses some minimal requests
			for _, request := range requests {
				ids := calls.Seeded(srv)
				ids.Subscription = srv.Subscriptions.Seed(subscription()).ID
				_, err = o.Do(t.Context(), client, ids, request)
			}
			require.NoError(t, err, "the emulator refuses the full request: mend testdata/%s, or the record that Seeded in "+
				"internal/tests/calls/calls.go stores", o.Fixture("request.json"))
			places := absent("", c.answer(t, string(o.Op)), wire.last)
			assert.ElementsMatch(t, unknown[o.Op], places,
				"the emulator's answer lacks these fields of api/openapi.yaml. Add them to the answer in payvaulttest, and their "+
					"values to the record that Seeded in internal/tests/calls/calls.go stores. The answer: %v", wire.last)
		})
	}
}

// TestFailures makes each call fail in four ways against the emulator. It checks that the messages match the document,
// that the SDK returns errors, and that the emulator does not perform the operation.
func TestFailures(t *testing.T) {
	t.Parallel()
	c := loadClosed(t)
	for _, o := range calls.Table() {
		t.Run(string(o.Op), func(t *testing.T) {
			t.Parallel()
			srv, client, wire := newServer(t, c)
			ids := calls.Seeded(srv)
			for _, fault := range []payvaulttest.Fault{
				{Kind: payvaulttest.RateLimit, RetryAfter: "1"},
				{Kind: payvaulttest.OtherCode, Code: 7, Message: "Declined"},
				{Kind: payvaulttest.OtherCode, Status: http.StatusServiceUnavailable, Code: 99, Message: "Try later"},
			} {
				fault.Times = 1
				_, err := srv.Inject(fault)
				require.NoError(t, err)
				_, err = o.Do(t.Context(), client, ids, o.Minimal, payvault.WithMaxAttempts(1))
				assert.Error(t, err, fault.Kind)
			}
			stranger := srv.ClientFor(payvaulttest.Account{MerchantID: calls.ActingFor, APIKey: "unknown"},
				payvault.WithHTTPClient(&http.Client{Transport: wire}))
			_, err := o.Do(t.Context(), stranger, ids, o.Minimal)
			assert.ErrorIs(t, err, payvault.ErrUnauthorized)
			assert.Zero(t, srv.Commits(o.Op))
		})
	}
}

package payvaulttest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// newFuzzAPI returns an api whose server has an invoice, a dispute and a subscription, each with the ID 1.
func newFuzzAPI(f *testing.F) api {
	f.Helper()
	all := payvaulttest.Account{
		MerchantID: merchantID, APIKey: "key", Partner: true, VendorID: 1, PayeeVault: true,
		SMS: true,
	}
	srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0), payvaulttest.WithAccount(all))
	f.Cleanup(srv.Close)
	srv.Invoices.Seed(payvaulttest.Invoice{ID: "1"})
	srv.Disputes.Seed(payvaulttest.Dispute{ID: 1})
	srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 1, CustomerID: "C1", Transactions: []payvaulttest.Transaction{
		{PGID: "a", AmtTran: payvault.MustParseAmount("1.50")}, {PGID: "b", AmtTran: payvault.MustParseAmount("-2")},
	}})
	return api{srv: srv, key: all.APIKey}
}

// FuzzBodies checks that the answer to any body is JSON with a status below 500, and that a body that is neither empty
// nor JSON does not get status 200.
func FuzzBodies(f *testing.F) {
	a := newFuzzAPI(f)
	operations := payvault.Operations()
	for i, body := range []string{
		`{"merchant_id":"100001","vendor_id":1,"card_number":"4111111111111111","exp_date":"1229"}`,
		`{"customer_id":"C","customer_firm_name":"F","billing_cards":[{}]}`, `{"payee_name":"P","payee_account":{}}`,
		`{"channel_id":1,"sales_rep":1e9}`, `{"customer_id":"C2"}`, `{"phone_number":[1]}`, `{"data":[{}]}`, "--b--",
		`[[[{`, "\xff", `{"a":1,"a":2}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, operation uint8, body []byte) {
		o := operations[int(operation)%len(operations)]
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(o.Path, "1")
		r := a.request(t, o.Method, path, string(body))
		got := a.send(t, r)
		assert.Less(t, got.status, http.StatusInternalServerError)
		assert.True(t, json.Valid([]byte(got.body)))
		assert.False(t, got.status == http.StatusOK && len(body) > 0 && !json.Valid(body))
	})
}

// FuzzListQuery checks that a list of two transactions answers any query with JSON, a status below 500 and a total of
// at most 2.
func FuzzListQuery(f *testing.F) {
	a := newFuzzAPI(f)
	for _, seed := range []string{
		"", "count=1&page=1", "order_on=amt_tran&order_by=desc", "filter=amt_tran%2CGREATER_THAN%2C1", "filter=a,b,c",
		"filter=tran_date%2CBETWEEN_DATES%2C2026-01-01%2C2026-12-31", "filter=amt_tran%2CEQUALS%2C1e99999999", "page=%zz",
		"%80", "merchant_id=100001",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := a.request(t, http.MethodGet, "/platform/subscription/transactions/1", "")
		r.URL.RawQuery = query
		if _, err := url.ParseRequestURI(r.URL.String()); err != nil || hasControl(query) {
			return // the query cannot be sent
		}
		got := a.send(t, r)
		require.Less(t, got.status, http.StatusInternalServerError)
		var list struct {
			Total int `json:"totalRecords"`
		}
		require.NoError(t, json.Unmarshal([]byte(got.body), &list))
		assert.LessOrEqual(t, list.Total, 2)
	})
}

// hasControl reports whether a text has a character that cannot be part of the query in a request line.
func hasControl(s string) bool {
	return slices.ContainsFunc([]byte(s), func(c byte) bool { return c <= ' ' || c >= 0x7f || c == '#' })
}

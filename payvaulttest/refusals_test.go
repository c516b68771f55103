package payvaulttest_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// newStocked returns a server with a record for every path. All records are of the first merchant.
func newStocked(t *testing.T) api {
	t.Helper()
	a := newAPI(t)
	a.srv.Cards.Seed(payvaulttest.Card{ID: "CARD", CardNumber: "4111111111111111"})
	a.srv.Customers.Seed(payvaulttest.Customer{ID: "TAKEN", FirmName: "F"})
	a.srv.Payees.Seed(payvaulttest.Payee{ID: 1, Name: "P"})
	a.srv.Applications.Seed(payvaulttest.Application{ID: 1})
	a.srv.Disputes.Seed(payvaulttest.Dispute{ID: 1})
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 1, CustomerID: "C1"})
	a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "I"})
	a.srv.Webhooks.Seed(payvaulttest.Webhook{ID: "W"})
	return a
}

// records returns what a server holds, besides requests to the account updater.
func (a api) records() payvaulttest.Seed {
	s := a.srv
	return payvaulttest.Seed{
		Cards: s.Cards.All(), Customers: s.Customers.All(), Payees: s.Payees.All(), Applications: s.Applications.All(),
		Subscriptions: s.Subscriptions.All(), Invoices: s.Invoices.All(), Disputes: s.Disputes.All(),
		Webhooks: s.Webhooks.All(),
	}
}

// A request of the table is refused with a status. The answer names the field that is wrong and repeats no value.
// Nothing is performed or stored.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	const (
		card     = `{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",`
		firm     = `{"customer_id":"C","customer_firm_name":"F",`
		list     = "/platform/subscription/transactions/1"
		cancel   = "/platform/subscription/1/cancel"
		send     = "/platform/invoice/I/send"
		create   = "/platform/application/add"
		save     = "/platform/application/1/data"
		submit   = "/platform/aus/add"
		addEvent = "/platform/webhook/W/event/"
	)
	a := newStocked(t)
	before := a.records()
	for _, test := range []struct {
		key, method, path, body string
		status                  int
		field                   string // in the answer; of tokenize, in the message
	}{
		{"merchant", "POST", "/pg/tokenize", `{"card_number":"4111111111111111"}`, 400, "merchant_id is required"},
		{"merchant", "POST", "/pg/tokenize", `{"merchant_id":100001,"card_id":"CARD"}`, 400, "merchant_id"},
		{"merchant", "POST", "/pg/tokenize", `{"merchant_id":"100002","card_id":"CARD"}`, 403, "merchant_id"},
		{"merchant", "POST", "/pg/tokenize", `{"merchant_id":"Acme","card_id":"CARD"}`, 403, "merchant_id"},
		{"merchant", "POST", "/pg/tokenize", `{"merchant_id":"100001","exp_date":"1229"}`, 400, "card_number or other"},
		{
			"merchant", "POST", "/pg/tokenize", `{"merchant_id":"100001","card_number":"4111 1111 1111"}`,
			400, "card_number",
		},
		{
			"merchant", "POST", "/pg/tokenize", `{"merchant_id":"100001","card_id":"CARD","exp_date":"1329"}`,
			400, "exp_date",
		},
		{"merchant", "POST", "/pg/tokenize", `{"merchant_id":"100001","card_id":"NONE"}`, 404, "card"},
		{"second", "POST", "/pg/tokenize", `{"merchant_id":"100002","card_id":"CARD"}`, 404, "card"},
		{"second", "POST", "/pg/tokenize", `{"merchant_id":"100002","payload_wallet_two_pay":"x"}`, 403, "second wallet"},
		{"merchant", "POST", "/pg/tokenize", `{"merchant_id":"100001","card_swipe":"x"}`, 400, "card_swipe is not track"},
		{"merchant", "POST", "/pg/tokenize", card + `"echo_fields":[]}`, 400, "echo_fields"},
		{"merchant", "POST", "/pg/tokenize", card + `"echo_fields":"{}"}`, 400, "echo_fields"},
		{"merchant", "POST", "/pg/tokenize", card + `"report_data":"[{\"a\":1,\"b\":2}]"}`, 400, "report_data"},
		{"partner", "POST", "/pg/tokenize", card + `"vendor_id":"7001"}`, 400, "vendor_id"},
		{"partner", "POST", "/pg/tokenize", card + `"vendor_id":1}`, 400, "vendor_id"},
		{"partner", "POST", "/pg/tokenize", card + `"single_use":true}`, 400, "vendor_id"},
		{"merchant", "GET", "/pg/tokenize", "", 404, "no operation has this method and path"},

		{"merchant", "POST", customers, `{"customer_id":"C"}`, 400, "customer_first_name"},
		{"merchant", "POST", customers, `{"customer_id":"C","customer_first_name":"A"}`, 400, "customer_first_name"},
		{"merchant", "POST", customers, `{"customer_id":"C","customer_firm_name":""}`, 400, "customer_first_name"},
		{"merchant", "POST", customers, `{"customer_firm_name":"F"}`, 400, "customer_id"},
		{"merchant", "POST", customers, `{"customer_id":"C-1","customer_firm_name":"F"}`, 400, "customer_id"},
		{"merchant", "POST", customers, `{"customer_id":"TAKEN","customer_firm_name":"F"}`, 409, ""},
		{"merchant", "POST", customers, firm + `"customer_id":"4111111111111111"}`, 400, "customer_id"},
		{"merchant", "POST", customers, firm + `"Comments":"x"}`, 400, "Comments"},
		{"merchant", "POST", customers, firm + `"rec_id":1}`, 400, "rec_id"},
		{"merchant", "POST", customers, firm + `"comments":null}`, 400, "comments"},
		{"merchant", "POST", customers, firm + `"merchant_id":100001.0}`, 400, "merchant_id"},
		{"merchant", "POST", customers, firm + `"merchant_id":41111111111111111111}`, 400, "merchant_id"},
		{"merchant", "POST", customers, firm + `"merchant_id":100002}`, 403, ""},
		{"partner", "POST", customers, firm + `"merchant_id":31}`, 403, ""},
		{"merchant", "POST", customers, firm + `"billing_cards":{}}`, 400, "billing_cards"},
		{"merchant", "POST", customers, firm + `"billing_cards":["4111"]}`, 400, "billing_cards[0]"},
		{"merchant", "POST", customers, firm + `"billing_cards":[{}]}`, 400, "billing_cards[0].card_number"},
		{
			"merchant", "POST", customers, firm + `"billing_cards":[{"card_id":"CARD"},{"exp_date":"4111111111111111"}]}`,
			400, "billing_cards[1].exp_date",
		},
		{
			"merchant", "POST", customers,
			firm + `"billing_cards":[{"card_number":"4111111111111111","exp_date":"1229"},{"card_id":"NONE"}]}`, 404, "",
		},
		{"merchant", "GET", customers + "?merchant_id=100002", "", 403, ""},
		{"partner", "GET", customers + "?merchant_id=31", "", 403, ""},
		{"merchant", "GET", customers, `{}`, 400, "body"},

		{"merchant", "POST", payees, `{}`, 400, "payee_name"},
		{"merchant", "POST", payees, `{"payee_name":""}`, 400, "payee_name"},
		{
			"merchant", "POST", payees, `{"payee_name":"P","payee_account":{"verified_date":"x"}}`,
			400, "payee_account.verified_date",
		},
		{"second", "POST", payees, `{"payee_name":"P"}`, 403, ""},
		{"partner", "POST", payees, `{"payee_name":"P","merchant_id":100002}`, 403, ""},
		{"second", "DELETE", payees + "/1", "", 403, ""},
		{"partner", "DELETE", payees + "/1?merchant_id=", "", 400, "merchant_id"},
		{"merchant", "DELETE", payees + "/2", "", 404, ""},
		{"merchant", "DELETE", payees + "/1.0", "", 400, "payee_id"},
		{"merchant", "DELETE", payees + "/1?force=true", "", 400, "force"},

		{"merchant", "POST", submit, `{}`, 400, "data"},
		{"merchant", "POST", submit, `{"data":[{"exp_date":"1229"}]}`, 400, "data[0].card_number"},
		{
			"merchant", "POST", submit, `{"data":[{"card_number":"41111111111","exp_date":"1229"}]}`,
			400, "data[0].card_number",
		},
		{
			"merchant", "POST", submit, `{"data":[{"card_number":"4111111111111111","exp_date":"0029"}]}`,
			400, "data[0].exp_date",
		},

		{"merchant", "POST", send, `{"phone_number":["12125550171"]}`, 400, "phone_number[0]"},
		{"merchant", "POST", send + "?merchant_id=100001", `{}`, 400, "merchant_id"},
		{"merchant", "POST", "/platform/invoice/J/send", `{}`, 404, ""},
		{"second", "POST", send, `{}`, 404, ""},

		{"merchant", "POST", cancel, "", 415, ""},
		{"merchant", "POST", cancel, `{}`, 400, "customer_id"},
		{"merchant", "POST", cancel, `{"customer_id":"C2"}`, 400, "customer_id"},
		{"merchant", "POST", cancel, `{"customer_id":"C1","merchant_id":100002}`, 403, ""},
		{"merchant", "POST", "/platform/subscription/2/cancel", `{"customer_id":"C1"}`, 404, ""},
		{"second", "POST", cancel, `{"customer_id":"C1"}`, 404, ""},
		{"partner", "POST", cancel, `{"customer_id":"C1"}`, 404, ""},

		{"merchant", "GET", list + "?merchant_id=", "", 400, "merchant_id"},
		{"second", "GET", list, "", 404, ""},
		{"merchant", "GET", "/platform/subscription/transactions/2", "", 404, ""},
		{"merchant", "GET", "/platform/subscription/transactions/x", "", 400, "subscription_id"},
		{"merchant", "GET", list + query("filter", "nonsense,EQUALS,1"), "", 400, "filter[0]"},
		{"merchant", "GET", list + query("filter", "tran_status,LIKE,1"), "", 400, "filter[0]"},
		{"merchant", "GET", list + query("filter", "tran_status,EQUALS"), "", 400, "filter[0]"},
		{
			"merchant", "GET", list + query("filter", "tran_status,BETWEEN_DATES,2026-01-01,2026-01-02"), "",
			400, "filter[0]",
		},
		{"merchant", "GET", list + query("filter", "tran_date,BETWEEN_DATES,2026-01-01"), "", 400, "filter[0]"},
		{
			"merchant", "GET", list + query("filter", "tran_date,BETWEEN_DATES,2026-02-30,2026-03-01"), "",
			400, "filter[0]",
		},
		{
			"merchant", "GET", list + query("filter", "tran_date,BETWEEN_DATES,2026-02-02,2026-02-01"), "",
			400, "filter[0]",
		},
		{"merchant", "GET", list + "?order_on=nonsense", "", 400, "order_on"},
		{"merchant", "GET", list + "?order_on=pg_id&order_by=up", "", 400, "order_by"},
		{"merchant", "GET", list + "?count=0", "", 400, "count"},
		{"merchant", "GET", list + "?count=ten", "", 400, "count"},
		{"merchant", "GET", list + "?page=-1", "", 400, "page"},
		{"merchant", "GET", list + "?page=1&page=2", "", 400, "page"},
		{"merchant", "GET", list + "?Page=1", "", 400, "Page"},
		{"merchant", "GET", list + "?filter=tran_status,EQUALS,P", "", 400, ""},
		{"merchant", "GET", list + "?page=%zz", "", 400, ""},
		{"merchant", "GET", customers + "?order_on=tran_time", "", 400, "order_on"},

		{"merchant", "POST", create, `{"channel_id":1,"sales_rep":1}`, 403, ""},
		{"merchant", "POST", save, `{"data":[]}`, 403, ""},
		{"merchant", "GET", "/platform/application/1/validate", "", 403, ""},
		{"partner", "POST", create, `{"channel_id":1}`, 400, "sales_rep"},
		{"partner", "POST", create, `{"channel_id":1,"sales_rep":1.5}`, 400, "sales_rep"},
		{"partner", "POST", save, `{}`, 400, "data"},
		{"partner", "POST", save, `{"data":[{"key":"legal_name"}]}`, 400, "data[0].value"},
		{"partner", "POST", save, `{"data":[{"key":"dba_name","value":"B"},{"key":"my_key","value":5}]}`, 400, "my_key"},
		{
			"partner", "POST", save, `{"data":[{"key":"dba_name","value":"B"},{"key":"card_volume","value":5}]}`,
			400, "card_volume",
		},
		{"partner", "POST", save, `{"data":[{"key":"card_brands","value":{"vi":"true"}}]}`, 400, "card_brands.vi"},
		{
			"partner", "POST", save, `{"data":[{"key":"ownership","value":{"owners":[{},{"dob":""}]}}]}`, 400,
			"ownership.owners[1].dob",
		},
		{"partner", "POST", "/platform/application/2/data", `{"data":[]}`, 404, ""},
		{"partner", "GET", "/platform/application/2/validate", "", 404, ""},

		{"merchant", "POST", addEvent + "transactions_status_updated", "", 400, ""},
		{"merchant", "POST", addEvent + "e", `{}`, 400, "body"},
		{"merchant", "POST", "/platform/webhook/V/event/e", "", 404, ""},
		{"second", "POST", addEvent + "e", "", 404, ""},
	} {
		caller := map[string]api{"merchant": a, "partner": a.partner(), "second": a.second(t)}[test.key]
		got := caller.do(t, test.method, test.path, test.body)
		call := test.key + " " + test.method + " " + test.path + " " + test.body
		require.Equal(t, test.status, got.status, "%s: %s", call, got.body)
		assert.NotContains(t, got.body, "41111", call)
		if strings.HasPrefix(test.path, "/pg/") {
			assert.Equal(t, strconv.Itoa(test.status), got.object(t)["rcode"], call)
			assert.Contains(t, got.object(t)["rmsg"], test.field, call)
			continue
		}
		var fields []string
		if test.field != "" {
			fields = append(fields, test.field)
		}
		got.refused(t, test.status, fields...)
	}
	assert.Empty(t, a.srv.AllCommits())
	assert.Equal(t, before, a.records())
	assert.Empty(t, a.srv.AccountUpdaterRequests.All())
}

package payvaulttest_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// newStocked returns an api whose server has one record in every store except AccountUpdaterRequests. The records
// belong to the first merchant, except the application, which belongs to the partner.
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

// records returns the records of a server as a Seed. A Seed cannot have account updater requests.
func (a api) records() payvaulttest.Seed {
	s := a.srv
	return payvaulttest.Seed{
		Cards: s.Cards.All(), Customers: s.Customers.All(), Payees: s.Payees.All(), Applications: s.Applications.All(),
		Subscriptions: s.Subscriptions.All(), Invoices: s.Invoices.All(), Disputes: s.Disputes.All(),
		Webhooks: s.Webhooks.All(),
	}
}

// A refusal is an invalid request, with the status that its answer must have and a field that its answer must name.
type refusal struct {
	sent   string // a body if it begins with a brace; otherwise the end of the path
	status int
	field  string // empty if the answer need not name a field
}

// TestRefusedRequests checks that each invalid request is refused without any effect, and that the answer names the
// invalid field but not its value.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	const (
		card    = `{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229"`
		firm    = `{"customer_id":"C","customer_firm_name":"F"`
		updated = `{"card_number":"4111111111111111","exp_date":"1229"}`
	)
	filter := func(text string) string { return query("filter", text) }
	a := newStocked(t)
	before := a.records()
	callers := map[string]api{"merchant": a, "partner": a.partner(), "second": a.second(t)}
	for call, refusals := range map[string][]refusal{
		"merchant POST /pg/tokenize": {
			{`{"card_number":"4111111111111111"}`, 400, "merchant_id is required"},
			{`{"merchant_id":"100002","card_id":"CARD"}`, 403, "merchant_id"},
			{`{"merchant_id":"100001","exp_date":"1229"}`, 400, "card_number or other"},
			{`{"merchant_id":"100001","card_number":"4111 1111 1111"}`, 400, "card_number"},
			{`{"merchant_id":"100001","card_id":"NONE"}`, 404, "card"},
			{`{"merchant_id":"100001","card_swipe":"x"}`, 400, "card_swipe is not track"},
			{card + `,"echo_fields":"{}"}`, 400, "echo_fields"},
			{card + `,"report_data":"[{\"a\":1,\"b\":2}]"}`, 400, "report_data"},
		},
		"second POST /pg/tokenize": {
			{`{"merchant_id":"100002","card_id":"CARD"}`, 404, "card"},
			{`{"merchant_id":"100002","payload_wallet_two_pay":"x"}`, 403, "second wallet"},
		},
		"partner POST /pg/tokenize": {
			{card + `,"vendor_id":1}`, 400, "vendor_id"},
			{card + `}`, 400, "vendor_id"},
		},
		"merchant GET /pg/tokenize": {{"", 404, "no operation has this method and path"}},

		"merchant POST /platform/vault/customer": {
			{`{"customer_id":"C","customer_first_name":"A"}`, 400, "customer_first_name"},
			{`{"customer_id":"C","customer_firm_name":""}`, 400, "customer_first_name"},
			{`{"customer_firm_name":"F"}`, 400, "customer_id"},
			{firm + `,"customer_id":"4111111111111111"}`, 400, "customer_id"},
			{firm + `,"Comments":"x"}`, 400, "Comments"},
			{firm + `,"comments":null}`, 400, "comments"},
			{firm + `,"merchant_id":100001.0}`, 400, "merchant_id"},
			{firm + `,"merchant_id":41111111111111111111}`, 400, "merchant_id"},
			{firm + `,"merchant_id":100002}`, 403, ""},
			{firm + `,"billing_cards":[{}]}`, 400, "billing_cards[0].card_number"},
			{firm + `,"billing_cards":[{"card_id":"CARD"},{"exp_date":"41111"}]}`, 400, "billing_cards[1].exp_date"},
			{firm + `,"billing_cards":[{"card_number":"4111111111111111"},{"card_id":"NONE"}]}`, 404, ""},
		},
		"partner POST /platform/vault/customer": {{firm + `,"merchant_id":31}`, 403, ""}},
		"merchant GET /platform/vault/customer": {
			{"?merchant_id=100002", 403, ""}, {"?order_on=tran_time", 400, "order_on"}, {`{}`, 400, "body"},
		},

		"merchant POST /platform/vault/payee": {{`{"payee_name":""}`, 400, "payee_name"}},
		"second POST /platform/vault/payee":   {{`{"payee_name":"P"}`, 403, ""}},
		"partner POST /platform/vault/payee":  {{`{"payee_name":"P","merchant_id":100002}`, 403, ""}},
		"merchant DELETE /platform/vault/payee": {
			{"/2", 404, ""}, {"/1.0", 400, "payee_id"}, {"/1?force=true", 400, "force"},
		},
		"second DELETE /platform/vault/payee":  {{"/1", 403, ""}},
		"partner DELETE /platform/vault/payee": {{"/1?merchant_id=", 400, "merchant_id"}},

		"merchant POST /platform/aus/add": {
			{`{"data":[{"exp_date":"1229"}]}`, 400, "data[0].card_number"},
			{`{"data":[{"card_number":"41111111111","exp_date":"1229"}]}`, 400, "data[0].card_number"},
			{`{"data":[` + strings.Repeat(updated+`,`, 100) + updated + `]}`, 400, "data"},
		},

		"merchant POST /platform/invoice": {{"/J/send", 404, ""}, {"/I/send?merchant_id=100001", 400, "merchant_id"}},
		"second POST /platform/invoice":   {{"/I/send", 404, ""}},

		"merchant POST /platform/subscription/1/cancel": {{"", 415, ""}, {`{"customer_id":"C2"}`, 400, "customer_id"}},
		"merchant POST /platform/subscription/2/cancel": {{`{"customer_id":"C1"}`, 404, ""}},
		"second POST /platform/subscription/1/cancel":   {{`{"customer_id":"C1"}`, 404, ""}},
		"merchant GET /platform/subscription/transactions": {
			{"/2", 404, ""},
			{"/1" + filter("nonsense,EQUALS,1"), 400, "filter[0]"},
			{"/1" + filter("tran_status,LIKE,1"), 400, "filter[0]"},
			{"/1" + filter("tran_status,EQUALS"), 400, "filter[0]"},
			{"/1" + filter("tran_date,BETWEEN_DATES,2026-01-01"), 400, "filter[0]"},
			{"/1" + filter("tran_date,BETWEEN_DATES,2026-02-30,2026-03-01"), 400, "filter[0]"},
			{"/1" + filter("tran_date,BETWEEN_DATES,2026-02-01,2026-02-30"), 400, "filter[0]"},
			{"/1" + filter("tran_date,BETWEEN_DATES,2026-02-02,2026-02-01"), 400, "filter[0]"},
			{"/1?order_on=pg_id&order_by=up", 400, "order_by"},
			{"/1?count=0", 400, "count"},
			{"/1?count=ten", 400, "count"},
			{"/1?page=1&page=2", 400, "page"},
			{"/1?Page=1", 400, "Page"},
			{"/1?filter=tran_status,EQUALS,P", 400, ""}, // the commas are not encoded
			{"/1?page=%zz", 400, ""},
		},
		"second GET /platform/subscription/transactions": {{"/1", 404, ""}},

		"merchant POST /platform/application/add":    {{`{"channel_id":1,"sales_rep":1}`, 403, ""}},
		"merchant POST /platform/application/1/data": {{`{"data":[]}`, 403, ""}},
		"merchant GET /platform/application":         {{"/1/validate", 403, ""}},
		"partner POST /platform/application/1/data": {
			{`{"data":[{"key":"legal_name"}]}`, 400, "data[0].value"},
			{`{"data":[{"key":"dba_name","value":"B"},{"key":"my_key","value":5}]}`, 400, "my_key"},
			{`{"data":[{"key":"dba_name","value":"B"},{"key":"card_volume","value":5}]}`, 400, "card_volume"},
			{`{"data":[{"key":"card_brands","value":{"vi":"true"}}]}`, 400, "card_brands.vi"},
			{`{"data":[{"key":"ownership","value":{"owners":[{},{"dob":""}]}}]}`, 400, "ownership.owners[1].dob"},
		},
		"partner POST /platform/application/2/data": {{`{"data":[]}`, 404, ""}},
		"partner GET /platform/application":         {{"/2/validate", 404, ""}},

		"merchant POST /platform/webhook/W/event":   {{"/transactions_status_updated", 400, ""}},
		"merchant POST /platform/webhook/W/event/e": {{`{}`, 400, "body"}},
		"merchant POST /platform/webhook/V/event":   {{"/e", 404, ""}},
		"second POST /platform/webhook/W/event":     {{"/e", 404, ""}},
	} {
		words := strings.Fields(call)
		caller, method, path := callers[words[0]], words[1], words[2]
		for _, refusal := range refusals {
			var got reply
			if strings.HasPrefix(refusal.sent, "{") {
				got = caller.do(t, method, path, refusal.sent)
			} else {
				got = caller.do(t, method, path+refusal.sent, "")
			}
			require.Equal(t, refusal.status, got.status, "%s %s: %s", call, refusal.sent, got.body)
			assert.NotContains(t, got.body, "41111111", call)
			if path == "/pg/tokenize" {
				assert.Equal(t, strconv.Itoa(refusal.status), got.object(t)["rcode"], refusal.sent)
				assert.Contains(t, got.object(t)["rmsg"], refusal.field, refusal.sent)
				continue
			}
			var fields []string
			if refusal.field != "" {
				fields = append(fields, refusal.field)
			}
			got.refused(t, refusal.status, fields...)
		}
	}
	assert.Empty(t, a.srv.AllCommits())
	assert.Equal(t, before, a.records())
	assert.Empty(t, a.srv.AccountUpdaterRequests.All())
}

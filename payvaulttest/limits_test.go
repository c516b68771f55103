package payvaulttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// Whatever a request is large in, the history keeps no more of it than it says.
func TestHistoryCountsEverything(t *testing.T) {
	t.Parallel()
	for name, grow := range map[string]func(*http.Request){
		"method": func(r *http.Request) { r.Method = strings.Repeat("A", 900_000) },
		"host":   func(r *http.Request) { r.Host = strings.Repeat("a", 900_000) },
		"query":  func(r *http.Request) { r.URL.RawQuery = numbered("&%x", 9_900) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const requests = 80
			a := newAPI(t)
			for range requests {
				r := a.request(t, http.MethodGet, "/nowhere", "")
				grow(r)
				a.send(t, r).refused(t, http.StatusNotFound)
			}
			kept := len(a.srv.Requests())
			assert.Less(t, kept, requests)
			assert.Greater(t, kept, requests/4)
		})
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestLongNumbers(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	share := func(n int) string {
		return `{"data":[{"key":"ownership","value":{"owners":[{"interestPercent":1.` + strings.Repeat("3", n-2) + `}]}}]}`
	}
	a.post(t, path+"/data", share(64)).ok(t)
	a.post(t, path+"/data", share(65)).refused(t, http.StatusBadRequest, "ownership.owners[0].interestPercent")
	b := seedTransactions(t)
	number := func(n int) string { return query("filter", "amt_tran,EQUALS,"+strings.Repeat("3", n)) }
	assert.Empty(t, b.page(t, transactions+number(64)).Data)
	b.get(t, transactions+number(65)).refused(t, http.StatusBadRequest, "filter")
	assert.Panics(t, func() {
		a.srv.SeedSubscription(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{{Amount: json.Number("1.2" + strings.Repeat("3", 62))}}})
	})
}

func TestLongLists(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	addresses := func(n int) string {
		return `{"auto_generate_customer_id":true,"customer_firm_name":"F","shipping_addresses":[{}` + strings.Repeat(",{}", n-1) + `]}`
	}
	a.post(t, "/platform/vault/customer", addresses(1000)).ok(t)
	a.post(t, "/platform/vault/customer", addresses(1001)).refused(t, http.StatusBadRequest, "shipping_addresses")
	a.post(t, "/platform/vault/customer", addresses(300_000)).refused(t, http.StatusBadRequest, "shipping_addresses")
	a.post(t, payees, `{"payee_name":"P","payee_email":["a@example.com"`+strings.Repeat(`,"a@example.com"`, 1000)+`]}`).
		refused(t, http.StatusBadRequest, "payee_email")
}

// The longest and the shortest value of each field, and one character more and less.
func TestLengths(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	app, path := newApplication(t)
	digits := func(n int) string { return strings.Repeat("1", n) }
	tokenize := func(fields string) func(int) int {
		return func(n int) int {
			return a.post(t, "/pg/tokenize", `{"merchant_id":"100001",`+fmt.Sprintf(fields, digits(n))+`}`).status
		}
	}
	post := func(body string) func(int) int {
		return func(n int) int { return a.post(t, payees, fmt.Sprintf(body, digits(n))).status }
	}
	customer := func(fields string) func(int) int {
		return func(n int) int {
			body := `{"auto_generate_customer_id":true,"customer_firm_name":"F",` + fmt.Sprintf(fields, digits(n)) + `}`
			return a.post(t, "/platform/vault/customer", body).status
		}
	}
	save := func(key string) func(int) int {
		return func(n int) int {
			return app.post(t, path+"/data", `{"data":[{"key":"`+key+`","value":"`+digits(n)+`"}]}`).status
		}
	}
	for name, test := range map[string]struct {
		send      func(n int) int
		low, high int
	}{
		"card_number":           {tokenize(`"card_number":"%s","exp_date":"1229"`), 12, 19},
		"cvv2":                  {tokenize(`"card_number":"4111111111111111","exp_date":"1229","cvv2":"%s"`), 3, 4},
		"tr_number":             {tokenize(`"tr_number":"%s","dda_number":"1","type_id":"S","cardholder_name":"J"`), 9, 9},
		"dda_number":            {tokenize(`"tr_number":"123456780","dda_number":"%s","type_id":"S","cardholder_name":"J"`), 1, 17},
		"dda_number of a payee": {post(`{"payee_name":"P","payee_account":{"tr_number":"123456780","dda_number":"%s"}}`), 1, 17},
		"country of a payee":    {post(`{"payee_name":"P","payee_address":{"country_code":"%s"}}`), 0, 3},
		"billing_country_code":  {customer(`"billing_cards":[{"card_number":"4111111111111111","exp_date":"1229","billing_country_code":"%s"}]`), 0, 3},
		"shipping_country_code": {customer(`"shipping_addresses":[{"shipping_country_code":"%s"}]`), 0, 3},
		"bank_account_number":   {save("bank_account_number"), 0, 17},
		"business_phone":        {save("business_phone"), 7, 15},
		"phone_number": {func(n int) int {
			a.srv.SeedInvoice(payvaulttest.Invoice{ID: "INV-1"})
			return a.post(t, sendPath, `{"phone_number":[`+digits(n)+`]}`).status
		}, 8, 15},
	} {
		for n, status := range map[int]int{test.low: 200, test.high: 200, test.high + 1: 400} {
			assert.Equal(t, status, test.send(n), "%s of %d", name, n)
		}
		if test.low > 1 {
			assert.Equal(t, http.StatusBadRequest, test.send(test.low-1), "%s of %d", name, test.low-1)
		}
	}
}

func TestCardsOfBothPrefixes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for number, kind := range map[string]string{"341111111111111": "AM", "371111111111111": "AM", "351111111111111": "", "361111111111111": ""} {
		id, _ := a.post(t, "/pg/tokenize", `{"merchant_id":"100001","exp_date":"0130","card_number":"`+number+`"}`).tokenized(t)["card_id"].(string)
		card, ok := a.srv.Card(merchantID, id)
		require.True(t, ok)
		assert.Equal(t, kind, card.Type, number)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	for state, status := range map[string]int{
		"VI": 200, "PR": 200, "GU": 200, "AS": 200, "MP": 200, "DC": 200, "WY": 200, "AL": 200, "XX": 400, "vi": 400, "AL AK": 400,
	} {
		assert.Equal(t, status, a.post(t, path+"/data", `{"data":[{"key":"state_filed","value":"`+state+`"}]}`).status, state)
	}
}

func TestOwnersAreChecked(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	save := func(owner string) reply {
		return a.post(t, path+"/data", `{"data":[{"key":"ownership","value":{"owners":[`+owner+`]}}]}`)
	}
	for _, name := range []string{"dob", "passport_expiration_date", "passport_issue_date", "dl_expiration_date", "dl_issue_date"} {
		save(`{"`+name+`":"2030-02-30"}`).refused(t, http.StatusBadRequest, "ownership.owners[0]."+name)
		save(`{"` + name + `":"2030-02-28"}`).ok(t)
	}
	save(`{"email":"nonsense"}`).refused(t, http.StatusBadRequest, "ownership.owners[0].email")
	save(`{"email":"o@example.com","phone":"any","ssn":"any","dl_state":"any"}`).ok(t)
}

// A tax-exempt needs a person with control, and of each no more than a name.
func TestTaxExempt(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	a.problems(t, path, strings.Replace(allData, `"business_type","value":"llc"`, `"business_type","value":"tax-exempt"`, 1))
	ownership := func(owner string) map[string][]string {
		return a.problems(t, path, `[{"key":"ownership","value":{"owners":[`+owner+`]}}]`)
	}
	assert.Empty(t, ownership(`{"name":{"first_name":"A","last_name":"B"},"personType":{"control":true}}`))
	got := ownership(`{"name":{"first_name":"A","last_name":"B"},"personType":{"owner":true}}`)
	assert.Len(t, got, 1)
	assert.Contains(t, got, "ownership.owners")
}

func TestFiltersByKind(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	for _, filter := range []string{
		"amt_tran,CONTAINS,1", "batch_number,CONTAINS,1", "tran_time,CONTAINS,2026", "settle_date,CONTAINS,2026", "dispute_flag,CONTAINS,tr",
		"dispute_flag,GREATER_THAN,false", "amt_tran,BETWEEN_DATES,2026-01-01,2026-01-02",
	} {
		a.get(t, transactions+query("filter", filter)).refused(t, http.StatusBadRequest, "filter")
	}
	for filter, want := range map[string]string{ // a cell that is empty is below all others
		"settle_date,LESS_THAN,2026-02-02":    "abdc",
		"settle_date,GREATER_THAN,2026-02-01": "e",
		"settle_date,NOT_EQUALS,2026-02-02":   "abdc",
	} {
		assert.ElementsMatch(t, strings.Split(want, ""), strings.Split(a.page(t, transactions+query("filter", filter)).ids(), ""), filter)
	}
}

// A merchant that has the payee vault, too, cannot delete the payees of another.
func TestPayeesOfOthers(t *testing.T) {
	t.Parallel()
	other := payvaulttest.Account{MerchantID: 6, APIKey: "six", PayeeVault: true}
	a := newAPI(t, payvaulttest.WithAccount(payvaulttest.Account{MerchantID: 5, APIKey: "five", PayeeVault: true}), payvaulttest.WithAccount(other))
	id, _ := a.post(t, payees, `{"payee_name":"P"}`).ok(t)["payee_id"].(float64)
	path := fmt.Sprintf("%s/%.0f", payees, id)
	a.as(other).do(t, http.MethodDelete, path, "").refused(t, http.StatusNotFound)
	assert.Len(t, a.srv.Payees(5), 1)
	a.do(t, http.MethodDelete, path, "").ok(t)
}

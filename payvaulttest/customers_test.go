package payvaulttest_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func noon() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 5, time.FixedZone("", -5*3600)) }

// TestCustomerCreate checks the answer and the record of a new customer. Neither has a full card number, a security
// code or a bank account.
func TestCustomerCreate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	got := a.post(t, customers, `{
		"customer_id":"CUST1","customer_first_name":"Carla","customer_last_name":"Customer","comments":"none",
		"shipping_addresses":[{"shipping_first_name":"Sam","shipping_country_code":"840","merchant_id":100001}],
		"billing_cards":[
			{"card_number":"4111111111111111","exp_date":"1229","cvv2":"123","billing_first_name":"Bill",
			"billing_email":["b@example.com"],"verify":true},
			{"tr_number":"123456780","dda_number":"0002223330","type_id":"S","primary":false},
			{"card_number":"5454545454545454","exp_date":"0130","primary":true},
			{"card_number":"378282246310005","primary":true}]}`)
	data := got.ok(t)
	for _, secret := range []string{"cvv2", `"123"`, "tr_number", "dda_number", "0002223330", "4111111111111111"} {
		assert.NotContains(t, got.body, secret)
	}
	customer, ok := a.srv.Customers.Get(payvaulttest.CustomerKey{MerchantID: merchantID, ID: "CUST1"})
	require.True(t, ok)
	addresses, _ := data["shipping_addresses"].([]any)
	cards, _ := data["billing_cards"].([]any)
	assert.NotZero(t, customer.RecID)
	require.Len(t, addresses, 1)
	require.Len(t, cards, 4)
	delete(data, "shipping_addresses")
	delete(data, "billing_cards")
	assert.Equal(t, map[string]any{
		"customer_id": "CUST1", "node_id": float64(merchantID), "rec_id": float64(customer.RecID), "comments": "none",
		"customer_first_name": "Carla", "customer_last_name": "Customer", "primary_card_number": "5454xxxxxx545454",
	}, data)
	assert.Equal(t, map[string]any{
		"shipping_id": float64(customer.ShippingAddresses[0]["shipping_id"].(int64)), "shipping_first_name": "Sam",
		"shipping_country_code": "840", "primary": true,
	}, addresses[0])
	assert.Equal(t, map[string]any{
		"card_id": customer.BillingCards[0]["card_id"], "card_number": "4111xxxxxx111111", "exp_date": "1229",
		"billing_first_name": "Bill", "billing_email": []any{"b@example.com"}, "primary": false, "card_type": "VI",
		"verified_date": "20260115120000",
	}, cards[0])
	assert.Equal(t, map[string]any{"card_id": customer.BillingCards[1]["card_id"], "primary": false}, cards[1])
	assert.Equal(t, []any{true, false}, []any{customer.BillingCards[2]["primary"], customer.BillingCards[3]["primary"]},
		"the first that says so is the primary one")
	assert.Len(t, a.srv.Cards.All(), 4, "the cards can be used by their IDs")
}

// TestCustomerIDs checks that a customer_id can be used only once per merchant, and that the server generates an ID if
// a request has auto_generate_customer_id and no customer_id.
func TestCustomerIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const anyID = `{"auto_generate_customer_id":true,"customer_firm_name":"F"}`
	one, _ := a.post(t, customers, anyID).ok(t)["customer_id"].(string)
	two, _ := a.post(t, customers, anyID).ok(t)["customer_id"].(string)
	assert.Regexp(t, `^[A-Za-z0-9]+$`, one)
	assert.NotEqual(t, one, two)
	const given = `{"customer_id":"C1","auto_generate_customer_id":true,"customer_firm_name":"F"}`
	a.post(t, customers, given).ok(t)
	a.post(t, customers, given).refused(t, http.StatusConflict)
	a.second(t).post(t, customers, given).ok(t)
	assert.Equal(t, 4, a.srv.Commits(payvault.OpCustomersCreate))
}

// TestCustomerWithSavedCard checks that a new customer can have and update a saved card, and that answers show the
// current data of the card.
func TestCustomerWithSavedCard(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.tokenize(t, `"card_number":"4111111111111111","exp_date":"1229"`)["card_id"].(string)
	create := func(fields string) map[string]any {
		return a.post(t, customers, `{"auto_generate_customer_id":true,"customer_firm_name":"F",
			"billing_cards":[{"card_id":"`+id+`"`+fields+`}]}`).ok(t)
	}
	assert.Equal(t, "4111xxxxxx111111", create("")["primary_card_number"], "of the first card, as none is primary")
	assert.Zero(t, a.srv.Cards.All()[0].Updates, "named, not updated")
	create(`,"exp_date":"0135"`)
	require.Len(t, a.srv.Cards.All(), 1)
	assert.Equal(t, 1, a.srv.Cards.All()[0].Updates)
	assert.Equal(t, "0135", a.srv.Cards.All()[0].ExpDate)

	a.tokenize(t, `"card_id":"`+id+`","card_number":"5454545454545454"`)
	list, _ := a.get(t, customers+query("filter", "primary_card_number,EQUALS,5454xxxxxx545454")).object(t)["data"].([]any)
	require.Len(t, list, 2)
	customer, _ := list[0].(map[string]any)
	assert.Equal(t, []any{map[string]any{
		"card_id": id, "card_number": "5454xxxxxx545454", "exp_date": "0135", "card_type": "MC", "primary": true,
	}}, customer["billing_cards"])
	assert.Equal(t, "5454xxxxxx545454", a.srv.Customers.All()[0].PrimaryCardNumber)
}

// TestCustomersAreCopies checks that a test cannot change the server's records through a Customer that it has seeded or
// read.
func TestCustomersAreCopies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id := a.srv.Cards.Seed(payvaulttest.Card{CardNumber: "4111111111111111"}).ID
	given := payvaulttest.Customer{
		FirmName: "F", ShippingAddresses: []map[string]any{{"shipping_city": "Boston", "shipping_id": 7}},
		BillingCards: []map[string]any{
			{"card_id": id, "billing_email": []string{"a@example.com"}}, // the type in a seed that is written in Go
			{"card_id": id, "billing_email": []any{"b@example.com"}},    // the type after decoding a request
		},
	}
	stored := a.srv.Customers.Seed(given)
	want := a.get(t, customers).body
	assert.Contains(t, want, "a@example.com")
	assert.Contains(t, want, "b@example.com")
	assert.Contains(t, want, `"shipping_id":7}`, "a seed may set the ID")
	for _, customer := range []payvaulttest.Customer{given, stored, a.srv.Customers.All()[0]} {
		customer.ShippingAddresses[0]["shipping_city"] = "changed"
		customer.BillingCards[0]["billing_city"] = "changed"
		customer.BillingCards[0]["billing_email"].([]string)[0] = "changed"
		customer.BillingCards[1]["billing_email"].([]any)[0] = "changed"
		assert.Equal(t, want, a.get(t, customers).body)
	}
}

// TestCustomerList checks that a list has only the customers of the merchant, and 25 customers on a page by default.
func TestCustomerList(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	assert.JSONEq(t, `{"code":0,"message":"Success","totalPages":0,"totalRecords":0,"data":[]}`, a.get(t, customers).body)
	created := a.post(t, customers, `{"customer_id":"Z","customer_firm_name":"Firm","comments":"c"}`).ok(t)
	rows, _ := a.get(t, customers).object(t)["data"].([]any)
	assert.Equal(t, []any{created}, rows, "as create answered")
	for i := range 25 {
		a.srv.Customers.Seed(payvaulttest.Customer{ID: fmt.Sprintf("C%02d", i), FirmName: "F"})
	}
	got, _, pages := a.list(t, customers, "customer_id")
	assert.Len(t, got, 25)
	assert.InEpsilon(t, 2, pages, 0)
	got, _, _ = a.list(t, customers+"?page=1&order_on=customer_id&merchant_id=100001", "customer_id")
	assert.Equal(t, []string{"Z"}, got)
	got, _, _ = a.second(t).list(t, customers, "customer_id")
	assert.Empty(t, got)
	assert.Equal(t, 5, a.srv.Commits(payvault.OpCustomersList))
}

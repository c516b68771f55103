package payvaulttest_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func noon() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 5, time.FixedZone("", -5*3600)) }

// TestCustomerCreate checks the answer and the stored record of a new customer. Both have no secrets.
func TestCustomerCreate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	got := a.post(t, "/platform/vault/customer", `{
		"customer_id":"CUST1","customer_first_name":"Carla","customer_last_name":"Customer","customer_phone":"2125550101",
		"customer_email":"carla@example.com","reference_id":"REF1","comments":"none","developer_id":"dev",
		"shipping_addresses":[{"shipping_first_name":"Sam","shipping_addr1":"1 Street","shipping_country":"United States",
			"shipping_country_code":"840","primary":true}],
		"billing_cards":[
			{"card_number":"4111111111111111","exp_date":"1229","cvv2":"123","billing_first_name":"Bill",
			"billing_email":["b@example.com"],"verify":true},
			{"tr_number":"123456780","dda_number":"0002223330","type_id":"S","primary":false},
			{"card_number":"5454545454545454","exp_date":"0130","primary":true}]}`)
	data := got.ok(t)

	assert.Equal(t, "CUST1", data["customer_id"])
	assert.InEpsilon(t, merchantID, data["node_id"], 0)
	assert.Positive(t, data["rec_id"])
	assert.Equal(t, "5454xxxxxx545454", data["primary_card_number"])
	for _, secret := range []string{"cvv2", `"123"`, "tr_number", "dda_number", "0002223330", "4111111111111111"} {
		assert.NotContains(t, got.body, secret)
	}
	addresses, _ := data["shipping_addresses"].([]any)
	require.Len(t, addresses, 1)
	address, _ := addresses[0].(map[string]any)
	assert.Positive(t, address["shipping_id"])
	delete(address, "shipping_id")
	assert.Equal(t, map[string]any{
		"shipping_first_name": "Sam", "shipping_addr1": "1 Street", "shipping_country": "United States",
		"shipping_country_code": "840", "primary": true,
	}, address)
	cards, _ := data["billing_cards"].([]any)
	require.Len(t, cards, 3)
	card, _ := cards[0].(map[string]any)
	id, _ := card["card_id"].(string)
	delete(card, "card_id")
	assert.Equal(t, map[string]any{
		"card_number": "4111xxxxxx111111", "exp_date": "1229", "billing_first_name": "Bill",
		"billing_email": []any{"b@example.com"}, "primary": false, "card_type": "VI", "verified_date": "20260115120000",
	}, card)

	view, ok := a.srv.Customers.Get(payvaulttest.CustomerKey{MerchantID: merchantID, ID: "CUST1"})
	require.True(t, ok)
	assert.Equal(t, "Carla", view.FirstName)
	assert.Len(t, view.BillingCards, 3)
	assert.Len(t, view.ShippingAddresses, 1)
	_, ok = a.srv.Cards.Get(id)
	assert.True(t, ok, "the card can be used by its ID")
}

// TestCustomerIDs checks which customer IDs are accepted, generated and refused.
func TestCustomerIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const path = "/platform/vault/customer"
	one, _ := a.post(t, path, `{"auto_generate_customer_id":true,"customer_firm_name":"F"}`).ok(t)["customer_id"].(string)
	two, _ := a.post(t, path, `{"auto_generate_customer_id":true,"customer_firm_name":"F"}`).ok(t)["customer_id"].(string)
	assert.Regexp(t, `^[A-Za-z0-9]+$`, one)
	assert.NotEqual(t, one, two)

	a.post(t, path, `{"customer_id":"C1","auto_generate_customer_id":true,"customer_firm_name":"F"}`).ok(t)
	a.post(t, path, `{"customer_id":"C1","customer_firm_name":"F"}`).refused(t, http.StatusConflict)
	a.post(t, path, `{"customer_firm_name":"F"}`).refused(t, http.StatusBadRequest, "customer_id")
	a.post(t, path, `{"auto_generate_customer_id":false,"customer_firm_name":"F"}`).refused(t, http.StatusBadRequest,
		"customer_id")
	for _, id := range []string{"C-1", "C 1", "C_1", "Ç1", "../1"} {
		a.post(t, path, `{"customer_id":"`+id+`","customer_firm_name":"F"}`).refused(t, http.StatusBadRequest, "customer_id")
	}
	a.second(t).post(t, path, `{"customer_id":"C1","customer_firm_name":"F"}`).ok(t)
	assert.Len(t, a.srv.Customers.All(), 4)
	assert.Equal(t, 4, a.srv.Commits(payvault.OpCustomersCreate))
}

// TestCustomerRefuses checks that an invalid customer is refused with the name of the field, and that nothing is
// stored.
func TestCustomerRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, test := range map[string]struct{ body, field string }{
		"no name":           {`{"customer_id":"C"}`, "customer_first_name"},
		"an empty firm":     {`{"customer_id":"C","customer_firm_name":""}`, "customer_first_name"},
		"first name only":   {`{"customer_id":"C","customer_first_name":"A"}`, "customer_first_name"},
		"last name only":    {`{"customer_id":"C","customer_last_name":"A"}`, "customer_first_name"},
		"a response field":  {`{"customer_id":"C","customer_firm_name":"F","rec_id":1}`, "rec_id"},
		"an unknown field":  {`{"customer_id":"C","customer_firm_name":"F","name":"x"}`, "name"},
		"another case":      {`{"Customer_ID":"C","customer_firm_name":"F"}`, "Customer_ID"},
		"a field twice":     {`{"customer_id":"C","customer_id":"D","customer_firm_name":"F"}`, "customer_id"},
		"null":              {`{"customer_id":null,"customer_firm_name":"F"}`, "customer_id"},
		"a string merchant": {`{"customer_id":"C","customer_firm_name":"F","merchant_id":"100001"}`, "merchant_id"},
		"a fraction":        {`{"customer_id":"C","customer_firm_name":"F","merchant_id":100001.0}`, "merchant_id"},
		"an exponent":       {`{"customer_id":"C","customer_firm_name":"F","merchant_id":1e5}`, "merchant_id"},
		"an integer string": {
			`{"customer_id":"C","customer_firm_name":"F","customer_phone":2125550101}`,
			"customer_phone",
		},
		"a string boolean": {
			`{"auto_generate_customer_id":"true","customer_firm_name":"F"}`,
			"auto_generate_customer_id",
		},
		"cards are no array": {`{"customer_id":"C","customer_firm_name":"F","billing_cards":{}}`, "billing_cards"},
		"a card is no object": {
			`{"customer_id":"C","customer_firm_name":"F","billing_cards":["4111"]}`,
			"billing_cards[0]",
		},
		"the second card": {`{"customer_id":"C","customer_firm_name":"F",` +
			`"billing_cards":[{"card_number":"4111111111111111","exp_date":"1229"},{"card_number":"4111111111111111",` +
			`"exp_date":"129"}]}`, "billing_cards[1].exp_date"},
		"a country name": {`{"customer_id":"C","customer_firm_name":"F",` +
			`"shipping_addresses":[{"shipping_country_code":"US"}]}`, "shipping_addresses[0].shipping_country_code"},
		"an empty expiry date": {`{"customer_id":"C","customer_firm_name":"F","billing_cards":[{"card_id":"X",` +
			`"exp_date":""}]}`, "billing_cards[0].exp_date"},
		"a shipping ID": {
			`{"customer_id":"C","customer_firm_name":"F","shipping_addresses":[{"shipping_id":1}]}`,
			"shipping_addresses[0].shipping_id",
		},
		"an e-mail text": {`{"customer_id":"C","customer_firm_name":"F",` +
			`"billing_cards":[{"billing_email":"a@example.com"}]}`, "billing_cards[0].billing_email"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.post(t, "/platform/vault/customer", test.body).refused(t, http.StatusBadRequest, test.field)
		})
	}
	t.Cleanup(func() { assert.Empty(t, a.srv.Customers.All()) })
}

// TestCustomerHasOnePrimaryOfAKind checks that the first primary card or address stays primary and that the others do
// not.
func TestCustomerHasOnePrimaryOfAKind(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	data := a.post(t, "/platform/vault/customer", `{"customer_id":"C","customer_firm_name":"F",
		"shipping_addresses":[{},{"primary":true},{"primary":true}],
		"billing_cards":[{"card_number":"4111111111111111","exp_date":"1229"},
			{"card_number":"5454545454545454","exp_date":"1229","primary":true},
			{"card_number":"378282246310005","exp_date":"1229","primary":true}]}`).ok(t)
	assert.Equal(t, "5454xxxxxx545454", data["primary_card_number"])
	for _, list := range []string{"shipping_addresses", "billing_cards"} {
		records, _ := data[list].([]any)
		require.Len(t, records, 3)
		for i := range records {
			record, _ := records[i].(map[string]any)
			assert.Equal(t, i == 1, record["primary"], "%s[%d]", list, i)
		}
	}
}

// TestCustomerWithSavedCard checks that a customer can use a saved card, and can update it only with new card data.
func TestCustomerWithSavedCard(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.post(t, "/pg/tokenize", newCard).tokenized(t)["card_id"].(string)
	data := a.post(t, "/platform/vault/customer",
		`{"customer_id":"C1","customer_firm_name":"F","billing_cards":[{"card_id":"`+id+`"}]}`).ok(t)
	assert.Equal(t, "4111xxxxxx111111", data["primary_card_number"], "of the first card, as none is primary")
	require.Len(t, a.srv.Cards.All(), 1)
	assert.Zero(t, a.srv.Cards.All()[0].Updates, "named, not updated")
	a.post(t, "/platform/vault/customer", `{"customer_id":"C3","customer_firm_name":"F","billing_cards":[{"card_id":"`+
		id+`","exp_date":"0135"}]}`).ok(t)
	assert.Equal(t, 1, a.srv.Cards.All()[0].Updates)
	assert.Equal(t, "0135", a.srv.Cards.All()[0].ExpDate)

	a.post(t, "/platform/vault/customer", `{"customer_id":"C2","customer_firm_name":"F","billing_cards":[
		{"card_number":"5454545454545454","exp_date":"0130"},{"card_id":"NONE"}]}`).refused(t, http.StatusNotFound)
	assert.Len(t, a.srv.Cards.All(), 1, "nothing of a refused request is stored")
	_, ok := a.srv.Customers.Get(payvaulttest.CustomerKey{MerchantID: merchantID, ID: "C2"})
	assert.False(t, ok)
}

// TestCustomersAreCopies checks that changing a customer after it was seeded or returned does not change the server.
func TestCustomersAreCopies(t *testing.T) {
	t.Parallel()
	for name, emails := range map[string]any{"of Go": []string{"a@example.com"}, "of JSON": []any{"a@example.com"}} {
		a := newAPI(t)
		id := a.srv.Cards.Seed(payvaulttest.Card{CardNumber: "4111111111111111"}).ID
		given := payvaulttest.Customer{
			FirmName: "F", ShippingAddresses: []map[string]any{{"shipping_city": "Boston"}},
			BillingCards: []map[string]any{{"card_id": id, "billing_email": emails}},
		}
		stored := a.srv.Customers.Seed(given)
		want := a.get(t, "/platform/vault/customer").body
		assert.Contains(t, want, "a@example.com", name)
		for _, customer := range []payvaulttest.Customer{given, stored, a.srv.Customers.All()[0]} {
			customer.ShippingAddresses[0]["shipping_city"] = "changed"
			reflect.ValueOf(customer.BillingCards[0]["billing_email"]).Index(0).Set(reflect.ValueOf("changed"))
			customer.BillingCards[0]["billing_city"] = "changed"
			assert.Equal(t, want, a.get(t, "/platform/vault/customer").body, name)
		}
	}
}

// TestCustomerShowsUpdatedCards checks that customers show their cards as they are now.
func TestCustomerShowsUpdatedCards(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.post(t, "/pg/tokenize", newCard).tokenized(t)["card_id"].(string)
	a.post(t, "/platform/vault/customer", `{"customer_id":"C1","customer_firm_name":"F","billing_cards":[{"card_id":"`+
		id+`"}]}`).ok(t)
	a.post(t, "/pg/tokenize", `{"merchant_id":"100001","card_id":"`+id+
		`","card_number":"5454545454545454","exp_date":"0133"}`).tokenized(t)

	list, _ := a.get(t, "/platform/vault/customer"+
		query("filter", "primary_card_number,EQUALS,5454xxxxxx545454")).object(t)["data"].([]any)
	require.Len(t, list, 1, "lists filter by the card as it is now")
	customer, _ := list[0].(map[string]any)
	assert.Equal(t, "5454xxxxxx545454", customer["primary_card_number"])
	cards, _ := customer["billing_cards"].([]any)
	assert.Equal(t, []any{map[string]any{
		"card_id": id, "card_number": "5454xxxxxx545454", "exp_date": "0133", "card_type": "MC", "primary": true,
	}}, cards)
	one, _ := a.srv.Customers.Get(payvaulttest.CustomerKey{MerchantID: merchantID, ID: "C1"})
	assert.Equal(t, "5454xxxxxx545454", one.PrimaryCardNumber)
	assert.Equal(t, []payvaulttest.Customer{one}, a.srv.Customers.All())
}

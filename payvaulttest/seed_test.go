package payvaulttest_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestSeed checks that a server starts with the accounts and records of a seed. An application without an owner belongs
// to the first partner, any other record without an owner to the first merchant.
func TestSeed(t *testing.T) {
	t.Parallel()
	seed, err := payvaulttest.LoadSeed(strings.NewReader(`{
		"accounts":[{"merchant_id":9,"api_key":"nine","partner":true,"vendor_id":1,"acts_for":[5]},
			{"merchant_id":5,"api_key":"five","sms":true}],
		"cards":[{"card_id":"A","card_number":"4111111111111111"}],
		"customers":[{"customer_id":"C","customer_firm_name":"F","billing_cards":[{"card_id":"A"}]}],
		"payees":[{"payee_name":"P"}],
		"applications":[{"app_id":4}],
		"subscriptions":[{"subscription_id":77,"customer_id":"C1","state":"paused","transactions":[
			{"pg_id":"PG1","tran_time":"2026-01-15T09:30:42-05:00","amt_tran":125.50}]}],
		"invoices":[{"invoice_id":"I1"}],
		"disputes":[{"rec_id":3,"kind":"retrieval"}],
		"webhooks":[{"webhook_id":"W1","notification_url":"http://127.0.0.1:1/","events":["e"]}]}`))
	require.NoError(t, err)
	a := newAPI(t, payvaulttest.WithSeed(seed))
	assert.Equal(t, payvault.MerchantID(5), a.srv.Merchant().MerchantID)
	assert.Equal(t, payvault.MerchantID(9), a.srv.Partner().MerchantID)
	sub, ok := a.srv.Subscriptions.Get(77)
	require.True(t, ok)
	assert.Equal(t, payvaulttest.SubscriptionPaused, sub.State)
	assert.Equal(t, payvault.MerchantID(5), sub.MerchantID)
	assert.Equal(t, "125.50", sub.Transactions[0].AmtTran.String())
	assert.Equal(t, []payvaulttest.Subscription{sub}, a.srv.Subscriptions.All())
	assert.Equal(t, []payvaulttest.Dispute{{ID: 3, MerchantID: 5, Kind: "retrieval"}}, a.srv.Disputes.All())
	assert.Equal(t, []payvaulttest.Invoice{{ID: "I1", MerchantID: 5, State: "saved"}}, a.srv.Invoices.All())
	assert.Equal(t, []payvaulttest.Webhook{{
		ID: "W1", MerchantID: 5, NotificationURL: "http://127.0.0.1:1/", Events: []payvault.Event{"e"},
	}}, a.srv.Webhooks.All())
	assert.Equal(t, "4111xxxxxx111111", a.srv.Customers.All()[0].PrimaryCardNumber)
	assert.Len(t, a.srv.Payees.All(), 1)
	assert.Equal(t, payvault.MerchantID(9), a.srv.Applications.All()[0].Partner)
}

// TestSeedIsChecked checks that LoadSeed refuses unknown names, names in the wrong case, repeated names and a second
// JSON value, and that Start refuses records that the service could not have. The error must say where the mistake is,
// without a card number.
func TestSeedIsChecked(t *testing.T) {
	t.Parallel()
	const (
		cards    = `"cards":[{"card_id":"A"}],"customers":[{"customer_firm_name":"F","billing_cards":[{"card_id":"A",`
		unknown  = `"customers":[{"customer_firm_name":"F","billing_cards":[{`
		address  = `"customers":[{"customer_firm_name":"F","shipping_addresses":[{`
		payments = `"subscriptions":[{"transactions":[{},{`
	)
	for text, where := range map[string]string{
		`} {`:                         "after",
		`"ACCOUNTS":[]`:               "ACCOUNTS",
		`"invoices":[{"id":1}]`:       "/invoices/0",
		`"invoices":[],"invoices":[]`: "duplicate",

		`"accounts":[{"merchant_id":1}]`:                        "accounts[0]: ",
		`"invoices":[{"invoice_id":"I"},{},{"invoice_id":"I"}]`: "invoices[2]: there are two",
		`"disputes":[{"merchant_id":123}]`:                      "disputes[0]: the merchant is of no account",
		`"disputes":[{"kind":"second"}]`:                        "disputes[0]: kind",
		`"invoices":[{"state":"paid"}]`:                         "invoices[0]: state must be one of ",
		`"subscriptions":[{"state":"cancelled"}]`:               "subscriptions[0]: state",
		`"payees":[{}]`:                                         "payees[0]: payee_name",
		`"cards":[{"exp_date":"1330"}]`:                         "cards[0]: Invalid request: exp_date",
		`"cards":[{"kind":"cash"}]`:                             "cards[0]: kind",
		`"customers":[{"customer_first_name":"Jane"}]`:          "customers[0]: customer_first_name",

		unknown + `"card_id":"none"}]}]`:                     "billing_cards must name saved cards",
		cards + `"cvv2":"123"}]}]`:                           "billing_cards[0].cvv2",
		cards + `"billing_email":"a@example.com"}]}]`:        "billing_cards[0].billing_email",
		address + `"card_number":"4111xxxxxx111111"}]}]`:     "shipping_addresses[0].card_number",
		payments + `"batch_date":"2026-02-30"}]}]`:           "subscriptions[0]: transactions[1]: ",
		payments + `"card_number":"4111 1111 1111 1111"}]}]`: "card_number must match",

		`"webhooks":[{"notification_url":"127.0.0.1/hook"}]`:      "webhooks[0]: notification_url",
		`"webhooks":[{"notification_url":"file:///tmp/hook"}]`:    "webhooks[0]: notification_url",
		`"webhooks":[{"events":["transactions_status_updated"]}]`: "is spelt transaction_status_updated",
	} {
		seed, err := payvaulttest.LoadSeed(strings.NewReader(`{` + text + `}`))
		if err == nil {
			_, err = payvaulttest.Start(payvaulttest.WithSeed(seed))
		}
		require.ErrorContains(t, err, where, text)
		assert.NotContains(t, err.Error(), "1111", text)
	}
	one := payvaulttest.WithSeed(payvaulttest.Seed{Disputes: []payvaulttest.Dispute{{ID: 1}}})
	_, err := payvaulttest.Start(one, one)
	require.ErrorContains(t, err, "two", "over several seeds")
	a := newAPI(t)
	assert.Panics(t, func() { a.srv.Disputes.Seed(payvaulttest.Dispute{MerchantID: 123}) })
	noJSON := []map[string]any{{"shipping_zip": math.NaN()}}
	assert.Panics(t, func() { a.srv.Customers.Seed(payvaulttest.Customer{FirmName: "F", ShippingAddresses: noJSON}) })
}

// TestSeedMasksCardNumbers checks that the server masks full card numbers in seeded records.
func TestSeedMasksCardNumbers(t *testing.T) {
	t.Parallel()
	const full, masked = "4111111111111111", "4111xxxxxx111111"
	a := newAPI(t)
	card := a.srv.Cards.Seed(payvaulttest.Card{CardNumber: full})
	assert.Equal(t, []string{masked, "VI"}, []string{card.CardNumber, card.CardType})
	again := a.srv.Cards.Seed(payvaulttest.Card{CardNumber: masked})
	assert.Equal(t, []string{masked, "VI"}, []string{again.CardNumber, again.CardType})
	billing := []map[string]any{{"card_id": card.ID, "card_number": full}}
	customer := a.srv.Customers.Seed(payvaulttest.Customer{FirmName: "F", BillingCards: billing})
	assert.Equal(t, masked, customer.BillingCards[0]["card_number"])
	assert.Equal(t, masked, customer.PrimaryCardNumber)
	customer = a.srv.Customers.Seed(payvaulttest.Customer{FirmName: "F", PrimaryCardNumber: full})
	assert.Equal(t, masked, customer.PrimaryCardNumber)
	given := []payvaulttest.UpdaterCard{{CardNumber: full}}
	request := a.srv.AccountUpdaterRequests.Seed(payvaulttest.AccountUpdaterRequest{Cards: given})
	assert.Equal(t, masked, request.Cards[0].CardNumber)
	assert.Equal(t, full, given[0].CardNumber, "what is given is left as it is")
}

// TestSeedRoundTrip checks that LoadSeed can read a seed that was marshalled as JSON, unless it has accounts, whose
// keys are redacted.
func TestSeedRoundTrip(t *testing.T) {
	t.Parallel()
	a := newStocked(t)
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{
		{Time: noon(), AmtTran: amount("125.50"), CardNumber: "4111111111111111", BatchDate: "2026-01-16"}, {},
	}})
	for field, records := range reflect.ValueOf(a.records()).Fields() {
		isEmpty := records.Len() == 0
		assert.Equal(t, field.Name == "Accounts", isEmpty, "newStocked and records have each kind: %s", field.Name)
	}
	written, err := json.Marshal(a.records())
	require.NoError(t, err)
	seed, err := payvaulttest.LoadSeed(bytes.NewReader(written))
	require.NoError(t, err)
	again, err := json.Marshal(newAPI(t, payvaulttest.WithSeed(seed)).records())
	require.NoError(t, err)
	assert.JSONEq(t, string(written), string(again))

	written, err = json.Marshal(payvaulttest.Seed{Accounts: a.srv.Accounts()})
	require.NoError(t, err)
	assert.NotContains(t, string(written), a.key)
	_, err = payvaulttest.LoadSeed(bytes.NewReader(written))
	require.Error(t, err, "no account without its key")
}

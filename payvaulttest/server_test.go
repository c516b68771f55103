package payvaulttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestServerAddress checks the URL with and without a base path.
func TestServerAddress(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/api/v1$`, a.srv.URL)
	plain := payvaulttest.NewServer()
	defer plain.Close()
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+$`, plain.URL)
}

// TestServerThatCannotStart checks that each invalid option is an error of Start and a panic of NewServer.
func TestServerThatCannotStart(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	taken := strings.TrimSuffix(strings.TrimPrefix(a.srv.URL, "http://"), "/api/v1")
	for name, opt := range map[string]payvaulttest.Option{
		"a taken address":      payvaulttest.WithAddr(taken),
		"no address":           payvaulttest.WithAddr("nonsense"),
		"a relative base path": payvaulttest.WithBasePath("api"),
		"a slash at the end":   payvaulttest.WithBasePath("/api/"),
		"an unescaped path":    payvaulttest.WithBasePath("/a b"),
		"a query":              payvaulttest.WithBasePath("/a?b"),
		"a dot":                payvaulttest.WithBasePath("/a/./b"),
		"two dots":             payvaulttest.WithBasePath("/a/.."),
		"escaped dots":         payvaulttest.WithBasePath("/%2e%2E/b"),
		"an empty segment":     payvaulttest.WithBasePath("/a//b"),
		"a slash":              payvaulttest.WithBasePath("/"),
		"no clock":             payvaulttest.WithClock(nil),
		"no logger":            payvaulttest.WithLogger(nil),
		"a wildcard":           payvaulttest.WithBasePath("/{a}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := payvaulttest.Start(opt)
			require.ErrorContains(t, err, "payvaulttest: ")
			assert.Panics(t, func() { payvaulttest.NewServer(opt) })
		})
	}
}

// TestCloseTwice checks that Close can be called several times, and that the records stay readable.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.get(t, "/platform/vault/customer")
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(a.srv.Close)
	}
	closers.Wait()
	_, err := a.srv.HTTPClient().Do(a.request(t, http.MethodGet, "/", "")) //nolint:bodyclose // there is no answer
	require.Error(t, err)
	assert.Len(t, a.srv.Requests(), 1, "what happened can still be seen")
}

// TestSeed checks that the records of a seed file are stored.
func TestSeed(t *testing.T) {
	t.Parallel()
	seed, err := payvaulttest.LoadSeed(strings.NewReader(`{
		"accounts":[{"merchant_id":5,"api_key":"five","sms":true},{"merchant_id":9,"api_key":"nine","partner":true,
		"vendor_id":1,"acts_for":[5]}],
		"subscriptions":[{"subscription_id":77,"customer_id":"C1","state":"paused","transactions":[
			{"pg_id":"PG1","tran_time":"2026-01-15T09:30:42-05:00","amt_tran":125.50}]}],
		"invoices":[{"invoice_id":"I1"}],
		"disputes":[{"rec_id":3,"kind":"retrieval"}],
		"webhooks":[{"webhook_id":"W1","notification_url":"http://127.0.0.1:1/","events":["transaction_status_updated"]}]}`))
	require.NoError(t, err)
	a := newAPI(t, payvaulttest.WithSeed(seed))
	assert.Len(t, a.srv.Accounts(), 2)
	assert.Equal(t, payvault.MerchantID(5), a.srv.Merchant().MerchantID)
	sub, ok := a.srv.Subscriptions.Get(77)
	require.True(t, ok)
	assert.Equal(t, payvaulttest.SubscriptionPaused, sub.State)
	assert.Equal(t, payvault.MerchantID(5), sub.MerchantID)
	assert.Equal(t, "125.50", sub.Transactions[0].AmtTran.String())
	_, ok = a.srv.Invoices.Get("I1")
	assert.True(t, ok)
	dispute, _ := a.srv.Disputes.Get(3)
	assert.Equal(t, payvaulttest.DisputeRetrieval, dispute.Kind)
	webhook, _ := a.srv.Webhooks.Get("W1")
	assert.Len(t, webhook.Events, 1)

	assert.Equal(t, []payvaulttest.Subscription{sub}, a.srv.Subscriptions.All())
	assert.Equal(t, []payvaulttest.Dispute{dispute}, a.srv.Disputes.All())
	assert.Equal(t, []payvaulttest.Webhook{webhook}, a.srv.Webhooks.All())
	assert.Len(t, a.srv.Invoices.All(), 1)
}

// TestSeedIsReadStrictly checks that unknown members and other mistakes in a seed file are errors.
func TestSeedIsReadStrictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "EOF",
		"{":                             "EOF",
		`{} {}`:                         "after top-level value",
		`[]`:                            "array",
		`{"merchants":[]}`:              `unknown object member name "merchants"`,
		`{"ACCOUNTS":[]}`:               "unknown",
		`{"invoices":[{"id":1}]}`:       "/invoices/0",
		`{"invoices":[],"invoices":[]}`: "duplicate",
		`{"invoices":[{"invoice_id":"A","invoice_id":"B"}]}`:      "duplicate",
		`{"subscriptions":[{"transactions":[{"tran_time":{}}]}]}`: "/tran_time",
	} {
		_, err := payvaulttest.LoadSeed(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

// TestSeedIsChecked checks that a seed with invalid records is an error, without repeating card numbers.
func TestSeedIsChecked(t *testing.T) {
	t.Parallel()
	of := func(transaction payvaulttest.Transaction) []payvaulttest.Subscription {
		return []payvaulttest.Subscription{{ID: 1, Transactions: []payvaulttest.Transaction{transaction}}}
	}
	address := func(field string, value any) payvaulttest.Seed {
		address := []map[string]any{{field: value}}
		return payvaulttest.Seed{Customers: []payvaulttest.Customer{{FirmName: "F", ShippingAddresses: address}}}
	}
	billing := func(field string, value any) payvaulttest.Seed {
		return payvaulttest.Seed{
			Cards:     []payvaulttest.Card{{ID: "A"}},
			Customers: []payvaulttest.Customer{{FirmName: "F", BillingCards: []map[string]any{{"card_id": "A", field: value}}}},
		}
	}
	for name, seed := range map[string]payvaulttest.Seed{
		"two subscriptions":    {Subscriptions: []payvaulttest.Subscription{{ID: 1}, {ID: 1}}},
		"two invoices":         {Invoices: []payvaulttest.Invoice{{ID: "I"}, {}, {ID: "I"}}},
		"two disputes":         {Disputes: []payvaulttest.Dispute{{ID: 1}, {ID: 1}}},
		"two customers":        {Customers: []payvaulttest.Customer{{ID: "C", FirmName: "F"}, {ID: "C", FirmName: "F"}}},
		"a customer's ID":      {Customers: []payvaulttest.Customer{{ID: "not alnum!", FirmName: "F"}}},
		"a customer's number":  {Customers: []payvaulttest.Customer{{FirmName: "F", PrimaryCardNumber: "411111"}}},
		"an address's ID":      address("shipping_id", "no"),
		"an address's city":    address("shipping_city", 5),
		"an address's zip":     address("shipping_zip", math.NaN()),
		"an address's card":    address("card_number", "4111xxxxxx111111"),
		"no card":              {Customers: []payvaulttest.Customer{{FirmName: "F", BillingCards: []map[string]any{nil}}}},
		"an unknown card":      billing("card_id", "none"),
		"a card's code":        billing("cvv2", "123"),
		"a card's date":        billing("verified_date", "yesterday"),
		"a card's addresses":   billing("billing_email", "a@example.com"),
		"half a name":          {Customers: []payvaulttest.Customer{{FirstName: "Jane"}}},
		"a payee's name":       {Payees: []payvaulttest.Payee{{Email: []string{"p@example.com"}}}},
		"a misspelt event":     {Webhooks: []payvaulttest.Webhook{{Events: []payvault.Event{"transactions_status_updated"}}}},
		"two webhooks":         {Webhooks: []payvaulttest.Webhook{{ID: "W"}, {ID: "W"}}},
		"a subscription state": {Subscriptions: []payvaulttest.Subscription{{State: "cancelled"}}},
		"a batch date":         {Subscriptions: of(payvaulttest.Transaction{BatchDate: "2026-02-30"})},
		"a settle date":        {Subscriptions: of(payvaulttest.Transaction{SettleDate: "02/20/2026"})},
		"a year":               {Subscriptions: of(payvaulttest.Transaction{Time: noon().AddDate(9000, 0, 0)})},
		"a card with spaces":   {Subscriptions: of(payvaulttest.Transaction{CardNumber: "4111 1111 1111 1111"})},
		"a word as a card":     {Subscriptions: of(payvaulttest.Transaction{CardNumber: "hello"})},
		"part of a card":       {Subscriptions: of(payvaulttest.Transaction{CardNumber: "411111"})},
		"a card without x":     {Subscriptions: of(payvaulttest.Transaction{CardNumber: "4111111111"})},
		"a card of 20 digits":  {Subscriptions: of(payvaulttest.Transaction{CardNumber: "41111111111111111111"})},
		"a card masked by *":   {Subscriptions: of(payvaulttest.Transaction{CardNumber: "4111******111111"})},
		"a card masked before": {Subscriptions: of(payvaulttest.Transaction{CardNumber: "411xxxxxxx111111"})},
		"a card masked behind": {Subscriptions: of(payvaulttest.Transaction{CardNumber: "4111xxxxxxx11111"})},
		"a currency":           {Subscriptions: of(payvaulttest.Transaction{Currency: "USD"})},
		"an invoice state":     {Invoices: []payvaulttest.Invoice{{State: "paid"}}},
		"a dispute kind":       {Disputes: []payvaulttest.Dispute{{Kind: "second"}}},
		"no URL":               {Webhooks: []payvaulttest.Webhook{{NotificationURL: "::"}}},
		"a URL without scheme": {Webhooks: []payvaulttest.Webhook{{NotificationURL: "127.0.0.1/hook"}}},
		"a URL of a file":      {Webhooks: []payvaulttest.Webhook{{NotificationURL: "file:///tmp/hook"}}},
	} {
		_, err := payvaulttest.Start(payvaulttest.WithSeed(seed))
		require.ErrorContains(t, err, "payvaulttest: seed: ", name)
		assert.NotContains(t, err.Error(), "1111", name)
	}
	one := payvaulttest.WithSeed(payvaulttest.Seed{Disputes: []payvaulttest.Dispute{{ID: 1}}})
	_, err := payvaulttest.Start(one, one)
	require.ErrorContains(t, err, "two", "over several seeds")
}

// TestSeedMasksCardNumbers checks that a full card number is masked in every record that is seeded.
func TestSeedMasksCardNumbers(t *testing.T) {
	t.Parallel()
	const full, masked = "4111111111111111", "4111xxxxxx111111"
	a := newAPI(t)
	card := a.srv.Cards.Seed(payvaulttest.Card{CardNumber: full})
	assert.Equal(t, masked, card.CardNumber)
	assert.Equal(t, "VI", card.CardType)
	again := a.srv.Cards.Seed(payvaulttest.Card{CardNumber: card.CardNumber})
	assert.Equal(t, "VI", again.CardType, "of a masked one, too")
	customer := a.srv.Customers.Seed(payvaulttest.Customer{
		FirmName: "F", BillingCards: []map[string]any{{"card_id": card.ID, "card_number": full}},
	})
	assert.Equal(t, masked, customer.BillingCards[0]["card_number"])
	assert.Equal(t, masked, customer.PrimaryCardNumber)
	customer = a.srv.Customers.Seed(payvaulttest.Customer{FirmName: "F", PrimaryCardNumber: full})
	assert.Equal(t, masked, customer.PrimaryCardNumber)
	transactions := []payvaulttest.Transaction{{CardNumber: full}}
	paid := a.srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: transactions}).Transactions[0]
	assert.Equal(t, []string{masked, "VI"}, []string{paid.CardNumber, paid.CardType})
	request := payvaulttest.AccountUpdaterRequest{Cards: []payvaulttest.UpdaterCard{{CardNumber: full}}}
	assert.Equal(t, masked, a.srv.AccountUpdaterRequests.Seed(request).Cards[0].CardNumber)
	assert.PanicsWithError(t, "payvaulttest: seed a payvaulttest.Customer: billing_cards must name saved cards of the "+
		"merchant", func() {
		unsaved := []map[string]any{{"card_number": full}}
		a.srv.Customers.Seed(payvaulttest.Customer{FirmName: "F", BillingCards: unsaved})
	})
}

// TestSeedErrorsSayWhere checks that the error of a seed names the record and the field.
func TestSeedErrorsSayWhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	assert.PanicsWithError(t, "payvaulttest: seed a payvaulttest.Subscription: transactions[0]: "+
		"Invalid request: batch_date must be a valid date", func() {
		wrong := []payvaulttest.Transaction{{BatchDate: "today"}}
		a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 5, Transactions: wrong})
	})
	seed := payvaulttest.Seed{Invoices: []payvaulttest.Invoice{{}, {State: "paid"}}}
	_, err := payvaulttest.Start(payvaulttest.WithSeed(seed))
	require.EqualError(t, err, `payvaulttest: seed: invoices[1]: state must be one of ["saved" "outstanding"]`)
}

// TestSeedsOfMerchantsWithoutAccount checks that records of unknown merchants cannot be seeded.
func TestSeedsOfMerchantsWithoutAccount(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const none = 123
	for name, seed := range map[string]payvaulttest.Seed{
		"subscription": {Subscriptions: []payvaulttest.Subscription{{MerchantID: none}}},
		"invoice":      {Invoices: []payvaulttest.Invoice{{MerchantID: none}}},
		"dispute":      {Disputes: []payvaulttest.Dispute{{MerchantID: none}}},
		"webhook":      {Webhooks: []payvaulttest.Webhook{{MerchantID: none}}},
	} {
		_, err := payvaulttest.Start(payvaulttest.WithSeed(seed))
		require.ErrorContains(t, err, "account", name)
	}
	assert.Panics(t, func() { a.srv.Subscriptions.Seed(payvaulttest.Subscription{MerchantID: none}) })
	assert.Panics(t, func() { a.srv.Invoices.Seed(payvaulttest.Invoice{MerchantID: none}) })
	assert.Panics(t, func() { a.srv.Disputes.Seed(payvaulttest.Dispute{Kind: "second"}) })
	assert.Panics(t, func() { a.srv.Webhooks.Seed(payvaulttest.Webhook{NotificationURL: "::"}) })
}

// TestUnknownIDs checks that Get does not find records that do not exist.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, found := range []func() bool{
		func() bool { _, ok := a.srv.Invoices.Get("x"); return ok },
		func() bool { _, ok := a.srv.Subscriptions.Get(1); return ok },
		func() bool { _, ok := a.srv.Disputes.Get(1); return ok },
		func() bool { _, ok := a.srv.Webhooks.Get("x"); return ok },
		func() bool { _, ok := a.srv.Cards.Get("x"); return ok },
		func() bool {
			_, ok := a.srv.Customers.Get(payvaulttest.CustomerKey{MerchantID: merchantID, ID: "x"})
			return ok
		},
		func() bool { _, ok := a.srv.Payees.Get(1); return ok },
		func() bool { _, ok := a.srv.Applications.Get(1); return ok },
	} {
		assert.False(t, found())
	}
	assert.Empty(t, a.srv.Customers.All())
}

// TestSeedRoundTrip checks that a seed can be written as a file and read back. Accounts cannot, since their keys are
// not printed.
func TestSeedRoundTrip(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seed := payvaulttest.Seed{
		Subscriptions: []payvaulttest.Subscription{a.srv.Subscriptions.Seed(payvaulttest.Subscription{
			Transactions: []payvaulttest.Transaction{
				{
					Time: noon(), AmtTran: amount("125.50"), CardNumber: "4111111111111111", DisputeFlag: true,
					BatchDate: "2026-01-16",
				}, {},
			},
		})},
		Invoices: []payvaulttest.Invoice{a.srv.Invoices.Seed(payvaulttest.Invoice{
			State:  payvaulttest.InvoiceOutstanding,
			Emails: []string{"a@example.com"}, SMS: []int64{1},
		})},
		Disputes: []payvaulttest.Dispute{a.srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval})},
		Webhooks: []payvaulttest.Webhook{a.srv.Webhooks.Seed(payvaulttest.Webhook{
			NotificationURL: "http://127.0.0.1:1/",
			Events:          []payvault.Event{"e"},
		})},
	}
	for name, seed := range map[string]payvaulttest.Seed{"of a server": seed, "empty": {}, "left out": {
		Subscriptions: []payvaulttest.Subscription{{Transactions: make([]payvaulttest.Transaction, 2)}},
		Invoices:      make([]payvaulttest.Invoice, 1),
	}} {
		text, err := json.Marshal(seed)
		require.NoError(t, err, name)
		loaded, err := payvaulttest.LoadSeed(bytes.NewReader(text))
		require.NoError(t, err, name)
		again, err := json.Marshal(loaded)
		require.NoError(t, err, name)
		assert.JSONEq(t, string(text), string(again), name)
		b := newAPI(t, payvaulttest.WithSeed(loaded))
		if name == "of a server" {
			assert.Equal(t, a.srv.Invoices.All(), b.srv.Invoices.All())
			assert.Equal(t, a.srv.Disputes.All(), b.srv.Disputes.All())
			assert.Equal(t, a.srv.Webhooks.All(), b.srv.Webhooks.All())
			assert.Equal(t, a.page(t, fmt.Sprintf("/platform/subscription/transactions/%d", seed.Subscriptions[0].ID)),
				b.page(t, fmt.Sprintf("/platform/subscription/transactions/%d", seed.Subscriptions[0].ID)))
		}
	}

	text, err := json.Marshal(payvaulttest.Seed{Accounts: a.srv.Accounts()})
	require.NoError(t, err)
	assert.NotContains(t, string(text), a.key)
	_, err = payvaulttest.LoadSeed(bytes.NewReader(text))
	require.Error(t, err, "no account without its key")
}

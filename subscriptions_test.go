package payvault_test

import (
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const (
	transactionsPath = "/platform/subscription/transactions/6006"
	cancelPath       = "/platform/subscription/6006/cancel"
)

// listedTransactions is subscriptions/transactions.response.json.
func listedTransactions(t *testing.T) *payvault.Page[payvault.Transaction] {
	t.Helper()
	return &payvault.Page[payvault.Transaction]{
		Number: 2, TotalPages: 3, TotalRecords: 52,
		Items: []payvault.Transaction{
			{
				MerchantID:          212346,
				Time:                instant(t, "2026-01-15T09:30:42-05:00"),
				Status:              payvault.TransactionStatusP,
				AuthCode:            "AUTH6001",
				RCode:               "000",
				RMsg:                "Example transaction message",
				CardNumber:          "4111xxxxxx111111",
				CardType:            "VI",
				PurchaseID:          "PURCHASE6002",
				PGID:                "PG6003",
				CardholderFirstName: "Tara",
				CardholderLastName:  "Transactor",
				AmtTran:             amount("125.50"),
				Currency:            "840",
				DisputeFlag:         true,
				AmtRefunded:         amount("25.10"),
				BatchNumber:         6004,
				CustomerID:          "CUST6005",
				SubscriptionID:      6006,
				MerchRefNum:         "MERCHREF6007",
				BatchID:             6008,
				BatchDate:           payvault.Date{Year: 2026, Month: time.January, Day: 16},
				SettleDate:          payvault.Date{Year: 2026, Month: time.January, Day: 17},
				AmtFunded:           amount("98.75"),
				FundedCurrency:      "124",
			},
			{Time: instant(t, "2026-01-18T10:41:53-05:00"), PGID: "PG6009"},
		},
	}
}

// tolerantTransactions is subscriptions/transactions.response.tolerant.json.
func tolerantTransactions(t *testing.T) *payvault.Page[payvault.Transaction] {
	t.Helper()
	p := listedTransactions(t)
	first := &p.Items[0]
	first.Time = instant(t, "2026-01-15T14:30:42Z")
	first.Status, first.CardType = "UNKNOWN_STATUS", "UNKNOWN_CARD_TYPE"
	first.AmtRefunded, first.BatchID = payvault.Amount{}, 0
	first.BatchDate, first.SettleDate = payvault.Date{}, payvault.Date{}
	p.Items = []payvault.Transaction{
		*first,
		{PGID: "PG6011", Time: instant(t, "2026-01-15T21:30:42+07:00")},
		{PGID: "PG6012", Time: instant(t, "2026-01-15T21:30:42+07:00")},
		{PGID: "PG6013", Time: instant(t, "2026-01-15T14:30:42.5Z")},
		{PGID: "PG6014", Time: instant(t, "2026-01-15T21:30:42.5+07:00")},
		{PGID: "PG6015", Time: instant(t, "2026-01-15T21:30:42.5+07:00")},
		{PGID: "PG6016"},
	}
	return p
}

func TestSubscriptionsTransactions(t *testing.T) {
	t.Parallel()
	full := "?" + fixture(t, "subscriptions/transactions.query")
	tests := map[string]struct {
		options       *payvault.ListOptions
		query, answer string
		want          *payvault.Page[payvault.Transaction]
	}{
		"full":     {fullListOptions(), full, "subscriptions/transactions.response.json", listedTransactions(t)},
		"tolerant": {fullListOptions(), full, "subscriptions/transactions.response.tolerant.json", tolerantTransactions(t)},
		"nil":      {nil, "", `{"code":0,"data":null}`, &payvault.Page[payvault.Transaction]{}},
		"empty":    {&payvault.ListOptions{}, "?page=0", `{"code":0,"data":null}`, &payvault.Page[payvault.Transaction]{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodGet, transactionsPath+test.query, "", test.answer)

			got, err := srv.client(payvault.WithMerchantID(1)).Subscriptions.Transactions(t.Context(), 6006, test.options)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestSubscriptionsTransactions_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodGet, transactionsPath, "", "subscriptions/transactions.error.json")

	got, err := srv.client().Subscriptions.Transactions(t.Context(), 6006, nil)
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpSubscriptionsTransactions, Code: "5", Message: "Example refusal of subscriptions.transactions",
	})
	assert.Nil(t, got)
}

func TestSubscriptionsTransactions_invalid(t *testing.T) {
	t.Parallel()
	for _, id := range []payvault.SubscriptionID{0, -6006} {
		options, want := badListOptions()
		want["subscription_id"] = badID(id)
		client := newService(t).client().ForMerchant(actingFor)

		got, err := client.Subscriptions.Transactions(t.Context(), id, options)
		assertInvalid(t, err, payvault.OpSubscriptionsTransactions, want)
		assert.Nil(t, got)

		next, stop := iter.Pull2(client.Subscriptions.AllTransactions(t.Context(), id, options))
		defer stop()
		transaction, err, _ := next()
		assertInvalid(t, err, payvault.OpSubscriptionsTransactions, want)
		assert.Nil(t, transaction)
		_, _, more := next()
		assert.False(t, more)
	}
}

func TestSubscriptionsTransactions_forMerchant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options *payvault.ListOptions
		query   string
	}{
		"nil":      {nil, "?merchant_id=212346"},
		"filled":   {&payvault.ListOptions{Page: 3}, "?merchant_id=212346&page=3"},
		"the same": {&payvault.ListOptions{MerchantID: actingFor}, "?merchant_id=212346&page=0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodGet, transactionsPath+test.query, "", "subscriptions/transactions.response.json")

			_, err := srv.client().ForMerchant(actingFor).Subscriptions.Transactions(t.Context(), 6006, test.options)
			require.NoError(t, err)
		})
	}
}

func TestSubscriptionsAllTransactions(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodGet, transactionsPath+"?"+fixture(t, "subscriptions/transactions.query"), "", "subscriptions/transactions.response.json").times(callers)
	client, options, want := srv.client().ForMerchant(actingFor), fullListOptions(), fullListOptions()
	options.MerchantID, want.MerchantID = 0, 0
	transactions := client.Subscriptions.AllTransactions(t.Context(), 6006, options)

	together(func() { // page 2 of 3 is the last one
		var got []payvault.Transaction
		for transaction, err := range transactions {
			if assert.NoError(t, err) {
				got = append(got, *transaction)
			}
		}
		assert.Equal(t, listedTransactions(t).Items, got)
	})
	assert.Equal(t, want, options)
}

// fullCancel is subscriptions/cancel.request.json.
func fullCancel() *payvault.SubscriptionCancelRequest {
	return &payvault.SubscriptionCancelRequest{CustomerID: "CUST6101", MerchantID: 212346}
}

func TestSubscriptionsCancel(t *testing.T) {
	t.Parallel()
	minimal := &payvault.SubscriptionCancelRequest{CustomerID: "CUST6101"}
	confirmed := &payvault.Confirmation{Message: "Example text: the subscription was canceled"}
	tests := map[string]struct {
		request      *payvault.SubscriptionCancelRequest
		body, answer string
		want         *payvault.Confirmation
	}{
		"full":     {fullCancel(), "subscriptions/cancel.request.json", "subscriptions/cancel.response.json", confirmed},
		"minimal":  {minimal, "subscriptions/cancel.request.min.json", `{"code":0,"data":{}}`, &payvault.Confirmation{}},
		"tolerant": {minimal, "subscriptions/cancel.request.min.json", "subscriptions/cancel.response.tolerant.json", confirmed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, cancelPath, test.body, test.answer)
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))

			got, err := client.Subscriptions.Cancel(t.Context(), 6006, test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestSubscriptionsCancel_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, cancelPath, "subscriptions/cancel.request.json", "subscriptions/cancel.error.json")

	got, err := srv.client().Subscriptions.Cancel(t.Context(), 6006, fullCancel())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpSubscriptionsCancel, Code: "5", Message: "Example refusal of subscriptions.cancel",
		Detail: "Example detail: the subscription was not canceled",
	})
	assert.Nil(t, got)
}

func TestSubscriptionsCancel_invalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		id      payvault.SubscriptionID
		request *payvault.SubscriptionCancelRequest
		want    fields
	}{
		"nil":         {6006, nil, fields{"request": {"is nil"}}},
		"no customer": {6006, &payvault.SubscriptionCancelRequest{}, fields{"customer_id": {"is required"}}},
		"zero ID":     {0, fullCancel(), fields{"subscription_id": {noID}}},
		"negative ID": {-1, fullCancel(), fields{"subscription_id": {"is negative"}}},
		"all at once": {
			0, &payvault.SubscriptionCancelRequest{MerchantID: thirdParty},
			fields{"subscription_id": {noID}, "customer_id": {"is required"}, "merchant_id": {thirdNamed}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().ForMerchant(actingFor).Subscriptions.Cancel(t.Context(), test.id, test.request)
			assertInvalid(t, err, payvault.OpSubscriptionsCancel, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestSubscriptionsCancel_forMerchant(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]payvault.MerchantID{"filled": 0, "the same": actingFor} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, cancelPath, "subscriptions/cancel.request.json", "subscriptions/cancel.response.json").times(callers)
			client := srv.client().ForMerchant(actingFor)
			request := &payvault.SubscriptionCancelRequest{CustomerID: "CUST6101", MerchantID: id}

			together(func() {
				_, err := client.Subscriptions.Cancel(t.Context(), 6006, request)
				assert.NoError(t, err)
			})
			assert.Equal(t, &payvault.SubscriptionCancelRequest{CustomerID: "CUST6101", MerchantID: id}, request)
		})
	}
}

func TestSubscriptions_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, listedTransactions(t).Items, fixtureData(t, "subscriptions/transactions.response.json"))
	assertWire(t, *fullCancel(), fixture(t, "subscriptions/cancel.request.json"))
	assertWire(t, payvault.SubscriptionCancelRequest{CustomerID: "CUST6101"}, fixture(t, "subscriptions/cancel.request.min.json"))
	assertWire(t, payvault.Confirmation{Message: "Example text: the subscription was canceled"}, fixtureData(t, "subscriptions/cancel.response.json"))
}

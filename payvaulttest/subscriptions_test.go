package payvaulttest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestCancel checks that a subscription can be canceled in every state except canceled.
func TestCancel(t *testing.T) {
	t.Parallel()
	const path = "/platform/subscription/77/cancel"
	for _, state := range []payvaulttest.SubscriptionState{
		payvaulttest.SubscriptionActive, payvaulttest.SubscriptionSuspended, payvaulttest.SubscriptionPaused,
	} {
		a := newAPI(t)
		a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, CustomerID: "C1", State: state})
		assert.NotEmpty(t, a.partner().post(t, path, `{"customer_id":"C1","merchant_id":100001}`).ok(t)["message"])
		a.post(t, path, `{"customer_id":"C1"}`).refused(t, http.StatusConflict)
		sub, _ := a.srv.Subscriptions.Get(77)
		assert.Equal(t, payvaulttest.SubscriptionCanceled, sub.State)
		assert.Equal(t, 1, a.srv.Commits(payvault.OpSubscriptionsCancel))
	}
}

// TestTransactions checks that a partner may list the transactions of a merchant's subscription.
func TestTransactions(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	records, _, _ := a.partner().list(t, transactions+"?merchant_id=100001", "pg_id")
	assert.Len(t, records, 5)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpSubscriptionsTransactions))
}

// TestSubscriptionDefaults checks the values that the server fills in if a seeded subscription does not have them.
func TestSubscriptionDefaults(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	given := []payvaulttest.Transaction{{
		PGID: "PG1", AmtTran: amount("125.50"), CardNumber: "4111111111111111", RMsg: "approved", BatchDate: "2026-01-16",
	}}
	sub := a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, CustomerID: "C1", Transactions: given})
	assert.Equal(t, payvaulttest.SubscriptionActive, sub.State)
	assert.JSONEq(t, `{"code":0,"message":"Success","totalPages":1,"totalRecords":1,"data":[{
		"merchant_id":100001,"tran_time":"2026-01-15T12:00:00-05:00","tran_status":"P","rcode":"000",
		"rmsg":"approved","card_number":"4111xxxxxx111111","card_type":"VI","pg_id":"PG1","amt_tran":125.50,
		"tran_currency":"840","dispute_flag":false,"amt_refunded":0,"customer_id":"C1","subscription_id":77,
		"batch_date":"2026-01-16","amt_funded":0,"funded_currency":"840"}]}`, a.get(t, transactions).body)
	assert.Equal(t, "4111111111111111", given[0].CardNumber, "the caller's slice is not changed")

	empty := a.srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{{}}})
	assert.NotZero(t, empty.ID)
	assert.NotEmpty(t, empty.CustomerID)
	assert.NotEmpty(t, empty.Transactions[0].PGID)
	assert.Equal(t, payvault.MerchantID(merchantID), empty.MerchantID)
}

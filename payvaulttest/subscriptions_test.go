package payvaulttest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const cancelPath = "/platform/subscription/77/cancel"

// TestCancel checks that a subscription can be canceled once, in any state.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, state := range []payvaulttest.SubscriptionState{
		payvaulttest.SubscriptionActive, payvaulttest.SubscriptionSuspended, payvaulttest.SubscriptionPaused,
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, CustomerID: "C1", State: state})
			data := a.post(t, cancelPath, `{"customer_id":"C1"}`).ok(t)
			assert.NotEmpty(t, data["message"])
			sub, ok := a.srv.Subscriptions.Get(77)
			require.True(t, ok)
			assert.Equal(t, payvaulttest.SubscriptionCanceled, sub.State)

			a.post(t, cancelPath, `{"customer_id":"C1"}`).refused(t, http.StatusConflict)
			assert.Equal(t, 1, a.srv.Commits(payvault.OpSubscriptionsCancel))
		})
	}
}

// TestCancelRefuses checks that invalid requests and requests of other merchants are refused.
func TestCancelRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, CustomerID: "C1"})
	a.post(t, cancelPath, `{}`).refused(t, http.StatusBadRequest, "customer_id")
	a.post(t, cancelPath, "").refused(t, http.StatusUnsupportedMediaType)
	a.post(t, cancelPath, `{"customer_id":"C2"}`).refused(t, http.StatusBadRequest, "customer_id")
	a.post(t, cancelPath, `{"customer_id":" "}`).refused(t, http.StatusBadRequest, "customer_id")
	a.post(t, cancelPath, `{"customer_id":5}`).refused(t, http.StatusBadRequest, "customer_id")
	a.post(t, cancelPath, `{"customer_id":"C1","merchant_id":"100001"}`).refused(t, http.StatusBadRequest, "merchant_id")
	a.post(t, cancelPath, `{"customer_id":"C1","merchant_id":100002}`).refused(t, http.StatusForbidden)
	a.post(t, "/platform/subscription/78/cancel", `{"customer_id":"C1"}`).refused(t, http.StatusNotFound)
	a.second(t).post(t, cancelPath, `{"customer_id":"C1"}`).refused(t, http.StatusNotFound)
	a.partner().post(t, cancelPath, `{"customer_id":"C1"}`).refused(t, http.StatusNotFound)

	sub, _ := a.srv.Subscriptions.Get(77)
	assert.Equal(t, payvaulttest.SubscriptionActive, sub.State)
	a.partner().post(t, cancelPath, `{"customer_id":"C1","merchant_id":100001}`).ok(t)
}

// TestTransactionsOfOthers checks that transactions of other merchants are not found.
func TestTransactionsOfOthers(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	a.second(t).get(t, transactions).refused(t, http.StatusNotFound)
	a.partner().get(t, transactions).refused(t, http.StatusNotFound)
	assert.Len(t, a.partner().page(t, transactions+"?merchant_id=100001").Data, 5)
	a.get(t, "/platform/subscription/transactions/5").refused(t, http.StatusNotFound)
	a.get(t, "/platform/subscription/transactions/x").refused(t, http.StatusBadRequest)
}

// TestTransactionRecord checks all fields of a listed transaction.
func TestTransactionRecord(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, CustomerID: "C1", Transactions: []payvaulttest.Transaction{{
		PGID: "PG1", AmtTran: amount("125.50"), CardNumber: "4111111111111111", RMsg: "approved", BatchDate: "2026-01-16",
	}}})
	assert.JSONEq(t, `{"code":0,"message":"Success","totalPages":1,"totalRecords":1,"data":[{
		"merchant_id":100001,"tran_time":"2026-01-15T12:00:00-05:00","tran_status":"P","rcode":"000",
		"rmsg":"approved","card_number":"4111xxxxxx111111","card_type":"VI","pg_id":"PG1","amt_tran":125.50,
		"tran_currency":"840","dispute_flag":false,
		"amt_refunded":0,"customer_id":"C1","subscription_id":77,
		"batch_date":"2026-01-16","amt_funded":0,"funded_currency":"840"}]}`, a.get(t, transactions).body)
}

// TestSeedSubscriptionDefaults checks the values of fields that a seeded subscription leaves out.
func TestSeedSubscriptionDefaults(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	transactions := []payvaulttest.Transaction{{}}
	sub := a.srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: transactions})
	assert.NotZero(t, sub.ID)
	assert.NotEmpty(t, sub.CustomerID)
	assert.Equal(t, payvaulttest.SubscriptionActive, sub.State)
	assert.Equal(t, sub.ID, sub.Transactions[0].SubscriptionID)
	assert.Zero(t, transactions[0], "the caller's slice is not changed")
	stored, _ := a.srv.Subscriptions.Get(sub.ID)
	assert.Equal(t, sub, stored)
}

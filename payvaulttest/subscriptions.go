package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/cardnumber"
)

// SubscriptionState is the state of a [Subscription].
type SubscriptionState string

// The states of a subscription.
const (
	SubscriptionActive    SubscriptionState = "active"
	SubscriptionSuspended SubscriptionState = "suspended"
	SubscriptionPaused    SubscriptionState = "paused"
	SubscriptionCanceled  SubscriptionState = "canceled"
)

// Subscription is a subscription with its transactions. In JSON, its fields are named as on the wire, except state and
// transactions. A seeded subscription without a State becomes active. Missing values of its transactions are filled in,
// such as the current time, currency 840, status P and rcode 000.
type Subscription struct {
	ID           payvault.SubscriptionID `json:"subscription_id"`
	MerchantID   payvault.MerchantID     `json:"merchant_id"`
	CustomerID   string                  `json:"customer_id"`
	State        SubscriptionState       `json:"state"`
	Transactions []Transaction           `json:"transactions"` // sorted by time
}

// Transaction is a transaction of a subscription. In JSON, its fields are named as on the wire. Answers leave out a
// field with omitzero if it is empty or 0.
type Transaction struct {
	MerchantID          payvault.MerchantID     `json:"merchant_id"`
	Time                time.Time               `json:"tran_time"`   // with its UTC offset
	Status              string                  `json:"tran_status"` // such as "P"
	AuthCode            string                  `json:"auth_code,omitzero"`
	RCode               string                  `json:"rcode"` // 000 is success
	RMsg                string                  `json:"rmsg,omitzero"`
	CardNumber          string                  `json:"card_number,omitzero"` // masked
	CardType            string                  `json:"card_type,omitzero"`
	PurchaseID          string                  `json:"purchase_id,omitzero"`
	PGID                string                  `json:"pg_id"`
	CardholderFirstName string                  `json:"cardholder_first_name,omitzero"`
	CardholderLastName  string                  `json:"cardholder_last_name,omitzero"`
	AmtTran             payvault.Amount         `json:"amt_tran"`
	Currency            string                  `json:"tran_currency"` // numeric code
	DisputeFlag         bool                    `json:"dispute_flag"`
	AmtRefunded         payvault.Amount         `json:"amt_refunded"`
	BatchNumber         int64                   `json:"batch_number,omitzero"`
	CustomerID          string                  `json:"customer_id"`
	SubscriptionID      payvault.SubscriptionID `json:"subscription_id"`
	MerchRefNum         string                  `json:"merch_ref_num,omitzero"`
	BatchID             int64                   `json:"batch_id,omitzero"`
	BatchDate           string                  `json:"batch_date,omitzero"`  // YYYY-MM-DD
	SettleDate          string                  `json:"settle_date,omitzero"` // YYYY-MM-DD
	AmtFunded           payvault.Amount         `json:"amt_funded"`
	FundedCurrency      string                  `json:"funded_currency"` // numeric code
}

type subscriptions struct {
	*state
	*Store[payvault.SubscriptionID, Subscription]
}

func newSubscriptions(s *state) *Store[payvault.SubscriptionID, Subscription] {
	v := &subscriptions{state: s}
	v.Store = newStore(s, "subscription", v)
	s.actions[payvault.OpSubscriptionsTransactions] = v.listTransactions
	s.actions[payvault.OpSubscriptionsCancel] = reading(v.cancelSubscription)
	return v.Store
}

func (*subscriptions) key(s *Subscription) (payvault.SubscriptionID, *payvault.MerchantID) {
	return s.ID, &s.MerchantID
}

func (v *subscriptions) prepare(s *Subscription) {
	freshNumber(v.Store, &s.ID)
	s.CustomerID = cmp.Or(s.CustomerID, v.ids.text("customer"))
	s.State = cmp.Or(s.State, SubscriptionActive)
	for i := range s.Transactions {
		s.Transactions[i].fill(v.state, s)
	}
	slices.SortStableFunc(s.Transactions, func(a, b Transaction) int { return a.Time.Compare(b.Time) })
}

func (v *subscriptions) permits(s *Subscription) error {
	for i, t := range s.Transactions {
		if err := v.document.shows("Transaction", t); err != nil {
			return fmt.Errorf("transactions[%d]: %w", i, err)
		}
	}
	return oneOf("state", s.State,
		SubscriptionActive, SubscriptionSuspended, SubscriptionPaused, SubscriptionCanceled)
}

func (*subscriptions) detach(s *Subscription) { s.Transactions = slices.Clone(s.Transactions) }

func (t *Transaction) fill(v *state, s *Subscription) {
	t.MerchantID, t.SubscriptionID = s.MerchantID, s.ID
	t.CustomerID = cmp.Or(t.CustomerID, s.CustomerID)
	t.PGID = cmp.Or(t.PGID, v.ids.text("pg"))
	t.Status = cmp.Or(t.Status, "P")
	t.RCode = cmp.Or(t.RCode, "000")
	t.Currency = cmp.Or(t.Currency, "840")
	t.FundedCurrency = cmp.Or(t.FundedCurrency, t.Currency)
	if t.Time.IsZero() {
		t.Time = v.now()
	}
	t.CardType = cmp.Or(t.CardType, cardnumber.Network(t.CardNumber))
	t.CardNumber = cardnumber.Masked(t.CardNumber)
}

// listTransactions performs GET /platform/subscription/transactions/{subscription_id}.
func (v *subscriptions) listTransactions(c *call) (any, error) {
	sub, err := v.find(c, payvault.SubscriptionID(c.id("subscription_id")))
	if err != nil {
		return nil, err
	}
	return list(c.query, v.document.payments, slices.Clone(sub.Transactions))
}

type cancelRequest struct {
	CustomerID string `json:"customer_id"`
}

// cancelSubscription performs POST /platform/subscription/{subscription_id}/cancel. A canceled subscription stays
// canceled.
func (v *subscriptions) cancelSubscription(c *call, in cancelRequest) (any, error) {
	sub, err := v.find(c, payvault.SubscriptionID(c.id("subscription_id")))
	switch {
	case err != nil:
		return nil, err
	case sub.CustomerID != in.CustomerID:
		return nil, problems{"customer_id": {"is not the customer of the subscription"}}.err()
	case sub.State == SubscriptionCanceled:
		return nil, refuse(http.StatusConflict, "the subscription is canceled already")
	}
	sub.State = SubscriptionCanceled
	return confirm("Subscription %d was canceled", sub.ID), nil
}

package payvaulttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.com/payvault"
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

// Subscription is a subscription with its transactions (interface §2.5). The interface has no operation that adds
// one: see [Server.SeedSubscription].
type Subscription struct {
	ID           payvault.SubscriptionID `json:"subscription_id"`
	MerchantID   payvault.MerchantID     `json:"merchant_id"`
	CustomerID   string                  `json:"customer_id"`
	State        SubscriptionState       `json:"state"`
	Transactions []Transaction           `json:"transactions"`
}

// Transaction is a transaction of a subscription, as interface §2.5 lists its fields. Answers leave out texts, dates and
// batch numbers that are not set.
type Transaction struct {
	MerchantID          payvault.MerchantID     `json:"merchant_id"`
	Time                time.Time               `json:"tran_time"`           // with its offset
	Status              string                  `json:"tran_status"`         // tran_status, such as "P"
	AuthCode            string                  `json:"auth_code,omitempty"` // as it was seeded
	RCode               string                  `json:"rcode"`               // 000 is success
	RMsg                string                  `json:"rmsg,omitempty"`
	CardNumber          string                  `json:"card_number,omitempty"` // masked when it is seeded in full
	CardType            string                  `json:"card_type,omitempty"`
	PurchaseID          string                  `json:"purchase_id,omitempty"`
	PGID                string                  `json:"pg_id"`
	CardholderFirstName string                  `json:"cardholder_first_name,omitempty"`
	CardholderLastName  string                  `json:"cardholder_last_name,omitempty"`
	Amount              json.Number             `json:"amt_tran"`
	Currency            string                  `json:"tran_currency"` // numeric code
	DisputeFlag         bool                    `json:"dispute_flag"`
	AmountRefunded      json.Number             `json:"amt_refunded"`
	BatchNumber         int64                   `json:"batch_number,omitempty"` // as it was seeded
	CustomerID          string                  `json:"customer_id"`
	SubscriptionID      payvault.SubscriptionID `json:"subscription_id"`
	MerchRefNum         string                  `json:"merch_ref_num,omitempty"`
	BatchID             int64                   `json:"batch_id,omitempty"`    // as it was seeded
	BatchDate           string                  `json:"batch_date,omitempty"`  // YYYY-MM-DD
	SettleDate          string                  `json:"settle_date,omitempty"` // YYYY-MM-DD
	AmountFunded        json.Number             `json:"amt_funded"`
	FundedCurrency      string                  `json:"funded_currency"` // numeric code
}

// SeedSubscription adds a subscription and returns it as it was stored. What is left out is filled
// in: an ID, the merchant of [Server.Merchant], a customer ID, the state active; in each transaction
// the IDs of the subscription, a pg_id, the status P, rcode 000, the present time and the currency
// 840. It replaces a subscription with the same ID.
// It panics if [WithSeed] would refuse the subscription.
func (s *Server) SeedSubscription(sub Subscription) Subscription {
	mustFit("subscription", sub.checkSeed(s.service.accounts.has))
	v := s.service
	v.mu.Lock()
	defer v.mu.Unlock()
	if sub.ID == 0 {
		sub.ID = freshNumber(v.ids, "subscription", v.subscriptions)
	}
	sub.MerchantID = cmp.Or(sub.MerchantID, s.seedMerchant())
	if sub.CustomerID == "" {
		sub.CustomerID = freshText(v.ids, "customer", v.customersOf(sub.MerchantID))
	}
	sub.State = cmp.Or(sub.State, SubscriptionActive)
	sub.Transactions = slices.Clone(sub.Transactions)
	given := newTable[string, bool]()
	for _, t := range sub.Transactions {
		given.put(t.PGID, true)
	}
	for i := range sub.Transactions {
		v.fillTransaction(&sub.Transactions[i], sub, given)
	}
	slices.SortStableFunc(sub.Transactions, func(a, b Transaction) int { return a.Time.Compare(b.Time) })
	stored := newSubscription(sub)
	v.subscriptions.put(sub.ID, stored)
	return stored.view()
}

// A subscription is a Subscription as the emulator keeps it. Its transactions do not change: a new
// status makes a new record.
type subscription struct {
	Subscription
	rows []*Transaction
}

func newSubscription(sub Subscription) *subscription {
	stored := &subscription{Subscription: sub}
	for _, transaction := range sub.Transactions {
		stored.rows = append(stored.rows, &transaction)
	}
	stored.Transactions = nil
	return stored
}

func (s *subscription) view() Subscription {
	view := s.Subscription
	view.Transactions = copies(s.rows)
	return view
}

// fillTransaction fills in what is left out; given are the pg_ids that the subscription has already.
func (v *service) fillTransaction(t *Transaction, sub Subscription, given *table[string, bool]) {
	t.MerchantID = cmp.Or(t.MerchantID, sub.MerchantID)
	t.SubscriptionID = cmp.Or(t.SubscriptionID, sub.ID)
	t.CustomerID = cmp.Or(t.CustomerID, sub.CustomerID)
	if t.PGID == "" {
		t.PGID = freshText(v.ids, "pg", given)
	}
	t.Status = cmp.Or(t.Status, "P")
	t.RCode = cmp.Or(t.RCode, "000")
	t.Currency = cmp.Or(t.Currency, "840")
	t.FundedCurrency = cmp.Or(t.FundedCurrency, t.Currency)
	t.Amount = cmp.Or(t.Amount, "0")
	t.AmountRefunded = cmp.Or(t.AmountRefunded, "0")
	t.AmountFunded = cmp.Or(t.AmountFunded, "0")
	if t.Time.IsZero() {
		t.Time = v.now()
	}
	if isCardNumber(t.CardNumber) {
		t.CardType = cmp.Or(t.CardType, cardType(t.CardNumber))
		t.CardNumber = mask(t.CardNumber)
	}
}

// Subscription returns a subscription as it stands.
func (s *Server) Subscription(id payvault.SubscriptionID) (Subscription, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	sub, ok := s.service.subscriptions.get(id)
	if !ok {
		return Subscription{}, false
	}
	return sub.view(), true
}

// Subscriptions returns every subscription, in the order in which they were seeded.
func (s *Server) Subscriptions() []Subscription {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return views(s.service.subscriptions.rows, (*subscription).view)
}

// SetTransactionStatus changes the status of a subscription's transaction and lets the event
// transaction_status_updated occur. It fails if there is no such transaction.
func (s *Server) SetTransactionStatus(id payvault.SubscriptionID, pgID, status string) error {
	changed, ok := s.service.setStatus(id, pgID, status)
	if !ok {
		return fmt.Errorf("payvaulttest: subscription %d has no transaction with this pg_id", id)
	}
	s.TriggerEvent(changed.MerchantID, EventTransactionStatusUpdated, changed)
	return nil
}

func (v *service) setStatus(id payvault.SubscriptionID, pgID, status string) (Transaction, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	sub, ok := v.subscriptions.get(id)
	if !ok {
		return Transaction{}, false
	}
	i := slices.IndexFunc(sub.rows, func(t *Transaction) bool { return t.PGID == pgID })
	if i < 0 {
		return Transaction{}, false
	}
	changed := *sub.rows[i]
	changed.Status = status
	sub.rows[i] = &changed
	return changed, true
}

// listTransactions performs GET /platform/subscription/transactions/{subscription_id}.
func (v *service) listTransactions(c *call) (any, error) {
	id, err := c.id("subscription_id")
	if err != nil {
		return nil, err
	}
	merchant, err := c.merchant()
	if err != nil {
		return nil, err
	}
	q, err := parseListQuery(c.query, transactionColumns())
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	sub, err := v.subscription(merchant, id)
	if err != nil {
		return nil, err
	}
	return q.answer(slices.Clone(sub.rows)), nil
}

// subscription finds a subscription of a merchant. The caller holds the lock.
func (v *service) subscription(merchant payvault.MerchantID, id int64) (*subscription, error) {
	sub, ok := v.subscriptions.get(payvault.SubscriptionID(id))
	if !ok || sub.MerchantID != merchant {
		return nil, refuse(http.StatusNotFound, "there is no subscription with this subscription_id")
	}
	return sub, nil
}

type cancelRequest struct {
	CustomerID string `json:"customer_id"`
	MerchantID *int64 `json:"merchant_id"`
}

// cancelSubscription performs POST /platform/subscription/{subscription_id}/cancel.
func (v *service) cancelSubscription(c *call) (any, error) {
	id, err := c.id("subscription_id")
	if err != nil {
		return nil, err
	}
	var in cancelRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	merchant, err := c.account.actFor(in.MerchantID)
	if err != nil {
		return nil, err
	}
	if isBlank(in.CustomerID) {
		return nil, problems{"customer_id": {"is required"}}.err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	sub, err := v.subscription(merchant, id)
	if err != nil {
		return nil, err
	}
	if err := sub.cancel(in.CustomerID); err != nil {
		return nil, err
	}
	return success(confirmation{fmt.Sprintf("Subscription %d was canceled", id)}), nil
}

// cancel moves an active, suspended or paused subscription to canceled, from where nothing leads back.
func (s *subscription) cancel(customerID string) error {
	switch {
	case s.CustomerID != customerID:
		return problems{"customer_id": {"is not the customer of the subscription"}}.err()
	case s.State == SubscriptionCanceled:
		return refuse(http.StatusConflict, "the subscription is canceled already")
	}
	s.State = SubscriptionCanceled
	return nil
}

func transactionColumns() columns[Transaction] {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return columns[Transaction]{
		{"merchant_id", numberKind, func(t *Transaction) string { return number(int64(t.MerchantID)) }},
		{"tran_time", timeKind, func(t *Transaction) string { return t.Time.Format(time.RFC3339Nano) }},
		{"tran_date", dateKind, func(t *Transaction) string { return t.Time.Format(time.DateOnly) }},
		{"tran_status", textKind, func(t *Transaction) string { return t.Status }},
		{"auth_code", textKind, func(t *Transaction) string { return t.AuthCode }},
		{"rcode", textKind, func(t *Transaction) string { return t.RCode }},
		{"rmsg", textKind, func(t *Transaction) string { return t.RMsg }},
		{"card_number", textKind, func(t *Transaction) string { return t.CardNumber }},
		{"card_type", textKind, func(t *Transaction) string { return t.CardType }},
		{"purchase_id", textKind, func(t *Transaction) string { return t.PurchaseID }},
		{"pg_id", textKind, func(t *Transaction) string { return t.PGID }},
		{"cardholder_first_name", textKind, func(t *Transaction) string { return t.CardholderFirstName }},
		{"cardholder_last_name", textKind, func(t *Transaction) string { return t.CardholderLastName }},
		{"amt_tran", numberKind, func(t *Transaction) string { return t.Amount.String() }},
		{"tran_currency", textKind, func(t *Transaction) string { return t.Currency }},
		{"dispute_flag", flagKind, func(t *Transaction) string { return strconv.FormatBool(t.DisputeFlag) }},
		{"amt_refunded", numberKind, func(t *Transaction) string { return t.AmountRefunded.String() }},
		{"batch_number", numberKind, func(t *Transaction) string { return number(t.BatchNumber) }},
		{"customer_id", textKind, func(t *Transaction) string { return t.CustomerID }},
		{"subscription_id", numberKind, func(t *Transaction) string { return number(int64(t.SubscriptionID)) }},
		{"merch_ref_num", textKind, func(t *Transaction) string { return t.MerchRefNum }},
		{"batch_id", numberKind, func(t *Transaction) string { return number(t.BatchID) }},
		{"batch_date", dateKind, func(t *Transaction) string { return t.BatchDate }},
		{"settle_date", dateKind, func(t *Transaction) string { return t.SettleDate }},
		{"amt_funded", numberKind, func(t *Transaction) string { return t.AmountFunded.String() }},
		{"funded_currency", textKind, func(t *Transaction) string { return t.FundedCurrency }},
	}
}

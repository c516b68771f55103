package payvault

import (
	"context"
	"iter"

	"example.com/payvault/internal/answer"
)

// SubscriptionsService lists the transactions of recurring-billing subscriptions and cancels subscriptions.
type SubscriptionsService struct{ caller *caller }

// TransactionStatus is the status of a transaction. The interface shows [TransactionStatusP] only.
type TransactionStatus string

// TransactionStatusP is seen on an approved subscription transaction.
const TransactionStatusP TransactionStatus = "P"

// Transaction is one transaction of a subscription. The field tran_date can be used in filters besides the ones here.
type Transaction struct {
	MerchantID          MerchantID        `json:"merchant_id,omitzero"`
	Time                Timestamp         `json:"tran_time,omitzero"`   // with the offset of the service
	Status              TransactionStatus `json:"tran_status,omitzero"` // see TransactionStatusP
	AuthCode            string            `json:"auth_code,omitzero"`   // of the authorization
	RCode               string            `json:"rcode,omitzero"`       // result code; 000 is success
	RMsg                string            `json:"rmsg,omitzero"`        // result message
	CardNumber          string            `json:"card_number,omitzero"` // masked
	CardType            string            `json:"card_type,omitzero"`
	PurchaseID          string            `json:"purchase_id,omitzero"`
	PGID                string            `json:"pg_id,omitzero"`
	CardholderFirstName string            `json:"cardholder_first_name,omitzero"`
	CardholderLastName  string            `json:"cardholder_last_name,omitzero"`
	AmtTran             Amount            `json:"amt_tran,omitzero"`      // in units of Currency
	Currency            string            `json:"tran_currency,omitzero"` // numeric code
	DisputeFlag         bool              `json:"dispute_flag,omitzero"`
	AmtRefunded         Amount            `json:"amt_refunded,omitzero"` // in units of Currency
	BatchNumber         int64             `json:"batch_number,omitzero"` // not the same as BatchID
	CustomerID          string            `json:"customer_id,omitzero"`  // the ID of a Customer
	SubscriptionID      SubscriptionID    `json:"subscription_id,omitzero"`
	MerchRefNum         string            `json:"merch_ref_num,omitzero"`
	BatchID             int64             `json:"batch_id,omitzero"`        // not the same as BatchNumber
	BatchDate           Date              `json:"batch_date,omitzero"`      // YYYY-MM-DD
	SettleDate          Date              `json:"settle_date,omitzero"`     // YYYY-MM-DD; zero if the service gives none
	AmtFunded           Amount            `json:"amt_funded,omitzero"`      // in units of FundedCurrency
	FundedCurrency      string            `json:"funded_currency,omitzero"` // numeric code
}

// SubscriptionCancelRequest names the customer whose subscription ends. The customer ID is required.
type SubscriptionCancelRequest struct {
	CustomerID string     `json:"customer_id"`          // the ID of a Customer
	MerchantID MerchantID `json:"merchant_id,omitzero"` // when acting for another merchant; see also Client.ForMerchant
}

func (r *SubscriptionCancelRequest) prepare(c *caller, p *problems) {
	c.actFor(&r.MerchantID, p)
	require(p, "customer_id", r.CustomerID)
}

// Transactions returns one page of the transactions of a subscription. An ID that is not positive, a negative Count,
// Page or Prefetch, a direction that is neither asc nor desc, a filter without a field, condition or value or with a
// comma in one, and days of BETWEEN_DATES that are not in the calendar or in the wrong order fail before anything is
// sent. It is replayable.
//
// Fields to sort and filter by have the wire names of [Transaction]. The interface gives customer_id and tran_time as
// examples for sorting, and tran_date for filtering; it lists no others. [BetweenDates] takes a date: tran_date, or
// perhaps tran_time, batch_date or settle_date.
//
// An error matches [ErrInvalidRequest], [ErrRejected] if the service gives a code, and [ErrNotFound] if it answers an
// ID that it does not know with 404, which the interface does not show; see [SafeToRetry] for the others.
//
// GET /platform/subscription/transactions/{subscription_id}.
func (s *SubscriptionsService) Transactions(
	ctx context.Context, id SubscriptionID, opt *ListOptions, opts ...CallOption,
) (*Page[Transaction], error) {
	return s.list(id).page(ctx, opt, opts)
}

// AllTransactions walks over all transactions of a subscription from opt.Page on. The walk is lazy, can be started
// again, and ends with its first error: one of Transactions, or [ErrMalformedResponse] for pages that contradict each
// other. It is replayable.
//
// GET /platform/subscription/transactions/{subscription_id}.
func (s *SubscriptionsService) AllTransactions(
	ctx context.Context, id SubscriptionID, opt *ListOptions, opts ...CallOption,
) iter.Seq2[*Transaction, error] {
	return s.list(id).all(ctx, opt, opts)
}

// TransactionPages walks as AllTransactions does, and yields whole pages: for a program that notes how far it has come.
//
// GET /platform/subscription/transactions/{subscription_id}.
func (s *SubscriptionsService) TransactionPages(
	ctx context.Context, id SubscriptionID, opt *ListOptions, opts ...CallOption,
) iter.Seq2[*Page[Transaction], error] {
	return s.list(id).pages(ctx, opt, opts)
}

func (s *SubscriptionsService) list(id SubscriptionID) list[Transaction] {
	return list[Transaction]{s.caller, OpSubscriptionsTransactions, inPath(id), (*Transaction).settle}
}

// settle reports an empty record as missing. An rcode of 0 is what is left of 000 where it was sent as a number.
func (t *Transaction) settle() (missing string, ok bool) {
	if *t == (Transaction{}) {
		return "", false
	}
	if t.RCode == "0" || t.RCode == "0.0" {
		t.RCode = answer.RCodeSuccess
	}
	return "", true
}

// Cancel ends an active, suspended or paused subscription for good: a canceled subscription cannot be resumed. An ID
// that is not positive, a nil request and one without a customer ID fail before anything is sent, with
// [ErrInvalidRequest].
//
// It is never repeated by itself once it may have reached the service; see [SafeToRetry]. After [ErrOutcomeUnknown] it
// may have been canceled, and no documented operation shows it: see docs/unknown.md. The refusal of a second call,
// [ErrRejected], [ErrNotFound] or [ErrConflict], may come from the first one having succeeded.
//
// POST /platform/subscription/{subscription_id}/cancel.
func (s *SubscriptionsService) Cancel(
	ctx context.Context, id SubscriptionID, req *SubscriptionCancelRequest, opts ...CallOption,
) (*Confirmation, error) {
	return confirm(ctx, s.caller, call{op: OpSubscriptionsCancel.info(), path: inPath(id), content: jsonBody(req)}, opts)
}

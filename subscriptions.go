package payvault

import (
	"context"
	"iter"

	"example.com/payvault/internal/answer"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// SubscriptionsService lists the transactions of recurring-billing subscriptions and cancels subscriptions.
type SubscriptionsService struct{ caller *caller }

// TransactionStatus is the status of a transaction. The service documents only P, the status of an approved
// subscription transaction.
type TransactionStatus string

// Transaction is one transaction of a subscription. Filters can also use the field tran_date, which is not in this
// struct.
type Transaction struct {
	MerchantID          MerchantID        `json:"merchant_id,omitzero" answer:"id"`
	Time                Timestamp         `json:"tran_time,omitzero"` // with the UTC offset that the service sent
	Status              TransactionStatus `json:"tran_status,omitzero"`
	AuthCode            string            `json:"auth_code,omitzero"`   // authorization code
	RCode               string            `json:"rcode,omitzero"`       // result code; 000 is success
	RMsg                string            `json:"rmsg,omitzero"`        // result message
	CardNumber          string            `json:"card_number,omitzero"` // masked
	CardType            string            `json:"card_type,omitzero"`
	PurchaseID          string            `json:"purchase_id,omitzero" answer:"id"`
	PGID                string            `json:"pg_id,omitzero" answer:"id"`
	CardholderFirstName string            `json:"cardholder_first_name,omitzero"`
	CardholderLastName  string            `json:"cardholder_last_name,omitzero"`
	AmtTran             Amount            `json:"amt_tran,omitzero"`                   // in units of Currency
	Currency            string            `json:"tran_currency,omitzero" answer:"iso"` // numeric code
	DisputeFlag         bool              `json:"dispute_flag,omitzero"`
	AmtRefunded         Amount            `json:"amt_refunded,omitzero"`             // in units of Currency
	BatchNumber         int64             `json:"batch_number,omitzero" answer:"id"` // differs from BatchID
	CustomerID          string            `json:"customer_id,omitzero" answer:"id"`  // the ID of a Customer
	SubscriptionID      SubscriptionID    `json:"subscription_id,omitzero" answer:"id"`
	MerchRefNum         string            `json:"merch_ref_num,omitzero" answer:"id"`
	BatchID             int64             `json:"batch_id,omitzero" answer:"id"`         // differs from BatchNumber
	BatchDate           Date              `json:"batch_date,omitzero"`                   // YYYY-MM-DD
	SettleDate          Date              `json:"settle_date,omitzero"`                  // YYYY-MM-DD; zero if none
	AmtFunded           Amount            `json:"amt_funded,omitzero"`                   // in units of FundedCurrency
	FundedCurrency      string            `json:"funded_currency,omitzero" answer:"iso"` // numeric code
}

// SubscriptionCancelRequest names the customer whose subscription ends. The customer ID is required.
type SubscriptionCancelRequest struct {
	CustomerID string     `json:"customer_id"`          // the ID of a Customer
	MerchantID MerchantID `json:"merchant_id,omitzero"` // the merchant to act for; see also Client.ForMerchant
}

func (r *SubscriptionCancelRequest) prepare(c *caller, p *problems) {
	c.actFor(&r.MerchantID, p)
	require(p, "customer_id", r.CustomerID)
}

// Transactions returns one page of the transactions of a subscription. An ID that is not positive, and paging options
// and filters that are not valid, fail before anything is sent; see [ListOptions].
//
// Sort and filter by fields of [Transaction], named as on the wire. The service documents customer_id and tran_time as
// examples for sorting, tran_date for filtering, and no other field. [BetweenDates] needs a date or time field. Besides
// tran_date, the service perhaps accepts tran_time, batch_date and settle_date.
//
// Replayable. GET /platform/subscription/transactions/{subscription_id}.
func (s *SubscriptionsService) Transactions(
	ctx context.Context, id SubscriptionID, query *ListOptions, opts ...CallOption,
) (*Page[Transaction], error) {
	return s.list(id).page(ctx, query, newCallOptions(opts))
}

// AllTransactions returns an iterator over all transactions of a subscription from query.Page on. Without Prefetch the
// iterator requests each page when the loop needs the page. The loop ends after the first error: an error of
// Transactions, or an error that matches [ErrMalformedResponse] if the pages contradict each other. A second loop over
// the iterator begins at query.Page again.
//
// Replayable. GET /platform/subscription/transactions/{subscription_id}.
func (s *SubscriptionsService) AllTransactions(
	ctx context.Context, id SubscriptionID, query *ListOptions, opts ...CallOption,
) iter.Seq2[*Transaction, error] {
	return s.list(id).all(ctx, query, opts)
}

// TransactionPages returns an iterator like that of AllTransactions, but over whole pages. Use it in a program that
// saves its progress.
//
// Replayable. GET /platform/subscription/transactions/{subscription_id}.
func (s *SubscriptionsService) TransactionPages(
	ctx context.Context, id SubscriptionID, query *ListOptions, opts ...CallOption,
) iter.Seq2[*Page[Transaction], error] {
	return s.list(id).pages(ctx, query, opts)
}

func (s *SubscriptionsService) list(id SubscriptionID) list[Transaction] {
	return list[Transaction]{s.caller, OpSubscriptionsTransactions, inPath(id), (*Transaction).tidy}
}

// tidy reports whether the record is empty. It also corrects an rcode of 0 to 000: a service that writes codes as
// numbers cannot write 000.
func (t *Transaction) tidy() (place string, needed bool) {
	if *t == (Transaction{}) {
		return "", true
	}
	if t.RCode == "0" || t.RCode == "0.0" {
		t.RCode = answer.RCodeSuccess
	}
	return "", false
}

// Cancel ends an active, suspended or paused subscription permanently: a canceled subscription cannot be resumed. An ID
// that is not positive and a request without a customer ID fail before anything is sent.
//
// After [ErrOutcomeUnknown] the subscription may already be canceled. No documented operation shows whether it is
// canceled: see docs/unknown.md. A second call may be refused because the first call succeeded.
//
// Not replayable. POST /platform/subscription/{subscription_id}/cancel.
func (s *SubscriptionsService) Cancel(
	ctx context.Context, id SubscriptionID, req *SubscriptionCancelRequest, opts ...CallOption,
) (*Confirmation, error) {
	return doConfirm(ctx, s.caller, call{op: OpSubscriptionsCancel.info(), path: inPath(id), content: jsonBody(req)}, opts)
}

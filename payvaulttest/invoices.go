package payvaulttest

import (
	"cmp"
	"net/http"
	"slices"

	"example.com/payvault"
)

// InvoiceState is the state of an [Invoice].
type InvoiceState string

// The states of an invoice.
const (
	InvoiceSaved       InvoiceState = "saved"
	InvoiceOutstanding InvoiceState = "outstanding"
)

// Invoice is an invoice with its recipients. A seeded invoice without a State gets the state [InvoiceSaved].
type Invoice struct {
	ID         payvault.InvoiceID  `json:"invoice_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	State      InvoiceState        `json:"state"`
	Emails     []string            `json:"emails"` // email addresses to which the invoice was sent
	Phones     []int64             `json:"phones"` // the phone numbers in the request
	SMS        []int64             `json:"sms"`    // the phone numbers that received an SMS
}

type invoices struct {
	*state
	*Store[payvault.InvoiceID, Invoice]
}

func newInvoices(s *state) *Store[payvault.InvoiceID, Invoice] {
	v := &invoices{state: s}
	v.Store = newStore(s, "invoice", v)
	s.actions[payvault.OpInvoicesSend] = reading(v.sendInvoice)
	return v.Store
}

func (*invoices) key(i *Invoice) (payvault.InvoiceID, *payvault.MerchantID) {
	return i.ID, &i.MerchantID
}

func (v *invoices) prepare(i *Invoice) {
	freshText(v.Store, &i.ID)
	i.State = cmp.Or(i.State, InvoiceSaved)
}

func (*invoices) permits(i *Invoice) error {
	return oneOf("state", i.State, InvoiceSaved, InvoiceOutstanding)
}

func (*invoices) detach(i *Invoice) {
	i.Emails, i.Phones, i.SMS = slices.Clone(i.Emails), slices.Clone(i.Phones), slices.Clone(i.SMS)
}

type sendRequest struct {
	Emails []string `json:"email_address"`
	Phones []int64  `json:"phone_number"`
}

// sendInvoice performs POST /platform/invoice/{invoice_id}/send.
func (v *invoices) sendInvoice(c *call, in sendRequest) (any, error) {
	invoice, err := v.find(c, payvault.InvoiceID(c.path("invoice_id")))
	if err != nil {
		return nil, err
	}
	if invoice.State != InvoiceSaved {
		return nil, refuse(http.StatusConflict, "the invoice is %s already", invoice.State)
	}
	invoice.State, invoice.Emails, invoice.Phones = InvoiceOutstanding, in.Emails, in.Phones
	if v.accounts.enabled(c.merchant, func(a Account) bool { return a.SMS }) {
		invoice.SMS = slices.DeleteFunc(slices.Clone(in.Phones), func(n int64) bool { return !isUSNumber(n) })
	}
	return success(nil), nil
}

// isUSNumber reports whether a number has eleven digits and begins with the country prefix 1.
func isUSNumber(n int64) bool { return n/10_000_000_000 == 1 }

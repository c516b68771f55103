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

// Invoice is an invoice, its fields named as on the wire, and where it went. A seeded one is saved unless it says
// otherwise.
type Invoice struct {
	ID              payvault.InvoiceID  `json:"invoice_id"`
	MerchantID      payvault.MerchantID `json:"merchant_id"`
	State           InvoiceState        `json:"state"`
	FromContact     string              `json:"from_contact"`
	BusinessContact string              `json:"business_contact"`
	Emails          []string            `json:"emails"` // the addresses that it was sent to
	Phones          []int64             `json:"phones"` // the phone numbers that the request named
	SMS             []int64             `json:"sms"`    // those of them that received an SMS
}

func (i *Invoice) clone() Invoice {
	view := *i
	view.Emails, view.Phones, view.SMS = slices.Clone(view.Emails), slices.Clone(view.Phones), slices.Clone(view.SMS)
	return view
}

func (v *service) prepareInvoice(i *Invoice) error {
	i.ID = freshText(v.ids, "invoice", v.Invoices, i.ID)
	i.State = cmp.Or(i.State, InvoiceSaved)
	return cmp.Or(
		v.seedMerchant(&i.MerchantID),
		fits(i.State == InvoiceSaved || i.State == InvoiceOutstanding, "state must be saved or outstanding"),
	)
}

type sendRequest struct {
	Emails []string `json:"email_address"`
	Phones []int64  `json:"phone_number"`
}

// sendInvoice performs POST /platform/invoice/{invoice_id}/send.
func (v *service) sendInvoice(c *call) (any, error) {
	in, err := bind[sendRequest](c.body)
	if err != nil {
		return nil, err
	}
	invoice := v.Invoices.rows[payvault.InvoiceID(c.path("invoice_id"))]
	switch {
	case invoice == nil || invoice.MerchantID != c.account.MerchantID:
		return nil, notFound("invoice", "invoice_id")
	case invoice.State != InvoiceSaved:
		return nil, refuse(http.StatusConflict, "the invoice is %s already", invoice.State)
	}
	invoice.State, invoice.Emails, invoice.Phones = InvoiceOutstanding, in.Emails, in.Phones
	if v.accounts.enabled(invoice.MerchantID, func(a Account) bool { return a.SMS }) {
		invoice.SMS = slices.DeleteFunc(slices.Clone(in.Phones), func(n int64) bool { return !isUSNumber(n) })
	}
	return success(nil), nil
}

// isUSNumber reports whether a number is eleven digits that begin with the country prefix 1.
func isUSNumber(n int64) bool { return n/10_000_000_000 == 1 }

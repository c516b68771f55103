package payvaulttest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"example.com/payvault"
)

// InvoiceState is the state of an [Invoice].
type InvoiceState string

// The states of an invoice.
const (
	InvoiceSaved       InvoiceState = "saved"
	InvoiceOutstanding InvoiceState = "outstanding"
)

// Invoice is an invoice and where it went (interface §2.7). The interface has no operation that creates one: see
// [Server.SeedInvoice].
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

// SeedInvoice adds an invoice and returns it as it was stored. What is left out is filled in: an ID,
// the merchant of [Server.Merchant], the state saved. It replaces an invoice with the same ID.
// It panics if [WithSeed] would refuse the invoice.
func (s *Server) SeedInvoice(invoice Invoice) Invoice {
	mustFit("invoice", invoice.checkSeed(s.service.accounts.has))
	invoice = invoice.clone()
	invoice.MerchantID = cmp.Or(invoice.MerchantID, s.seedMerchant())
	invoice.State = cmp.Or(invoice.State, InvoiceSaved)
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	if invoice.ID == "" {
		invoice.ID = freshText(s.service.ids, "invoice", s.service.invoices)
	}
	s.service.invoices.put(invoice.ID, &invoice)
	return invoice.clone()
}

// Invoice returns an invoice as it stands.
func (s *Server) Invoice(id payvault.InvoiceID) (Invoice, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	invoice, ok := s.service.invoices.get(id)
	if !ok {
		return Invoice{}, false
	}
	return invoice.clone(), true
}

// Invoices returns every invoice, in the order in which they were seeded.
func (s *Server) Invoices() []Invoice {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return views(s.service.invoices.rows, (*Invoice).clone)
}

func (i *Invoice) clone() Invoice {
	view := *i
	view.Emails = slices.Clone(i.Emails)
	view.Phones = slices.Clone(i.Phones)
	view.SMS = slices.Clone(i.SMS)
	return view
}

type sendRequest struct {
	Emails []string `json:"email_address"`
	Phones []int64  `json:"phone_number"`
}

// sendInvoice performs POST /platform/invoice/{invoice_id}/send.
func (v *service) sendInvoice(c *call) (any, error) {
	var in sendRequest
	if len(c.body) > 0 {
		if err := decode(c.body, &in); err != nil {
			return nil, err
		}
	}
	p := problems{}
	checkEach(p, "email_address", in.Emails, isEmail, "must hold email addresses")
	checkEach(p, "phone_number", in.Phones, isPhoneNumber, "must hold digits with a country prefix")
	if err := p.err(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	invoice, ok := v.invoices.get(payvault.InvoiceID(c.params["invoice_id"]))
	if !ok || invoice.MerchantID != c.account.MerchantID {
		return nil, refuse(http.StatusNotFound, "there is no invoice with this invoice_id")
	}
	if invoice.State != InvoiceSaved {
		return nil, refuse(http.StatusConflict, "the invoice is %s already", invoice.State)
	}
	v.send(invoice, in)
	return success(nil), nil
}

func (v *service) send(invoice *Invoice, in sendRequest) {
	invoice.State = InvoiceOutstanding
	invoice.Emails, invoice.Phones = in.Emails, in.Phones
	if v.accounts.enabled(invoice.MerchantID, func(a Account) bool { return a.SMS }) {
		invoice.SMS = slices.DeleteFunc(slices.Clone(in.Phones), func(n int64) bool { return !isUSNumber(n) })
	}
}

func isPhoneNumber(n int64) bool {
	digits := strconv.FormatInt(n, 10)
	return isDigits(digits, 8, 15)
}

// isUSNumber tells whether a number is eleven digits that begin with the country prefix 1.
func isUSNumber(n int64) bool { return n/10_000_000_000 == 1 }

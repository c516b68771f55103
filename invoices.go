package payvault

import (
	"context"
	"strconv"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// InvoicesService sends saved invoices.
type InvoicesService struct{ caller *caller }

// InvoiceSendRequest names the recipients of an invoice. Both lists are optional.
type InvoiceSendRequest struct {
	EmailAddress []string `json:"email_address,omitempty"`
	PhoneNumber  []int64  `json:"phone_number,omitempty"` // digits with country prefix; U.S. numbers get SMS where enabled
}

func (r *InvoiceSendRequest) prepare(_ *caller, p *problems) {
	for i, number := range r.PhoneNumber {
		if number <= 0 {
			p.add("phone_number["+strconv.Itoa(i)+"]", "is not positive")
		}
	}
}

// Send sends a saved invoice to email addresses and phone numbers. The state of the invoice becomes outstanding, and
// afterwards only its from_contact and business_contact can be updated. A nil request names no recipients. Send fails
// before anything is sent if the ID is "", "." or "..", or if a phone number is below 1. Send does not take a
// merchant_id: through [Client.ForMerchant] it fails with [ErrMerchantNotSupported].
//
// After [ErrOutcomeUnknown] the service may have sent the emails and text messages, and a second call may send them
// again.
//
// Not replayable. POST /platform/invoice/{invoice_id}/send.
func (s *InvoicesService) Send(ctx context.Context, id InvoiceID, req *InvoiceSendRequest, opts ...CallOption) error {
	if req == nil {
		req = &InvoiceSendRequest{}
	}
	return doNoData(ctx, s.caller, call{op: OpInvoicesSend.info(), path: inPath(id), content: jsonBody(req)}, opts)
}

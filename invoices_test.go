package payvault_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const sendPath = "/platform/invoice/INVOICE7001/send"

// fullSend is invoices/send.request.json.
func fullSend() *payvault.InvoiceSendRequest {
	return &payvault.InvoiceSendRequest{
		EmailAddress: []string{"ivan.one@example.com", "ivan.two@example.com"},
		PhoneNumber:  []int64{12125550171, 12125550172},
	}
}

func TestInvoicesSend(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request      *payvault.InvoiceSendRequest
		body, answer string
	}{
		"full":     {fullSend(), "invoices/send.request.json", "invoices/send.response.json"},
		"minimal":  {&payvault.InvoiceSendRequest{}, "invoices/send.request.min.json", "invoices/send.response.json"},
		"nil":      {nil, "invoices/send.request.min.json", `{"code":0,"data":{"message":"sent"}}`},
		"tolerant": {fullSend(), "invoices/send.request.json", "invoices/send.response.tolerant.json"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, sendPath, test.body, test.answer)
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))
			require.NoError(t, client.Invoices.Send(t.Context(), "INVOICE7001", test.request))
		})
	}
}

func TestInvoicesSend_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, sendPath, "invoices/send.request.json", "invoices/send.error.json")

	err := srv.client().Invoices.Send(t.Context(), "INVOICE7001", fullSend())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpInvoicesSend, Code: "5", Message: "Example refusal of invoices.send",
	})
}

func TestInvoicesSend_invalid(t *testing.T) {
	t.Parallel()
	client := newService(t).client()
	for _, id := range []payvault.InvoiceID{"", ".", ".."} {
		err := client.Invoices.Send(t.Context(), id, nil)
		assertInvalid(t, err, payvault.OpInvoicesSend, fields{"invoice_id": {badSegment}})
	}
	err := client.Invoices.Send(t.Context(), "", &payvault.InvoiceSendRequest{PhoneNumber: []int64{0, 12125550171, -1}})
	assertInvalid(t, err, payvault.OpInvoicesSend, fields{
		"invoice_id": {badSegment}, "phone_number[0]": {"is not positive"}, "phone_number[2]": {"is not positive"},
	})
}

func TestInvoicesSend_hostileID(t *testing.T) {
	t.Parallel()
	for id, escaped := range hostileSegments() {
		t.Run(escaped, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, "/platform/invoice/"+escaped+"/send", "invoices/send.request.min.json", "invoices/send.response.json")
			require.NoError(t, srv.client().Invoices.Send(t.Context(), payvault.InvoiceID(id), nil))
		})
	}
}

func TestInvoicesSend_forMerchant(t *testing.T) {
	t.Parallel()
	client := newService(t).client().ForMerchant(actingFor)
	assertNoMerchant(t, client.Invoices.Send(t.Context(), "INVOICE7001", fullSend()), payvault.OpInvoicesSend)
}

func TestInvoicesSend_leavesRequestAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, sendPath, "invoices/send.request.json", "invoices/send.response.json").times(callers)
	client, request := srv.client(), fullSend()

	together(func() { assert.NoError(t, client.Invoices.Send(t.Context(), "INVOICE7001", request)) })
	assert.Equal(t, fullSend(), request)
}

func TestInvoices_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, *fullSend(), fixture(t, "invoices/send.request.json"))
	assertWire(t, payvault.InvoiceSendRequest{}, fixture(t, "invoices/send.request.min.json"))
}

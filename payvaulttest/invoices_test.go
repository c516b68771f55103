package payvaulttest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const sendPath = "/platform/invoice/INV-1/send"

func newInvoice(t *testing.T, opts ...payvaulttest.Option) api {
	t.Helper()
	a := newAPI(t, opts...)
	a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})
	return a
}

// TestInvoiceSend checks that an invoice is sent once and that its recipients are stored.
func TestInvoiceSend(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	got := a.post(t, sendPath,
		`{"email_address":["i@example.com","j@example.com"],"phone_number":[12125550171,4915112345678]}`)
	assert.JSONEq(t, `{"code":0,"message":"Success"}`, got.body)
	invoice, ok := a.srv.Invoices.Get("INV-1")
	require.True(t, ok)
	assert.Equal(t, payvaulttest.Invoice{
		ID: "INV-1", MerchantID: merchantID, State: payvaulttest.InvoiceOutstanding,
		Emails: []string{"i@example.com", "j@example.com"}, Phones: []int64{12125550171, 4915112345678},
		SMS: []int64{12125550171},
	}, invoice)

	a.post(t, sendPath, `{}`).refused(t, http.StatusConflict)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpInvoicesSend))
}

// TestInvoiceSendWithoutSMS checks that a merchant without SMS sends no SMS.
func TestInvoiceSendWithoutSMS(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1", MerchantID: secondID})
	a.second(t).post(t, sendPath, `{"phone_number":[12125550171]}`).ok(t)
	invoice, _ := a.srv.Invoices.Get("INV-1")
	assert.Equal(t, []int64{12125550171}, invoice.Phones)
	assert.Empty(t, invoice.SMS)
}

// TestInvoiceSendToNobody checks that an invoice can be sent without recipients.
func TestInvoiceSendToNobody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", `{"email_address":[]}`} {
		a := newInvoice(t)
		a.post(t, sendPath, body).ok(t)
		invoice, _ := a.srv.Invoices.Get("INV-1")
		assert.Equal(t, payvaulttest.InvoiceOutstanding, invoice.State)
	}
}

// TestInvoiceRefuses checks that an invalid request is refused with the name of the field, and that the invoice is not
// sent.
func TestInvoiceRefuses(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	for body, field := range map[string]string{
		`{"email_address":"i@example.com"}`: "email_address",
		`{"phone_number":["12125550171"]}`:  "phone_number[0]",
		`{"phone_number":[12125550171.0]}`:  "phone_number[0]",
		`{"phone_number":12125550171}`:      "phone_number",
		`{"merchant_id":100001}`:            "merchant_id",
		`{"email_address":[null]}`:          "email_address[0]",
	} {
		a.post(t, sendPath, body).refused(t, http.StatusBadRequest, field)
	}
	a.post(t, "/platform/invoice/INV-2/send", `{}`).refused(t, http.StatusNotFound)
	a.second(t).post(t, sendPath, `{}`).refused(t, http.StatusNotFound)
	a.post(t, sendPath+"?merchant_id=100001", `{}`).refused(t, http.StatusBadRequest, "merchant_id")
	invoice, _ := a.srv.Invoices.Get("INV-1")
	assert.Equal(t, payvaulttest.InvoiceSaved, invoice.State)
}

// TestInvoiceIDsAreEscaped checks that an invoice is found by its escaped ID.
func TestInvoiceIDsAreEscaped(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "a/b ?ü"})
	a.post(t, "/platform/invoice/a%2Fb%20%3F%C3%BC/send", `{}`).ok(t)
	assert.Equal(t, "/api/v1/platform/invoice/a%2Fb%20%3F%C3%BC/send", a.srv.Requests()[0].Path)
}

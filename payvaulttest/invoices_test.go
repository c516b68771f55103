package payvaulttest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

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

// TestInvoiceSend checks that an invoice can be sent only once, and that an SMS is sent only to US numbers, and only
// for a merchant with the SMS feature.
func TestInvoiceSend(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		merchant payvault.MerchantID
		body     string
		want     payvaulttest.Invoice
	}{
		{
			merchantID, `{"email_address":["i@example.com","j@example.com"],"phone_number":[12125550171,4915112345678]}`,
			payvaulttest.Invoice{
				Emails: []string{"i@example.com", "j@example.com"}, Phones: []int64{12125550171, 4915112345678},
				SMS: []int64{12125550171},
			},
		},
		{secondID, `{"phone_number":[12125550171]}`, payvaulttest.Invoice{Phones: []int64{12125550171}}},
		{merchantID, "", payvaulttest.Invoice{}},
		{merchantID, "{}", payvaulttest.Invoice{}},
	} {
		a := newAPI(t)
		a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1", MerchantID: test.merchant})
		if test.merchant == secondID {
			a = a.second(t)
		}
		assert.JSONEq(t, `{"code":0,"message":"Success"}`, a.post(t, sendPath, test.body).body)
		a.post(t, sendPath, test.body).refused(t, http.StatusConflict)
		test.want.ID, test.want.MerchantID, test.want.State = "INV-1", test.merchant, payvaulttest.InvoiceOutstanding
		assert.Equal(t, []payvaulttest.Invoice{test.want}, a.srv.Invoices.All(), test.body)
		assert.Equal(t, 1, a.srv.Commits(payvault.OpInvoicesSend))
	}
}

// TestInvoiceIDsAreEscaped checks that the server finds an invoice whose ID is percent-encoded in the path.
func TestInvoiceIDsAreEscaped(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "a/b ?ü"})
	a.post(t, "/platform/invoice/a%2Fb%20%3F%C3%BC/send", `{}`).ok(t)
	assert.Equal(t, "/api/v1/platform/invoice/a%2Fb%20%3F%C3%BC/send", a.srv.Requests()[0].Path)
}

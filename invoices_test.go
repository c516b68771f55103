package payvault_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestInvoicesSend_nil checks that a nil request is sent as a request without recipients.
func TestInvoicesSend_nil(t *testing.T) {
	t.Parallel()
	assert.JSONEq(t, `{}`, perform(t, payvault.OpInvoicesSend, (*payvault.InvoiceSendRequest)(nil)))
}

// TestInvoicesSend_id checks that the ID of an invoice is one segment of the path, whatever characters it has. An empty
// ID and the IDs . and .. are refused, because none of them can be a segment.
func TestInvoicesSend_id(t *testing.T) {
	t.Parallel()
	server := service.Answer(t, http.StatusOK, `{"code":0}`)
	client := service.Client(t, server.URL)
	require.NoError(t, client.Invoices.Send(t.Context(), "A/1 ?#", nil))
	require.Len(t, server.Seen(), 1)
	assert.Equal(t, "/platform/invoice/A%2F1%20%3F%23/send", server.Seen()[0].Target)
	for _, id := range []payvault.InvoiceID{"", ".", ".."} {
		err := client.Invoices.Send(t.Context(), id, nil)
		service.AssertInvalid(t, err, payvault.OpInvoicesSend, service.Fields{"invoice_id": {calls.BadSegment}})
	}
}

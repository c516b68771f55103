package payvault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
)

// TestInvoicesSend_nil checks that a nil request is sent as a request without recipients.
func TestInvoicesSend_nil(t *testing.T) {
	t.Parallel()
	assert.JSONEq(t, `{}`, perform(t, payvault.OpInvoicesSend, (*payvault.InvoiceSendRequest)(nil)))
}

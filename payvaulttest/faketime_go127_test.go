//go:build go1.27

package payvaulttest_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestFakeTimeInMemory checks that the faults Delay and Hang take fake time if httptest.NewTestServer serves the
// emulator in memory.
func TestFakeTimeInMemory(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	inject(t, srv, payvaulttest.Fault{Kind: payvaulttest.Delay, Delay: 20 * time.Second, Times: 1})
	inject(t, srv, payvaulttest.Fault{Kind: payvaulttest.Hang, Operation: payvault.OpInvoicesSend})
	synctest.Test(t, func(t *testing.T) {
		client := srv.Client(payvault.WithHTTPClient(httptest.NewTestServer(t, srv).Client()))
		began := time.Now()
		_, err := client.Customers.List(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, 20*time.Second, time.Since(began))
		err = client.Invoices.Send(t.Context(), "INV-1", nil)
		require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 80*time.Second, time.Since(began), "the attempt took a minute")
	})
}

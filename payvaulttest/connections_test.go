package payvaulttest_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestFaultsLeaveHTTP2Connections checks that these faults end the stream on HTTP/2 and keep the connection.
func TestFaultsLeaveHTTP2Connections(t *testing.T) {
	t.Parallel()
	for _, kind := range []payvaulttest.FaultKind{
		payvaulttest.ResetConnection, payvaulttest.DropBeforeCommit, payvaulttest.DropAfterCommit,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			a := newInvoice(t, payvaulttest.WithTLS())
			a.get(t, "/platform/vault/customer")
			inject(t, a.srv, payvaulttest.Fault{Kind: kind, Operation: payvault.OpInvoicesSend})
			_, err := a.try(t)
			require.Error(t, err)
			a.get(t, "/platform/vault/customer")
			requests := a.srv.Requests()
			require.Len(t, requests, 3)
			assert.Equal(t, "HTTP/2.0", requests[2].Proto)
			assert.Equal(t, requests[0].RemoteAddr, requests[2].RemoteAddr)
		})
	}
}

// TestDropsCloseTheConnection checks that a drop closes the connection and does not reset it.
func TestDropsCloseTheConnection(t *testing.T) {
	t.Parallel()
	for _, kind := range []payvaulttest.FaultKind{payvaulttest.DropBeforeCommit, payvaulttest.DropAfterCommit} {
		a := newInvoice(t)
		inject(t, a.srv, payvaulttest.Fault{Kind: kind})
		_, err := a.try(t)
		require.ErrorIs(t, err, io.EOF, "not reset")
	}
}

// TestOtherCodeNeedsABody checks that OtherCode is refused with a status that has no body, and that Respond is not.
func TestOtherCodeNeedsABody(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, status := range []int{http.StatusNoContent, http.StatusNotModified} {
		_, err := a.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Status: status})
		require.Error(t, err)
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Status: status, Times: 1})
		assert.Equal(t, status, a.get(t, "/").status)
	}
}

// TestAccountsAreCopied checks that changing an account after it was passed or returned does not change the server.
func TestAccountsAreCopied(t *testing.T) {
	t.Parallel()
	given := payvaulttest.Account{
		MerchantID: 5, APIKey: "five", Partner: true, VendorID: 1,
		ActsFor: []payvault.MerchantID{6},
	}
	a := api{srv: payvaulttest.NewServer(payvaulttest.WithAccount(given))}
	t.Cleanup(a.srv.Close)
	given.ActsFor[0] = 7
	for _, account := range []payvaulttest.Account{a.srv.Partner(), a.srv.Accounts()[0]} {
		assert.Equal(t, []payvault.MerchantID{6}, account.ActsFor)
		account.ActsFor[0] = 7
	}
	a.key = "five"
	a.get(t, "/platform/vault/customer?merchant_id=6")
	assert.Equal(t, 1, a.srv.Commits(payvault.OpCustomersList))
}

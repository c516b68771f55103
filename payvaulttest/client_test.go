package payvaulttest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestClients(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]payvaulttest.Option{"plain": nil, "TLS": {payvaulttest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newInvoice(t, opts...)
			require.NoError(t, a.srv.Client().Invoices.Send(t.Context(), "INV-1", nil))
			assert.True(t, a.sent())

			card := payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229"}
			_, err := a.srv.Client().Tokens.Tokenize(t.Context(), &card)
			require.NoError(t, err, "the merchant ID is filled in")
			_, err = a.srv.PartnerClient().Tokens.Tokenize(t.Context(), &card)
			require.NoError(t, err, "the vendor ID, too")
			assert.Equal(t, payvault.MerchantID(partnerID), a.srv.Cards.All()[1].MerchantID)

			unknown := a.srv.Merchant()
			unknown.APIKey = "unknown"
			_, err = a.srv.ClientFor(unknown).Customers.List(t.Context(), nil)
			require.ErrorIs(t, err, payvault.ErrUnauthorized)
		})
	}
}

func TestClientOptions(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	client := a.srv.Client(payvault.WithUserAgent("shop/1.0"))
	require.NoError(t, client.Invoices.Send(t.Context(), "INV-1", nil))
	assert.Contains(t, a.srv.Requests()[0].Header.Get("User-Agent"), "shop/1.0")
	assert.Equal(t, http.MethodPost, a.srv.Requests()[0].Method)
	assert.Panics(t, func() { a.srv.Client(payvault.WithTimeout(-1)) })
}

package payvaulttest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestClients checks that the clients of a server send the key, the merchant ID and the vendor ID of their account, and
// that they accept options.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]payvaulttest.Option{nil, {payvaulttest.WithTLS()}} {
		a := newAPI(t, opts...)
		card := payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229"}
		_, err := a.srv.Client(payvault.WithUserAgent("shop/1.0")).Tokens.Tokenize(t.Context(), &card)
		require.NoError(t, err, "the merchant ID is filled in")
		assert.Contains(t, a.srv.Requests()[0].Header.Get("User-Agent"), "shop/1.0")
		_, err = a.srv.PartnerClient().Tokens.Tokenize(t.Context(), &card)
		require.NoError(t, err, "the vendor ID, too")
		assert.Equal(t, payvault.MerchantID(partnerID), a.srv.Cards.All()[1].MerchantID)
		unknown := a.srv.Merchant()
		unknown.APIKey = "unknown"
		_, err = a.srv.ClientFor(unknown).Customers.List(t.Context(), nil)
		require.ErrorIs(t, err, payvault.ErrUnauthorized)
		assert.Panics(t, func() { a.srv.Client(payvault.WithTimeout(-1)) })
	}
}

// TestClientRetriesQuickly checks that the client of a server has short waits, no retry budget and no rate limit after
// status 429.
func TestClientRetriesQuickly(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	for _, status := range []failing{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			client, began := srv.Client(payvault.WithHTTPClient(&http.Client{Transport: status})), time.Now()
			for range 50 {
				var resp payvault.Response
				_, err := client.Customers.List(t.Context(), nil, payvault.WithResponse(&resp))
				require.Error(t, err)
				assert.Equal(t, 4, resp.Attempts)
			}
			assert.LessOrEqual(t, time.Since(began), 150*10*time.Millisecond)
		})
	}
}

// failing is a RoundTripper that answers every request with the same status.
type failing int

func (f failing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(f), Header: http.Header{}, Body: http.NoBody}, nil
}

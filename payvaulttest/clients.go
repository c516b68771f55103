package payvaulttest

import (
	"fmt"
	"time"

	"example.com/payvault"
)

// Merchant returns the first account that is not a partner's: the one that [Server.Client] uses. Without such an
// account it returns the zero Account, and Client panics.
func (s *Server) Merchant() Account { return s.state.accounts.copied().merchant() }

// Partner returns the first partner account: the one that [Server.PartnerClient] uses. Without such an account it
// returns the zero Account, and PartnerClient panics.
func (s *Server) Partner() Account { return s.state.accounts.copied().partner() }

// Accounts returns every account of the server, in the order given.
func (s *Server) Accounts() []Account { return s.state.accounts.copied() }

// Client returns a client that works as the account of [Server.Merchant]. It retries like any client, but quickly: it
// waits a few milliseconds where others wait up to seconds, and ignores overload. The options are applied after the
// emulator's own: [payvault.WithRetryPolicy] with a zero policy gives the waits, the budget of retries and the pace of
// other clients. It panics if they are invalid.
func (s *Server) Client(opts ...payvault.Option) *payvault.Client {
	return s.ClientFor(s.Merchant(), opts...)
}

// PartnerClient returns a client that works as the account of [Server.Partner].
func (s *Server) PartnerClient(opts ...payvault.Option) *payvault.Client {
	return s.ClientFor(s.Partner(), opts...)
}

// ClientFor returns a client that works as any account, known to the server or not.
func (s *Server) ClientFor(account Account, opts ...payvault.Option) *payvault.Client {
	own := []payvault.Option{
		payvault.WithMerchantID(account.MerchantID),
		payvault.WithRetryPolicy(payvault.RetryPolicy{
			MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, IgnoreOverload: true,
		}),
	}
	if account.VendorID != 0 {
		own = append(own, payvault.WithVendorID(account.VendorID))
	}
	if s.cfg.tls {
		own = append(own, payvault.WithHTTPClient(s.HTTPClient()))
	}
	client, err := payvault.NewClient(s.URL, account.APIKey, append(own, opts...)...)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: make a client: %w", err))
	}
	return client
}

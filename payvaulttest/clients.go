package payvaulttest

import (
	"fmt"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/testonly"
)

// Merchant returns the first account that is not a partner. [Server.Client] uses this account. Without such an account
// Merchant returns the zero Account, and Client panics.
func (s *Server) Merchant() Account { return s.state.accounts.copied().merchant() }

// Partner returns the first partner account. [Server.PartnerClient] uses this account. Without such an account Partner
// returns the zero Account, and PartnerClient panics.
func (s *Server) Partner() Account { return s.state.accounts.copied().partner() }

// Accounts returns all accounts of the server, in the order in which they were added.
func (s *Server) Accounts() []Account { return s.state.accounts.copied() }

// Client returns a client for fast tests. It uses the account of [Server.Merchant]. Unlike a client of
// [payvault.NewClient], it has neither a retry budget nor a rate limit that it learns from status 429. It waits at most
// 10 ms before a retry, unless the answer has a Retry-After or an option such as [payvault.WithRateLimit] makes it
// wait. Client panics if an option is invalid, or if all accounts are partner accounts.
//
// To get a client like any other, call [payvault.NewClient] with the URL of the server and the APIKey of an account. If
// the server has [WithTLS], also pass [Server.HTTPClient] to [payvault.WithHTTPClient].
func (s *Server) Client(opts ...payvault.Option) *payvault.Client {
	return s.ClientFor(s.Merchant(), opts...)
}

// PartnerClient returns a client for the account of [Server.Partner]. It panics if there is no partner account.
// Otherwise it is like [Server.Client].
func (s *Server) PartnerClient(opts ...payvault.Option) *payvault.Client {
	return s.ClientFor(s.Partner(), opts...)
}

// ClientFor returns a client for the given account. Otherwise it is like [Server.Client]. The account needs an APIKey
// and a MerchantID. It need not be one of the server's accounts, so a test can also send a wrong key.
func (s *Server) ClientFor(account Account, opts ...payvault.Option) *payvault.Client {
	own := []payvault.Option{
		payvault.WithMerchantID(account.MerchantID),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond}),
		testonly.WithoutOverloadLimits().(payvault.Option), //nolint:errcheck // see package testonly
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

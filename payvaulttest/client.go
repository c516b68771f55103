package payvaulttest

import (
	"fmt"

	"example.com/payvault"
)

// Client returns a client that works as the account of [Server.Merchant]. The options are applied
// after the emulator's own. It panics if they are invalid.
func (s *Server) Client(opts ...payvault.Option) *payvault.Client {
	return s.clientFor(s.Merchant(), opts)
}

// PartnerClient returns a client that works as the account of [Server.Partner].
func (s *Server) PartnerClient(opts ...payvault.Option) *payvault.Client {
	return s.clientFor(s.Partner(), opts)
}

// ClientFor returns a client that works as any account, known to the server or not.
func (s *Server) ClientFor(account Account, opts ...payvault.Option) *payvault.Client {
	return s.clientFor(account, opts)
}

func (s *Server) clientFor(account Account, opts []payvault.Option) *payvault.Client {
	own := []payvault.Option{payvault.WithMerchantID(account.MerchantID)}
	if account.VendorID != 0 {
		own = append(own, payvault.WithVendorID(account.VendorID))
	}
	if s.secure {
		own = append(own, payvault.WithHTTPClient(s.client))
	}
	client, err := payvault.NewClient(s.URL, account.APIKey, append(own, opts...)...)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: make a client: %w", err))
	}
	return client
}

// Package sdk calls the service through payvault.
package sdk

import (
	"context"
	"errors"
	"net/http"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/floor"
)

// Answer is the body of a tokenize answer.
const Answer = floor.Answer

// NewClient returns a client with the defaults of the package, but for the transport.
func NewClient(baseURL string, transport http.RoundTripper, opts ...payvault.Option) (*payvault.Client, error) {
	if transport != nil {
		opts = append(opts, payvault.WithHTTPClient(&http.Client{Transport: transport}))
	}
	return payvault.NewClient(baseURL, client.Key, opts...)
}

// New tokenizes a card, with retries and delivery tracking on.
func New(baseURL string, transport http.RoundTripper) (client.Call, error) {
	return NewWith(baseURL, transport)
}

// NewWith is New with options.
func NewWith(baseURL string, transport http.RoundTripper, opts ...payvault.Option) (client.Call, error) {
	c, err := NewClient(baseURL, transport, opts...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		resp, err := c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
			MerchantID: "4001", CardholderName: "Ada Lovelace", AVSAddress: "12 St James's Square", AVSZip: "10001",
			EmailAddress: []string{"ada@example.com"}, CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230", CVV2: payvault.NewSecret("123"),
		})
		if err == nil && resp.CardID == "" {
			err = errors.New("no card ID")
		}
		return err
	}, nil
}

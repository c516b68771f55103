// Package stripego creates a customer through stripe-go, a call of comparable size.
package stripego

import (
	"context"
	"errors"
	"net/http"

	"github.com/stripe/stripe-go/v85"

	"example.com/payvault/benchmarks/client"
)

// Answer is the body of an answer.
const Answer = `{"id":"cus_NffrFeUfNV2Hib","object":"customer","created":1680893993,"email":"ada@example.com",` +
	`"name":"Ada Lovelace","phone":"+12125550100","description":"first customer","livemode":false}`

// New creates a customer.
func New(baseURL string, transport http.RoundTripper) (client.Call, error) {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(baseURL), HTTPClient: &http.Client{Transport: transport},
		LeveledLogger:   &stripe.LeveledLogger{Level: stripe.LevelError},
		EnableTelemetry: new(false),
	})
	c := stripe.NewClient(client.Key, stripe.WithBackends(&stripe.Backends{API: backend}))
	return func(ctx context.Context) error {
		customer, err := c.V1Customers.Create(ctx, &stripe.CustomerCreateParams{
			Name: stripe.String("Ada Lovelace"), Email: stripe.String("ada@example.com"),
			Phone: stripe.String("+12125550100"), Description: stripe.String("first customer"),
			Address: &stripe.AddressParams{
				Line1: stripe.String("12 St James's Square"), City: stripe.String("London"), PostalCode: stripe.String("10001"),
			},
		})
		if err == nil && customer.ID == "" {
			err = errors.New("no ID")
		}
		return err
	}, nil
}

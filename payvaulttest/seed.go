package payvaulttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Seed is what a server starts with, for [WithSeed]. In JSON its names are those of the fields'
// tags, see [LoadSeed].
type Seed struct {
	Accounts      []Account      `json:"accounts"`      // see [WithAccount]
	Subscriptions []Subscription `json:"subscriptions"` // see [Server.SeedSubscription]
	Invoices      []Invoice      `json:"invoices"`      // see [Server.SeedInvoice]
	Disputes      []Dispute      `json:"disputes"`      // see [Server.SeedDispute]
	Webhooks      []Webhook      `json:"webhooks"`      // see [Server.SeedWebhook]
}

// LoadSeed reads a seed from JSON. Unknown names, states and kinds are an error, and so are an ID that
// is given twice, values that are none of their field, and what follows the JSON value. Whether each
// merchant has an account is for [Start] to see. The seed.json of cmd/payvault-emulator is an example.
func LoadSeed(r io.Reader) (Seed, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var seed Seed
	if err := dec.Decode(&seed); err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Seed{}, errors.New("payvaulttest: there is something after the seed")
	}
	if err := seed.check(anyMerchant); err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	return seed, nil
}

func (s *Server) plant(seed Seed) {
	for _, subscription := range seed.Subscriptions {
		s.SeedSubscription(subscription)
	}
	for _, invoice := range seed.Invoices {
		s.SeedInvoice(invoice)
	}
	for _, dispute := range seed.Disputes {
		s.SeedDispute(dispute)
	}
	for _, webhook := range seed.Webhooks {
		s.SeedWebhook(webhook)
	}
}

package payvaulttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Seed is what a server starts with, for [WithSeed]. In JSON its names are those of the fields'
// tags, see [LoadSeed].
type Seed struct {
	Accounts      []Account      `json:"accounts"`
	Subscriptions []Subscription `json:"subscriptions"`
	Invoices      []Invoice      `json:"invoices"`
	Disputes      []Dispute      `json:"disputes"`
	Webhooks      []Webhook      `json:"webhooks"`
}

// LoadSeed reads a seed from JSON. Unknown names, states and kinds are an error, and so is what follows
// the JSON value. The seed.json of cmd/payvault-emulator is an example.
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
	if err := seed.check(); err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	return seed, nil
}

// check wants states and kinds that exist; what is left out is filled in later.
func (s Seed) check() error {
	for _, subscription := range s.Subscriptions {
		states := []SubscriptionState{"", SubscriptionActive, SubscriptionSuspended, SubscriptionPaused, SubscriptionCanceled}
		if !slices.Contains(states, subscription.State) {
			return fmt.Errorf("subscription %d has an unknown state", subscription.ID)
		}
	}
	for _, invoice := range s.Invoices {
		if !slices.Contains([]InvoiceState{"", InvoiceSaved, InvoiceOutstanding}, invoice.State) {
			return fmt.Errorf("invoice %q has an unknown state", invoice.ID)
		}
	}
	for _, dispute := range s.Disputes {
		if !slices.Contains([]DisputeKind{"", DisputeFirstTime, DisputeRetrieval, DisputeOther}, dispute.Kind) {
			return fmt.Errorf("dispute %d has an unknown kind", dispute.ID)
		}
	}
	return nil
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

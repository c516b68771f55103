package payvaulttest

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// Seed is what a server starts with, for [WithSeed]. In JSON its names are those of the fields'
// tags, see [LoadSeed].
//
// Accounts are given here or with [WithAccount] only. Subscriptions with their transactions, invoices,
// disputes and webhooks are seeded, here or with the Seed methods, since the interface shows no
// operation that creates them. All other records are made by requests and cannot be seeded: saved cards
// (tokenize, or with a customer), customers, payees, applications with their data, and account updater
// requests.
//
// Marshalling a Seed gives a text that LoadSeed reads, except for its accounts: their keys are redacted
// like everywhere, and LoadSeed refuses an account without its key. Give accounts with [WithAccount], or
// write them by hand. The answers that disputes received are no part of a seed either.
type Seed struct {
	Accounts      []Account      `json:"accounts"`      // see [WithAccount]
	Subscriptions []Subscription `json:"subscriptions"` // see [Server.SeedSubscription]
	Invoices      []Invoice      `json:"invoices"`      // see [Server.SeedInvoice]
	Disputes      []Dispute      `json:"disputes"`      // see [Server.SeedDispute]
	Webhooks      []Webhook      `json:"webhooks"`      // see [Server.SeedWebhook]
}

// LoadSeed reads a seed from JSON, as strictly as requests are read: names match exactly and are given
// once. Unknown names, states and kinds are an error, and so are an ID or an API key that is given
// twice, accounts that [Start] would refuse, null (except for a list), values that are none of their
// field, and what follows the JSON value. The error names the list, the index in it (from 0) and the
// field. Whether each merchant has an account is for [Start] to see. The seed.json of
// cmd/payvault-emulator is an example.
func LoadSeed(r io.Reader) (Seed, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	var seed Seed
	err = (shapeWalker{seed: true}).walk("", text, reflect.TypeFor[Seed]())
	if err == nil {
		err = json.Unmarshal(text, &seed)
	}
	if err == nil {
		_, err = newAccounts(seed.Accounts)
	}
	if err == nil {
		err = seed.check(anyMerchant)
	}
	if err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	return seed, nil
}

// plant adds the records of a seed. Those that name an ID go first, so that no ID that is made for
// another is taken from them.
func (s *Server) plant(seed Seed) {
	plantEach(seed.Subscriptions, func(r Subscription) bool { return r.ID != 0 }, s.SeedSubscription)
	plantEach(seed.Invoices, func(r Invoice) bool { return r.ID != "" }, s.SeedInvoice)
	plantEach(seed.Disputes, func(r Dispute) bool { return r.ID != 0 }, s.SeedDispute)
	plantEach(seed.Webhooks, func(r Webhook) bool { return r.ID != "" }, s.SeedWebhook)
}

func plantEach[T any](records []T, named func(T) bool, add func(T) T) {
	for _, first := range []bool{true, false} {
		for _, record := range records {
			if named(record) == first {
				add(record)
			}
		}
	}
}

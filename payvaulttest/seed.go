package payvaulttest

import (
	"cmp"
	"fmt"
	"io"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
)

// Seed is what a server starts with, for [WithSeed], its records with the fields that they have on the wire: see
// [LoadSeed] for JSON.
//
// Accounts are given here or with [WithAccount] only. What is left out of a record is filled in, as by [Store.Seed].
// Marshalling a Seed gives a text that LoadSeed reads, but for the keys of its accounts, which are redacted, the
// answers of its disputes and the data of its applications.
type Seed struct {
	Accounts      []Account      `json:"accounts"` // see [WithAccount]
	Cards         []Card         `json:"cards"`
	Customers     []Customer     `json:"customers"`
	Payees        []Payee        `json:"payees"`
	Applications  []Application  `json:"applications"`
	Subscriptions []Subscription `json:"subscriptions"`
	Invoices      []Invoice      `json:"invoices"`
	Disputes      []Dispute      `json:"disputes"`
	Webhooks      []Webhook      `json:"webhooks"`
}

// LoadSeed reads a seed from JSON: names match exactly and are given once, and unknown ones are an error. Whether
// the service could have the records is for [Start] to see. The seed.json of cmd/payvault-emulator is an example.
func LoadSeed(r io.Reader) (Seed, error) {
	var seed Seed
	if err := json.UnmarshalRead(r, &seed, json.RejectUnknownMembers(true)); err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	return seed, nil
}

// plantAll adds the records of a seed, each ID once.
func plantAll(v Records, seed Seed) error {
	return cmp.Or(
		plant("cards", v.Cards, seed.Cards), // before the customers, who name them
		plant("customers", v.Customers, seed.Customers),
		plant("payees", v.Payees, seed.Payees),
		plant("applications", v.Applications, seed.Applications),
		plant("subscriptions", v.Subscriptions, seed.Subscriptions),
		plant("invoices", v.Invoices, seed.Invoices),
		plant("disputes", v.Disputes, seed.Disputes),
		plant("webhooks", v.Webhooks, seed.Webhooks),
	)
}

func plant[K comparable, V any](list string, records *Store[K, V], seed []V) error {
	for i, record := range seed {
		before := len(records.keys)
		if _, err := records.seed(record); err != nil {
			return fmt.Errorf("%s[%d]: %w", list, i, err)
		}
		if len(records.keys) == before {
			return fmt.Errorf("%s[%d]: there are two with this ID", list, i)
		}
	}
	return nil
}

package payvaulttest

import (
	"cmp"
	"fmt"
	"io"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
)

// Seed has the accounts and records with which a server starts, for [WithSeed]. [LoadSeed] reads a Seed from JSON, with
// the names in the json tags.
//
// The server has the accounts of all its seeds and of all uses of [WithAccount]. Missing values of a record are filled
// in as in [Store.Seed]. A program can write a Seed with [encoding/json.Marshal], but LoadSeed can read the result only
// if the Seed has no accounts, because the API keys are redacted. The result also lacks the responses to disputes and
// the data of applications.
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

// LoadSeed reads a seed from JSON. Names must match exactly and must not be repeated in an object. Unknown names are an
// error. LoadSeed does not check whether the records could exist in the service: [Start] does. The seed.json of
// cmd/payvault-emulator is an example.
func LoadSeed(r io.Reader) (Seed, error) {
	var seed Seed
	if err := json.UnmarshalRead(r, &seed, json.RejectUnknownMembers(true)); err != nil {
		return Seed{}, fmt.Errorf("payvaulttest: read a seed: %w", err)
	}
	return seed, nil
}

// plantAll adds the records of a seed. It refuses an ID that occurs twice.
func plantAll(v Records, seed Seed) error {
	return cmp.Or(
		plant("cards", v.Cards, seed.Cards), // before the customers, because customers have IDs of cards
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

package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"example.com/payvault"
)

// Store holds the records of one resource in the order in which they were created or seeded. It is safe for concurrent
// use. Its exported methods return copies.
type Store[K comparable, V any] struct {
	state *state // its lock is also the lock of the store
	kind  string // name of the kind of records, such as invoice
	rules rules[K, V]
	home  payvault.MerchantID // merchant that is given to seeded records without a merchant ID
	rows  map[K]*V
	keys  []K
}

// The rules of a resource define the records that its store may hold.
type rules[K comparable, V any] interface {
	key(record *V) (K, *payvault.MerchantID) // returns the ID and the owner
	prepare(record *V)                       // fills in missing values
	permits(record *V) error                 // returns an error if no documented answer could contain the record
	detach(record *V)                        // makes a copy independent of its original, and fills in card data
}

func newStore[K comparable, V any](s *state, kind string, r rules[K, V]) *Store[K, V] {
	store := &Store[K, V]{state: s, kind: kind, rules: r, home: s.accounts.home(), rows: map[K]*V{}}
	s.empty = append(s.empty, func() { store.rows, store.keys = map[K]*V{}, nil })
	return store
}

// Seed adds a record, or replaces the record that has the same ID. Seed masks full card numbers and fills in missing
// values. For example, an application without a partner gets the partner of [Server.Partner], and any other record
// without a merchant ID gets the merchant of [Server.Merchant]. Seed returns the stored record. Seed panics if no
// documented answer could contain the record, or if no account may act for its merchant. With [WithSeed], such a record
// makes [Start] return an error.
func (r *Store[K, V]) Seed(record V) V {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	stored, err := r.seed(record)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: seed a %T: %w", record, err))
	}
	return r.view(stored)
}

// Get returns the record with an ID. If there is none, ok is false.
func (r *Store[K, V]) Get(key K) (record V, ok bool) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	if row := r.rows[key]; row != nil {
		return r.view(row), true
	}
	return record, false
}

// All returns every record, in the order in which they were created or seeded.
func (r *Store[K, V]) All() []V {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.all(func(*V) bool { return true })
}

// last returns the newest n records, and the number of all records.
func (r *Store[K, V]) last(n int) ([]V, int) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	var list []V
	for _, key := range r.keys[max(0, len(r.keys)-n):] {
		list = append(list, r.view(r.rows[key]))
	}
	return list, len(r.keys)
}

// The methods below require that the caller holds the lock of the state.

// view returns an independent copy of a record. In a customer, it fills in the current data of the saved cards.
func (r *Store[K, V]) view(row *V) V {
	view := *row
	r.rules.detach(&view)
	return view
}

func (r *Store[K, V]) all(wanted func(*V) bool) []V {
	list := make([]V, 0, len(r.keys))
	for _, key := range r.keys {
		if row := r.rows[key]; wanted(row) {
			list = append(list, r.view(row))
		}
	}
	return list
}

// of returns the record with the key, or nil if the merchant has no such record.
func (r *Store[K, V]) of(merchant payvault.MerchantID, key K) *V {
	if row := r.rows[key]; row != nil {
		if _, owner := r.rules.key(row); *owner == merchant {
			return row
		}
	}
	return nil
}

// find returns the record with the key, or a refusal if the merchant of the call has no such record.
func (r *Store[K, V]) find(c *call, key K) (*V, error) {
	if row := r.of(c.merchant, key); row != nil {
		return row, nil
	}
	return nil, refuse(http.StatusNotFound, "the merchant has no %s with this ID", r.kind)
}

func (r *Store[K, V]) has(key K) bool { return r.rows[key] != nil }

// seed stores a copy of a record. It returns an error if such a record could not exist in the service, or if no
// account may act for its merchant.
func (r *Store[K, V]) seed(record V) (*V, error) {
	_, owner := r.rules.key(&record)
	*owner = cmp.Or(*owner, r.home)
	record = r.view(&record) // fills in the data of the owner's cards
	r.rules.prepare(&record)
	if err := cmp.Or(
		fits(r.state.accounts.serve(*owner), "the merchant is of no account"), // no request could read the record
		r.rules.permits(&record),
	); err != nil {
		return nil, err
	}
	return r.put(record), nil
}

// put fills in missing values of a record and stores it.
func (r *Store[K, V]) put(record V) *V {
	r.rules.prepare(&record)
	key, _ := r.rules.key(&record)
	if !r.has(key) {
		r.keys = append(r.keys, key)
	}
	r.rows[key] = &record
	return &record
}

func (r *Store[K, V]) remove(key K) {
	delete(r.rows, key)
	r.keys = slices.DeleteFunc(r.keys, func(other K) bool { return other == key })
}

// freshNumber sets an id of 0 to a new number that no record of the store has.
func freshNumber[K ~int64, V any](r *Store[K, V], id *K) {
	for *id == 0 {
		if made := K(r.state.ids.number(r.kind)); !r.has(made) {
			*id = made
		}
	}
}

// freshText sets an empty id to a new alphanumeric text that no record of the store has.
func freshText[K ~string, V any](r *Store[K, V], id *K) {
	for *id == "" {
		if made := K(r.state.ids.text(r.kind)); !r.has(made) {
			*id = made
		}
	}
}

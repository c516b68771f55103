package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"example.com/payvault"
)

// Store holds the records of one resource in the order in which they came. It is safe for
// concurrent use, and what it returns are copies.
type Store[K comparable, V any] struct {
	state *state // its lock is that of the store
	kind  string // of record
	rules rules[K, V]
	home  payvault.MerchantID // of records that name no merchant
	rows  map[K]*V
	keys  []K
}

// The rules of a resource say what its store may hold.
type rules[K comparable, V any] interface {
	key(record *V) (K, *payvault.MerchantID) // its ID and its owner
	prepare(record *V)                       // fills in what is left out
	permits(record *V) error                 // says why the service could not have a record
	detach(record *V)                        // makes a copy share nothing with the record, and brings it up to date
}

func newStore[K comparable, V any](s *state, kind string, r rules[K, V]) *Store[K, V] {
	store := &Store[K, V]{state: s, kind: kind, rules: r, home: s.accounts.home(), rows: map[K]*V{}}
	s.empty = append(s.empty, func() { store.rows, store.keys = map[K]*V{}, nil })
	return store
}

// Seed adds a record, or replaces the one with its ID, and returns it as it was stored: what is left out is filled
// in, such as an ID and the merchant of [Server.Merchant], and card numbers that are given in full are masked. It
// panics for a record that no documented answer could show; [WithSeed] does not.
func (r *Store[K, V]) Seed(record V) V {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	stored, err := r.seed(record)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: seed a %T: %w", record, err))
	}
	return r.view(stored)
}

// Get returns the record with an ID.
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

// last returns the newest records, at most n, and the number of all.
func (r *Store[K, V]) last(n int) ([]V, int) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	var list []V
	for _, key := range r.keys[max(0, len(r.keys)-n):] {
		list = append(list, r.view(r.rows[key]))
	}
	return list, len(r.keys)
}

// The caller of the methods below holds the lock.

// view returns a copy for users of the record as it is now.
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

// of returns the record that a merchant has under a key, or nil.
func (r *Store[K, V]) of(merchant payvault.MerchantID, key K) *V {
	if row := r.rows[key]; row != nil {
		if _, owner := r.rules.key(row); *owner == merchant {
			return row
		}
	}
	return nil
}

// find returns the record that the merchant of a call has under a key, or a refusal.
func (r *Store[K, V]) find(c *call, key K) (*V, error) {
	if row := r.of(c.merchant, key); row != nil {
		return row, nil
	}
	return nil, refuse(http.StatusNotFound, "the merchant has no %s with this ID", r.kind)
}

func (r *Store[K, V]) has(key K) bool { return r.rows[key] != nil }

// seed stores a copy of a record, or says why the service could not have it.
func (r *Store[K, V]) seed(record V) (*V, error) {
	_, owner := r.rules.key(&record)
	*owner = cmp.Or(*owner, r.home)
	record = r.view(&record) // with the cards of the owner
	r.rules.prepare(&record)
	if err := cmp.Or(
		fits(r.state.accounts.serve(*owner), "the merchant is of no account"), // no one could ever see it
		r.rules.permits(&record),
	); err != nil {
		return nil, err
	}
	return r.put(record), nil
}

// put fills in what is left out of a record and stores it.
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

// freshNumber fills in an identifier that no record of a store has, unless one is given.
func freshNumber[K ~int64, V any](r *Store[K, V], id *K) {
	for *id == 0 {
		if made := K(r.state.ids.number(r.kind)); !r.has(made) {
			*id = made
		}
	}
}

// freshText is freshNumber for alphanumeric identifiers.
func freshText[K ~string, V any](r *Store[K, V], id *K) {
	for *id == "" {
		if made := K(r.state.ids.text(r.kind)); !r.has(made) {
			*id = made
		}
	}
}

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
	v    *service            // its lock is that of the store
	kind string              // of record
	home payvault.MerchantID // of records that name no merchant
	rows map[K]*V
	keys []K

	as func(*V) record[K]
}

// A record is what a store can hold.
type record[K comparable] interface {
	head() (K, *payvault.MerchantID) // key and owner
	prepare(v *service)              // fills in what is left out
	detach(v *service)               // makes a copy share nothing with the record, and brings it up to date
}

func newStore[K comparable, V any, P interface {
	*V
	record[K]
}](v *service, kind string,
) *Store[K, V] {
	return &Store[K, V]{
		v: v, kind: kind, home: v.accounts.home(), rows: map[K]*V{},
		as: func(row *V) record[K] { return P(row) },
	}
}

// Seed adds a record, or replaces the one with its ID, and returns it as it was stored: what is left out is filled
// in, such as an ID and the merchant of [Server.Merchant], and card numbers that are given in full are masked. It
// panics for a record that no documented answer could show; [WithSeed] does not.
func (r *Store[K, V]) Seed(record V) V {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	stored, err := r.seed(record)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: seed a %T: %w", record, err))
	}
	return r.view(stored)
}

// Get returns the record with an ID.
func (r *Store[K, V]) Get(key K) (record V, ok bool) {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	if row := r.rows[key]; row != nil {
		return r.view(row), true
	}
	return record, false
}

// All returns every record, in the order in which they were created or seeded.
func (r *Store[K, V]) All() []V {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	return r.all(func(*V) bool { return true })
}

// The caller of the methods below holds the lock.

// view is a copy for users, as the record is now.
func (r *Store[K, V]) view(row *V) V {
	view := *row
	r.as(&view).detach(r.v)
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
		if _, owner := r.as(row).head(); *owner == merchant {
			return row
		}
	}
	return nil
}

// find is of for the merchant of a call, and refuses the call if there is no such record.
func (r *Store[K, V]) find(c *call, key K) (*V, error) {
	if row := r.of(c.merchant, key); row != nil {
		return row, nil
	}
	return nil, refuse(http.StatusNotFound, "the merchant has no %s with this ID", r.kind)
}

func (r *Store[K, V]) has(key K) bool { return r.rows[key] != nil }

// seed puts a copy of a record, unless the service could not have it.
func (r *Store[K, V]) seed(record V) (*V, error) {
	_, owner := r.as(&record).head()
	*owner = cmp.Or(*owner, r.home)
	record = r.view(&record) // with the cards of the owner
	r.as(&record).prepare(r.v)
	if err := cmp.Or(
		fits(r.v.accounts.serve(*owner), "the merchant is of no account"), // no one could ever see it
		r.v.permits(&record),
	); err != nil {
		return nil, err
	}
	return r.put(record), nil
}

// put fills a record in and stores it.
func (r *Store[K, V]) put(record V) *V {
	r.as(&record).prepare(r.v)
	key, _ := r.as(&record).head()
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
		if made := K(r.v.ids.number(r.kind)); !r.has(made) {
			*id = made
		}
	}
}

// freshText is freshNumber for alphanumeric identifiers.
func freshText[K ~string, V any](r *Store[K, V], id *K) {
	for *id == "" {
		if made := K(r.v.ids.text(r.kind)); !r.has(made) {
			*id = made
		}
	}
}

package payvaulttest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"example.com/payvault"
)

// Store holds the records of one resource in the order in which they came. It is safe for
// concurrent use, and what it returns are copies.
type Store[K comparable, V any] struct {
	v    *service            // its lock is that of the store
	id   string              // how the wire calls the key
	home payvault.MerchantID // of records that name no merchant
	rows map[K]*V
	keys []K

	key     func(*V) K
	owner   func(*V) *payvault.MerchantID
	prepare func(*V, *service) error // checks a record and fills in what is left out
	view    func(*V, *service) V     // a copy for users
}

// A record is what a store can hold; see Store for its methods.
type record[K comparable, V any] interface {
	*V
	key() K
	owner() *payvault.MerchantID
	prepare(v *service) error
	view(v *service) V
}

func newStore[K comparable, V any, P record[K, V]](v *service, id string) *Store[K, V] {
	return &Store[K, V]{
		v: v, id: id, home: v.accounts.home(), rows: map[K]*V{},
		key:     func(r *V) K { return P(r).key() },
		owner:   func(r *V) *payvault.MerchantID { return P(r).owner() },
		prepare: func(r *V, v *service) error { return P(r).prepare(v) },
		view:    func(r *V, v *service) V { return P(r).view(v) },
	}
}

// Seed adds a record, or replaces the one with its ID, and returns it as it was stored: what is left out is filled
// in, such as an ID and the merchant of [Server.Merchant]. It panics if the service could not have such a record;
// [WithSeed] does not.
func (r *Store[K, V]) Seed(record V) V {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	stored, err := r.put(record)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: seed a %T: %w", record, err))
	}
	return r.view(stored, r.v)
}

// Get returns the record with an ID.
func (r *Store[K, V]) Get(key K) (V, bool) {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	if row := r.rows[key]; row != nil {
		return r.view(row, r.v), true
	}
	var none V
	return none, false
}

// All returns every record, in the order in which they were created or seeded.
func (r *Store[K, V]) All() []V {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	return r.all(func(*V) bool { return true })
}

// The caller of the methods below holds the lock.

func (r *Store[K, V]) all(wanted func(*V) bool) []V {
	list := make([]V, 0, len(r.keys))
	for _, key := range r.keys {
		if row := r.rows[key]; wanted(row) {
			list = append(list, r.view(row, r.v))
		}
	}
	return list
}

// find returns the record that the merchant of a call has under a key.
func (r *Store[K, V]) find(c *call, key K) (*V, error) {
	if row := r.rows[key]; row != nil && *r.owner(row) == c.merchant {
		return row, nil
	}
	return nil, refuse(http.StatusNotFound, "the merchant has nothing with this %s", r.id)
}

func (r *Store[K, V]) has(key K) bool { return r.rows[key] != nil }

// put stores a copy of a record and returns what is stored.
func (r *Store[K, V]) put(record V) (*V, error) {
	record = r.view(&record, r.v)
	owner := r.owner(&record)
	if *owner = cmp.Or(*owner, r.home); !r.v.accounts.serve(*owner) {
		return nil, errors.New("the merchant is of no account") // no one could ever see it
	}
	if err := r.prepare(&record, r.v); err != nil {
		return nil, err
	}
	key := r.key(&record)
	if !r.has(key) {
		r.keys = append(r.keys, key)
	}
	r.rows[key] = &record
	return &record, nil
}

func (r *Store[K, V]) remove(key K) {
	delete(r.rows, key)
	r.keys = slices.DeleteFunc(r.keys, func(other K) bool { return other == key })
}

package payvaulttest

import (
	"fmt"
	"slices"
	"sync"
)

// Store holds the records of one resource in the order in which they came. It is safe for
// concurrent use, and what it returns are copies.
type Store[K comparable, V any] struct {
	mu      *sync.Mutex
	rows    map[K]*V
	keys    []K
	key     func(*V) K
	prepare func(*V) error // checks a record and fills in what is left out
	view    func(*V) V     // a copy for users
}

func newStore[K comparable, V any](
	mu *sync.Mutex, key func(*V) K, prepare func(*V) error, view func(*V) V,
) *Store[K, V] {
	return &Store[K, V]{mu: mu, rows: map[K]*V{}, key: key, prepare: prepare, view: view}
}

// Seed adds a record, or replaces the one with its ID, and returns it as it was stored: what is left out is filled in,
// such as an ID and the merchant of [Server.Merchant]. It panics if the service could not have such a record;
// [WithSeed] does not.
func (r *Store[K, V]) Seed(record V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	stored, err := r.seed(record)
	if err != nil {
		panic(fmt.Errorf("payvaulttest: seed a %T: %w", record, err))
	}
	return stored
}

// Get returns the record with an ID.
func (r *Store[K, V]) Get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row, ok := r.rows[key]
	if !ok {
		var none V
		return none, false
	}
	return r.view(row), true
}

// All returns every record, in the order in which they were created or seeded.
func (r *Store[K, V]) All() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all(func(*V) bool { return true })
}

// last returns the newest records, at most n, and the number of all.
func (r *Store[K, V]) last(n int) ([]V, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []V
	for _, key := range r.keys[max(0, len(r.keys)-n):] {
		list = append(list, r.view(r.rows[key]))
	}
	return list, len(r.keys)
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

// The caller of the methods below holds the lock.

func (r *Store[K, V]) seed(record V) (V, error) {
	record = r.view(&record)
	if err := r.prepare(&record); err != nil {
		return record, err
	}
	return r.view(r.put(record)), nil
}

func (r *Store[K, V]) has(key K) bool { return r.rows[key] != nil }

func (r *Store[K, V]) put(record V) *V {
	key := r.key(&record)
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

package payvaulttest

import "slices"

// A table is a map that remembers the order of insertion.
type table[K comparable, V any] struct {
	index map[K]int
	keys  []K
	rows  []V
}

func newTable[K comparable, V any]() *table[K, V] {
	return &table[K, V]{index: map[K]int{}}
}

func (t *table[K, V]) get(key K) (V, bool) {
	if i, ok := t.index[key]; ok {
		return t.rows[i], true
	}
	var none V
	return none, false
}

func (t *table[K, V]) has(key K) bool {
	_, known := t.index[key]
	return known
}

// put adds a row, or replaces the one with the same key in its place.
func (t *table[K, V]) put(key K, row V) {
	if i, known := t.index[key]; known {
		t.rows[i] = row
		return
	}
	t.index[key] = len(t.rows)
	t.keys = append(t.keys, key)
	t.rows = append(t.rows, row)
}

// remove drops a row; the rows after it move up.
func (t *table[K, V]) remove(key K) {
	i, known := t.index[key]
	if !known {
		return
	}
	delete(t.index, key)
	t.keys = slices.Delete(t.keys, i, i+1)
	t.rows = slices.Delete(t.rows, i, i+1)
	for j, moved := range t.keys[i:] {
		t.index[moved] = i + j
	}
}

// all returns the rows in order of insertion, in a slice of the caller's own.
func (t *table[K, V]) all() []V { return slices.Clone(t.rows) }

// views maps rows to what users may see of them.
func views[R, V any](rows []R, view func(R) V) []V {
	list := make([]V, 0, len(rows))
	for _, row := range rows {
		list = append(list, view(row))
	}
	return list
}

// copies returns the rows by value.
func copies[T any](rows []*T) []T {
	return views(rows, func(row *T) T { return *row })
}

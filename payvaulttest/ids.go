package payvaulttest

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"sync"
)

// ids makes the identifiers of one server. The same seed and the same order of requests give the
// same identifiers.
type ids struct {
	seed uint64
	mu   sync.Mutex
	last map[string]int64
}

func newIDs(seed uint64) *ids {
	return &ids{seed: seed, last: map[string]int64{}}
}

func (g *ids) next(kind string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last[kind]++
	return g.last[kind]
}

// number makes an integer identifier: they count up from a start that depends on kind and seed.
func (g *ids) number(kind string) int64 {
	n := g.next(kind)
	sum := g.sum(kind, 0)
	start := int64(sum[0])<<16 | int64(sum[1])<<8 | int64(sum[2])
	return 10_000_000 + start + n
}

// text makes an alphanumeric identifier of sixteen characters.
func (g *ids) text(kind string) string {
	sum := g.sum(kind, g.next(kind))
	return base32.StdEncoding.EncodeToString(sum[:10])
}

// freshNumber makes an integer identifier that no record of the table has; those of seeds are anyone's
// choice. The caller holds the lock of the table, so that the order of identifiers is that of the records.
func freshNumber[K ~int64, V any](g *ids, kind string, records *table[K, V]) K {
	for {
		if id := K(g.number(kind)); !records.has(id) {
			return id
		}
	}
}

// freshText is freshNumber for alphanumeric identifiers.
func freshText[K ~string, V any](g *ids, kind string, records *table[K, V]) K {
	for {
		if id := K(g.text(kind)); !records.has(id) {
			return id
		}
	}
}

func (g *ids) sum(kind string, n int64) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", g.seed, kind, n))
}

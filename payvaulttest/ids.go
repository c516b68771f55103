package payvaulttest

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
)

// ids makes the identifiers of one server. The same seed and the same order of requests give the
// same identifiers. Its user holds the lock of the service.
type ids struct {
	seed uint64
	last map[string]int64
}

func newIDs(seed uint64) *ids { return &ids{seed: seed, last: map[string]int64{}} }

func (g *ids) next(kind string) int64 {
	g.last[kind]++
	return g.last[kind]
}

// number makes an integer identifier: they count up from a start that depends on kind and seed.
func (g *ids) number(kind string) int64 {
	n := g.next(kind)
	sum := g.sum(kind, 0)
	return 10_000_000 + int64(sum[0])<<16 + int64(sum[1])<<8 + int64(sum[2]) + n
}

// text makes an alphanumeric identifier of sixteen characters.
func (g *ids) text(kind string) string {
	sum := g.sum(kind, g.next(kind))
	return base32.StdEncoding.EncodeToString(sum[:10])
}

func (g *ids) sum(kind string, n int64) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", g.seed, kind, n))
}

// freshNumber keeps an identifier that is given, or makes one that no record has.
func freshNumber[K ~int64, V any](g *ids, kind string, records *Store[K, V], given K) K {
	for given == 0 {
		if id := K(g.number(kind)); !records.has(id) {
			given = id
		}
	}
	return given
}

// freshText is freshNumber for alphanumeric identifiers.
func freshText[K ~string, V any](g *ids, kind string, records *Store[K, V], given K) K {
	for given == "" {
		if id := K(g.text(kind)); !records.has(id) {
			given = id
		}
	}
	return given
}

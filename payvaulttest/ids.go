package payvaulttest

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
)

// ids makes the identifiers of one server. The same seed and the same order of requests give the same identifiers. The
// caller of a method must hold the lock of the state.
type ids struct {
	seed uint64
	last map[string]int64
}

// restart makes the identifiers start again, as in a new server.
func (g *ids) restart() { clear(g.last) }

func newIDs(seed uint64) *ids { return &ids{seed: seed, last: map[string]int64{}} }

// number returns an integer identifier. The first identifier depends on kind and seed. Each later identifier of the
// same kind is higher.
func (g *ids) number(kind string) int64 {
	g.last[kind]++
	sum := g.sum(kind, 0)
	return 10_000_000 + int64(sum[0])<<16 + int64(sum[1])<<8 + int64(sum[2]) + g.last[kind]
}

// text returns an alphanumeric identifier of sixteen characters.
func (g *ids) text(kind string) string {
	g.last[kind]++
	sum := g.sum(kind, g.last[kind])
	return base32.StdEncoding.EncodeToString(sum[:10])
}

func (g *ids) sum(kind string, n int64) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", g.seed, kind, n))
}

package payvaulttest

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
)

// ids makes the identifiers of one server. They count up from a start that depends on the seed. Its user holds the
// lock of the service.
type ids struct{ last int64 }

func newIDs(seed uint64) *ids {
	sum := sha256.Sum256(strconv.AppendUint(nil, seed, 10))
	return &ids{10_000_000 + int64(binary.BigEndian.Uint32(sum[:]))}
}

func (g *ids) number() int64 {
	g.last++
	return g.last
}

// text makes an alphanumeric identifier of sixteen characters.
func (g *ids) text() string {
	sum := sha256.Sum256(strconv.AppendInt(nil, g.number(), 10))
	return base32.StdEncoding.EncodeToString(sum[:10])
}

// freshNumber fills in an identifier that no record of a store has, unless one is given.
func freshNumber[K ~int64, V any](r *Store[K, V], id *K) {
	for *id == 0 {
		if made := K(r.v.ids.number()); !r.has(made) {
			*id = made
		}
	}
}

// freshText is freshNumber for alphanumeric identifiers.
func freshText[K ~string, V any](r *Store[K, V], id *K) {
	for *id == "" {
		if made := K(r.v.ids.text()); !r.has(made) {
			*id = made
		}
	}
}

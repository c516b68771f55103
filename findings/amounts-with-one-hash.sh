#!/usr/bin/env bash
# Guess:        Two orders with different amounts have different hashes, and a changelog names a changed amount.
# What happens: hashstructure and r3labs/diff look only at exported fields, and a decimal.Decimal has none. Orders over
#               10.10 and 99.99 have one hash, and the changelog is empty. Neither reports an error. go-cmp uses the
#               Equal method and shows the difference.
# Versions:     mitchellh/hashstructure v2.0.2, r3labs/diff v3.0.2, google/go-cmp v0.7.0, shopspring/decimal v1.4.0, Go
#               1.26.8
# Who meets it: Programs that make an idempotency key or a cache key of an order, and audit logs of changes.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/mitchellh/hashstructure/v2@v2.0.2 github.com/r3labs/diff/v3@v3.0.2 github.com/google/go-cmp@v0.7.0 \
	github.com/shopspring/decimal@v1.4.0 <<'GO'
package main

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/mitchellh/hashstructure/v2"
	"github.com/r3labs/diff/v3"
	"github.com/shopspring/decimal"
)

type order struct {
	Customer string
	Amount   decimal.Decimal
}

func hash(o order) uint64 {
	sum, err := hashstructure.Hash(o, hashstructure.FormatV2, nil)
	if err != nil {
		panic(err)
	}
	return sum
}

func main() {
	small := order{"jane", decimal.RequireFromString("10.10")}
	large := order{"jane", decimal.RequireFromString("99.99")}
	other := order{"john", small.Amount}
	fmt.Println("hashstructure: another amount, same hash:", hash(small) == hash(large))
	fmt.Println("hashstructure: another customer, same hash:", hash(small) == hash(other))
	for _, changed := range []order{large, other} {
		changes, err := diff.Diff(small, changed)
		fmt.Printf("r3labs/diff: %d changes, %v; go-cmp: equal %t\n", len(changes), err, cmp.Equal(small, changed))
	}
}
GO
seen_is <<'END'
hashstructure: another amount, same hash: true
hashstructure: another customer, same hash: false
r3labs/diff: 0 changes, <nil>; go-cmp: equal false
r3labs/diff: 1 changes, <nil>; go-cmp: equal false
END

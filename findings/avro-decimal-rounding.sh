#!/usr/bin/env bash
# Guess:        Avro's decimal with scale 2 refuses 10.999, or rounds it to 11.00.
# What happens: hamba/avro rounds it down and reports no error: 10.999 becomes 10.99, and -10.999 becomes -11.00. So a
#               payment and its refund no longer cancel each other.
# Versions:     hamba/avro v2.31.0, Go 1.26.8
# Who meets it: Producers of payment events who divide a fee or a tax into a *big.Rat.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/hamba/avro/v2@v2.31.0 <<'GO'
package main

import (
	"fmt"
	"math/big"

	"github.com/hamba/avro/v2"
)

func main() {
	schema := avro.MustParse(`{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}`)
	for _, text := range []string{"10.99", "10.999", "-10.999"} {
		amount, _ := new(big.Rat).SetString(text)
		encoded, err := avro.Marshal(schema, amount)
		if err != nil {
			panic(err)
		}
		var read *big.Rat
		err = avro.Unmarshal(schema, encoded, &read)
		fmt.Println(text, "is read as", read.FloatString(3), err)
	}
}
GO
seen_is <<'END'
10.99 is read as 10.990 <nil>
10.999 is read as 10.990 <nil>
-10.999 is read as -11.000 <nil>
END

#!/usr/bin/env bash
# Guess:        go-money keeps whole cents in an int64, so its JSON is exact and a fraction of a cent is refused.
# What happens: UnmarshalJSON goes through float64. 10.99 is read as 10 cents without an error, and 9007199254740993 is
#               one less. A quoted number is refused.
# Versions:     Rhymond/go-money v1.0.15, Go 1.26.8
# Who meets it: Services that read {"amount":10.99,"currency":"USD"} from a partner that sends units instead of cents.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/Rhymond/go-money@v1.0.15 <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/Rhymond/go-money"
)

func main() {
	for _, amount := range []string{`1099`, `10.99`, `9007199254740993`, `"1099"`} {
		var read money.Money
		err := json.Unmarshal([]byte(`{"currency":"USD","amount":`+amount+`}`), &read)
		fmt.Printf("%s: %d cents, %v\n", amount, read.Amount(), err)
	}
}
GO
seen_is <<'END'
1099: 1099 cents, <nil>
10.99: 10 cents, <nil>
9007199254740993: 9007199254740992 cents, <nil>
"1099": 0 cents, invalid json unmarshal
END

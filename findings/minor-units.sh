#!/usr/bin/env bash
# Guess:        Intl.NumberFormat and golang.org/x/text/currency know how many decimals a currency has by ISO 4217.
# What happens: Their source is the CLDR, which counts the decimals that are in use. For many currencies that is 0 where
#               ISO 4217 says 2 or 3, and the two disagree with each other. Cents computed from it are wrong by 100 or
#               1000.
# Versions:     Node 20 (ICU 78.2; another ICU has other digits), currency-codes 2.2.0, golang.org/x/text v0.44.0, Go
#               1.26.8
# Who meets it: Code that turns an amount into minor units for a service, for any currency.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
npm_install currency-codes@2.2.0
cat >digits.js <<'JS'
const iso = require("currency-codes");
for (const code of ["USD", "JPY", "KWD", "HUF", "RSD", "IQD", "COP", "PKR"]) {
  const intl = new Intl.NumberFormat("en", { style: "currency", currency: code }).resolvedOptions().maximumFractionDigits;
  console.log(code, "ISO 4217:", iso.code(code).digits, "Intl:", intl);
}
JS
node digits.js 2>&1 | tee -a seen
go_run golang.org/x/text@v0.44.0 <<'GO'
package main

import (
	"fmt"

	"golang.org/x/text/currency"
)

func main() {
	for _, code := range []string{"USD", "JPY", "KWD", "HUF", "RSD", "IQD", "COP", "PKR"} {
		digits, _ := currency.Standard.Rounding(currency.MustParseISO(code))
		fmt.Println(code, "x/text:", digits)
	}
}
GO
seen_is <<'END'
USD ISO 4217: 2 Intl: 2
JPY ISO 4217: 0 Intl: 0
KWD ISO 4217: 3 Intl: 3
HUF ISO 4217: 2 Intl: 0
RSD ISO 4217: 2 Intl: 2
IQD ISO 4217: 3 Intl: 0
COP ISO 4217: 2 Intl: 0
PKR ISO 4217: 2 Intl: 0
USD x/text: 2
JPY x/text: 0
KWD x/text: 3
HUF x/text: 2
RSD x/text: 0
IQD x/text: 0
COP x/text: 0
PKR x/text: 0
END

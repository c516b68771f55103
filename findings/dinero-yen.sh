#!/usr/bin/env bash
# Guess:        Dinero({ amount: 1000, currency: 'JPY' }) is 1000 yen: amounts are in the currency's minor unit.
# What happens: Version 1 of dinero.js takes two decimals for every currency. It is 10 yen, and with KWD 1000 fils are
#               10 dinars instead of 1. The option precision has to be given with each amount.
# Versions:     dinero.js 1.9.1, Node 20
# Who meets it: Web shops that show the amounts of a payment service.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
npm_install dinero.js@1.9.1
cat >yen.js <<'JS'
const dinero = require("dinero.js");
for (const currency of ["USD", "JPY", "KWD"]) console.log(currency, dinero({ amount: 1000, currency }).toUnit());
console.log("JPY with precision 0:", dinero({ amount: 1000, currency: "JPY", precision: 0 }).toUnit());
JS
node yen.js 2>&1 | tee seen
seen_is <<'END'
USD 10
JPY 10
KWD 10
JPY with precision 0: 1000
END

#!/usr/bin/env bash
# Guess:        A library for amounts rounds 0.125 and -0.125 alike, so that a refund cancels its payment.
# What happens: currency.js, lodash, accounting and numeral round a half up towards plus infinity, as Math.round does:
#               0.13 and -0.12. A cent is left. big.js, decimal.js and bignumber.js round both away from zero.
# Versions:     currency.js 2.0.4, lodash 4.18.1, accounting 0.4.1, numeral 2.0.6, big.js 7.0.1, decimal.js 10.6.0,
#               bignumber.js 11.1.5, Node 20
# Who meets it: Web shops that compute taxes and fees of refunds as negative amounts.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
npm_install currency.js@2.0.4 lodash@4.18.1 accounting@0.4.1 numeral@2.0.6 big.js@7.0.1 decimal.js@10.6.0 bignumber.js@11.1.5
cat >round.cjs <<'JS'
const currency = require('currency.js')
const lodash = require('lodash')
const accounting = require('accounting')
const numeral = require('numeral')
const Big = require('big.js')
const Decimal = require('decimal.js')
const BigNumber = require('bignumber.js')

const rounding = {
  'currency.js': v => currency(v).toString(),
  lodash: v => lodash.round(v, 2).toFixed(2),
  accounting: v => accounting.toFixed(v, 2),
  numeral: v => numeral(v).format('0.00'),
  'big.js': v => new Big(v).round(2).toFixed(2),
  'decimal.js': v => new Decimal(v).toDecimalPlaces(2).toFixed(2),
  'bignumber.js': v => new BigNumber(v).decimalPlaces(2).toFixed(2),
}
for (const [name, round] of Object.entries(rounding)) console.log(name, round(0.125), round(-0.125))
console.log('currency.js, 15 % of 10.50:', String(currency(10.5).multiply(0.15)), String(currency(-10.5).multiply(0.15)))
JS
node round.cjs 2>&1 | tee seen
seen_is <<'END'
currency.js 0.13 -0.12
lodash 0.13 -0.12
accounting 0.13 -0.12
numeral 0.13 -0.12
big.js 0.13 -0.13
decimal.js 0.13 -0.13
bignumber.js 0.13 -0.13
currency.js, 15 % of 10.50: 1.58 -1.57
END

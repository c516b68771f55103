#!/usr/bin/env bash
# Guess:        A card library for Node accepts the UnionPay test numbers of payment services, and names the brand.
# What happens: validator.js refuses a number of 19 digits whose check digit is right. creditcards calls UnionPay
#               Maestro. card-validator gets both right.
# Versions:     validator 13.15.35, creditcards 5.0.0, card-validator 10.0.4, Node 20
# Who meets it: Forms that check a number before it is tokenized, and rules that go by the brand.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
npm_install validator@13.15.35 creditcards@5.0.0 card-validator@10.0.4
cat >check.cjs <<'JS'
const isCreditCard = require('validator').isCreditCard
const creditcards = require('creditcards').card
const cardValidator = require('card-validator')

for (const number of ['6200000000000005', '6205500000000000004']) {
  const checked = cardValidator.number(number)
  console.log(number.length, 'digits: validator.js', isCreditCard(number),
    '| creditcards', creditcards.isValid(number), creditcards.type(number),
    '| card-validator', checked.isValid, checked.card.type)
}
JS
node check.cjs 2>&1 | tee seen
seen_is <<'END'
16 digits: validator.js true | creditcards true Maestro | card-validator true unionpay
19 digits: validator.js false | creditcards true Maestro | card-validator true unionpay
END

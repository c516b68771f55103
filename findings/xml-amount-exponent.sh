#!/usr/bin/env bash
# Guess:        encoding/xml writes a float64 like encoding/json: 1234567.89.
# What happens: From a million on it writes an exponent: 1.23456789e+06. The amounts of ISO 20022 are xs:decimal, which
#               has no exponents. moov-io/iso20022 declares amounts as float64 and so writes them this way.
# Versions:     Go 1.26.8, moov-io/iso20022 v0.2.1
# Who meets it: Whoever writes payment orders (pain, pacs), SOAP or UBL invoices from Go structs.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/moov-io/iso20022@v0.2.1 <<'GO'
package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"

	"github.com/moov-io/iso20022/pkg/pain_v11"
)

type amount struct {
	XMLName xml.Name `xml:"InstdAmt" json:"-"`
	Value   float64  `xml:",chardata"`
}

func main() {
	for _, value := range []float64{999999.99, 1000000, 1234567.89} {
		asXML, _ := xml.Marshal(amount{Value: value})
		asJSON, _ := json.Marshal(amount{Value: value})
		fmt.Println(string(asXML), string(asJSON))
	}
	order, err := xml.Marshal(pain_v11.ActiveOrHistoricCurrencyAndAmount{Value: 1234567.89, Ccy: "EUR"})
	fmt.Println(string(order), err)
}
GO
seen_is <<'END'
<InstdAmt>999999.99</InstdAmt> {"Value":999999.99}
<InstdAmt>1e+06</InstdAmt> {"Value":1000000}
<InstdAmt>1.23456789e+06</InstdAmt> {"Value":1234567.89}
<ActiveOrHistoricCurrencyAndAmount Ccy="EUR">1.23456789e+06</ActiveOrHistoricCurrencyAndAmount> <nil>
END

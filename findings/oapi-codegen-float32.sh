#!/usr/bin/env bash
# Guess:        oapi-codegen makes a float64 of an OpenAPI property with "type: number" and no format.
# What happens: It makes a float32, which has 7 digits. 250000.01 is written back as 250000.02.
# Versions:     oapi-codegen v2.8.2, Go 1.26.8
# Who meets it: Whoever generates a client for a service that documents amounts as numbers.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
cat >openapi.yaml <<'YAML'
openapi: 3.0.3
info: {title: payments, version: "1"}
paths: {}
components:
  schemas:
    Payment:
      type: object
      required: [amount]
      properties:
        amount: {type: number}
YAML
export GOWORK=off GOTOOLCHAIN=go1.26.8 GOFLAGS=-mod=mod
GOBIN=$dir/bin go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 2>log || { cat log >&2; exit 1; }
mkdir program
bin/oapi-codegen -generate types,skip-prune -package main openapi.yaml >program/types.go
go_run <<'GO'
package main

import (
	"encoding/json"
	"fmt"
)

func main() {
	var payment Payment
	err := json.Unmarshal([]byte(`{"amount":250000.01}`), &payment)
	written, _ := json.Marshal(payment)
	fmt.Printf("%T %v %s\n", payment.Amount, err, written)
}
GO
seen_is <<'END'
float32 <nil> {"amount":250000.02}
END

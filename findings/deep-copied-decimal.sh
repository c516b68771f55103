#!/usr/bin/env bash
# Guess:        A deep copy of a struct with a decimal.Decimal has the same amount.
# What happens: mohae/deepcopy gives 0: it leaves out the fields that are not exported and says nothing. jinzhu/copier
#               keeps the amount.
# Versions:     mohae/deepcopy v0.0.0-20170929034955-c48cc78d4826, jinzhu/copier v0.4.0, shopspring/decimal v1.4.0, Go
#               1.26.8
# Who meets it: Code that copies an order before it changes it, and tools that depend on the copier.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/shopspring/decimal@v1.4.0 github.com/mohae/deepcopy@v0.0.0-20170929034955-c48cc78d4826 github.com/jinzhu/copier@v0.4.0 <<'GO'
package main

import (
	"fmt"

	"github.com/jinzhu/copier"
	"github.com/mohae/deepcopy"
	"github.com/shopspring/decimal"
)

type order struct{ Amount decimal.Decimal }

func main() {
	original := order{decimal.RequireFromString("10.10")}
	fmt.Println("mohae/deepcopy:", deepcopy.Copy(original).(order).Amount)
	var copied order
	err := copier.CopyWithOption(&copied, &original, copier.Option{DeepCopy: true})
	fmt.Println("jinzhu/copier:", copied.Amount, err)
}
GO
seen_is <<'END'
mohae/deepcopy: 0
jinzhu/copier: 10.1 <nil>
END

#!/usr/bin/env bash
# Guess:        An encoder that cannot see into a decimal.Decimal uses its MarshalText, MarshalBinary or Value, or
#               fails.
# What happens: MongoDB's BSON and DynamoDB's attributevalue write an empty document and read it back as 0, without an
#               error. So they do with *big.Int. CBOR and gob keep the amount.
# Versions:     mongo-driver v2.10.0, feature/dynamodb/attributevalue v1.21.21, fxamacker/cbor v2.10.0,
#               shopspring/decimal v1.4.0, Go 1.26.8
# Who meets it: Whoever stores the amounts of payments in MongoDB or DynamoDB.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/shopspring/decimal@v1.4.0 github.com/fxamacker/cbor/v2@v2.10.0 go.mongodb.org/mongo-driver/v2@v2.10.0 \
	github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue@v1.21.21 <<'GO'
package main

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/big"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/fxamacker/cbor/v2"
	"github.com/shopspring/decimal"
	"go.mongodb.org/mongo-driver/v2/bson"
)

type payment struct {
	Amount decimal.Decimal
	Cents  *big.Int
}

func main() {
	paid := payment{decimal.RequireFromString("10.10"), big.NewInt(1010)}

	var read payment
	document, err := bson.Marshal(paid)
	fmt.Println("BSON:", bson.Raw(document), err, bson.Unmarshal(document, &read), read.Amount, read.Cents)

	read = payment{}
	item, err := attributevalue.MarshalMap(paid)
	fmt.Printf("DynamoDB: %T %T %v %v %v %v\n", item["Amount"], item["Cents"], err, attributevalue.UnmarshalMap(item, &read), read.Amount, read.Cents)

	read = payment{}
	encoded, err := cbor.Marshal(paid)
	fmt.Println("CBOR:", err, cbor.Unmarshal(encoded, &read), read.Amount, read.Cents)

	read = payment{}
	var stream bytes.Buffer
	fmt.Println("gob:", gob.NewEncoder(&stream).Encode(paid), gob.NewDecoder(&stream).Decode(&read), read.Amount, read.Cents)
}
GO
seen_is <<'END'
BSON: {"amount": {},"cents": {}} <nil> <nil> 0 0
DynamoDB: *types.AttributeValueMemberM *types.AttributeValueMemberM <nil> <nil> 0 0
CBOR: <nil> <nil> 10.1 1010
gob: <nil> <nil> 10.1 1010
END

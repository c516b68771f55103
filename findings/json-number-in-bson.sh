#!/usr/bin/env bash
# Guess:        MongoDB's BSON keeps a json.Number as text, as Go keeps it, or writes a Decimal128.
# What happens: It writes a double. 10.10 becomes 10.1, and 12345678901234567.89 becomes 12345678901234568. DynamoDB's
#               attributevalue writes the digits as they are.
# Versions:     mongo-driver v2.10.0, feature/dynamodb/attributevalue v1.21.21, Go 1.26.8
# Who meets it: Services that decode JSON with UseNumber to keep amounts exact and store the result.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run go.mongodb.org/mongo-driver/v2@v2.10.0 github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue@v1.21.21 <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func main() {
	for _, amount := range []json.Number{"10.10", "12345678901234567.89"} {
		document, err := bson.Marshal(map[string]json.Number{"amount": amount})
		fmt.Println("BSON:", bson.Raw(document), err)
		item, err := attributevalue.Marshal(amount)
		fmt.Println("DynamoDB:", item.(*types.AttributeValueMemberN).Value, err)
	}
}
GO
seen_is <<'END'
BSON: {"amount": {"$numberDouble":"10.1"}} <nil>
DynamoDB: 10.10 <nil>
BSON: {"amount": {"$numberDouble":"1.2345678901234568E+16"}} <nil>
DynamoDB: 12345678901234567.89 <nil>
END

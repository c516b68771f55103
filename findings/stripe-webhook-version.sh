#!/usr/bin/env bash
# Guess:        stripe-go's webhook.ConstructEvent fails only if the signature or its time is wrong.
# What happens: It also fails for a good signature when the account sends events of another API version than the one
#               that this release of the library was made for. The event is genuine; a handler that answers 400 loses
#               it.
# Versions:     stripe-go v85.0.0, Go 1.26.8
# Who meets it: Whoever updates the library, or an account's API version, before the other.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/stripe/stripe-go/v85@v85.0.0 <<'GO'
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"
)

func main() {
	const secret = "test secret"
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload:   []byte(`{"id":"evt_1","object":"event","api_version":"2024-06-20","type":"charge.refunded","data":{"object":{}}}`),
		Secret:    secret,
		Timestamp: time.Now(),
	})
	fmt.Println("ValidatePayload:", webhook.ValidatePayload(signed.Payload, signed.Header, secret))
	_, err := webhook.ConstructEvent(signed.Payload, signed.Header, secret)
	fmt.Printf("ConstructEvent: an error: %t, about the signature: %t\n", err != nil, errors.Is(err, webhook.ErrNoValidSignature))
}
GO
seen_is <<'END'
ValidatePayload: <nil>
ConstructEvent: an error: true, about the signature: false
END

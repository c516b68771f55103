#!/usr/bin/env bash
# Guess:        stripe-go with MaxNetworkRetries = 2 repeats a POST after 409, 500 and 503, and when the server asks for
#               it with Stripe-Should-Retry: true. The comments in its code say so.
# What happens: It repeats them only if the body is not JSON. An error in JSON, as the service sends it, is returned
#               after one request, whatever its status and whatever the header says (its code makes one exception: 429
#               with lock_timeout). The 503 of a proxy in HTML is repeated, and so is a 429 in HTML. Retry-After is not
#               heeded.
# Versions:     stripe-go v85.0.0 (the same with v82.5.1), Go 1.26.8
# Who meets it: Programs that leave the retries of payments to the library.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/stripe/stripe-go/v85@v85.0.0 <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/stripe/stripe-go/v85"
)

func main() {
	for _, body := range []string{`{"error":{"type":"api_error","message":"busy"}}`, "<html>busy</html>"} {
		for _, status := range []int{409, 429, 500, 503} {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Stripe-Should-Retry", "true")
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			}))
			start := time.Now()
			_, err := stripe.NewClient("key", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
				URL: &server.URL, MaxNetworkRetries: stripe.Int64(2), LeveledLogger: new(stripe.LeveledLogger),
			}))).V1Refunds.Create(context.Background(), &stripe.RefundCreateParams{PaymentIntent: stripe.String("pi_1")})
			fmt.Printf("%d with %.6s: an error: %t, requests: %d, waited 30 s: %t\n",
				status, body, err != nil, requests.Load(), time.Since(start) > 30*time.Second)
			server.Close()
		}
	}
}
GO
seen_is <<'END'
409 with {"erro: an error: true, requests: 1, waited 30 s: false
429 with {"erro: an error: true, requests: 1, waited 30 s: false
500 with {"erro: an error: true, requests: 1, waited 30 s: false
503 with {"erro: an error: true, requests: 1, waited 30 s: false
409 with <html>: an error: true, requests: 3, waited 30 s: false
429 with <html>: an error: true, requests: 3, waited 30 s: false
500 with <html>: an error: true, requests: 3, waited 30 s: false
503 with <html>: an error: true, requests: 3, waited 30 s: false
END

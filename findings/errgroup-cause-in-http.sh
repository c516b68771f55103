#!/usr/bin/env bash
# Guess:        When one function of an errgroup fails, the HTTP requests of the others end with context.Canceled.
# What happens: Over HTTP/1.1 they end with the error of the function that failed. errors.Is finds "card declined" in
#               the error of a request that was never answered, and does not find context.Canceled. Over HTTP/2 they end
#               with context.Canceled. So the answer of errors.Is depends on what the server and the client negotiated.
# Versions:     Go 1.26.8 (the same with 1.27.4), golang.org/x/sync v0.22.0
# Who meets it: Programs that pay several invoices in an errgroup and sort the errors with errors.Is.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run golang.org/x/sync@v0.22.0 <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"golang.org/x/sync/errgroup"
)

var errDeclined = errors.New("card declined")

func main() {
	for _, http2 := range []bool{false, true} {
		arrived := make(chan bool)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- true
			<-r.Context().Done()
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()

		var unanswered error
		group, ctx := errgroup.WithContext(context.Background())
		group.Go(func() error {
			request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
			_, unanswered = server.Client().Do(request)
			return unanswered
		})
		group.Go(func() error {
			<-arrived
			return errDeclined
		})
		_ = group.Wait()
		fmt.Printf("HTTP/2 %t: error of the other request: %v; is Canceled: %t; is declined: %t\n", http2,
			errors.Unwrap(unanswered), errors.Is(unanswered, context.Canceled), errors.Is(unanswered, errDeclined))
		server.Close()
	}
}
GO
seen_is <<'END'
HTTP/2 false: error of the other request: card declined; is Canceled: false; is declined: true
HTTP/2 true: error of the other request: context canceled; is Canceled: true; is declined: false
END

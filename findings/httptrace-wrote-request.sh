#!/usr/bin/env bash
# Guess:        When httptrace calls WroteRequest without an error, the request has been written to the connection.
# What happens: Over HTTP/1.1 a request that fits into the buffer of 4 KB has not been written at all by then. The error
#               of the write comes later and WroteRequest never learns of it. WroteHeaders is early in the same way.
# Versions:     Go 1.26.8 (standard library only, golang.org/toolchain@v0.0.1-go1.26.8)
# Who meets it: Clients that tell "not sent" from "unknown outcome" by these hooks, and traces that measure with them.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
)

// broken is a connection that nothing can be written to.
type broken struct{ net.Conn }

func (broken) Write([]byte) (int, error) { return 0, errors.New("cable cut") }

func main() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return broken{conn}, err
		},
	}}
	for _, size := range []int{100, 100_000} {
		trace := &httptrace.ClientTrace{
			WroteHeaders: func() { fmt.Printf("body of %d: WroteHeaders\n", size) },
			WroteRequest: func(info httptrace.WroteRequestInfo) { fmt.Printf("body of %d: WroteRequest, Err %v\n", size, info.Err) },
		}
		ctx := httptrace.WithClientTrace(context.Background(), trace)
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(strings.Repeat("x", size)))
		_, err := client.Do(request)
		fmt.Printf("body of %d: Do, %v\n", size, errors.Unwrap(err))
	}
}
GO
seen_is <<'END'
body of 100: WroteHeaders
body of 100: WroteRequest, Err <nil>
body of 100: Do, cable cut
body of 100000: WroteHeaders
body of 100000: WroteRequest, Err cable cut
body of 100000: Do, cable cut
END

#!/usr/bin/env bash
# Guess:        http.Client.Do returns when the deadline of the request's context has passed.
# What happens: Over HTTP/1.1 it returns only when the Read of the request's body returns that is under way. Here the
#               deadline is 200 ms and the Read takes 3 s. Over HTTP/2 it returns at the deadline.
# Versions:     Go 1.26.8 (standard library only, golang.org/toolchain@v0.0.1-go1.26.8)
# Who meets it: Uploads whose body comes from a pipe, a database or another server.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"
)

type slowReader struct{}

func (slowReader) Read([]byte) (int, error) {
	time.Sleep(3 * time.Second)
	return 0, io.EOF
}

func main() {
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		server.EnableHTTP2 = http2
		server.StartTLS()
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, slowReader{})
		start := time.Now()
		_, err := server.Client().Do(request)
		fmt.Printf("HTTP/2 %t: %v; later than 2 s: %t\n", http2, errors.Unwrap(err), time.Since(start) > 2*time.Second)
		cancel()
		server.Close()
	}
}
GO
seen_is <<'END'
HTTP/2 false: context deadline exceeded; later than 2 s: true
HTTP/2 true: context deadline exceeded; later than 2 s: false
END

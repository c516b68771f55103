#!/usr/bin/env bash
# Guess:        net/http waits for "100 Continue" whenever the request has the header Expect: 100-continue.
# What happens: It waits only if the request's ProtoMajor and ProtoMinor say 1.1. http.NewRequest sets them. A request
#               made as a struct literal has zeros: the header is sent, and the body follows at once.
# Versions:     Go 1.26.8 (standard library only, golang.org/toolchain@v0.0.1-go1.26.8)
# Who meets it: Code that builds http.Request values by hand and wants an early 401 before an upload.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run <<'GO'
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// counted counts what the transport takes from a body.
type counted struct {
	io.Reader
	taken *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.taken.Add(int64(n))
	return n, err
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Print("the server got Expect: ", r.Header.Get("Expect"))
		time.Sleep(200 * time.Millisecond) // what a look-up of the key may take
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	address, _ := url.Parse(server.URL)
	for _, minor := range []int{1, 0} {
		taken := new(atomic.Int64)
		request := &http.Request{
			Method: http.MethodPost, URL: address, ProtoMajor: minor, ProtoMinor: minor,
			Header:        http.Header{"Expect": {"100-continue"}},
			Body:          io.NopCloser(counted{strings.NewReader("1,000 cards"), taken}),
			ContentLength: int64(len("1,000 cards")),
		}
		response, err := (&http.Transport{ExpectContinueTimeout: 10 * time.Second}).RoundTrip(request)
		if err != nil {
			panic(err)
		}
		fmt.Printf("; protocol %d.%d: %d; bytes of the body taken: %d\n", minor, minor, response.StatusCode, taken.Load())
	}
}
GO
seen_is <<'END'
the server got Expect: 100-continue; protocol 1.1: 401; bytes of the body taken: 0
the server got Expect: 100-continue; protocol 0.0: 401; bytes of the body taken: 11
END

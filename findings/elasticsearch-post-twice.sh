#!/usr/bin/env bash
# Guess:        Elasticsearch's Go client repeats only what is safe to repeat. A document without an ID of its own is
#               sent once.
# What happens: The client's transport repeats every request, up to 3 times by default, after a lost answer and after
#               502, 503 and 504. The server has received the document twice, and the caller sees one 201.
#               Elasticsearch would store two documents with IDs of their own.
# Versions:     elastic-transport-go v8.9.0 (the client go-elasticsearch v8.19.7 did the same), Go 1.26.8
# Who meets it: Audit logs and events of payments in Elasticsearch. DisableRetry, or an ID for each document, forbids
#               it.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/elastic/elastic-transport-go/v8@v8.9.0 <<'GO'
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
)

// index stores one document. The server receives it and then fails once, with the status or by closing the connection.
func index(status int, config elastictransport.Config) {
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received = append(received, string(body))
		switch {
		case len(received) > 1:
			w.WriteHeader(http.StatusCreated)
		case status == 0:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(status)
		}
	}))
	defer server.Close()
	address, _ := url.Parse(server.URL)
	config.URLs = []*url.URL{address}
	client, err := elastictransport.New(config)
	if err != nil {
		panic(err)
	}
	request, _ := http.NewRequest(http.MethodPost, "/payments/_doc", strings.NewReader(`{"amount":10}`))
	response, err := client.Perform(request)
	if err != nil {
		fmt.Println("first answer", status, "received", len(received), "error", err != nil)
		return
	}
	_ = response.Body.Close()
	fmt.Println("first answer", status, "received", received, response.StatusCode)
}

func main() {
	index(0, elastictransport.Config{})
	index(http.StatusBadGateway, elastictransport.Config{})
	index(http.StatusInternalServerError, elastictransport.Config{})
	index(0, elastictransport.Config{DisableRetry: true})
}
GO
seen_is <<'END'
first answer 0 received [{"amount":10} {"amount":10}] 201
first answer 502 received [{"amount":10} {"amount":10}] 201
first answer 500 received [{"amount":10}] 500
first answer 0 received 1 error true
END

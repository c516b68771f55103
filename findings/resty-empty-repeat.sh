#!/usr/bin/env bash
# Guess:        A resty request that is repeated has the same body as the first try, or fails because it cannot be
#               repeated.
# What happens: A body given as an io.Reader is empty from the second try on. A service that accepts an empty POST
#               answers 200, and resty reports success. A []byte is sent whole each time.
# Versions:     go-resty v2.17.2, Go 1.26.8
# Who meets it: Whoever adds SetRetryCount to a client whose bodies are readers.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/go-resty/resty/v2@v2.17.2 <<'GO'
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/go-resty/resty/v2"
)

func main() {
	for _, body := range []any{strings.NewReader("amount=10"), []byte("amount=10")} {
		var bodies []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			received, _ := io.ReadAll(r.Body)
			if bodies = append(bodies, string(received)); len(bodies) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		client := resty.New().SetRetryCount(1).SetRetryWaitTime(time.Millisecond).
			AddRetryCondition(func(r *resty.Response, _ error) bool { return r.StatusCode() == http.StatusServiceUnavailable })
		response, err := client.R().SetBody(body).Post(server.URL)
		fmt.Printf("%T: the server received %q; %d, %v\n", body, bodies, response.StatusCode(), err)
		server.Close()
	}
}
GO
seen_is <<'END'
*strings.Reader: the server received ["amount=10" ""]; 200, <nil>
[]uint8: the server received ["amount=10" "amount=10"]; 200, <nil>
END

#!/usr/bin/env bash
# Guess:        A proxy sends a POST to the server once.
# What happens: Varnish sends a POST without a body a second time if a kept connection closes without an answer. The
#               client sees one 200. A POST with a body goes once and ends in 503.
# Versions:     Varnish 7.1.1 of Debian 12, Go 1.26.8 for the server, installed by apt-get
# Who meets it: Services with actions that need no body: POST /invoices/17/send, /subscriptions/17/cancel, /refund.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian varnish curl
chmod 755 "$dir"
port=$((20000 + RANDOM % 10000))
mkdir server
cat >server/main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(conn)
	}
}

// serve answers the first request of a connection and closes it after the second.
func serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for first := true; ; first = false {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		fmt.Println("the server received", request.Method, request.URL.Path)
		if !first {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}
GO
(cd server && GOWORK=off GOTOOLCHAIN=go1.26.8 go build -o run main.go)
server/run 127.0.0.1:$port >>seen &
servers+=($!)
cat >default.vcl <<VCL
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "$port"; }
VCL
varnishd -F -n "$dir/work" -a 127.0.0.1:$((port + 1)) -T none -f "$dir/default.vcl" >log 2>&1 &
servers+=($!)
post() { echo "the client got $(curl -sS -o /dev/null -w '%{http_code}' "$@")" >>seen; }
url=http://127.0.0.1:$((port + 1))
curl -sS --retry 20 --retry-connrefused --retry-delay 1 "$url/warm" >warm 2>&1
post -X POST -H 'Content-Length: 0' $url/send
post -d amount=10 $url/pay
cat seen
seen_is <<'END'
the server received GET /warm
the server received POST /send
the server received POST /send
the client got 200
the server received POST /pay
the client got 503
END

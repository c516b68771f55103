#!/usr/bin/env bash
# Guess:        net/http sends a POST again only if the server said that it was not processed (GOAWAY, REFUSED_STREAM).
# What happens: With Go 1.26 it also sends it again after RST_STREAM with PROTOCOL_ERROR, although the server had the
#               whole request and RFC 9113 does not say that such a stream was not processed. The caller sees one
#               success. Go 1.27 sends it once and returns the error.
# Versions:     Go 1.26.8 and 1.27.4, golang.org/x/net v0.61.0 (only for the server's frames)
# Who meets it: Clients of a service behind an HTTP/2 proxy that resets streams after the request was passed on.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
cat >main.go <<'GO'
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http2"
)

var complete atomic.Int32 // requests that the server has received to their end

func main() {
	certified := httptest.NewUnstartedServer(nil)
	certified.EnableHTTP2 = true
	certified.StartTLS()
	defer certified.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	release := strings.Join(strings.Split(runtime.Version(), ".")[:2], ".")
	for _, body := range []string{"", `{"amount":"10.10"}`} {
		complete.Store(0)
		response, err := certified.Client().Post("https://"+listener.Addr().String(), "application/json", strings.NewReader(body))
		fmt.Printf("%s, body %q: received %d times, success: %t\n", release, body, complete.Load(), err == nil && response.StatusCode == 200)
	}
}

// serve resets the first two requests after they are complete, and answers the third.
func serve(conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			ended = frame.StreamEnded()
		}
		if !ended {
			continue
		}
		if id := frame.Header().StreamID; complete.Add(1) < 3 {
			_ = framer.WriteRSTStream(id, http2.ErrCodeProtocol)
		} else {
			const status200 = "\x88"
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(status200), EndStream: true, EndHeaders: true})
		}
	}
}
GO
release=go1.26.8 go_run golang.org/x/net@v0.61.0 <main.go
release=go1.27.4 go_run golang.org/x/net@v0.61.0 <main.go
seen_is <<'END'
go1.26, body "": received 3 times, success: true
go1.26, body "{\"amount\":\"10.10\"}": received 3 times, success: true
go1.27, body "": received 1 times, success: false
go1.27, body "{\"amount\":\"10.10\"}": received 1 times, success: false
END

#!/usr/bin/env bash
# Guess:        go-redis repeats a command after a lost answer only if a second one changes nothing. INCRBY is sent
#               once.
# What happens: It repeats every command, up to 3 times by default. The server has added 10 twice; the caller sees one
#               success.
# Versions:     go-redis v9.23.0, miniredis v2.40.0, Go 1.26.8
# Who meets it: Spending limits, ledgers and rate limits that count in Redis. MaxRetries: -1 forbids it.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/redis/go-redis/v9@v9.23.0 github.com/alicebob/miniredis/v2@v2.40.0 <<'GO'
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// passOn joins a client with the server. It cuts them when the answer to the first INCRBY is under way.
func passOn(client, server net.Conn, lost *atomic.Bool) {
	var cut atomic.Bool
	go func() {
		defer client.Close()
		answer := make([]byte, 4096)
		for {
			n, err := server.Read(answer)
			if err != nil || cut.Load() {
				return
			}
			_, _ = client.Write(answer[:n])
		}
	}()
	defer server.Close()
	request := make([]byte, 4096)
	for {
		n, err := client.Read(request)
		if err != nil {
			return
		}
		if bytes.Contains(bytes.ToLower(request[:n]), []byte("incrby")) && lost.CompareAndSwap(false, true) {
			cut.Store(true)
		}
		_, _ = server.Write(request[:n])
	}
}

func main() {
	for _, retries := range []int{0, -1} { // 0 stands for the default, 3
		server := miniredis.NewMiniRedis()
		if err := server.StartAddr("127.0.0.1:0"); err != nil {
			panic(err)
		}
		proxy, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		go func() {
			var lost atomic.Bool
			for {
				client, err := proxy.Accept()
				if err != nil {
					return
				}
				conn, err := net.Dial("tcp", server.Addr())
				if err != nil {
					panic(err)
				}
				go passOn(client, conn, &lost)
			}
		}()
		client := redis.NewClient(&redis.Options{Addr: proxy.Addr().String(), MaxRetries: retries})
		err = client.IncrBy(context.Background(), "spent", 10).Err()
		spent, _ := server.Get("spent")
		fmt.Printf("MaxRetries %d: success: %t, spent: %s\n", retries, err == nil, spent)
		client.Close()
		proxy.Close()
		server.Close()
	}
}
GO
seen_is <<'END'
MaxRetries 0: success: true, spent: 20
MaxRetries -1: success: false, spent: 10
END

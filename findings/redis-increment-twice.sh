#!/usr/bin/env bash
# Guess:        go-redis repeats a command after a lost answer only if a second one changes nothing. INCRBY is sent once.
# What happens: It repeats every command, up to 3 times by default. The server has added 10 twice; the caller sees one
#               success. rueidis returns the error.
# Versions:     go-redis v9.23.0, rueidis v1.0.79, miniredis v2.40.0, Go 1.26.8
# Who meets it: Spending limits, ledgers and rate limits that count in Redis. MaxRetries: -1 forbids it.
# Date:         2026-11-28
source "$(dirname "$0")/lib.sh"
go_run github.com/redis/go-redis/v9@v9.23.0 github.com/redis/rueidis@v1.0.79 github.com/alicebob/miniredis/v2@v2.40.0 <<'GO'
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// lossy listens in front of server and closes the first connection that carries an INCRBY when its answer comes.
func lossy(server string) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	lost := false
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				panic(err)
			}
			request, answer := make([]byte, 4096), make([]byte, 4096)
			go func() {
				defer client.Close()
				defer upstream.Close()
				for {
					n, err := client.Read(request)
					if err != nil {
						return
					}
					_, _ = upstream.Write(request[:n])
					m, err := upstream.Read(answer)
					if err == io.EOF || bytes.Contains(request[:n], []byte("INCRBY")) && !lost {
						lost = true
						return
					}
					_, _ = client.Write(answer[:m])
				}
			}()
		}
	}()
	return listener
}

func main() {
	ctx := context.Background()
	for _, name := range []string{"go-redis", "rueidis"} {
		server := miniredis.NewMiniRedis()
		if err := server.StartAddr("127.0.0.1:0"); err != nil {
			panic(err)
		}
		proxy := lossy(server.Addr())
		var err error
		if name == "go-redis" {
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr().String(), Protocol: 2, DisableIdentity: true})
			err = client.IncrBy(ctx, "spent", 10).Err()
			client.Close()
		} else {
			client, failed := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{proxy.Addr().String()}, AlwaysRESP2: true, DisableCache: true, ForceSingleClient: true,
			})
			if failed != nil {
				panic(failed)
			}
			err = client.Do(ctx, client.B().Incrby().Key("spent").Increment(10).Build()).Error()
			client.Close()
		}
		spent, _ := server.Get("spent")
		fmt.Printf("%s: success: %t, spent: %s\n", name, err == nil, spent)
		proxy.Close()
		server.Close()
	}
}
GO
seen_is <<'END'
go-redis: success: true, spent: 20
rueidis: success: false, spent: 10
END

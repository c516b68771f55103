// Command payvault-emulator runs the emulator of the payment service as a program, for tests and
// examples in any language:
//
//	payvault-emulator [-addr 127.0.0.1:8700] [-base-path /v1] [-seed file.json] [-allow-remote] [-inspect 127.0.0.1:8701]
//
// It starts with two merchants, a partner, subscriptions with transactions, invoices, disputes and a
// webhook, or with what the seed file holds, and prints their IDs and keys. The file has the form of
// the seed.json beside this source. Each request and each delivery to a webhook is logged to standard
// error, without secrets. SIGINT and SIGTERM stop it.
//
// A script builds it first and stops it by its process ID, which is the first line that it prints; the
// last line, with the address, tells that it is ready:
//
//	go build -o payvault-emulator ./cmd/payvault-emulator
//	./payvault-emulator -addr 127.0.0.1:8700 & emulator=$!
//	# ...
//	kill "$emulator"; wait "$emulator"
//
// The process that go run starts is not the emulator but its parent. It does not pass SIGTERM on: the
// emulator would keep running, and its port with it. Ctrl+C in a terminal reaches both.
//
// With -rate 20 it permits 20 requests a second and answers 429 to the others; with -retry-after 1 it says when to come
// back. -h shows all flags.
//
// With -inspect it serves a page, on loopback only, that shows requests as they come, the records, masked,
// and the faults that wait, and that injects faults. All of it can be had as JSON, too; -h shows how.
//
// One thing can be had from Go only, with package payvaulttest: the event transaction_status_updated, which occurs in
// SetTransactionStatus and TriggerEvent. The account updater's events occur here, too.
//
// What it does is documented at package payvaulttest.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(runUntilSignal(os.Args[1:], os.Stdout, os.Stderr))
}

func runUntilSignal(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args, stdout, stderr)
}

// Command payvault-emulator runs the emulator of the payment service as a program, for tests and
// examples in any language:
//
//	payvault-emulator [-addr 127.0.0.1:8700] [-base-path /v1] [-seed file.json] [-allow-remote] [-inspect 127.0.0.1:8701]
//
// It starts with two merchants, a partner, subscriptions with transactions, invoices, disputes and a webhook, or with
// the records of the seed file. It prints their IDs and keys. The seed file has the form of seed.json in the directory
// of this source. Each request and each delivery to a webhook is logged to standard error, without secrets. SIGINT and
// SIGTERM stop the emulator.
//
// A script builds it first and stops it by its process ID, which is the first printed line. The last line has the
// address, and means that the emulator is ready:
//
//	go build -o payvault-emulator ./cmd/payvault-emulator
//	./payvault-emulator -addr 127.0.0.1:8700 & emulator=$!
//	# ...
//	kill "$emulator"; wait "$emulator"
//
// go run starts the emulator as a child process. It does not pass SIGTERM on: the emulator would keep running, and keep
// its port. Ctrl+C in a terminal reaches both processes.
//
// With -rate 20 it permits 20 requests a second and answers 429 to the others. With -retry-after 1 these answers have a
// Retry-After of one second. -h shows all flags.
//
// With -inspect it serves a page, on loopback only. The page shows the newest requests, the records, masked, and the
// faults that wait for requests. It also injects faults. The same is available as JSON; -h shows how.
//
// Only Go code can let the event transaction_status_updated occur, with SetTransactionStatus and TriggerEvent of
// package payvaulttest. The account updater's events occur here too.
//
// The rest of its behavior is documented in package payvaulttest.
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

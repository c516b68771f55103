// Command payvault-emulator runs the emulator of the payment service as a program, for tests and examples in any
// language:
//
//	payvault-emulator [-addr 127.0.0.1:8700] [-base-path /v1] [-seed file.json] [-allow-remote] [-inspect 127.0.0.1:8701]
//
// It starts with two merchants, a partner, subscriptions with transactions, invoices, disputes and a webhook, or with
// the records of the seed file. It prints the IDs of the records and the API keys of the accounts. The seed file has
// the format of seed.json, which is in the same directory as this source file. On standard error, the emulator logs
// each request and each delivery to a webhook, without secrets. SIGINT and SIGTERM stop the emulator.
//
// A script must build the emulator first, and stop it by its process ID. The first line that the emulator prints has
// the process ID. The last line has the address, and is printed when the emulator is ready:
//
//	go build -o payvault-emulator ./cmd/payvault-emulator
//	./payvault-emulator -addr 127.0.0.1:8700 & emulator=$!
//	# ...
//	kill "$emulator"; wait "$emulator"
//
// Do not use go run in a script. go run starts the emulator as a child process and does not pass SIGTERM on, so the
// emulator would keep running and keep its port. In a terminal, Ctrl+C stops both processes.
//
// With -rate 20 the emulator permits 20 requests a second, and answers 429 to all further requests. With -retry-after 1
// these answers have a Retry-After header of one second. -h shows all flags.
//
// With -inspect the emulator serves a web page, on loopback only. The page shows the newest requests, the records with
// masked card numbers, and the faults that wait for requests. A click on the page injects a fault. A JSON API can do
// all of this; -h shows how to use it.
//
// Only Go code can trigger the event transaction_status_updated, with SetTransactionStatus or TriggerEvent of package
// payvaulttest. The events of the account updater occur when the emulator accepts an account updater request.
//
// Package payvaulttest documents everything else that the emulator does.
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

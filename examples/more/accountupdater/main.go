// Accountupdater submits the cards of a CSV file to the account updater, 100 to a request and a few requests at a time.
//
//	accountupdater -generate cards.csv     # 100,000 made-up cards: card_number,exp_date,card_id
//	accountupdater -cards cards.csv        # submit them; the same again goes on where it stopped
//
// It can be stopped at any time, by ctrl-C, kill -9 or a power cut, and never submits a batch twice: before a batch is sent, the
// checkpoint (cards.csv.checkpoint) says so on disk. A batch that was being sent when the program died may have
// arrived. The next run reports it and leaves it alone, until somebody has looked the outcome up:
//
//	accountupdater -cards cards.csv -accepted 17 -resend 18,19
//
// The promise is that of a checkpoint: keep it with its file. It is that of these cards, this base URL and this merchant, and
// refuses others, and a second run at the same time. A copy of the file under another name has a checkpoint of its own.
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without them the program runs offline, and
// nothing of the run is kept: the cards, made-up ones without -cards, go to an emulator that ends with the program, and the
// checkpoint is in a temporary directory. To try an interruption, give it a payvault-emulator of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
)

// generated is how many cards a generated file has.
const generated = 100_000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "accountupdater:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if o.generate != "" {
		return generate(o.generate, generated)
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	if client == nil {
		return submitOffline(ctx, o, out)
	}
	if o.cards == "" {
		return errors.New("-cards is required: a sandbox gets no made-up cards")
	}
	o.service, o.merchant = getenv("PAYVAULT_BASE_URL"), getenv("PAYVAULT_MERCHANT_ID")
	return submitFile(ctx, client, o, out)
}

// submitOffline submits to an emulator, and leaves no checkpoint: what the emulator has accepted, no service has.
func submitOffline(ctx context.Context, o options, out io.Writer) (err error) {
	if o.checkpoint != "" || len(o.settled) > 0 {
		return errors.New("-checkpoint, -accepted and -resend need a sandbox: nothing is kept of an offline run")
	}
	srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
	defer srv.Close()
	dir, err := os.MkdirTemp("", "payvault-accountupdater-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.service, o.checkpoint = srv.URL, filepath.Join(dir, "checkpoint")
	if o.cards == "" {
		o.cards = filepath.Join(dir, "cards.csv")
		if err := generate(o.cards, generated); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "Offline: the cards go to an emulator, and nothing of the run is kept.")
	return submitFile(ctx, srv.Client(), o, out)
}

// Accountupdater submits the cards of a CSV file to the account updater, 100 to a request and a few requests at a time.
//
//	accountupdater -generate cards.csv     # 100,000 made-up cards: card_number,exp_date,card_id
//	accountupdater -cards cards.csv        # submit them; the same again goes on where it stopped
//
// It can be stopped at any time, by ctrl-C, kill -9 or a power cut, and never submits a batch twice: the journal beside
// the file (cards.csv.journal) has each batch before it is sent. One that was being sent when the program died may have
// arrived: each run reports it and none sends it again. Package sqlpayvault says how somebody settles it.
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without them the program runs offline:
// the cards, made-up ones without -cards, go to an emulator that ends with the program, and so does the journal.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/examples/more/internal/progress"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // ctrl-C waits for the requests in flight, and a second one does not
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "accountupdater:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("accountupdater", flag.ContinueOnError)
	cards := flags.String("cards", "", "CSV file of the cards to submit")
	made := flags.String("generate", "", "write a CSV file of made-up cards, and do nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	} else if *made != "" {
		return generate(*made, 100_000)
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	if client != nil {
		if *cards == "" {
			return errors.New("-cards is required: a sandbox gets no made-up cards")
		}
		job := "cards of merchant " + getenv("PAYVAULT_MERCHANT_ID") + " at " + getenv("PAYVAULT_BASE_URL")
		return submit(ctx, client, *cards, *cards+".journal", job, out)
	}
	fmt.Fprintln(out, "Offline: the cards go to an emulator, and nothing of the run is kept.")
	srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
	defer srv.Close()
	dir, err := os.MkdirTemp("", "payvault-accountupdater-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if *cards == "" {
		*cards = filepath.Join(dir, "cards.csv")
		if err := generate(*cards, 100_000); err != nil {
			return err
		}
	}
	return submit(ctx, srv.Client(), *cards, filepath.Join(dir, "journal"), "cards", out)
}

// submit submits what the journal does not know yet of a file of cards.
func submit(ctx context.Context, client *payvault.Client, cards, file, job string, out io.Writer) (err error) {
	total, err := countCards(cards)
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()

	sending, halt := context.WithCancelCause(ctx) // when it ends, nothing more is sent
	defer halt(nil)
	calls, fail := context.WithCancelCause(context.WithoutCancel(ctx)) // when it ends, the requests in flight do too
	defer fail(nil)
	over := func() error { return context.Cause(sending) }
	options := &payvault.SubmitAllOptions{Concurrency: 8, Journal: until{over, journal}, Job: job}
	bar := progress.New(out, "cards", total)
	accepted, unknown := 0, 0
	for batch := range client.AccountUpdater.SubmitAll(calls, readCards(cards, fail), options) {
		switch n := batch.End - batch.Start; {
		case batch.Err == nil:
			accepted += n
		case notSent(batch.Err), payvault.SafeToRetry(batch.Err), errors.Is(batch.Err, payvault.ErrUnauthorized),
			errors.Is(batch.Err, payvault.ErrForbidden): // the next ones would fail in the same way
			err = cmp.Or(err, batch.Err)
			halt(err)
			continue
		case errors.Is(batch.Err, payvault.ErrOutcomeUnknown):
			unknown += n
			fallthrough
		default: // the first line of the file is the heading
			fmt.Fprintf(out, "lines %d to %d: %v\n", batch.Start+2, batch.End+1, batch.Err)
		}
		bar.Add(batch.End - batch.Start)
	}
	bar.Stop()
	fmt.Fprintf(out, "%d of %d cards are accepted, and %d may have arrived.\n", accepted, total, unknown)
	if err == nil && accepted < total {
		err = errors.New("not all cards are accepted")
	}
	return err
}

func notSent(err error) bool {
	e, ok := errors.AsType[*payvault.Error](err)
	return ok && e.Delivery == payvault.NotSent
}

// until is a journal that begins nothing more when the walk is over, so that what is in flight is not cut off.
type until struct {
	over func() error
	payvault.Journal
}

func (u until) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	if err := u.over(); err != nil {
		return payvault.BatchState{}, err
	}
	return u.Journal.Begin(ctx, job, batch)
}

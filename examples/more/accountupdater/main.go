// Accountupdater submits the cards of a CSV file to the account updater, 100 to a request and a few requests at a time.
//
//	accountupdater -cards cards.csv   # its first line is card_number,exp_date,card_id
//
// It can be stopped at any time, by ctrl-C, kill -9 or a power cut; the same again goes on where it stopped, and never
// submits a batch twice: the journal beside the file (cards.csv.journal) has each batch before it is sent. One that was
// being sent when the program died may have arrived: each run reports it and none sends it again. Package sqlpayvault
// says how somebody settles it. Cards that are new or corrected go into a file of another name.
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without them the cards, made-up ones
// without -cards, go to an emulator that ends with the program, and so does the journal.
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
	"strings"
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

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("accountupdater", flag.ContinueOnError)
	cards := flags.String("cards", "", "CSV file of the cards to submit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	url := strings.TrimRight(getenv("PAYVAULT_BASE_URL"), "/")
	job := "cards of merchant " + getenv("PAYVAULT_MERCHANT_ID") + " at " + url
	journal := *cards + ".journal"
	if client == nil {
		fmt.Fprintln(out, "Offline: the cards go to an emulator, and nothing of the run is kept.")
		srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
		defer srv.Close()
		dir, err := os.MkdirTemp("", "payvault-accountupdater-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of a temporary directory
		if client, journal = srv.Client(), filepath.Join(dir, "journal"); *cards == "" {
			*cards = filepath.Join(dir, "cards.csv")
			err = generate(*cards, 100_000)
		}
		if err != nil {
			return err
		}
	} else if *cards == "" {
		return errors.New("-cards is required: a sandbox gets no made-up cards")
	}
	return submit(ctx, client, *cards, journal, job, out)
}

// submit submits what the journal does not know yet of a file of cards.
func submit(ctx context.Context, client *payvault.Client, cards, file, job string, out io.Writer) (err error) {
	total, sum, err := countCards(cards)
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if err := sameFile(ctx, journal, job, sum); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	options := &payvault.SubmitAllOptions{Concurrency: 8, Journal: journal, Job: job}
	bar := progress.New(out, "cards", total)
	accepted, unknown := 0, 0
	for batch := range client.AccountUpdater.SubmitAll(ctx, readCards(cards, halt), options) {
		e, _ := errors.AsType[*payvault.Error](batch.Err)
		switch n := batch.End - batch.Start; {
		case e == nil:
			accepted += n
		case e.Delivery == payvault.NotSent, payvault.SafeToRetry(e),
			errors.Is(e, payvault.ErrUnauthorized), errors.Is(e, payvault.ErrForbidden): // as would be the next ones
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

// sameFile has the journal keep the sum of the file, as a job of its own, and refuses another file.
func sameFile(ctx context.Context, journal payvault.Journal, job, sum string) error {
	known, err := journal.Begin(ctx, job+", file", 0)
	if err != nil || known.Outcome != nil && known.Outcome.Message == sum {
		return err
	}
	if known.Outcome != nil {
		return errors.New("it is of other cards: put those that are new or corrected into a file of another name")
	}
	return journal.End(ctx, job+", file", 0, payvault.BatchOutcome{Status: payvault.BatchAccepted, Message: sum})
}

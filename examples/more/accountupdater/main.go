// Accountupdater submits the cards of a CSV file to the account updater, 100 to a request and a few requests at a time.
//
//	accountupdater -cards cards.csv   # its first line is card_number,exp_date,card_id
//
// It can be stopped at any time, by ctrl-C, kill -9 or a power cut; the same again goes on and submits no batch twice,
// by the journal beside the file. What was being sent then may have arrived: runs report it and do not send it again.
// While the service is down, each run leaves more batches to look up.
//
// A file that has changed is refused: to the journal, which holds no cards, all of them would be new. So new and
// corrected cards go into another file. Remove the journal to submit all cards of a file again.
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without them it takes no -cards: made-up
// ones go to an emulator that ends with the program, and so does the journal.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
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
	cards := flag.String("cards", "", "CSV file of the cards to submit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // ctrl-C waits for the requests in flight, and a second one does not
	if err := run(ctx, *cards, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "accountupdater:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cards string, getenv func(string) string, out io.Writer) error {
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	target := "merchant " + getenv("PAYVAULT_MERCHANT_ID") + " at " + strings.TrimRight(getenv("PAYVAULT_BASE_URL"), "/")
	if client == nil {
		if err := sandbox.Offline(out, cards != ""); err != nil {
			return err
		}
		srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
		defer srv.Close()
		dir, err := os.MkdirTemp("", "payvault-accountupdater-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of a temporary directory
		client, cards = srv.Client(), filepath.Join(dir, "cards.csv")
		if err := generate(cards, 100_000); err != nil {
			return err
		}
	} else if cards == "" {
		return errors.New("-cards is required: a sandbox gets no made-up cards")
	} else if cards, err = filepath.EvalSymlinks(cards); err != nil { // a link and its file are one job
		return err
	}
	return submit(ctx, client, cards, target, out)
}

// submit submits what the journal does not know yet of a file of cards.
func submit(ctx context.Context, client *payvault.Client, cards, target string, out io.Writer) (err error) {
	total, sum := 0, ""
	for range readCards(cards, func(all string, failed error) { sum, err = all, failed }) {
		total++
	}
	if err != nil || total == 0 {
		return cmp.Or(err, errors.New(cards+" has no cards"))
	}
	file := cards + ".journal"
	if _, missing := os.Stat(file); missing == nil {
		fmt.Fprintln(out, "Going on with an earlier run. If it was killed, this waits 5 s, until its lease has ended.")
	}
	journal, err := sqlpayvault.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	options := &payvault.SubmitAllOptions{Concurrency: 8, Journal: journal, Job: target + "@" + sum}
	if err := onlyJob(ctx, file, options.Job); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	ctx, halt := context.WithCancelCause(ctx)
	stream := readCards(cards, func(now string, failed error) {
		if failed != nil || now != sum { // what has come would be taken for all cards
			halt(cmp.Or(failed, errors.New(cards+" has changed")))
		}
	})
	bar := progress.New(out, "cards", total)
	accepted, unknown, left := 0, 0, total
	for batch := range client.AccountUpdater.SubmitAll(ctx, stream, options) {
		n := batch.End - batch.Start
		switch batch.Status {
		case payvault.BatchAccepted:
			accepted += n
		case payvault.BatchNotSent: // as would be the next ones
			halt(batch.Err)
			continue
		case payvault.BatchUnknown:
			unknown += n
			fallthrough
		default: // lines would be wrong where a card has none, or two
			fmt.Fprintf(out, "cards %d to %d: %v\n", batch.Start+1, batch.End, batch.Err)
		}
		left -= n
		bar.Add(n)
	}
	bar.Stop()
	fmt.Fprintf(out, "%d of %d cards are accepted, %d are refused, %d may have arrived, %d are left to the next run.\n",
		accepted, total, total-accepted-unknown-left, unknown, left)
	if err = context.Cause(ctx); err == nil && accepted < total {
		err = errors.New("not all cards are accepted")
	}
	return err
}

// onlyJob has the file of a journal keep the name of its job, and refuses another, whose cards would all be sent. The
// driver is that of sqlpayvault.
func onlyJob(ctx context.Context, file, job string) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // each statement is a commit
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS only_job (name TEXT NOT NULL)`); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO only_job SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM only_job)`, job)
	if err != nil {
		return err
	}
	var known string
	if err := db.QueryRowContext(ctx, `SELECT name FROM only_job`).Scan(&known); err != nil || known == job {
		return err
	}
	target, _, _ := strings.Cut(known, "@")
	return fmt.Errorf("it is of %s and of the file as it was then: put new cards into another file", target)
}

package sqlpayvault_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// This program submits cards. It can be killed at any time and started again.
func Example() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // this is an example

	run := func(ctx context.Context) error {
		journal, err := sqlpayvault.Open(ctx, filepath.Join(dir, "cards.journal"))
		if err != nil {
			return err
		}
		options := &payvault.SubmitAllOptions{Journal: journal, Job: "cards of November"}
		earlier, unknown := 0, 0
		var failed error
		for batch, err := range srv.Client().AccountUpdater.SubmitAll(ctx, stream(1000), options) {
			switch {
			case err != nil: // SubmitAll has stopped: a later run goes on
				failed = err
			case batch.Status == payvault.BatchUnknown:
				unknown++ // look the batch up by hand
			case batch.Err != nil:
				failed = batch.Err
			case batch.FromJournal:
				earlier++
			}
		}
		fmt.Println(earlier, "of an earlier run,", unknown, "unknown")
		return errors.Join(failed, journal.Close())
	}
	fmt.Println(run(context.Background()))
	fmt.Println(run(context.Background()))
	fmt.Println("requests:", srv.Commits(payvault.OpAccountUpdaterSubmit))
	// Output:
	// 0 of an earlier run, 0 unknown
	// <nil>
	// 10 of an earlier run, 0 unknown
	// <nil>
	// requests: 10
}

// This example keeps a journal in Postgres. The program imports the driver: _ "github.com/jackc/pgx/v5/stdlib".
func ExampleNew() { //nolint:testableexamples // it needs a Postgres
	submit := func(
		ctx context.Context, client *payvault.Client, cards iter.Seq2[payvault.AccountUpdaterCard, error],
	) error {
		db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // each commit was reported before
		journal, err := sqlpayvault.New(ctx, db)
		if err != nil {
			return err
		}
		options := &payvault.SubmitAllOptions{Concurrency: 32, Journal: journal, Job: "cards of November"}
		for batch, err := range client.AccountUpdater.SubmitAll(ctx, cards, options) {
			if err != nil {
				return errors.Join(err, journal.Close())
			}
			fmt.Println(batch.Start, batch.End, batch.RequestID, batch.Err)
		}
		return journal.Close()
	}
	client, err := payvault.NewClient("https://sandbox.example.com", os.Getenv("PAYVAULT_API_KEY"))
	if err == nil {
		err = submit(context.Background(), client, stream(1000))
	}
	fmt.Println(err)
}

// This example runs a job until no batch is left to send. During a short outage, SubmitAll leaves some batches unsent,
// and the next run sends them. The loop also ends when the journal cannot be opened or closed, when a batch gets an
// unknown outcome, or when a run stops for a reason that does not pass by itself. Look up the batches of unknown
// outcome before you start the program again: while the service receives requests and does not answer, each run adds
// more batches of unknown outcome.
func ExampleOpen_untilDone() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // this is an example

	run := func(ctx context.Context) (left, failed int, err error) {
		// Each run opens its own journal. No other run can work on the job until this journal is closed.
		journal, err := sqlpayvault.Open(ctx, filepath.Join(dir, "cards.journal"))
		if err != nil {
			return 0, 0, err
		}
		options := &payvault.SubmitAllOptions{Journal: journal, Job: "cards of November"}
		var ended error
		for batch, err := range srv.Client().AccountUpdater.SubmitAll(ctx, stream(1000), options) {
			if stop, ok := errors.AsType[*payvault.StopError](err); ok && stop.Reason.Passes() {
				left++ // the next run goes on
				break
			}
			if err != nil {
				ended = err
				break
			}
			failed += len(batch.Invalid) // no run sends these cards
			switch {
			case batch.Err == nil, len(batch.Invalid) == batch.End-batch.Start:
			case batch.Status == payvault.BatchNotSent:
				left++ // the next run sends the batch
			case batch.FromJournal, batch.Status == payvault.BatchRefused:
				failed++ // no run sends the batch
			default: // unknown outcome
				ended = batch.Err
			}
		}
		return left, failed, errors.Join(ended, journal.Close())
	}
	for wait := time.Minute; ; wait = min(2*wait, time.Hour) {
		left, failed, err := run(context.Background())
		if err != nil || left == 0 {
			fmt.Println(left, failed, err)
			break
		}
		time.Sleep(wait)
	}
	// Output: 0 0 <nil>
}

// This example resolves a batch of unknown outcome. No run sends such a batch again. Look it up at the service, and
// record the result.
func ExampleJournal_Resolve() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // this is an example
	lost := payvaulttest.Fault{Operation: payvault.OpAccountUpdaterSubmit, Kind: payvaulttest.DropBeforeCommit, Times: 1}
	if _, err := srv.Inject(lost); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	journal, err := sqlpayvault.Open(ctx, filepath.Join(dir, "cards.journal"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer journal.Close() //nolint:errcheck // each commit was reported before
	const job = "cards of November"
	submit := func() {
		options := &payvault.SubmitAllOptions{Concurrency: 1, Journal: journal, Job: job}
		for batch, err := range srv.Client().AccountUpdater.SubmitAll(ctx, stream(150), options) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("batch", batch.Index, batch.Status)
		}
	}
	submit()
	unresolved, err := journal.Unresolved(ctx, job) // the method Refused lists the refused batches
	for _, batch := range unresolved {
		fmt.Println(batch.Index, "has the cards from position", batch.Start)
		// The service does not have this batch, so the next run sends it.
		err = journal.Resolve(ctx, job, batch.Index, payvault.BatchOutcome{Status: payvault.BatchNotSent})
	}
	fmt.Println(err)
	submit()
	// Output:
	// batch 0 unknown
	// batch 1 accepted
	// 0 has the cards from position 0
	// <nil>
	// batch 0 accepted
	// batch 1 accepted
}

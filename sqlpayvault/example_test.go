package sqlpayvault_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// A program that can be killed at any time, and started again.
func Example() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of an example

	run := func(ctx context.Context) error {
		journal, err := sqlpayvault.Open(ctx, filepath.Join(dir, "cards.journal"))
		if err != nil {
			return err
		}
		options := &payvault.SubmitAllOptions{Journal: journal, Job: "cards of November"}
		earlier, unknown := 0, 0
		for batch := range srv.Client().AccountUpdater.SubmitAll(ctx, stream(1000), options) {
			if batch.FromJournal {
				earlier++
			}
			if errors.Is(batch.Err, payvault.ErrOutcomeUnknown) {
				unknown++ // somebody has to look it up
			} else if batch.Err != nil {
				err = batch.Err
			}
		}
		fmt.Println(earlier, "of an earlier run,", unknown, "unknown")
		return errors.Join(err, journal.Close())
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

// On Postgres. The program imports the driver: _ "github.com/jackc/pgx/v5/stdlib".
func ExampleNew() { //nolint:testableexamples // it needs a Postgres
	submit := func(ctx context.Context, client *payvault.Client, cards iter.Seq[payvault.AccountUpdaterCard]) error {
		db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // each commit was reported
		journal, err := sqlpayvault.New(ctx, db)
		if err != nil {
			return err
		}
		options := &payvault.SubmitAllOptions{Concurrency: 32, Journal: journal, Job: "cards of November"}
		for batch := range client.AccountUpdater.SubmitAll(ctx, cards, options) {
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

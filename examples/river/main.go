// River submits made-up cards to the account updater by jobs of River, for those who have Postgres and no Temporal.
// Each job submits some cards, and the journal of sqlpayvault in the same database knows what was sent: whatever
// workers are killed, no batch is sent twice. Run as many of this program as you like.
//
//	DATABASE_URL=postgres://... go run -C examples/river . -cards 100000 -job november
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox; without, each process has an emulator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// part is a job of River: some cards of a job of ours, which it names and does not hold.
type part struct {
	Job  string `json:"job"`
	From int    `json:"from"`
	To   int    `json:"to"` // not included
}

// Kind names the worker.
func (part) Kind() string { return "payvault.submit" }

const perPart = 5000 // cards: 50 requests

type worker struct {
	river.WorkerDefaults[part]

	client  *payvault.Client
	journal payvault.Journal
}

// Work submits what the journal does not know of a part. What is refused or unknown stands there.
func (w *worker) Work(ctx context.Context, job *river.Job[part]) error {
	options := &payvault.SubmitAllOptions{Journal: w.journal, Job: fmt.Sprint(job.Args.Job, "/", job.Args.From)}
	var again error
	for batch := range w.client.AccountUpdater.SubmitAll(ctx, cards(job.Args.From, job.Args.To), options) {
		e, failed := errors.AsType[*payvault.Error](batch.Err)
		switch {
		case !failed || again != nil || errors.Is(e, payvault.ErrInvalidRequest): // as it would be again
		case payvault.SafeToRetry(e) && e.RetryAfter > 0:
			again = river.JobSnooze(e.RetryAfter)
		case errors.Is(e, payvault.ErrUnauthorized), errors.Is(e, payvault.ErrForbidden):
			again = river.JobSnooze(10 * time.Minute) // no attempt counts until the key is mended
		case e.Delivery == payvault.NotSent, payvault.SafeToRetry(e):
			again = e
		}
	}
	return again
}

// cards makes cards up. Those of a table would be read by their position in a snapshot that does not change.
func cards(from, to int) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		for i := from; i < to; i++ {
			number := payvault.NewSecret(fmt.Sprintf("41111111%08d", i))
			if !yield(payvault.AccountUpdaterCard{CardNumber: number, ExpDate: "1230", CardID: fmt.Sprint("card-", i)}) {
				return
			}
		}
	}
}

// run submits n cards, or what is left of them, and returns how many batches have which status, as JSON.
func run(ctx context.Context, pool *pgxpool.Pool, pv *payvault.Client, name string, n int) (counts string, err error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return "", err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return "", err
	}
	journal, err := sqlpayvault.New(ctx, stdlib.OpenDBFromPool(pool), sqlpayvault.WithoutLease())
	if err != nil {
		return "", err
	}
	defer journal.Close() //nolint:errcheck // it has no leases to give up
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{client: pv, journal: journal})
	queue, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		JobTimeout: 10 * time.Minute, RescueStuckJobsAfter: 11 * time.Minute, // those of workers that were killed
	})
	if err != nil {
		return "", err
	}
	var parts []river.InsertManyParams
	for from := 0; from < n; from += perPart {
		once := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
		parts = append(parts, river.InsertManyParams{Args: part{name, from, min(from+perPart, n)}, InsertOpts: once})
	}
	if _, err := queue.InsertMany(ctx, parts); err != nil {
		return "", err
	}
	if err := queue.Start(ctx); err != nil {
		return "", err
	}
	defer queue.Stop(context.WithoutCancel(ctx)) //nolint:errcheck // it has nothing left to do
	for left := -1; left != 0; {
		const unfinished = `SELECT count(*) FROM river_job WHERE finalized_at IS NULL AND args->>'job' = $1`
		if err := pool.QueryRow(ctx, unfinished, name).Scan(&left); err != nil {
			return "", err
		}
		time.Sleep(100 * time.Millisecond)
	}
	err = pool.QueryRow(ctx, `SELECT coalesce(json_object_agg(status, n), '{}') FROM (SELECT status, count(*) AS n FROM
		payvault_batches WHERE job LIKE $1 || '/%' AND status <> 'end' GROUP BY status) AS counts`, name).Scan(&counts)
	return counts, err
}

func main() {
	n, name := flag.Int("cards", 20_000, "how many"), flag.String("job", "demo", "name of the job: it is done once")
	flag.Parse()
	if os.Getenv("DATABASE_URL") == "" {
		fmt.Println("DATABASE_URL has to name a Postgres.")
		return
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	client, clientErr := sandbox.Client(os.Getenv)
	if client == nil {
		client = payvaulttest.NewServer().Client()
	}
	if err = errors.Join(err, clientErr); err == nil {
		var counts string
		counts, err = run(ctx, pool, client, *name, *n)
		fmt.Println(counts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

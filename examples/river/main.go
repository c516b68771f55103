// River submits made-up cards to the account updater by jobs of River, for those who have Postgres and no Temporal. The
// journal of sqlpayvault in the same database knows what was sent: no batch is sent twice, whatever is killed. Run as
// many of these as you like; ctrl-C stops one. What a killed one had at work waits 11 minutes (RescueStuckJobsAfter).
//
//	DATABASE_URL=postgres://... go run -C examples/river . -cards 100000 -job november
//
// When the key is refused, or 20 batches of a process are refused or unknown, the queue pauses and all processes end.
// Mend what is wrong, delete the rows of payvault_batches that are to be sent again, and start with -resume.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

const queue, perPart, mostLost = "payvault", 5000, 20 // cards; batches that are refused or of unknown outcome

// part is a job of River: some cards of a job of ours, which it names and does not hold.
type part struct {
	Job      string
	From, To int // To is not included
}

func (part) Kind() string { return "payvault.submit" }

type worker struct {
	river.WorkerDefaults[part]
	client  *payvault.Client
	journal payvault.Journal
	lost    atomic.Int64
}

// Work submits what the journal does not know of a part. What is refused or unknown stands there.
func (w *worker) Work(ctx context.Context, job *river.Job[part]) (again error) {
	options := &payvault.SubmitAllOptions{Journal: w.journal, Job: fmt.Sprint(job.Args.Job, "/", job.Args.From)}
	for batch := range w.client.AccountUpdater.SubmitAll(ctx, slices.Values(cards(job.Args)), options) {
		e, failed := errors.AsType[*payvault.Error](batch.Err)
		// The answer is not about the batch: the service refuses the key, or a proxy has answered.
		stop := failed && batch.Status == payvault.BatchNotSent && e.Delivery == payvault.Answered &&
			!errors.Is(e, payvault.ErrRateLimited)
		switch {
		case !failed || batch.FromJournal:
		case e.Fields["Job"] != nil: // the job had other cards before
			return river.JobCancel(e)
		case batch.Status == payvault.BatchNotSent && !stop && !errors.Is(e, payvault.ErrInvalidRequest):
			if again = e; e.RetryAfter > 0 || ctx.Err() != nil {
				return river.JobSnooze(e.RetryAfter) // no attempt counts
			}
		case stop, w.lost.Add(1) >= mostLost:
			err := river.ClientFromContext[pgx.Tx](ctx).QueuePause(context.WithoutCancel(ctx), queue, nil)
			return errors.Join(err, river.JobSnooze(0)) // all processes see the pause, and end
		}
	}
	return again
}

// cards makes cards up. Those of a table would be read by position in a snapshot that does not change.
func cards(p part) (cards []payvault.AccountUpdaterCard) {
	for i := p.From; i < p.To; i++ {
		number, id := payvault.NewSecret(fmt.Sprintf("41111111%08d", i)), fmt.Sprint("card-", i)
		cards = append(cards, payvault.AccountUpdaterCard{CardNumber: number, ExpDate: "1230", CardID: id})
	}
	return cards
}

// run submits n cards, or what is left of them. It is an error if a batch is not accepted.
func run(ctx context.Context, pool *pgxpool.Pool, pv *payvault.Client, name string, n int, resume bool) error {
	driver, workers := riverpgxv5.New(pool), river.NewWorkers()
	migrator, err := rivermigrate.New(driver, nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	journal, journalErr := sqlpayvault.New(ctx, stdlib.OpenDBFromPool(pool), sqlpayvault.WithoutLease())
	if err = errors.Join(err, journalErr); err != nil {
		return err
	}
	defer journal.Close() //nolint:errcheck // it has no leases to give up
	river.AddWorker(workers, &worker{client: pv, journal: journal})
	r, err := river.NewClient(driver, &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{queue: {MaxWorkers: 4}},
		JobTimeout: 10 * time.Minute, RescueStuckJobsAfter: 11 * time.Minute, // those of workers that were killed
	})
	if err != nil {
		return err
	}
	err = r.Start(ctx)
	states := []rivertype.JobState{"available", "pending", "retryable", "running", "scheduled"} // not those that ended
	once := &river.InsertOpts{Queue: queue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: states}}
	for from := 0; from < n && err == nil; from += perPart {
		_, err = r.Insert(ctx, part{name, from, min(from+perPart, n)}, once)
	}
	if err == nil && resume {
		err = r.QueueResume(ctx, queue, nil)
	}
	for left := -1; left != 0 && err == nil; time.Sleep(100 * time.Millisecond) {
		err = pool.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE finalized_at IS NULL AND args->>'Job' = $1
			AND NOT EXISTS (SELECT 1 FROM river_queue WHERE name = $2 AND paused_at IS NOT NULL)`, name, queue).Scan(&left)
	}
	ctx, accepted, batches := context.WithoutCancel(ctx), 0, (n+99)/100
	err = errors.Join(err, r.Stop(ctx), pool.QueryRow(ctx, `SELECT count(*) FROM payvault_batches WHERE status = 'accepted'
		AND job IN (SELECT $1::text || '/' || generate_series(0, $2::int, $3))`, name, n, perPart).Scan(&accepted))
	if err == nil && accepted < batches {
		err = fmt.Errorf("%d of %d batches are accepted: see payvault_batches, river_job; then -resume", accepted, batches)
	}
	return err
}

func main() {
	n, name := flag.Int("cards", 20_000, "how many"), flag.String("job", "demo", "name of the job: it is done once")
	resume := flag.Bool("resume", false, "have the queue go on after a pause")
	flag.Parse()
	if os.Getenv("DATABASE_URL") == "" {
		fmt.Println("DATABASE_URL has to name a Postgres.")
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	client, clientErr := sandbox.Client(os.Getenv)
	if client == nil && clientErr == nil {
		clientErr = sandbox.Offline(os.Stdout, false)
		client = payvaulttest.NewServer().Client()
	}
	if err = errors.Join(err, clientErr); err == nil {
		err = run(ctx, pool, client, *name, *n, *resume)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("All batches are accepted.")
}

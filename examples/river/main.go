// River submits made-up cards to the account updater in jobs of github.com/riverqueue/river, a job queue in Postgres.
// This program is for users of Postgres who do not use Temporal. The journal of sqlpayvault is in the same database.
// The journal records which batches were sent, so that no batch is sent twice, even if a process is killed. You can run
// any number of processes of this program, and stop each of them with ctrl-C. After a process is killed, its jobs run
// again about 11 minutes after they began (RescueStuckJobsAfter).
//
//	DATABASE_URL=postgres://... go run -C examples/river . -cards 100000 -job november
//
// The queue pauses and all processes end in four cases:
//
//   - The service refuses the key.
//   - A proxy answers instead of the service.
//   - In one part of the cards, 10 batches in a row are of unknown outcome.
//   - One process has sent 20 batches that are refused or of unknown outcome.
//
// A run prints the cards that cannot be sent. At its end it also prints the batches that are refused or of unknown
// outcome, unless ctrl-C or an error of the database stops it. Look up each of these batches at the service, and record
// its outcome with -resolve while no process runs. Then start again with the same flags and -resume.
//
//	go run -C examples/river . -job november -resolve 1700=not-sent   # the first card of the batch has position 1700
//
// Positions begin at 0. In place of not-sent you can write accepted or refused, and after it the request ID, for
// example from the log: 1700=accepted,8ZQ4.
//
// A restart of the database ends all processes with status 1, so let a supervisor start them again. Before a process
// ends, it waits for the database, to record the outcomes of the batches in flight. If the database is still away 10
// minutes after a job began (JobTimeout), or when ctrl-C stops the process, the process logs these outcomes instead. On
// an empty database, start one process first: two at the same time can fail in River's migration. River runs a job when
// the clock of the database has reached the job's time. So if this clock is behind the clocks of the processes, jobs
// run late.
//
// If you submit your own cards, add the result of payvault.JobName, a checksum of the cards, to the name of the job:
// other cards under the name of an earlier job would count as sent. A run refuses another number of cards under the
// name of an earlier job.
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
	"strconv"
	"strings"
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

// A part has at most perPart cards. perPart is a multiple of 100, the size of a batch, so that no batch is split
// between two parts. The queue pauses when mostLost batches of a process are refused or of unknown outcome.
const queue, perPart, mostLost = "payvault", 5000, 20

// part is the argument of a River job: a range of the cards of a submission. It contains no card data.
type part struct {
	Job      string
	From, To int // From is included, and To is not
}

func (part) Kind() string { return "payvault.submit" }

// partJournal is the journal for a part. SubmitAll numbers the batches of a part from 0. The journal numbers them over
// the whole job, so that perPart may change from run to run.
type partJournal struct {
	payvault.Journal

	ctx   context.Context //nolint:containedctx // of the River job; the context of End does not end with it
	first int             // number of the first batch of the part
}

func (j partJournal) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	return j.Journal.Begin(ctx, job, j.first+batch)
}

// End records the outcome of a batch. After an error of the journal, for example while the database is away, End tries
// again until the context of the River job ends. Then it logs the outcome, so that somebody can record it with
// -resolve, and returns the error. It tries and logs only once to record that a batch was not sent: another worker may
// have begun the batch before a second try.
func (j partJournal) End(ctx context.Context, job string, batch int, o payvault.BatchOutcome) error {
	for {
		err := j.Journal.End(ctx, job, j.first+batch, o)
		switch {
		case err == nil:
			return nil
		case o.Status != payvault.BatchNotSent && j.rest():
			continue
		}
		log.Printf("the batch of card %d is %s, request ID %q, which is not recorded: %v",
			(j.first+batch)*payvault.MaxAccountUpdaterCards, o.Status, o.RequestID, err)
		return err
	}
}

// rest waits 100 ms, because the journal itself has tried for some seconds. It returns false if the River job ends.
func (j partJournal) rest() bool {
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-j.ctx.Done():
		return false
	}
}

// worker runs the River jobs of a process.
type worker struct {
	river.WorkerDefaults[part]
	client  *payvault.Client
	journal payvault.Journal
	cards   func(part) []payvault.AccountUpdaterCard
	lost    atomic.Int64 // number of batches of this process that are refused or of unknown outcome
}

// Work sends the batches of a part that are new to the journal or recorded as not sent. If a batch was not sent, Work
// returns an error, so that River runs the job again. When mostLost batches of this process are refused or of unknown
// outcome, Work pauses the queue. If SubmitAll stops early, afterStop returns the result.
func (w *worker) Work(ctx context.Context, job *river.Job[part]) (again error) {
	journal := partJournal{w.journal, ctx, job.Args.From / payvault.MaxAccountUpdaterCards}
	options := &payvault.SubmitAllOptions{Journal: journal, Job: job.Args.Job}
	for batch, err := range w.client.AccountUpdater.SubmitAll(ctx, payvault.Cards(w.cards(job.Args)...), options) {
		switch {
		case err != nil:
			return afterStop(ctx, err)
		case batch.Err == nil, batch.FromJournal, len(batch.Invalid) == batch.End-batch.Start: // nothing is left to do
		case batch.Status == payvault.BatchNotSent:
			again = batch.Err
		case w.lost.Add(1) >= mostLost: // the batch is refused or of unknown outcome
			return pause(ctx, batch.Err)
		}
	}
	return again
}

// afterStop returns the result of Work if SubmitAll has stopped before the end. The argument err is the reason. If it
// would not help to run the job again now, afterStop cancels the job or pauses the queue.
func afterStop(ctx context.Context, err error) error {
	stop, ok := errors.AsType[*payvault.StopError](err)
	if !ok { // an invalid argument
		return river.JobCancel(err)
	}
	switch {
	case stop.Reason == payvault.StopContext, stop.Reason == payvault.StopRateLimit:
		return river.JobSnooze(stop.RetryAfter) // River does not count this try as an attempt of the job
	case stop.Reason.Passes(): // River runs the job again, later each time
		return err
	case stop.Reason == payvault.StopOtherCards:
		log.Printf("a part of the job is canceled: %v", err)
		return river.JobCancel(err)
	default:
		return pause(ctx, err)
	}
}

// pause pauses the queue. All processes notice the pause and end. The result makes River keep the job, which runs again
// when the queue is resumed.
func pause(ctx context.Context, reason error) error {
	log.Printf("the queue pauses: %v", reason)
	err := river.ClientFromContext[pgx.Tx](ctx).QueuePause(context.WithoutCancel(ctx), queue, nil)
	return errors.Join(err, river.JobSnooze(0))
}

// cards makes up the cards of a part. A real program would read the cards by position from a snapshot of a table.
func cards(p part) (cards []payvault.AccountUpdaterCard) {
	for i := p.From; i < p.To; i++ {
		number, id := payvault.NewSecret(fmt.Sprintf("41111111%08d", i)), fmt.Sprint("card-", i)
		cards = append(cards, payvault.AccountUpdaterCard{CardNumber: number, ExpDate: "1230", CardID: id})
	}
	return cards
}

// run submits n made-up cards, except the batches that the journal has already. It returns an error unless all cards
// are accepted.
func run(ctx context.Context, pool *pgxpool.Pool, pv *payvault.Client, name string, n int, resume bool) error {
	return submission{name, n, perPart, resume, cards}.run(ctx, pool, pv)
}

// submission is a number of cards to submit under one name. The cards are divided into parts.
type submission struct {
	job     string
	n       int  // number of cards
	perPart int  // number of cards of a part
	resume  bool // resume the queue if it has paused
	cards   func(part) []payvault.AccountUpdaterCard
}

// parts yields the parts of the submission. Each part becomes one River job.
func (s submission) parts(yield func(part) bool) {
	for from := 0; from < s.n; from += s.perPart {
		if !yield(part{s.job, from, min(from+s.perPart, s.n)}) {
			return
		}
	}
}

// run submits the cards in River jobs, one for each part. It waits until these jobs have ended or the queue is paused.
// It returns an error unless all cards are accepted.
func (s submission) run(ctx context.Context, pool *pgxpool.Pool, pv *payvault.Client) error {
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
	batches, leftOut := s.check()
	if err := s.register(ctx, pool); err != nil {
		return err
	}
	river.AddWorker(workers, &worker{client: pv, journal: journal, cards: s.cards})
	r, err := river.NewClient(driver, &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{queue: {MaxWorkers: 4}},
		JobTimeout: 10 * time.Minute, RescueStuckJobsAfter: 11 * time.Minute, // jobs of killed workers run again then
	})
	if err != nil {
		return err
	}
	if err := r.Start(ctx); err != nil {
		return err
	}
	jobs, err := s.insert(ctx, r)
	if err == nil {
		err = s.wait(ctx, pool)
	}
	ctx = context.WithoutCancel(ctx)
	if err = errors.Join(err, r.Stop(ctx)); err != nil {
		return err
	}
	undone := 0 // number of parts that are canceled, or wait because the queue is paused
	err = pool.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE id = ANY($1) AND state <> 'completed'`, jobs).
		Scan(&undone)
	counts, countErr := journal.Count(ctx, s.job)
	accepted := counts[payvault.BatchAccepted]
	switch err := errors.Join(err, countErr); {
	case err != nil:
		return err
	case accepted < batches || undone > 0:
		err := fmt.Errorf("%d of %d batches are accepted, %d of %d parts are not done: see the log, -resolve the batches "+
			"that are listed, then -resume", accepted, batches, undone, len(jobs))
		return errors.Join(err, s.list(ctx, journal))
	case leftOut > 0:
		return fmt.Errorf("all other cards are accepted: %d cannot be sent", leftOut)
	}
	return nil
}

// insert inserts a River job for each part. A part that has a job already keeps this job, unless the job has ended.
// insert then resumes the queue, if the field resume is set. It returns the ID of the job of each part.
func (s submission) insert(ctx context.Context, r *river.Client[pgx.Tx]) (jobs []int64, err error) {
	states := []rivertype.JobState{"available", "pending", "retryable", "running", "scheduled"} // jobs that have not ended
	once := &river.InsertOpts{Queue: queue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: states}}
	for p := range s.parts {
		inserted, err := r.Insert(ctx, p, once)
		if err != nil {
			return jobs, err
		}
		jobs = append(jobs, inserted.Job.ID)
	}
	if s.resume {
		err = r.QueueResume(ctx, queue, nil)
	}
	return jobs, err
}

// wait waits until all River jobs of the submission have ended, or the queue is paused. It returns an error if ctx ends
// first, or if a query fails.
func (s submission) wait(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		var left int
		err := pool.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE finalized_at IS NULL AND args->>'Job' = $1
			AND NOT EXISTS (SELECT 1 FROM river_queue WHERE name = $2 AND paused_at IS NOT NULL)`, s.job, queue).Scan(&left)
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// register records the number of cards of the job. It returns an error if an earlier run of the job had another number,
// because then the cards are probably others.
func (s submission) register(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS payvault_submissions (
		job TEXT PRIMARY KEY, cards BIGINT NOT NULL)`)
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `INSERT INTO payvault_submissions VALUES ($1, $2) ON CONFLICT DO NOTHING`, s.job, s.n)
	if err != nil {
		return err
	}
	var known int
	err = pool.QueryRow(ctx, `SELECT cards FROM payvault_submissions WHERE job = $1`, s.job).Scan(&known)
	if err == nil && known != s.n {
		err = fmt.Errorf("the job %q has %d cards, and not %d: give other cards another name", s.job, known, s.n)
	}
	return err
}

// check prints the cards that cannot be sent and counts them. It also counts the batches that have at least one card
// that can be sent.
func (s submission) check() (batches, leftOut int) {
	for p := range s.parts {
		position := p.From
		for batch := range slices.Chunk(s.cards(p), payvault.MaxAccountUpdaterCards) {
			good := 0
			for _, card := range batch {
				if err := card.Check(); err != nil {
					log.Printf("card %d cannot be sent: %v", position, err)
					leftOut++
				} else {
					good++
				}
				position++
			}
			if good > 0 {
				batches++
			}
		}
	}
	return batches, leftOut
}

// list logs the batches of unknown outcome and the refused batches, which somebody has to look up at the service.
func (s submission) list(ctx context.Context, journal *sqlpayvault.Journal) error {
	unknown, err := journal.Unresolved(ctx, s.job)
	refused, refusedErr := journal.Refused(ctx, s.job)
	for _, b := range slices.Concat(unknown, refused) {
		log.Printf("the batch of card %d is %s: %s %s", b.Start, b.Outcome.Status, b.Outcome.Code, b.Outcome.Message)
	}
	return errors.Join(err, refusedErr)
}

// resolve records the outcome of a batch that somebody has looked up. The argument text has the position of the first
// card of the batch, the outcome, and the request ID if it is known, such as 1700=accepted,8ZQ4.
func resolve(ctx context.Context, pool *pgxpool.Pool, job, text string) error {
	first, found, _ := strings.Cut(text, "=")
	status, id, _ := strings.Cut(found, ",")
	card, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.New(ctx, stdlib.OpenDBFromPool(pool), sqlpayvault.WithoutLease())
	if err != nil {
		return err
	}
	defer journal.Close() //nolint:errcheck // it has no leases to give up
	outcome := payvault.BatchOutcome{Status: payvault.BatchStatus(strings.ReplaceAll(status, "-", " ")), RequestID: id}
	return journal.Resolve(ctx, job, card/payvault.MaxAccountUpdaterCards, outcome)
}

func main() {
	n, name := flag.Int("cards", 20_000, "how many"), flag.String("job", "demo", "name of the job: it is done once")
	resume := flag.Bool("resume", false, "have the queue go on after a pause")
	found := flag.String("resolve", "", "first card of a batch, and what became of it: accepted, refused or not-sent")
	flag.Parse()
	if os.Getenv("DATABASE_URL") == "" {
		fmt.Println("DATABASE_URL has to name a Postgres.")
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	client, clientErr := sandbox.Client(os.Getenv)
	if client == nil && clientErr == nil {
		clientErr = sandbox.Offline(os.Stdout, false)
		client = payvaulttest.NewServer().Client()
	}
	err = errors.Join(err, clientErr)
	if err == nil && *found != "" {
		err = resolve(ctx, pool, *name, *found)
		if err == nil {
			return
		}
	}
	if err == nil {
		err = run(ctx, pool, client, *name, *n, *resume)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("All batches are accepted.")
}

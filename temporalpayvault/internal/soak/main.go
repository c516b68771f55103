// Soak submits cards and disturbs the work: it kills, freezes and stops processes, cuts and delays connections, kills
// the Temporal server, locks the journal for 30 s or stops its database, and makes requests fail. Then it checks that
// the service has performed no batch twice, that no batch and no request ID is missing, and that no history, file or
// log contains a card number. It submits by SubmitAll with a journal in SQLite, and by SubmitCards on a real Temporal
// server. It exports transactions by ExportLists on Temporal. Last, it submits by an activity without a journal. There
// the check must find batches that were performed twice, because otherwise it would prove nothing.
//
//	go run . -temporal ./temporal
//	go run . -temporal ./temporal -harm=false -faults 0 -cards 1000000     # measures the speed
//	go run . -temporal ./temporal -record ../../testdata/histories         # records histories for the replay tests
//	go run . -temporal ./temporal -postgres 'host=/tmp/pg user=postgres' \
//		-away 'pg_ctl -D /tmp/pg/data -m immediate stop; sleep 30; pg_ctl -D /tmp/pg/data start' # the journal in Postgres
//
// "make temporal-soak" builds the server first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"example.com/payvault"
	"example.com/payvault/temporalpayvault"
)

// settings has the flags of the program. The last five fields are for child processes, which run the same program.
type settings struct {
	temporal, record      string
	postgres, away        string
	cards, workers, kills int
	faults                float64
	harm, sealed          bool
	job                   temporalpayvault.Job

	child, dir, address, url, key string
}

func main() {
	var s settings
	flag.StringVar(&s.temporal, "temporal", "temporal", "the program of the development server")
	flag.StringVar(&s.record, "record", "", "directory to write the histories of small jobs to, and nothing else")
	flag.StringVar(&s.postgres, "postgres", "", "connection string of an empty database for the journal of SubmitCards")
	flag.StringVar(&s.away, "away", "", "shell command that stops Postgres, waits and starts it again")
	flag.IntVar(&s.cards, "cards", 100_000, "how many a job has")
	flag.IntVar(&s.workers, "workers", 2, "processes")
	flag.IntVar(&s.kills, "kills", 20, "processes killed in a job")
	flag.Float64Var(&s.faults, "faults", 0.05, "share of requests that fail")
	flag.BoolVar(&s.harm, "harm", true, "kill, freeze and cut")
	flag.BoolVar(&s.sealed, "codec", false, "encrypt payloads, in which no card could be found")
	flag.IntVar(&s.job.BatchesPerActivity, "batches", 0, "batches per activity")
	flag.IntVar(&s.job.Concurrency, "concurrency", 0, "activities at work")
	flag.StringVar(&s.child, "child", "", "what a child does")
	flag.StringVar(&s.dir, "dir", "", "of the files of a child")
	flag.StringVar(&s.address, "address", "", "of Temporal, for a child")
	flag.StringVar(&s.url, "url", "", "of the service, for a child")
	flag.StringVar(&s.key, "key", "", "of the service, for a child")
	flag.Parse()
	if err := s.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }

func (s *settings) run(ctx context.Context) error {
	switch s.child {
	case childWork:
		return s.work(ctx)
	case childSubmit:
		return s.submitAll(ctx)
	}
	w, err := s.build(ctx)
	defer w.close()
	if err != nil {
		return err
	}
	if s.record != "" {
		return w.recordHistories(ctx)
	}
	for _, part := range []func(context.Context) error{w.sqlite, w.submit, w.again, w.export, w.leaks, w.naive} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sqlite submits cards with several processes that share a journal in SQLite. Only one process submits at a time.
func (w *world) sqlite(ctx context.Context) error {
	return errors.Join(w.amid(ctx, partSQLite, childSubmit, w.cards/batchSize, func(ctx context.Context) error {
		select {
		case <-w.finished:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}), w.audit(ctx, partSQLite))
}

// submit submits cards by SubmitCards on the Temporal server.
func (w *world) submit(ctx context.Context) error {
	var sum temporalpayvault.Summary
	err := w.amid(ctx, partTemporal, childWork, w.cards/batchSize, func(ctx context.Context) error {
		return w.execute(ctx, partTemporal, temporalpayvault.SubmitCards, w.jobOf(partTemporal), &sum)
	})
	outcomes, readErr := w.outcomes(ctx, partTemporal)
	known := 0 // number of batches that were reported as unknown, and are accepted in the journal
	for _, batch := range sum.UnknownBatches {
		if outcomes[batch].Status == payvault.BatchAccepted {
			known++
		}
	}
	say("%s: %d batches accepted, %d refused, %d unknown, of which %d are accepted in the journal; paused %d times",
		partTemporal, sum.Accepted, sum.Refused, sum.Unknown, known, w.pauses.Load())
	return errors.Join(err, readErr, w.audit(ctx, partTemporal), w.weigh(ctx, partTemporal))
}

// again starts the same job under another workflow ID. The job must send only the batches that the journal does not
// record as sent.
func (w *world) again(ctx context.Context) error {
	var sum temporalpayvault.Summary
	before := w.emulator.Commits(opSubmit)
	err := w.quiet(ctx, func(ctx context.Context) error {
		return w.execute(ctx, "again", temporalpayvault.SubmitCards, w.jobOf(partTemporal), &sum)
	})
	sent := w.emulator.Commits(opSubmit) - before
	say("again: %d of %d batches from the journal, %d performed", sum.FromJournal, sum.Batches, sent)
	if sum.FromJournal+sent < sum.Batches || sent > 0 && sum.FromJournal == sum.Batches {
		err = errors.Join(err, errors.New("again: batches are missing, or were sent twice"))
	}
	return errors.Join(err, w.audit(ctx, partTemporal))
}

// naive runs the activity without a journal. It returns an error if no batch was performed twice, because then the
// audits of the other parts prove nothing.
func (w *world) naive(ctx context.Context) error {
	if !w.harm {
		return nil
	}
	w.cards, w.kills = min(w.cards, 30_000), min(w.kills, 3)
	err := w.amid(ctx, partNaive, childWork, w.cards/batchSize, func(ctx context.Context) error {
		return w.execute(ctx, partNaive, naiveWorkflow, w.jobOf(partNaive), nil)
	})
	if err != nil {
		return err
	}
	if performed, _ := w.performed(partNaive); performed.twice() == 0 {
		return errors.New("the audit does not see that the naive activity performs batches twice")
	}
	return nil
}

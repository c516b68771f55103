package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of -postgres
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
	"example.com/payvault/sqlpayvault"
	"example.com/payvault/temporalpayvault"
)

const (
	childWork   = "work"
	childSubmit = "submit"

	queue  = "soak"
	canary = "41111111" // the first digits of each card number
)

func number(i int) string { return fmt.Sprintf(canary+"%08d", i) }

// deck is a CardSource that generates the cards for a part of the soak. Some calls of Cards return an error whose text
// has a card number.
type deck struct{ *settings }

func (d deck) snapshot(part string) temporalpayvault.Snapshot {
	return temporalpayvault.Snapshot{Cards: d.cards, Checksum: "made up for " + part}
}

func (d deck) Snapshot(_ context.Context, part string) (temporalpayvault.Snapshot, error) {
	return d.snapshot(part), nil
}

func (d deck) Cards(_ context.Context, part string, start, end int) (cards []payvault.AccountUpdaterCard, _ error) {
	if rand.Float64() < d.faults/10 { //nolint:gosec // need not be secure
		return nil, errors.New("the row of " + number(start) + " is locked")
	}
	for i := start; i < end; i++ {
		cards = append(cards, card(part, i))
	}
	return cards, nil
}

func card(part string, i int) payvault.AccountUpdaterCard {
	return payvault.AccountUpdaterCard{
		CardNumber: payvault.NewSecret(number(i)), ExpDate: "1230", CardID: fmt.Sprint(part, "-", i),
	}
}

func (d deck) all(part string) iter.Seq2[payvault.AccountUpdaterCard, error] {
	return func(yield func(payvault.AccountUpdaterCard, error) bool) {
		for i := range d.cards {
			if !yield(card(part, i), nil) {
				return
			}
		}
	}
}

// newClient returns a client of Temporal that connects when it is first used.
func (s *settings) newClient(logs io.Writer) (client.Client, error) {
	data, failures := temporalpayvault.NewConverters(nil)
	if s.sealed {
		codec, err := temporalpayvault.NewCodec("soak", map[string][]byte{"soak": bytes.Repeat([]byte("k"), 32)})
		if err != nil {
			return nil, err
		}
		data, failures = temporalpayvault.NewConverters(codec)
	}
	return client.NewLazyClient(client.Options{
		HostPort: s.address, Identity: "soak", DataConverter: data, FailureConverter: failures,
		Logger: log.NewStructuredLogger(slog.New(slog.NewTextHandler(logs, nil))),
	})
}

func (s *settings) journal(part string) string { return filepath.Join(s.dir, part+".journal") }

// activities returns the activities of a worker.
func (s *settings) activities(ctx context.Context) (*temporalpayvault.Activities, error) {
	pv, err := payvault.NewClient(s.url, s.key)
	if err != nil {
		return nil, err
	}
	journal, err := s.openJournal(ctx)
	return &temporalpayvault.Activities{Client: pv, Cards: deck{s}, Journal: journal, Sink: folder(s.dir)}, err
}

// openJournal opens the journal of SubmitCards, in Postgres if the flags name one.
func (s *settings) openJournal(ctx context.Context) (*sqlpayvault.Journal, error) {
	if s.postgres == "" {
		return sqlpayvault.Open(ctx, s.journal(partTemporal), sqlpayvault.WithoutLease())
	}
	db, err := sql.Open("pgx", s.postgres)
	if err != nil {
		return nil, err
	}
	return sqlpayvault.New(ctx, db, sqlpayvault.WithoutLease())
}

// work runs a worker of Temporal.
func (s *settings) work(ctx context.Context) error {
	c, err := s.newClient(os.Stdout)
	if err != nil {
		return err
	}
	a, err := s.activities(ctx)
	if err != nil {
		return err
	}
	w := worker.New(c, queue, worker.Options{WorkerStopTimeout: time.Minute})
	temporalpayvault.Register(w, a)
	w.RegisterWorkflow(naiveWorkflow)
	w.RegisterActivity(&naive{a})
	return w.Run(worker.InterruptCh())
}

// submitAll waits until no other process uses the journal. Then it submits the cards that no process has submitted yet.
// It returns an error if some cards could not be sent.
func (s *settings) submitAll(ctx context.Context) error {
	for {
		err := s.submitOnce(ctx)
		if !errors.Is(err, sqlpayvault.ErrRunning) || !wait(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

func (s *settings) submitOnce(ctx context.Context) error {
	pv, err := payvault.NewClient(s.url, s.key)
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.Open(ctx, s.journal(partSQLite), sqlpayvault.WithLease(time.Second))
	if err != nil {
		return err
	}
	defer journal.Close() //nolint:errcheck // the process ends
	d := deck{s}
	options := &payvault.SubmitAllOptions{Concurrency: 8, Journal: journal, Job: d.snapshot(partSQLite).Checksum}
	var left error
	for b, err := range pv.AccountUpdater.SubmitAll(ctx, d.all(partSQLite), options) {
		switch {
		case err != nil:
			return err
		case b.Status == payvault.BatchNotSent:
			left = b.Err
		}
	}
	return left
}

// naive has an activity without a journal, as a beginner would write it.
type naive struct{ *temporalpayvault.Activities }

func (n *naive) Naive(ctx context.Context, part string, start, end int) error {
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &start); err != nil {
			return err
		}
	}
	for ; start < end; start += batchSize {
		cards, err := n.Cards.Cards(ctx, part, start, min(start+batchSize, end))
		if err != nil {
			return err
		}
		if _, err := n.Client.AccountUpdater.Submit(ctx, cards); err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx, start+batchSize)
	}
	return nil
}

func naiveWorkflow(ctx workflow.Context, job temporalpayvault.Job) error {
	const parts = 8
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: heartbeat,
	})
	var all []workflow.Future
	for i := range parts {
		batches := job.Snapshot.Cards / batchSize
		start, end := batches*i/parts*batchSize, batches*(i+1)/parts*batchSize
		all = append(all, workflow.ExecuteActivity(ctx, "Naive", job.Source, start, end))
	}
	for _, f := range all {
		if err := f.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
	childWorker = "worker"
	childAlone  = "alone"

	queue            = "soak"
	queueWithJournal = "soak with a journal"
)

const (
	canary   = "41111111"     // begins the number of each card
	declined = " is declined" // what the service says of one
)

func number(i int) string { return fmt.Sprintf(canary+"%08d", i) }

// deck makes cards up for a reference such as "part:1000". Now and then it fails, and says more than it should.
type deck struct{ faults float64 }

func (d deck) Snapshot(_ context.Context, ref string) (s temporalpayvault.Snapshot, err error) {
	part, count, _ := strings.Cut(ref, ":")
	s.Checksum = "made up for " + part
	s.Cards, err = strconv.Atoi(count)
	return s, err
}

func (d deck) Cards(_ context.Context, ref string, start, end int) (cards []payvault.AccountUpdaterCard, _ error) {
	if rand.Float64() < d.faults { //nolint:gosec // no secret
		return nil, errors.New("the row of " + number(start) + " is locked")
	}
	part, _, _ := strings.Cut(ref, ":")
	for i := start; i < end; i++ {
		cards = append(cards, payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(number(i)), ExpDate: "1230", CardID: fmt.Sprint(part, "-", i),
		})
	}
	return cards, nil
}

// newClient gives a client that connects when it is used.
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

func (s *settings) newPayvault() (*payvault.Client, error) { return payvault.NewClient(s.url, s.key) }

// work is a worker of both queues.
func (s *settings) work(ctx context.Context, logs io.Writer) error {
	c, err := s.newClient(logs)
	if err != nil {
		return err
	}
	pv, err := s.newPayvault()
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.Open(ctx, s.journal, sqlpayvault.WithoutLease())
	if err != nil {
		return err
	}
	if s.record != "" {
		worker.SetStickyWorkflowCacheSize(0) // each task replays the history; and no name of a machine is in it
	}
	for name, journal := range map[string]payvault.Journal{queue: nil, queueWithJournal: journal} {
		w := worker.New(c, name, worker.Options{WorkerStopTimeout: time.Minute})
		a := &temporalpayvault.Activities{
			Client: pv, Cards: deck{s.faults / 10}, Journal: journal,
			Subscriptions: numbers{}, Sink: folder(filepath.Dir(s.journal)),
		}
		temporalpayvault.Register(w, a)
		w.RegisterWorkflow(naiveWorkflow)
		w.RegisterActivity(&naive{a})
		if err := w.Start(); err != nil {
			return err
		}
	}
	<-worker.InterruptCh()
	return nil
}

// submitAll submits all cards in this process.
func (s *settings) submitAll(ctx context.Context, out io.Writer) error {
	pv, err := s.newPayvault()
	if err != nil {
		return err
	}
	began := time.Now()
	stream := func(yield func(payvault.AccountUpdaterCard) bool) {
		for start := 0; start < s.cards; start += batch {
			cards, _ := deck{}.Cards(ctx, "alone", start, min(start+batch, s.cards))
			for _, card := range cards {
				if !yield(card) {
					return
				}
			}
		}
	}
	for b := range pv.AccountUpdater.SubmitAll(ctx, stream, &payvault.SubmitAllOptions{Concurrency: 32}) {
		if b.Err != nil {
			return b.Err
		}
	}
	took := time.Since(began)
	say(out, "SubmitAll in one process, no faults: %d cards in %v, %.0f a second",
		s.cards, took.Round(time.Millisecond), float64(s.cards)/took.Seconds())
	return nil
}

// naive is what one writes first: the heartbeat says how far the activity has come, and what fails is tried again.
type naive struct{ *temporalpayvault.Activities }

func (n *naive) Naive(ctx context.Context, ref string, start, end int) error {
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &start); err != nil {
			return err
		}
	}
	for ; start < end; start += batch {
		cards, err := n.Cards.Cards(ctx, ref, start, min(start+batch, end))
		if err != nil {
			return err
		}
		if _, err := n.Client.AccountUpdater.Submit(ctx, cards); err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx, start+batch)
	}
	return nil
}

func naiveWorkflow(ctx workflow.Context, job temporalpayvault.Job) (sum temporalpayvault.Summary, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: job.HeartbeatTimeout,
	})
	s, err := deck{}.Snapshot(nil, job.Source) //nolint:staticcheck // it needs no context
	if err != nil {
		return sum, err
	}
	sum.Cards, sum.Batches = s.Cards, (s.Cards+batch-1)/batch
	const span = 10 * batch
	var parts []workflow.Future
	for start := 0; start < s.Cards; start += span {
		parts = append(parts, workflow.ExecuteActivity(ctx, "Naive", job.Source, start, min(start+span, s.Cards)))
	}
	for _, part := range parts {
		if err := part.Get(ctx, nil); err != nil {
			return sum, err
		}
	}
	sum.Accepted = sum.Batches
	return sum, nil
}

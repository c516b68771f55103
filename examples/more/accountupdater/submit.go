package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"example.com/payvault"
	"example.com/payvault/examples/more/internal/progress"
)

// grace is how long the batches in flight may take after ctrl-C.
const grace = 30 * time.Second

// maxUnknown ends a run in which answers keep getting lost: each of them is work for somebody.
const maxUnknown = 3

var errIncomplete = errors.New("not all cards are submitted")

// submitFile submits what the checkpoint of the file says is left.
func submitFile(ctx context.Context, client *payvault.Client, o options, out io.Writer) (err error) {
	cards, err := openCards(o.cards)
	if err != nil {
		return err
	}
	defer cards.Close() //nolint:errcheck // it was only read
	if o.checkpoint == "" {
		if o.checkpoint, err = checkpointOf(cards.file); err != nil {
			return err
		}
	}
	c, err := openCheckpoint(o.checkpoint, heading{Cards: cards.digest(), Service: o.service, Merchant: o.merchant})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.settle(o.settled); err != nil {
		return err
	}
	s := &submission{cards: cards, checkpoint: c, out: out}
	s.run(ctx, client, o.concurrency)
	return errors.Join(s.failed, s.report())
}

// checkpointOf is one file, whatever name that of the cards goes by.
func checkpointOf(cards *os.File) (string, error) {
	n, err := names(cards)
	if err != nil {
		return "", err
	}
	if n > 1 {
		return "", fmt.Errorf("%s has %d names (hard links), and none is that of its checkpoint: name one with -checkpoint, always the same", cards.Name(), n)
	}
	path, err := filepath.EvalSymlinks(cards.Name())
	return path + ".checkpoint", err
}

// submission is one run.
type submission struct {
	cards      *cardFile
	checkpoint *checkpoint
	out        io.Writer
	sent       []int // the batches of this run, in order
	lost       int   // those of them without an answer
	failed     error // why no more are sent
}

// run submits the batches that may be sent. When ctx ends it sends no more, and waits for those in flight: to cut them
// off would leave their outcome unknown.
func (s *submission) run(ctx context.Context, client *payvault.Client, concurrency int) {
	calls, cancel := outlive(ctx, grace)
	defer cancel()
	bar := progress.New(s.out, "cards", s.cards.count)
	defer bar.Stop()
	bar.Add(s.dealtWith())
	batches := client.AccountUpdater.SubmitAll(calls, s.unsent(ctx), &payvault.SubmitAllOptions{Concurrency: concurrency})
	for batch := range batches {
		s.note(s.sent[batch.Index], batch)
		bar.Add(batch.End - batch.Start)
	}
}

// outlive returns a context that ends some time after ctx.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// dealtWith counts the cards that this run does not send.
func (s *submission) dealtWith() int {
	n := 0
	for batch, e := range s.checkpoint.last {
		if !e.State.mayBeSent() {
			n += s.cards.size(batch)
		}
	}
	return n
}

// unsent yields the cards of the batches that may be sent. SubmitAll sends a batch when it has read its last card, so
// a batch is recorded before its first one is given away. Only whole batches are given away, and all but the last of the file
// are full, so those of SubmitAll are the same.
func (s *submission) unsent(ctx context.Context) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		for batch := 0; s.goesOn(ctx); batch++ {
			var cards []payvault.AccountUpdaterCard
			cards, s.failed = s.cards.next()
			if len(cards) == 0 {
				return
			}
			if !s.checkpoint.last[batch].State.mayBeSent() {
				continue
			}
			if s.failed = s.checkpoint.intend(batch); s.failed != nil {
				return
			}
			s.sent = append(s.sent, batch)
			for _, card := range cards {
				if !yield(card) {
					return
				}
			}
		}
	}
}

func (s *submission) goesOn(ctx context.Context) bool {
	if s.failed == nil && ctx.Err() != nil {
		s.failed = fmt.Errorf("interrupted: %w", context.Cause(ctx))
		fmt.Fprintln(s.out, "\nWaiting for the batches in flight; the next interrupt ends the program at once.")
	}
	return s.failed == nil
}

// note records what came of a batch.
func (s *submission) note(number int, batch *payvault.AccountUpdaterBatch) {
	e := entry{Batch: number, State: outcome(batch.Err), RequestID: batch.RequestID}
	if batch.Err != nil {
		e.Error = batch.Err.Error()
	}
	if err := s.checkpoint.record(e); err != nil {
		s.failed = err
	}
	if e.State == unknown {
		s.lost++
	}
	if s.failed == nil && (hopeless(batch.Err) || s.lost == maxUnknown) {
		s.failed = fmt.Errorf("stopped after batch %d: %w", number, batch.Err)
	}
}

// outcome tells what is known of a batch. Of several reasons the most careful one comes first.
func outcome(err error) state {
	switch {
	case err == nil:
		return accepted
	case errors.Is(err, payvault.ErrOutcomeUnknown):
		return unknown
	case payvault.SafeToRetry(err), errors.Is(err, payvault.ErrInvalidRequest):
		return notSent
	}
	if failed, ok := errors.AsType[*payvault.Error](err); ok && failed.Delivery == payvault.Answered {
		return refused
	}
	return unknown
}

// hopeless tells whether the next batch would fail in the same way: the service is out of reach, has enough for now, or
// does not take the key.
func hopeless(err error) bool {
	return payvault.SafeToRetry(err) || errors.Is(err, payvault.ErrUnauthorized) || errors.Is(err, payvault.ErrForbidden)
}

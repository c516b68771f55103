package temporalpayvault

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
)

// batchSize is the number of cards in a request.
const batchSize = payvault.MaxAccountUpdaterCards

// order describes the batches that an activity has to submit.
type order struct {
	Job      string // name of the job in the journal
	Source   string
	Snapshot Snapshot
	From     int           // number of the first batch
	To       int           // number of the batch after the last one
	InFlight int           // largest number of requests in flight
	Interval time.Duration // time between two batches; 0 without Job.RequestsPerSecond
	Permits  int           // number of batches that may be refused or of unknown outcome
	Limit    time.Duration // time limit for a call of the source
}

// report has the results of the batches From to Done-1 of an order.
type report struct {
	Done        int            `json:"done"`
	Accepted    int            `json:"accepted"`
	FromJournal int            `json:"from_journal,omitempty"`
	Refused     []RefusedBatch `json:"refused,omitempty"`
	Unknown     []int          `json:"unknown,omitempty"`
	Invalid     []InvalidCard  `json:"invalid,omitempty"` // at most 1,000 entries
	LeftOut     int            `json:"left_out,omitempty"`
	Lost        int            `json:"lost,omitempty"`     // number of lost permits; see the type permits
	Regained    int            `json:"regained,omitempty"` // number of lost permits that became free again
	ending
}

// RefusedBatch is a batch that the service has refused, or that has no valid card.
type RefusedBatch struct {
	Batch  int    `json:"batch"`
	Reason string `json:"reason"`
}

// InvalidCard is a card that cannot be sent.
type InvalidCard struct {
	Card   int    `json:"card"` // position in the snapshot
	Reason string `json:"reason"`
}

const reasonChanged = "the source has other cards than those of the snapshot"

// errEnd cancels SubmitAll when the worker stops, or when all permits of the activity are lost (see the type permits).
// Another activity submits the remaining batches.
var errEnd = errors.New("the attempt ends")

// submit is the activity that submits a range of batches. The journal records each batch before it is sent. So the
// activity may run again, even while an earlier attempt is still running.
func (a *Activities) submit(ctx context.Context, o order) (*report, error) {
	if a.Cards == nil || a.Client == nil || a.Journal == nil {
		return nil, errors.New("a worker has no Cards, no Client or no Journal in its Activities")
	}
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &submission{order: o, report: report{Done: o.From}, stop: stop}
	s.permits = newPermits(o.Permits, func() { stop(errEnd) })
	defer keepAlive(ctx, func() any { return s.done.Load() })()
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			stop(errEnd)
		case <-sending.Done():
		}
	}()
	err := s.run(sending, a)
	s.Lost, s.Regained = s.permits.count()
	err = s.end(ctx, err, s.Done > o.From || s.Lost > 0)
	return &s.report, err
}

// submission is one attempt of the activity submit.
type submission struct {
	order
	report

	permits *permits
	stop    context.CancelCauseFunc // cancels SubmitAll; the first call sets the cause
	done    atomic.Int64            // number of batches in the report, for the heartbeat
}

// run reads the cards and sends them. The report ends before the first batch that still has to be sent. The next
// attempt reads the outcomes of later batches from the journal.
func (s *submission) run(ctx context.Context, a *Activities) error {
	cards, err := s.read(ctx, a)
	if errors.Is(context.Cause(ctx), errEnd) { // the worker stops
		return nil
	}
	if err != nil {
		return err
	}
	journal := &rangeJournal{Journal: a.Journal, permits: s.permits, first: s.From}
	var first, last error // the error of the first batch that still has to be sent, and the reason why SubmitAll stopped
	options := &payvault.SubmitAllOptions{Concurrency: s.InFlight, Journal: journal, Job: s.Job}
	for b, err := range a.Client.AccountUpdater.SubmitAll(ctx, s.stream(ctx, cards), options) {
		switch {
		case err != nil:
			last = stopError(err)
		case first == nil && !s.add(b):
			first = ActivityError(b.Err)
			s.stop(first)
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errEnd):
		return nil
	case last != nil:
		return last
	default:
		return cause
	}
}

// stopError converts the last error of SubmitAll. It returns nil if SubmitAll has stopped because the context has ended.
// For a reason that the next attempt would meet again, the result pauses the job. Otherwise another attempt may follow,
// because the journal has the batches that were sent.
func stopError(err error) error {
	stop, ok := errors.AsType[*payvault.StopError](err)
	if !ok { // an invalid argument
		return ActivityError(err)
	}
	switch stop.Reason {
	case payvault.StopContext:
		return nil
	case payvault.StopOtherCards, payvault.StopKey, payvault.StopNoCode:
		return pauseFor(stop.Error())
	default:
		return temporal.NewApplicationErrorWithOptions(stop.Error(), TypeSafeToRetry,
			temporal.ApplicationErrorOptions{NextRetryDelay: stop.RetryAfter})
	}
}

// add adds a batch to the report. It returns false, and adds nothing, if the batch still has to be sent. A batch whose
// cards are all invalid counts as refused.
func (s *submission) add(b *payvault.AccountUpdaterBatch) bool {
	batch := s.From + b.Index
	switch {
	case b.Status == payvault.BatchAccepted:
		s.Accepted++
	case b.Status == payvault.BatchUnknown:
		s.Unknown = append(s.Unknown, batch)
	case b.Status == payvault.BatchRefused:
		s.Refused = append(s.Refused, RefusedBatch{batch, cut(b.Err.Error())})
	case b.Start < b.End && len(b.Invalid) == b.End-b.Start:
		s.Refused = append(s.Refused, RefusedBatch{batch, cut(b.Err.Error())})
		s.permits.lose()
	default:
		return false
	}
	if b.FromJournal {
		s.FromJournal++
	}
	var invalid []InvalidCard
	for _, card := range b.Invalid {
		invalid = append(invalid, InvalidCard{s.From*batchSize + card.Position, cut(card.Err.Error())})
	}
	s.LeftOut += len(invalid)
	s.Invalid = appendSome(s.Invalid, invalid)
	s.Done++
	s.done.Add(1)
	return true
}

// read returns the cards of the range. If the source no longer matches the snapshot of the job, read returns an error
// that pauses the job.
func (s *submission) read(ctx context.Context, a *Activities) ([]payvault.AccountUpdaterCard, error) {
	const name = "the source of cards"
	start, end := s.From*batchSize, min(s.To*batchSize, s.Snapshot.Cards)
	cards, err := call(ctx, s.Limit, name, func(ctx context.Context) ([]payvault.AccountUpdaterCard, error) {
		return a.Cards.Cards(ctx, s.Source, start, end)
	})
	if err != nil {
		return nil, err
	}
	now, err := call(ctx, s.Limit, name, func(ctx context.Context) (Snapshot, error) {
		return a.Cards.Snapshot(ctx, s.Source) // after Cards, to notice a change during that call
	})
	if err == nil && (now != s.Snapshot || len(cards) != end-start) {
		err = pauseFor(reasonChanged)
	}
	return cards, err
}

// stream yields the cards. Each batch waits for a permit and then for s.Interval. The wait comes after the first card of
// the batch, because SubmitAll sends a batch when it has the first card of the next one.
func (s *submission) stream(
	ctx context.Context, cards []payvault.AccountUpdaterCard,
) iter.Seq2[payvault.AccountUpdaterCard, error] {
	return func(yield func(payvault.AccountUpdaterCard, error) bool) {
		for i, card := range cards {
			if !yield(card, nil) {
				return
			}
			isFirst := i%batchSize == 0
			if isFirst && (!s.permits.take(ctx) || !sleep(ctx, s.Interval)) {
				return
			}
		}
	}
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

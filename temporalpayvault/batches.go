package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
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
	Job       string // name of the job in the journal
	JournalID string // ID of the journal
	Source    string
	Snapshot  Snapshot
	From      int           // number of the first batch
	To        int           // number of the batch after the last one
	InFlight  int           // largest number of requests in flight
	Interval  time.Duration // time between two batches; 0 without Job.RequestsPerSecond
	Permits   int           // number of batches that may be refused or of unknown outcome
	Limit     time.Duration // time limit for a call of the source
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
	Lost        int            `json:"lost,omitempty"`     // number of lost permits, and of batches that are abandoned
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

// maxStale is the number of attempts after which the job pauses if the source has other cards than the snapshot. The
// waits between these attempts add up to 4 minutes. One of the attempts may run on a worker that has the right file.
const maxStale = 10

const reasonChanged = "the source has other cards than those of the snapshot: restore the cards and resume, " +
	"because a new job with the changed cards sends all of them"

// errEnd cancels SubmitAll when the worker stops, or when all permits of the activity are lost (see the type permits).
// Another activity submits the remaining batches.
var errEnd = errors.New("the attempt ends")

var errNoJournal = errors.New("a worker has no Cards, no Client or no Journal in its Activities")

// submit is the activity that submits a range of batches. The journal records each batch before it is sent. So the
// activity may run again, even while an earlier attempt is still running.
func (a *Activities) submit(ctx context.Context, o order) (*report, error) {
	if a.Cards == nil || a.Client == nil || a.Journal == nil {
		return nil, errNoJournal
	}
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &submission{order: o, report: report{Done: o.From}, stop: stop}
	s.permits = newPermits(o.Permits, func() { stop(errEnd) })
	s.journal = newRangeJournal(ctx, a.Journal, s.permits)
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
	s.Lost += s.abandoned
	// Only a report tells the workflow how many permits are lost. An attempt without progress can end with an error and no
	// report. So the loss of permits counts as progress.
	err = s.end(ctx, err, s.Done > o.From || s.Lost > 0)
	return &s.report, err
}

// journalID is the activity that returns the ID of the journal.
func (a *Activities) journalID(ctx context.Context) (string, error) {
	if a.Journal == nil {
		return "", errNoJournal
	}
	return a.Journal.ID(ctx)
}

// checkJournal returns an error if the worker has another journal than the job. The argument wanted is the ID of the
// journal of the job. After the error, Temporal repeats the activity, perhaps on a worker that has the right journal.
func (a *Activities) checkJournal(ctx context.Context, wanted string) error {
	id, err := a.Journal.ID(ctx)
	if err == nil && id != wanted {
		err = fmt.Errorf("this worker has the journal %q, and the job has %q", id, wanted)
	}
	return err
}

// submission is one attempt of the activity submit.
type submission struct {
	order
	report

	permits   *permits
	journal   *rangeJournal
	stop      context.CancelCauseFunc // cancels SubmitAll; the first call sets the cause
	done      atomic.Int64            // number of batches in the report, for the heartbeat
	abandoned int                     // number of reported batches that another attempt has begun and not ended
}

// run reads the cards and sends them. The report ends before the first batch that still has to be sent. The next
// attempt reads the outcomes of later batches from the journal.
//
// Another attempt may still be at work on the range, for example an attempt of a terminated workflow. So run waits at a
// batch that another attempt has begun and not ended, and then looks at this batch and the later ones again. In all it
// waits for the HeartbeatTimeout, because Temporal notices a lost worker within this time. After that, run reports such
// a batch as unknown.
func (s *submission) run(ctx context.Context, a *Activities) error {
	if err := a.checkJournal(ctx, s.JournalID); err != nil {
		return err
	}
	cards, err := s.read(ctx, a)
	if errors.Is(context.Cause(ctx), errEnd) { // the worker stops
		return nil
	}
	if err != nil {
		return err
	}
	patience := activity.GetInfo(ctx).HeartbeatTimeout
	for wait := min(time.Second, patience); ; wait = min(2*wait, patience) {
		err := s.send(ctx, a.Client.AccountUpdater, cards[(s.Done-s.From)*batchSize:], patience > 0)
		if err != nil || s.Done == s.To || !sleep(ctx, wait) {
			return err
		}
		patience -= wait
	}
}

// send sends the cards of the batches from Done on, and adds the batches to the report in their order. It stops adding
// at a batch that still has to be sent. If mayWait is set, it also stops adding at a batch that another attempt has
// begun and not ended.
func (s *submission) send(
	ctx context.Context, updater *payvault.AccountUpdaterService, cards []payvault.AccountUpdaterCard, mayWait bool,
) error {
	s.journal.first = s.Done
	isWaiting := false    // a batch that another attempt has in flight was met
	var first, last error // the error of the first batch that still has to be sent, and the reason why SubmitAll stopped
	options := &payvault.SubmitAllOptions{Concurrency: s.InFlight, Journal: s.journal, Job: s.Job}
	for b, err := range updater.SubmitAll(ctx, s.stream(ctx, cards), options) {
		switch {
		case err != nil:
			last = stopError(err)
		case first != nil:
		case b.Status == payvault.BatchNotSent && !hasNoCard(b):
			first = ActivityError(b.Err)
			s.stop(first)
		case isWaiting && hasNoCard(b):
			s.permits.giveBack() // the batch takes another permit when it comes again
		case isWaiting:
		case mayWait && s.journal.knows(s.journal.first+b.Index) == abandoned:
			isWaiting = true
		default:
			s.add(b)
		}
	}
	cause := context.Cause(ctx)
	stop, _ := errors.AsType[*temporal.ApplicationError](last)
	mayPass := stop == nil || !stop.NonRetryable()
	switch {
	case errors.Is(cause, errEnd) && mayPass: // another activity meets the reason again
		return nil
	case last != nil:
		return last
	default:
		return cause
	}
}

// hasNoCard reports whether all cards of a batch are invalid.
func hasNoCard(b *payvault.AccountUpdaterBatch) bool {
	return b.Start < b.End && len(b.Invalid) == b.End-b.Start
}

// stopError converts the last error of SubmitAll. It returns nil if SubmitAll has stopped because the context has
// ended. If the reason passes by itself, another attempt may follow, because the journal has the batches that were
// sent. Any other reason, or an invalid argument, pauses the job.
func stopError(err error) error {
	stop, ok := errors.AsType[*payvault.StopError](err)
	if !ok { // an invalid argument
		return ActivityError(err)
	}
	switch {
	case stop.Reason == payvault.StopContext:
		return nil
	case stop.Reason.Passes():
		return temporal.NewApplicationErrorWithOptions(stop.Error(), TypeSafeToRetry,
			temporal.ApplicationErrorOptions{NextRetryDelay: stop.RetryAfter})
	default:
		return pauseFor(stop.Error())
	}
}

// add adds a batch to the report. A batch whose cards are all invalid counts as refused.
func (s *submission) add(b *payvault.AccountUpdaterBatch) {
	batch := s.journal.first + b.Index
	switch b.Status {
	case payvault.BatchAccepted:
		s.Accepted++
	case payvault.BatchUnknown:
		s.Unknown = append(s.Unknown, batch)
	case payvault.BatchRefused, payvault.BatchNotSent: // a batch that is not sent has no valid card
		s.Refused = append(s.Refused, RefusedBatch{batch, cut(b.Err.Error())})
	}
	if hasNoCard(b) {
		s.permits.lose()
	}
	if s.journal.knows(batch) == abandoned {
		s.abandoned++
	}
	if b.FromJournal && s.journal.knows(batch) != sent {
		s.FromJournal++
	}
	var invalid []InvalidCard
	for _, card := range b.Invalid {
		invalid = append(invalid, InvalidCard{s.journal.first*batchSize + card.Position, cut(card.Err.Error())})
	}
	s.LeftOut += len(invalid)
	s.Invalid = appendSome(s.Invalid, invalid)
	s.Done++
	s.done.Add(1)
}

// read returns the cards of the range. If the source does not match the snapshot of the job, read returns an error.
// From attempt maxStale on, this error pauses the job.
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
	if err != nil || now == s.Snapshot && len(cards) == end-start {
		return cards, err
	}
	if activity.GetInfo(ctx).Attempt < maxStale {
		return nil, errors.New(reasonChanged)
	}
	return nil, pauseFor(reasonChanged)
}

// stream yields the cards. Each batch waits for a permit. Then it waits for s.Interval, unless an earlier call of send
// has sent it or found it in the journal. The waits come after the first card of the batch. Before this card they would
// delay the previous batch, because SubmitAll sends the previous batch when it gets this card.
func (s *submission) stream(
	ctx context.Context, cards []payvault.AccountUpdaterCard,
) iter.Seq2[payvault.AccountUpdaterCard, error] {
	return func(yield func(payvault.AccountUpdaterCard, error) bool) {
		for i, card := range cards {
			if !yield(card, nil) {
				return
			}
			if i%batchSize != 0 {
				continue
			}
			interval := s.Interval
			if s.journal.knows(s.journal.first+i/batchSize) != "" { // it was sent, or found in the journal
				interval = 0
			}
			if !s.permits.take(ctx) || !sleep(ctx, interval) {
				return
			}
		}
	}
}

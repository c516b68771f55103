package payvault

import (
	"context"
	"iter"
	"slices"

	"example.com/payvault/internal/window"
)

// SubmitAllOptions sets how [AccountUpdaterService.SubmitAll] works through its cards.
type SubmitAllOptions struct {
	// Concurrency is how many requests are in flight; 4 if it is not positive. That leaves the service and the
	// connections to other callers, and still sends 60,000 cards a second where a request takes 5 ms. The speed grows in
	// proportion: 32 requests send eight times as many cards. Up to 128 requests find idle connections in the client's
	// own pool. More than 10,000 are taken for 10,000.
	Concurrency int
	// Journal lets a later run go on where this one ends, however it ends. Without one every walk sends all cards.
	Journal Journal
	// Job names the cards in the Journal, and is required with one, and only then. It has to be the same in each run of
	// the same cards, in the same order, for the same service and merchant. Under another name all cards are sent. Other
	// cards under the same name are taken for those that were sent before, so make the name from the cards: see
	// [JobName]. A batch with another number of cards than in an earlier run ends the walk: its error matches
	// ErrInvalidRequest and has the field Job.
	Job string
}

const (
	defaultConcurrency = 4
	maxConcurrency     = 10_000
)

// SubmitAll cuts cards into requests of 100 and keeps some of them in flight. It yields every batch once and in the
// order of the stream, with the RequestID or with the error, as soon as that batch and those before it are decided.
// Invalid arguments are one batch without cards, with the error, and the stream is not read.
//
// A card that cannot be sent is left out and named in Invalid, and the rest of its batch is sent. A batch of nothing
// but such cards is yielded as not sent, with an error that matches [ErrInvalidRequest]; the journal is not told of it.
//
// A batch whose outcome is unknown is never sent again by itself. With [WithReplay], which says that this does no harm,
// a lost request is repeated.
//
// # Journal
//
// With a [Journal] a walk goes on where an earlier one ended, even if its process was killed. It yields what the
// journal knows as FromJournal and sends the rest. A batch that a killed process had begun and not ended is of unknown
// outcome for good. There are at most Concurrency of them, since a batch that waits for the rate limit has not begun.
// Without a Journal, the outcomes that were not yielded yet are lost with the process.
//
// # Stream
//
// The stream is read in a goroutine of its own, each time from its beginning. It has to end with ctx: the loop waits
// for it. When the stream returns, the cards that it has given are taken for all cards. So with a Journal, a stream
// that fails half way, as a file may, has to cancel ctx before it returns, as in the example. Otherwise its last batch
// is sent with too few cards, and the others of that batch never are. Without a Journal it is enough to look at the
// error of the stream after the loop.
//
// Memory does not grow with the stream. 2 × Concurrency − 1 batches may have been read that were not yielded yet, and
// one more is being read. With [WithResponse] each of them may hold an answer, of at most [WithMaxResponseBytes].
//
// # End
//
// A walk stops when
//
//   - ctx ends,
//   - the journal fails, or knows another number of cards in a batch,
//   - the service answers with status 401 or 403, or something else answers with another status from 400 to 499 and
//     without a code of the service (except 408), as they would to all other batches,
//   - the service refuses a batch with status 429 and asks for a longer wait than RetryPolicy.MaxBulkRetryAfter (15
//     minutes) or than ctx lasts,
//   - the service refuses a batch with status 429, and RetryPolicy.MaxAttempts or [WithMaxAttempts] is 1, so that the
//     walk does not wait; RetryPolicy.IgnoreOverload excludes this case,
//   - 10 batches in a row, or 2 × Concurrency if that is more, are of unknown outcome: the service seems to be gone,
//     and somebody has to look up each of them.
//
// Then it sends nothing more and yields the rest of the stream as not sent. Requests in flight go on to their end,
// within the time of one attempt, and are not repeated. But without a Journal they are cut off when ctx ends, which
// leaves their outcome unknown. If no batch has the reason, a last one without cards has it. With a Journal
// an earlier run may have sent these batches, so [SafeToRetry] is false for their errors: run the job again.
//
// Leaving the loop ends the walk as the end of ctx does, and waits for the stream to give its next card or to return.
// So cancel ctx before you leave the loop of a stream that may wait. A panic of the stream, a transport, a key source
// or the journal comes out of the loop, after the batches before it.
//
// POST /platform/aus/add.
func (s *AccountUpdaterService) SubmitAll(
	ctx context.Context, cards iter.Seq[AccountUpdaterCard], opt *SubmitAllOptions, opts ...CallOption,
) iter.Seq[*AccountUpdaterBatch] {
	var o SubmitAllOptions
	if opt != nil {
		o = *opt
	}
	if o.Concurrency = min(o.Concurrency, maxConcurrency); o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	opts = slices.Clone(opts) // what the caller changes later does not change the walk
	return func(yield func(*AccountUpdaterBatch) bool) {
		call := newCallOptions(opts)
		if cards == nil {
			call.problems.add("cards", "is nil")
		}
		if err := s.checkWalk(ctx, o, call.problems); err != nil {
			yield(&AccountUpdaterBatch{Status: BatchNotSent, Err: err})
			return
		}
		w := newBulkWalk(ctx, s, o, opts)
		defer w.leave()
		w.reading.Go(func() { w.read(cards) })
		for b := range w.batches {
			if call.response != nil {
				*call.response = b.raw
			}
			if !yield(&b.AccountUpdaterBatch) {
				return
			}
		}
	}
}

// checkWalk finds what would fail in every batch.
func (s *AccountUpdaterService) checkWalk(ctx context.Context, o SubmitAllOptions, p problems) error {
	if s.caller.actsFor != nil {
		return merchantError(OpAccountUpdaterSubmit)
	}
	if ctx == nil {
		p.add("context", "is nil")
	}
	switch {
	case o.Journal != nil && o.Job == "":
		p.add("Job", "is required with a Journal")
	case o.Journal == nil && o.Job != "":
		p.add("Journal", "is required with a Job")
	}
	return p.err(OpAccountUpdaterSubmit)
}

// newBulkWalk returns a walk that has not begun to read its stream.
func newBulkWalk(ctx context.Context, s *AccountUpdaterService, o SubmitAllOptions, opts []CallOption) *bulkWalk {
	w := &bulkWalk{
		service: s, journal: o.Journal, job: o.Job, opts: opts, keepRaw: newCallOptions(opts).response != nil,
		ctx: ctx, requests: context.WithoutCancel(ctx), cutOff: func() {},
		ahead:    window.New[*bulkBatch](2*o.Concurrency - 1), // so that one slow batch does not hold up the others
		inFlight: make(chan struct{}, o.Concurrency),
	}
	w.sending, w.stop = context.WithCancelCause(ctx)
	if w.journal == nil {
		w.requests, w.cutOff = context.WithCancel(ctx)
	}
	return w
}

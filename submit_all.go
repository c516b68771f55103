package payvault

import (
	"context"
	"iter"
	"slices"

	"example.com/payvault/internal/window"
)

// SubmitAllOptions sets how [AccountUpdaterService.SubmitAll] works through its cards.
type SubmitAllOptions struct {
	// Concurrency is the largest number of requests in flight; 4 if it is not positive, and 10,000 at most. If a request
	// takes 5 ms, 4 requests in flight send up to 80,000 cards a second, and 32 send up to eight times as many. The
	// client's own pool keeps connections for 128 requests.
	Concurrency int
	// Journal lets a later run go on where this run ends, even if the process is killed. Without a Journal every run sends
	// all cards.
	Journal Journal
	// Job is the name of the cards in the Journal. It is required with a Journal, and refused without one. Use the same
	// name for each run of the same cards, in the same order, for the same service and merchant. Under another name all
	// cards are sent again. If other cards have the same name, SubmitAll does not send the batches whose numbers the
	// journal has: it takes their cards for the cards of the earlier run. So make the name from the cards: see [JobName].
	// The journal keeps the number of cards of each batch that has ended. If a later run has another number of cards in
	// such a batch, SubmitAll stops with an error that matches ErrInvalidRequest and has the field Job.
	Job string
}

const (
	defaultConcurrency = 4
	maxConcurrency     = 10_000
)

// SubmitAll cuts the stream of cards into batches of 100, sends each batch as a request, and keeps some requests in
// flight. Each loop over the result is called a walk. A walk yields every batch once, in the order of the stream, with
// the RequestID or with the error. It yields a batch as soon as the requests of this batch and of all earlier batches
// have ended. If an argument is invalid, the walk reads no card and yields one batch without cards that has the error.
//
// A card that fails [AccountUpdaterCard.Check] is listed in Invalid, and the rest of its batch is sent. If no card of a
// batch can be sent, the batch is yielded as not sent, with an error that matches [ErrInvalidRequest]. The journal does
// not record such a batch.
//
// A walk never sends a batch of unknown outcome again. With [WithReplay], which states that repeating does no harm, a
// lost request is repeated before the outcome of its batch counts as unknown.
//
// # Journal
//
// With a [Journal] a walk continues where an earlier walk ended, even if the process of the earlier walk was killed. It
// yields the batches that the journal has, with FromJournal set, and sends all other batches. The outcome of a batch
// stays unknown if a killed process had begun the batch and not ended it. There are at most Concurrency such batches,
// because a batch that waits for the rate limit has not begun. Without a Journal, the outcomes that were not yielded
// yet are lost with the process.
//
// # Stream
//
// Each walk reads the stream from its start, in a goroutine of its own. The stream has to return when ctx ends, because
// the walk waits for it. When the stream returns, the walk takes it for complete. So with a Journal, a stream that
// fails half way has to cancel ctx before it returns, as in the example. Otherwise its last batch is sent with too few
// cards. Later runs then stop at that batch, so the rest of the stream is not sent under this Job. Without a Journal it
// is enough to look at the error of the stream after the loop.
//
// Memory does not grow with the stream. At most 2 × Concurrency − 1 batches have been read and not yet yielded, and one
// more is being read. With [WithResponse] each of these batches may hold an answer of at most [WithMaxResponseBytes].
//
// # End
//
// A walk stops when
//
//   - ctx ends,
//   - the journal fails, or has another number of cards for a batch,
//   - a batch gets status 401 or 403, or another status from 400 to 499 (except 408 and 429) without a code of the
//     service: all other batches would get the same status,
//   - a batch gets status 429, and the service asks for a longer wait than RetryPolicy.MaxBulkRetryAfter (15 minutes by
//     default),
//   - a batch gets status 429 and no retry, because ctx ends before the wait is over, or because only one attempt is
//     allowed (RetryPolicy.MaxAttempts or [WithMaxAttempts]). With RetryPolicy.IgnoreOverload such a batch does not
//     stop the walk,
//   - 10 sent batches in a row, or 2 × Concurrency if that is more, are of unknown outcome: the service seems to be
//     down, and somebody has to look up each of these batches.
//
// When a walk has stopped, it sends nothing more and yields the rest of the stream as not sent. Requests in flight are
// completed, within the time of one attempt, and are not repeated. But without a Journal, the end of ctx cuts them off,
// and their outcome is unknown. If the walk stopped before the end of its stream, or if the journal failed, the error
// of the last yielded batch has the reason. The last batch may be an additional batch without cards. With a Journal an
// earlier run may have sent a batch that this run leaves out after the stop. So [SafeToRetry] is false for the error of
// such a batch: run the job again.
//
// Leaving the loop ends the walk, like the end of ctx. Leaving waits for the requests in flight, and until the stream
// yields its next card or returns. So if the stream may wait for long, cancel ctx before you leave the loop. If the
// stream, a transport, a key source or the journal panics, the loop panics after it has yielded the earlier batches.
//
// POST /platform/aus/add.
func (s *AccountUpdaterService) SubmitAll(
	ctx context.Context, cards iter.Seq[AccountUpdaterCard], opt *SubmitAllOptions, opts ...CallOption,
) iter.Seq[*AccountUpdaterBatch] {
	var o SubmitAllOptions
	if opt != nil {
		o = *opt
	}
	o.Concurrency = min(o.Concurrency, maxConcurrency)
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	opts = slices.Clone(opts) // later changes by the caller have no effect on the walk
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

// checkWalk returns the error that every batch would have, or nil.
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
		ahead:    window.New[*bulkBatch](2*o.Concurrency - 1), // large, so that a slow batch does not stop others
		inFlight: make(chan struct{}, o.Concurrency),
	}
	w.sending, w.stop = context.WithCancelCause(ctx)
	if w.journal == nil {
		w.requests, w.cutOff = context.WithCancel(ctx)
	}
	return w
}

package payvault

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"example.com/payvault/internal/window"
)

// bulkWalk is one pass over a stream of cards. One goroutine reads the stream and puts a job for each batch into the
// window. The loop of the caller takes the batches from the window, in their order.
type bulkWalk struct {
	service *AccountUpdaterService
	journal Journal // nil for none
	job     string
	opts    []CallOption
	keepRaw bool // the caller wants the answers

	ctx      context.Context         //nolint:containedctx // of the caller
	sending  context.Context         //nolint:containedctx // ends with ctx or by stop; nothing more is sent then
	stop     context.CancelCauseFunc // the first error counts
	requests context.Context         //nolint:containedctx // of requests in flight; with a journal it does not end
	cutOff   func()                  // ends the context requests; with a journal it does nothing

	ahead    *window.Window[*bulkBatch]
	inFlight chan struct{}         // of size Concurrency; one for each batch that waits for its turn or is on its way
	unknown  atomic.Int64          // batches of unknown outcome in a row
	failure  atomic.Pointer[error] // the first error of the journal

	reading  sync.WaitGroup // the goroutine that reads the stream; it sets:
	early    error          // why the walk had stopped before the end of the stream; nil if it had not
	panicked any            // the value that the stream panicked with
}

// read cuts the stream into batches and starts them.
func (w *bulkWalk) read(cards iter.Seq[AccountUpdaterCard]) {
	defer w.ahead.End()
	defer func() { w.panicked = recover() }()
	batch, valid := &bulkBatch{}, []AccountUpdaterCard(nil)
	for card := range cards {
		if err := card.Check(); err != nil {
			batch.Invalid = append(batch.Invalid, InvalidCard{Position: batch.End, Err: err})
		} else {
			valid = append(valid, card)
		}
		batch.End++
		if batch.End-batch.Start == MaxAccountUpdaterCards {
			next := batch.next()
			w.start(batch, valid)
			batch, valid = next, make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
		}
		if w.ahead.IsStopped() {
			return
		}
	}
	w.early = w.stopped() // a stream that fails cancels the context before it returns
	if batch.End > batch.Start {
		w.start(batch, valid)
	}
}

// start has a batch sent in a goroutine of its own, when there is room for it.
func (w *bulkWalk) start(b *bulkBatch, cards []AccountUpdaterCard) {
	if len(cards) == 0 {
		b.Status, b.Err = BatchNotSent, noCardError()
		w.ahead.Start(func() *bulkBatch { return b })
		return
	}
	w.inFlight <- struct{}{}
	w.ahead.Start(func() *bulkBatch {
		defer func() { <-w.inFlight }()
		w.send(b, cards)
		return b
	})
}

// send sends a batch when its turn has come, and again when the service refuses it with status 429. It waits before
// it calls begin, because the journal takes a batch between begin and end for one that was sent.
func (w *bulkWalk) send(b *bulkBatch, cards []AccountUpdaterCard) {
	for {
		b.Status, b.Err, b.raw = "", nil, Response{} // those of a refusal do not count
		opts, err := w.service.caller.waitForTurn(w.sending, OpAccountUpdaterSubmit, w.opts)
		if err != nil {
			w.stop(err)
			w.leaveOut(b, w.stopped())
			return
		}
		if !w.begin(b) {
			return
		}
		w.submit(b, cards, opts)
		w.end(b)
		if !w.service.caller.startsOver(OpAccountUpdaterSubmit, b.Err, w.opts) {
			w.stopIfHopeless(b)
			return
		}
	}
}

// begin records that a batch is about to be sent. If the batch is not to be sent, begin decides it and returns false.
func (w *bulkWalk) begin(b *bulkBatch) bool {
	if cause := w.stopped(); cause != nil {
		w.leaveOut(b, cause)
		return false
	}
	if w.journal == nil {
		return true
	}
	known, err := w.journal.Begin(w.sending, w.job, b.Index)
	switch {
	case err != nil:
		if w.stopped() == nil { // else it may have failed because the walk has stopped
			w.failJournal(err)
		}
		w.leaveOut(b, w.stopped())
	case b.isOther(known):
		b.Status, b.Err, b.hasReason = BatchNotSent, otherCardsError(b.Index), true
		w.stop(errors.New("the job " + otherCardsText(b.Index)))
	case known.Begun:
		b.takeFrom(known)
	default:
		return true
	}
	return false
}

// submit makes the call of a batch.
func (w *bulkWalk) submit(b *bulkBatch, cards []AccountUpdaterCard, opts []CallOption) {
	opts = append(slices.Clip(opts), WithResponse(&b.raw), func(o *callOptions) { o.sending = w.sending })
	accepted, err := w.service.Submit(w.requests, cards, opts...)
	b.Status, b.Err = statusOf(err, b.raw.Body), err
	if !w.keepRaw {
		b.raw = Response{}
	}
	if accepted != nil {
		b.RequestID = accepted.RequestID
	}
	cause := w.stopped()
	if e, failed := errors.AsType[*Error](err); failed && cause != nil {
		switch {
		case e.Attempts == 0:
			w.leaveOut(b, cause)
		case errors.Is(e, errStopped):
			b.Err = stoppedError(e, cause)
		}
	}
}

// end records what came of a batch.
func (w *bulkWalk) end(b *bulkBatch) {
	if w.journal == nil {
		return
	}
	if err := w.journal.End(w.requests, w.job, b.Index, b.outcome()); err != nil {
		w.failJournal(err)
	}
}

// failJournal stops the walk because the journal has failed.
func (w *bulkWalk) failJournal(err error) {
	err = fmt.Errorf("journal: %w", err)
	w.failure.CompareAndSwap(nil, &err)
	w.stop(err)
}

// mostUnknown is how many batches of unknown outcome in a row stop a walk. With a large Concurrency it takes more.
const mostUnknown = 10

// stopIfHopeless stops the walk if the next batches would fare no better than b.
func (w *bulkWalk) stopIfHopeless(b *bulkBatch) {
	e, failed := errors.AsType[*Error](b.Err)
	if failed && (refusesAll(e) || w.isTurnedAway(e)) {
		w.stop(e)
	}
	if b.Status != BatchUnknown {
		w.unknown.Store(0)
		return
	}
	if n := int(w.unknown.Add(1)); n >= max(mostUnknown, 2*cap(w.inFlight)) {
		w.stop(fmt.Errorf("the last %d batches are of unknown outcome", n))
	}
}

// isTurnedAway reports whether a batch that is not sent again was refused with status 429 and stops the walk. With
// IgnoreOverload each batch has its own attempts, and it stops the walk only if the wait is too long.
func (w *bulkWalk) isTurnedAway(e *Error) bool {
	c := w.service.caller
	isPaced := c.paces[OpAccountUpdaterSubmit] != nil
	return e.StatusCode == http.StatusTooManyRequests && e.Delivery != Unknown &&
		(isPaced || e.RetryAfter > c.policy.MaxBulkRetryAfter)
}

// stopped returns why nothing more is sent, or nil. It does not return the cause of ctx, which may be the error of
// another call.
func (w *bulkWalk) stopped() error {
	cause := context.Cause(w.sending) // first, since ctx may end in between, and its cause with it
	if end := w.ctx.Err(); end != nil {
		return safeCause(w.ctx, end)
	}
	return cause
}

// leaveOut decides a batch that is not sent because the walk has stopped. With a journal its error is not safe to
// retry: an earlier run may have sent the batch, and the journal was not asked.
func (w *bulkWalk) leaveOut(b *bulkBatch, cause error) {
	e := unsentError(cause)
	e.final = w.journal != nil
	b.Status, b.Err, b.hasReason = BatchNotSent, e, true
}

// batches yields the batches in their order. If none of them says why the walk has stopped, a last one without cards
// does.
func (w *bulkWalk) batches(yield func(*bulkBatch) bool) {
	last := &bulkBatch{}
	next := &bulkBatch{}
	for {
		b, ok := w.ahead.Pop()
		if !ok {
			break
		}
		copied := *b // the caller may change the batch
		last, next = &copied, b.next()
		if !yield(b) {
			return
		}
	}
	failure := w.failure.Load()
	switch {
	case w.panicked != nil:
	case failure != nil && !errors.Is(last.Err, *failure):
		w.leaveOut(next, *failure)
		yield(next)
	case w.early != nil && !last.hasReason:
		w.leaveOut(next, w.early)
		yield(next)
	}
}

// leave ends the walk. It waits for the stream and for the requests in flight, and panics if the stream or the code
// that sends has panicked.
func (w *bulkWalk) leave() {
	w.stop(context.Canceled)
	w.cutOff()
	w.ahead.Stop()
	w.reading.Wait()
	w.ahead.Wait()
	if w.panicked != nil {
		panic(w.panicked)
	}
}

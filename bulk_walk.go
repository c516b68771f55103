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

// bulkWalk is one pass over a stream of cards. One goroutine runs read, which reads the stream and puts a task for each
// batch into the window. Each task sends its batch in a goroutine of its own. The loop of the caller runs batches,
// which takes the batches from the window in their order.
type bulkWalk struct {
	service *AccountUpdaterService
	journal Journal // nil for none
	job     string  // its name in the journal
	opts    []CallOption
	keepRaw bool // the caller uses WithResponse

	// ctx is the context of the caller.
	ctx context.Context //nolint:containedctx // see above
	// sending ends with ctx or by stop. After that, no batch is sent, and none is sent again.
	sending context.Context         //nolint:containedctx // see above
	stop    context.CancelCauseFunc // ends sending; the first cause counts
	// requests is the context of the requests in flight. Without a journal it ends with ctx or by cutOff. With a journal
	// it never ends, because the journal has to record the outcome of each request.
	requests context.Context //nolint:containedctx // see above
	cutOff   func()          // ends requests; does nothing with a journal

	ahead    *window.Window[*bulkBatch] // the batches that were read and not yet yielded
	inFlight chan struct{}              // has one element for each batch that is being sent or waits for the rate limit
	unknown  atomic.Int64               // number of batches of unknown outcome in a row, in the order in which they end
	failure  atomic.Pointer[error]      // the first error of the journal

	// reading waits for the goroutine that runs read. Before that goroutine ends the window ahead, it sets early and
	// panicked. So both are set when ahead has no more batches.
	reading  sync.WaitGroup
	early    error // why the walk had stopped when the stream ended; nil if it had not stopped
	panicked any   // the value that the stream panicked with
}

// read reads the stream, cuts the cards into batches and starts each batch. It returns at the end of the stream, or
// when the caller has left the loop. It keeps a panic of the stream in panicked.
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
			next := batch.next() // call it before start: after that, the caller may change the batch
			w.start(batch, valid)
			batch, valid = next, make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
		}
		if w.ahead.IsStopped() { // the caller has left the loop, so nobody needs the rest
			return
		}
	}
	w.early = w.whyStopped() // a stream that fails cancels the context and returns: its last cards may be missing
	if batch.End > batch.Start {
		w.start(batch, valid)
	}
}

// start puts a task into the window that sends the valid cards of a batch and returns the batch. Before that, it waits
// until fewer than Concurrency batches are in flight and the window has room. Without valid cards the task returns the
// batch with its error.
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

// send waits for the rate limit, sends a batch and sets its status and its error. It starts over when the service
// refuses the batch with status 429. It calls begin only after the wait, because after begin the journal counts the
// batch as sent.
func (w *bulkWalk) send(b *bulkBatch, cards []AccountUpdaterCard) {
	for {
		b.Status, b.Err, b.raw = "", nil, Response{} // forget the 429 of the previous call
		opts, err := w.service.caller.waitInWalk(w.sending, OpAccountUpdaterSubmit, w.opts)
		if err != nil {
			w.stop(err)
			w.leaveOut(b, w.whyStopped())
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

// begin records in the journal that a batch is about to be sent, and returns true. If the batch must not be sent, begin
// sets its status and error and returns false.
func (w *bulkWalk) begin(b *bulkBatch) bool {
	if cause := w.whyStopped(); cause != nil {
		w.leaveOut(b, cause)
		return false
	}
	if w.journal == nil {
		return true
	}
	known, err := w.journal.Begin(w.sending, w.job, b.Index)
	switch {
	case err != nil:
		if w.whyStopped() == nil { // if the walk has stopped, that may be the reason why Begin has failed
			w.failJournal(err)
		}
		w.leaveOut(b, w.whyStopped())
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

// submit makes the call of a batch and sets its status, its error and the ID of its request. It also sets the answer if
// the caller uses WithResponse. If the walk stopped before the first attempt, submit marks the batch as not sent. If
// the walk stopped before a later attempt, the error says why.
func (w *bulkWalk) submit(b *bulkBatch, cards []AccountUpdaterCard, opts []CallOption) {
	opts = append(slices.Clip(opts), WithResponse(&b.raw), func(o *callOptions) { o.stopContext = w.sending })
	accepted, err := w.service.Submit(w.requests, cards, opts...)
	b.Status, b.Err = statusOf(err, b.raw.Body), err
	if !w.keepRaw {
		b.raw = Response{}
	}
	if accepted != nil {
		b.RequestID = accepted.RequestID
	}
	cause := w.whyStopped()
	if e, failed := errors.AsType[*Error](err); failed && cause != nil {
		switch {
		case e.Attempts == 0: // nothing was sent: the transport looks at stopContext before each attempt
			w.leaveOut(b, cause)
		case errors.Is(e, errStopped):
			b.Err = stoppedError(e, cause)
		}
	}
}

// end records the outcome of a batch in the journal.
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

// mostUnknown is how many batches of unknown outcome in a row stop a walk, in the order in which their requests end. A
// batch that is accepted or refused starts the count again. A batch that was not sent changes nothing. With a
// Concurrency above 5, the limit is 2 × Concurrency: one failure may hit all batches in flight, and one failure alone
// must not stop the walk.
const mostUnknown = 10

// stopIfHopeless stops the walk if b shows that the next batches would fare no better: the service refuses all of them,
// asks for a wait that a walk does not accept, or seems to be gone.
func (w *bulkWalk) stopIfHopeless(b *bulkBatch) {
	e, failed := errors.AsType[*Error](b.Err)
	if failed && (refusesAll(e) || w.isTurnedAway(e)) {
		w.stop(e)
	}
	switch b.Status {
	case BatchAccepted, BatchRefused:
		w.unknown.Store(0)
	case BatchUnknown:
		n := int(w.unknown.Add(1))
		if n == max(mostUnknown, 2*cap(w.inFlight)) {
			w.stop(fmt.Errorf("the last %d batches that were sent are of unknown outcome", n))
		}
	case BatchNotSent:
	}
}

// isTurnedAway reports whether e, the error of a batch that is not sent again, is a status 429 that stops the walk.
// With a rate limit every 429 stops the walk: send would have started over if that were possible. With IgnoreOverload
// there is no rate limit, and a 429 stops the walk only if the service asks for too long a wait. A 429 after an attempt
// of unknown outcome counts as an unknown outcome.
func (w *bulkWalk) isTurnedAway(e *Error) bool {
	c := w.service.caller
	isPaced := c.paces[OpAccountUpdaterSubmit] != nil // it is nil with IgnoreOverload
	return e.StatusCode == http.StatusTooManyRequests && e.Delivery != DeliveryUnknown &&
		(isPaced || e.RetryAfter > c.policy.MaxBulkRetryAfter)
}

// whyStopped returns why nothing more is sent, or nil if the walk goes on. If ctx has ended, it returns an error that
// matches the end of ctx only. It does not match the cause of ctx, which may be the error of another call.
func (w *bulkWalk) whyStopped() error {
	cause := context.Cause(w.sending) // read it before ctx.Err: if ctx ends in between, the next line sees that
	if end := w.ctx.Err(); end != nil {
		return safeCause(w.ctx, end)
	}
	return cause
}

// leaveOut marks a batch as not sent, because the walk has stopped for the given cause. With a journal its error is not
// safe to retry: an earlier run may have sent the batch. The next run asks the journal.
func (w *bulkWalk) leaveOut(b *bulkBatch, cause error) {
	e := unsentError(cause)
	e.final = w.journal != nil
	b.Status, b.Err, b.hasReason = BatchNotSent, e, true
}

// batches yields the batches in their order, and then the closing batch if there is one.
func (w *bulkWalk) batches(yield func(*bulkBatch) bool) {
	var last bulkBatch      // a copy, because the caller may change a batch
	closing := &bulkBatch{} // follows last
	for {
		b, ok := w.ahead.Pop()
		if !ok {
			break
		}
		last, closing = *b, b.next()
		if !yield(b) {
			return
		}
	}
	if cause := w.untold(&last); cause != nil {
		w.leaveOut(closing, cause)
		yield(closing)
	}
}

// untold returns the error of the closing batch, or nil if the walk needs none. A closing batch has no cards. The walk
// needs it if the journal failed, or the walk had stopped when the stream ended, and the last batch does not say so.
// Otherwise the caller would take the job for done.
func (w *bulkWalk) untold(last *bulkBatch) error {
	failure := w.failure.Load()
	switch {
	case w.panicked != nil: // leave panics with the same value
		return nil
	case failure != nil && !errors.Is(last.Err, *failure):
		return *failure
	case !last.hasReason:
		return w.early
	}
	return nil
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

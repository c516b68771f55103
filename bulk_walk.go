package payvault

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"example.com/payvault/internal/window"
)

// The tests of this file are in internal/tests/bulk.

// bulkWalk is one loop over the result of SubmitAll, called a walk. One goroutine reads the stream and puts a task for
// each batch into a window.Window. Each task sends its batch in a goroutine of its own. The caller's loop takes the
// batches from the window in their order.
type bulkWalk struct {
	service *AccountUpdaterService
	journal Journal // nil without a journal
	job     string  // name of the job in the journal
	call    callOptions

	// ctx is the context of the caller.
	ctx context.Context //nolint:containedctx // see above
	// sending ends when ctx ends or halt is called. After that, no further request is sent.
	sending context.Context //nolint:containedctx // see above
	halt    context.CancelFunc
	// requests is the context of the requests in flight. Without a journal it ends when ctx ends or cutOff is called. With
	// a journal it never ends, because the journal has to record the outcome of each request.
	requests context.Context //nolint:containedctx // see above
	cutOff   func()          // ends the context in requests; does nothing with a journal

	ahead    *window.Window[*bulkBatch] // the batches that were read and not yet yielded
	inFlight chan struct{}              // has one element for each batch that is being sent or waits for the rate limit
	// unknown and unsent count batches in the order in which their requests end.
	unknown atomic.Int64 // number of batches of unknown outcome in a row, leaving out those that were not sent
	unsent  atomic.Int64 // number of batches in a row that could not be sent

	mu     sync.Mutex
	reason *StopError  // why the walk stops before the end of the stream; nil if only ctx has ended
	isCut  atomic.Bool // the end of sending has kept cards from being read or sent, or has cut off a request

	reading  sync.WaitGroup // waits for the goroutine that runs read
	panicked any            // the value that the stream panicked with; set before read calls ahead.End
}

// stop ends the sending. If the walk has another reason already, the first one stays. But an error of the journal takes
// the place of any other reason, because the journal may lack outcomes.
func (w *bulkWalk) stop(reason *StopError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isFirst := w.reason == nil
	isWorse := reason.Reason == StopJournal && !isFirst && w.reason.Reason != StopJournal
	if isFirst || isWorse {
		w.reason = reason
	}
	w.halt()
}

// isStopped reports whether nothing more is sent. The end of ctx reaches sending a moment later, so ctx is asked too.
func (w *bulkWalk) isStopped() bool { return w.ctx.Err() != nil || w.sending.Err() != nil }

// lastError returns the error with which the walk ends, or nil. This is the field reason if it is set. Otherwise, isCut
// means that ctx has ended, and lastError returns a StopError that says so.
func (w *bulkWalk) lastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.reason != nil:
		return w.reason
	case w.isCut.Load():
		return &StopError{Reason: StopContext, cause: safeCause(w.ctx, w.ctx.Err())}
	}
	return nil
}

// leaveOut marks a batch as not sent, because the walk has stopped. With a journal the error of the batch is not safe
// to retry, because the journal was perhaps not asked whether an earlier run has sent the batch.
func (w *bulkWalk) leaveOut(b *bulkBatch) {
	w.isCut.Store(true)
	b.Status = BatchNotSent
	b.Err = &Error{Op: OpAccountUpdaterSubmit, Delivery: DeliveryNotSent, cause: ErrStopped, final: w.journal != nil}
}

// mostLost is the number of batches in a row that stop a walk, if they are of unknown outcome or could not be sent.
// With a Concurrency above 5 the limit is 2 × Concurrency, because one failure may hit all batches in flight and must
// not stop the walk.
const mostLost = 10

// stopIfHopeless stops the walk if the service would refuse all other batches too, or if it seems to be down. It does
// not count batches that end after the walk has stopped.
func (w *bulkWalk) stopIfHopeless(b *bulkBatch) {
	e, failed := errors.AsType[*Error](b.Err)
	most := int64(max(mostLost, 2*cap(w.inFlight)))
	switch {
	case failed && refusesAll(e):
		w.stop(refusalStop(e))
	case w.isStopped(): // the end of ctx may have cut off the request
	case b.Status == BatchUnknown:
		w.unsent.Store(0)
		if w.unknown.Add(1) == most {
			w.stop(lostStop(StopUnknown, most, "are of unknown outcome"))
		}
	case b.Status == BatchNotSent:
		if w.unsent.Add(1) == most {
			w.stop(lostStop(StopNotSent, most, "could not be sent"))
		}
	default:
		w.unknown.Store(0)
		w.unsent.Store(0)
	}
}

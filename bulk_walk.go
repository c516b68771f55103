package payvault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"example.com/payvault/internal/window"
)

// bulkWalk is one loop over the result of SubmitAll, called a walk. One goroutine reads the stream and puts a task for
// each batch into a window.Window. Each task sends its batch in a goroutine of its own. The caller's loop takes the
// batches from the window in their order.
type bulkWalk struct {
	service *AccountUpdaterService
	journal Journal // nil without a journal
	job     string  // name of the job in the journal
	opts    []CallOption
	keepRaw bool // the caller uses WithResponse

	// ctx is the context of the caller.
	ctx context.Context //nolint:containedctx // see above
	// sending ends when ctx ends or stop is called. After that, no further request is sent.
	sending context.Context         //nolint:containedctx // see above
	stop    context.CancelCauseFunc // ends the context in sending; only the first call sets the cause
	// requests is the context of the requests in flight. Without a journal it ends when ctx ends or cutOff is called. With
	// a journal it never ends, because the journal has to record the outcome of each request.
	requests context.Context //nolint:containedctx // see above
	cutOff   func()          // ends the context in requests; does nothing with a journal

	ahead    *window.Window[*bulkBatch] // the batches that were read and not yet yielded
	inFlight chan struct{}              // has one element for each batch that is being sent or waits for the rate limit
	unknown  atomic.Int64               // number of batches of unknown outcome in a row, in the order in which they end
	failure  atomic.Pointer[error]      // the first error of the journal

	// reading waits for the goroutine that runs read. That goroutine sets the fields early and panicked, and then calls
	// ahead.End. So the fields are set when Pop reports that no batch is left.
	reading  sync.WaitGroup
	early    error // why the walk had stopped when the stream ended; nil if it had not stopped
	panicked any   // the value that the stream panicked with
}

// failJournal stops the walk because the journal has failed.
func (w *bulkWalk) failJournal(err error) {
	err = fmt.Errorf("journal: %w", err)
	w.failure.CompareAndSwap(nil, &err)
	w.stop(err)
}

// mostUnknown is the number of batches of unknown outcome in a row that stop a walk. Batches count in the order in
// which their requests end, and batches that were not sent are skipped. With a Concurrency above 5 the limit is 2 ×
// Concurrency, because one failure may hit all batches in flight and must not stop the walk.
const mostUnknown = 10

// stopIfHopeless stops the walk if the service refuses all batches, if b ended with a 429 that stops the walk (see
// isTurnedAway), or if the service seems to be down.
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

// isTurnedAway reports whether the walk stops because the final error of a batch has the status 429:
//
//   - If an earlier attempt of the batch has an unknown outcome, the walk goes on.
//   - By default, the walk stops after any other 429, because send has already started over as often as it may.
//   - With IgnoreOverload, the walk stops after any other 429 only if the Retry-After is beyond MaxBulkRetryAfter.
func (w *bulkWalk) isTurnedAway(e *Error) bool {
	c := w.service.caller
	isPaced := c.paces[OpAccountUpdaterSubmit] != nil // the pace is nil with IgnoreOverload
	return e.StatusCode == http.StatusTooManyRequests && e.Delivery != DeliveryUnknown &&
		(isPaced || e.RetryAfter > c.policy.MaxBulkRetryAfter)
}

// whyStopped returns why nothing more is sent, or nil if the walk goes on. If ctx has ended, the returned error matches
// ctx.Err() and not the cause of ctx, which may be the error of another call.
func (w *bulkWalk) whyStopped() error {
	cause := context.Cause(w.sending) // read it before ctx.Err: if ctx ends in between, the next line sees that
	if end := w.ctx.Err(); end != nil {
		return safeCause(w.ctx, end)
	}
	return cause
}

// leaveOut marks a batch as not sent, because the walk has stopped for the given cause. With a journal the error of the
// batch is not safe to retry, because an earlier run may have sent the batch.
func (w *bulkWalk) leaveOut(b *bulkBatch, cause error) {
	e := unsentError(cause)
	e.final = w.journal != nil
	b.Status, b.Err, b.hasReason = BatchNotSent, e, true
}

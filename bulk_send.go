package payvault

import (
	"errors"
	"slices"
)

// The functions of this file send one batch and record it in the journal.

// send waits for the rate limit, sends a batch and sets its status and its error. It starts over if the service refuses
// the batch with status 429 and startsOver permits it. It calls begin only after the wait, because after begin the
// journal counts the batch as sent.
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
		w.end(b, cards)
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
		if w.whyStopped() == nil { // if the walk has already stopped, Begin may have failed because of that
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

// submit sends a batch in one call, and sets the status, the error and the RequestID of the batch. It keeps the raw
// answer if the caller uses WithResponse. If the walk stopped before the first attempt, submit marks the batch as not
// sent. If the walk stopped before a later attempt, the error of the batch says why the walk stopped.
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

// end records the outcome of a batch in the journal. cards are the cards that were sent.
func (w *bulkWalk) end(b *bulkBatch, cards []AccountUpdaterCard) {
	if w.journal == nil {
		return
	}
	if err := w.journal.End(w.requests, w.job, b.Index, b.outcome(cards)); err != nil {
		w.failJournal(err)
	}
}

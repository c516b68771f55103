package payvault

import (
	"errors"

	"example.com/payvault/internal/transport"
)

// The functions of this file send one batch and record it in the journal. Their tests are in internal/tests/bulk.

// send sends a batch in one call. If the journal says that the batch may have been sent before, send takes the outcome
// from the journal instead. It sets the status, the RequestID and the error of the batch.
//
// When the wait for the first attempt is over, the call records the batch in the journal as begun. Before the wait for
// another attempt it records the batch as not sent, and after this wait as begun again. But once the service may have
// performed the batch, the record stays begun until the call ends.
func (w *bulkWalk) send(b *bulkBatch, cards []AccountUpdaterCard) {
	hasBegun := false
	gate := &transport.Gate{
		Patience: w.service.caller.policy.MaxBulkRetryAfter,
		Stop:     w.sending,
		Begin: func() bool {
			hasBegun = w.begin(b)
			return hasBegun
		},
		Unbegin: func(status int) {
			hasBegun = false
			w.end(b, BatchOutcome{Status: BatchNotSent, Cards: b.sent(), StatusCode: status})
		},
	}
	options := w.call
	options.response, options.gate = &b.raw, gate
	var answer platformReply[AccountUpdaterSubmission, *AccountUpdaterSubmission]
	submit := submission(cards)
	submit.reply = &answer
	err := w.service.caller.perform(w.requests, submit, options)
	switch {
	case hasBegun:
		w.takeResult(b, answer.Data, err)
		w.end(b, b.outcome(cards))
		w.stopIfHopeless(b)
	case b.Status == "": // a wait before an attempt failed
		if e, failed := errors.AsType[*Error](err); failed && !w.isStopped() {
			w.stop(refusalStop(e))
		}
		w.leaveOut(b)
	}
	if w.call.response == nil {
		b.raw = Response{}
	}
}

// begin records in the journal that a batch is about to be sent, and returns true. If the batch must not be sent, begin
// sets its status and error and returns false.
func (w *bulkWalk) begin(b *bulkBatch) bool {
	if w.journal == nil {
		return true
	}
	known, err := w.journal.Begin(w.sending, w.job, b.Index)
	switch {
	case err != nil:
		if !w.isStopped() { // otherwise Begin may have failed because of that
			w.stop(journalStop(err))
		}
		w.leaveOut(b)
	case b.isOther(known):
		w.stop(otherCardsStop(b.Index))
		w.leaveOut(b)
	case known.Begun:
		b.takeFrom(known)
	default:
		return true
	}
	return false
}

// takeResult sets the status, the error and the RequestID of a batch from the result of its call. If err is nil,
// accepted is not nil. If the walk has stopped, takeResult also notes whether the stop kept the batch from being sent,
// or cut off its request.
func (w *bulkWalk) takeResult(b *bulkBatch, accepted *AccountUpdaterSubmission, err error) {
	b.Status, b.Err = statusOf(err, b.raw.Body), err
	if err == nil {
		b.RequestID = accepted.RequestID
	}
	e, failed := errors.AsType[*Error](err)
	switch {
	case !failed || !w.isStopped():
	case e.Delivery == DeliveryNotSent && (errors.Is(e, ErrStopped) || errors.Is(e, w.ctx.Err())):
		w.leaveOut(b) // the walk stopped while the key source worked or the attempt connected
	case e.Delivery != DeliveryAnswered: // the walk stopped before a retry, or ctx has cut off the request
		w.isCut.Store(true)
	}
}

// end records the outcome of a batch in the journal.
func (w *bulkWalk) end(b *bulkBatch, outcome BatchOutcome) {
	if w.journal == nil {
		return
	}
	if err := w.journal.End(w.requests, w.job, b.Index, outcome); err != nil {
		w.stop(journalStop(err))
	}
}

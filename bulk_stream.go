package payvault

import (
	"context"
	"errors"
	"iter"
)

// The functions of this file read the stream into batches, and yield the batches in their order.

// read reads the stream, cuts the cards into batches and starts each batch. It returns at the end of the stream, or
// when the caller has left the loop. If the stream panics, the field panicked gets the value of the panic.
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
			next := batch.next() // call next before start: after start, the caller may change the batch
			w.start(batch, valid)
			batch, valid = next, make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
		}
		if w.ahead.IsStopped() { // the caller has left the loop, so no further card is needed
			return
		}
	}
	w.early = w.whyStopped() // if ctx has ended, the stream may have failed, so cards may be missing
	if batch.End > batch.Start {
		w.start(batch, valid)
	}
}

// start waits until the channel inFlight and the window have room. Then it puts a task for the batch into the window.
// The task sends the valid cards of the batch and returns the batch. If the batch has no valid card, start waits only
// for the window, and the task only returns the batch with its error.
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

// batches yields the batches in their order. If untold returns an error, a closing batch without cards follows, with
// this error.
func (w *bulkWalk) batches(yield func(*bulkBatch) bool) {
	var last bulkBatch      // a copy, because the caller may change the batch that was yielded
	closing := &bulkBatch{} // the batch without cards that may follow last
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

// untold returns the error of the journal, or the reason why the walk had stopped when the stream ended. It returns nil
// if there is neither, if the error of the last batch already has the reason, or if the stream has panicked. The error
// goes into a closing batch, because the caller might not learn of it otherwise.
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

// leave ends the walk. It waits for the stream and for the requests in flight. It panics if the stream or a goroutine
// that sends a batch has panicked.
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

package payvault

import (
	"context"
	"errors"
	"iter"
)

// This file reads the stream of a walk into batches, and yields the batches in their order.

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

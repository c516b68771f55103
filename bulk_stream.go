package payvault

import "iter"

// The functions of this file read the stream into batches, and yield the batches in their order. Their tests are in
// internal/tests/bulk.

// Cards returns a stream of the given cards, for [AccountUpdaterService.SubmitAll].
func Cards(cards ...AccountUpdaterCard) iter.Seq2[AccountUpdaterCard, error] {
	return func(yield func(AccountUpdaterCard, error) bool) {
		for _, card := range cards {
			if !yield(card, nil) {
				return
			}
		}
	}
}

// read reads the stream, cuts the cards into batches and starts each batch. It returns when the stream ends or yields
// an error, or at the first card after the walk has stopped. If the stream panics, the field panicked gets the value of
// the panic.
//
// A full batch is started only when the stream has yielded the next card or has ended. At an error of the stream the
// walk stops first, so the last batch is not sent: its last card may be the first part of a line that was cut off.
func (w *bulkWalk) read(cards iter.Seq2[AccountUpdaterCard, error]) {
	defer w.ahead.End()
	defer func() { w.panicked = recover() }()
	batch, valid := &bulkBatch{}, []AccountUpdaterCard(nil)
	for card, err := range cards {
		if err != nil {
			if w.ctx.Err() == nil { // otherwise the stream may have failed because of that
				w.stop(&StopError{Reason: StopStream, cause: disown(err)})
			}
			break
		}
		if batch.isFull() {
			next := batch.next() // call next before start: after start, the caller may change the batch
			w.start(batch, valid)
			batch, valid = next, make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
		}
		if w.isStopped() {
			break
		}
		batch.addRef(card.Ref)
		if err := card.Check(); err != nil {
			batch.Invalid = append(batch.Invalid, InvalidCard{batch.End, card.Ref, err})
		} else {
			valid = append(valid, card)
		}
		batch.End++
	}
	isStopped := w.isStopped()
	if isStopped { // cards may be missing: the stream may have ended because ctx has ended
		w.isCut.Store(true)
	}
	if batch.isFull() || batch.End > batch.Start && !isStopped {
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

// batches yields the batches in their order, and then the reason why the walk has stopped, if it has. After a panic of
// the stream it yields no reason, because leave then panics with the value of that panic.
func (w *bulkWalk) batches(yield func(*bulkBatch, error) bool) {
	for {
		b, ok := w.ahead.Pop()
		if !ok {
			break
		}
		if !yield(b, nil) {
			return
		}
	}
	if err := w.lastError(); err != nil && w.panicked == nil {
		yield(nil, err)
	}
}

// leave ends the walk. It waits for the stream and for the requests in flight. It panics if the stream or a goroutine
// that sends a batch has panicked.
func (w *bulkWalk) leave() {
	w.halt()
	w.cutOff()
	w.ahead.Stop()
	w.reading.Wait()
	w.ahead.Wait()
	if w.panicked != nil {
		panic(w.panicked)
	}
}

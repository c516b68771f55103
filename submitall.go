package payvault

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// SubmitAllOptions sets how [AccountUpdaterService.SubmitAll] works through its cards.
type SubmitAllOptions struct {
	// Concurrency is how many requests are in flight; 4 if it is not positive, which leaves the service and the
	// connections to other callers and still sends 60,000 cards a second where a request takes 5 ms. More of them
	// send in proportion: 32 eight times as many. Up to 128, each finds an idle connection of the client's own
	// pool.
	Concurrency int
	// Journal lets a later run go on where this one ends, however it ends. Without one every walk sends all cards.
	Journal Journal
	// Job names the cards in the Journal, which it is required for: the same in each run of the same cards, in the
	// same order, for the same service and merchant.
	Job string
	// Graceful lets the requests in flight go on when ctx ends, within the time of one attempt. They are cut off
	// otherwise, which leaves their outcome unknown.
	Graceful bool
}

const defaultConcurrency = 4

// mostLost is how many batches in a row may be of unknown outcome, at least.
const mostLost = 10

// streamPatience is how long a walk that is over waits for a stream that gives nothing.
const streamPatience = time.Second

// AccountUpdaterBatch is what came of up to 100 cards of a stream. One without cards, with Start equal to End, is
// the last of a walk that ended before its stream, or whose journal failed: it has the error.
type AccountUpdaterBatch struct {
	Index     int    // zero-based, counted from the start of the stream
	Start     int    // position of the first card in the stream, zero-based
	End       int    // position after the last card
	RequestID string // set if Err is nil
	Err       error  // an *Error; its Delivery reports whether the batch was sent
	Earlier   bool   // the journal has it from an earlier run, and nothing was sent in this one
}

// SubmitAll cuts cards into requests of 100 and keeps some of them in flight. It yields every batch exactly once
// and in the order of the stream, with the RequestID or with the error, as soon as it and those before it are
// decided, however slowly the stream comes. A batch whose outcome is unknown is never sent again by itself. Memory
// does not grow with the stream: 2 × Concurrency − 1 batches may have been read that were not yielded yet, and one
// more is being read.
//
// With a [Journal] a walk goes on where an earlier one ended, even if its process was killed: it yields what the
// journal knows as Earlier, and sends the rest. What a killed process had begun and not ended is of unknown outcome for
// good: up to Concurrency batches, and those whose answers were just being recorded. Without a Journal, what was sent
// and not yielded yet is lost with the process.
//
// The stream is read in a goroutine of its own, each time from its beginning. When it panics, so does the loop,
// after the batches that were read have been yielded. It has to end at its end only: what it has given until then
// are all cards there are, and one that fails has to cancel ctx before it returns.
//
// A walk sends nothing more, and yields the rest of the stream as not sent, when
//
//   - ctx ends; the batches in flight end with it, unless the options are Graceful,
//   - the journal fails,
//   - the service refuses a batch with status 429 and asks for a longer wait than RetryPolicy.MaxRetryAfter, or
//     RetryPolicy.MaxAttempts or [WithAttempts] is 1, so that it is not waited for; with RetryPolicy.IgnoreOverload
//     for the longer wait only,
//   - 10 batches in a row, or 2 × Concurrency if that is more, are of unknown outcome: the service seems to be gone,
//     and somebody has to look up each of them.
//
// Keep ranging to learn the outcome of every batch. In the last three cases those in flight go on to their end, and are
// not repeated. Such a walk always ends with an error, if need be that of a batch without cards. With a Journal an
// earlier run may have sent what this one did not ask about: [SafeToRetry] is false, and running the job again is what
// tells.
//
// Leaving the loop ends the batches in flight too; the outcome of those that were not yielded yet is known to the
// journal only. A stream that blocks is left behind when it gives nothing for a second after the end of the walk, or
// after the loop was left: its goroutine stays until it gives the next card.
//
// POST /platform/aus/add.
func (s *AccountUpdaterService) SubmitAll(
	ctx context.Context, cards iter.Seq[AccountUpdaterCard], opt *SubmitAllOptions, opts ...CallOption,
) iter.Seq[*AccountUpdaterBatch] {
	o := SubmitAllOptions{Concurrency: defaultConcurrency}
	if opt != nil {
		o.Journal, o.Job, o.Graceful = opt.Journal, opt.Job, opt.Graceful
		setPositive(&o.Concurrency, opt.Concurrency)
	}
	opts = slices.Clone(opts) // what the caller changes later does not change the walk
	keepRaw := newCallOptions(opts).response
	return func(yield func(*AccountUpdaterBatch) bool) {
		w := newBulkWalk(s, o, opts)
		ctx, end := w.check(ctx)
		go w.read(ctx, cards)
		defer w.leave()
		defer end()
		w.run(ctx, func(b *submitted) bool {
			if keepRaw != nil {
				*keepRaw = b.raw
			}
			return yield(&b.AccountUpdaterBatch)
		})
	}
}

// bulkWalk is one pass over a stream of cards. One goroutine reads the stream and starts the batches, each in a
// goroutine of its own; that of the loop takes them from the queue, in their order.
type bulkWalk struct {
	SubmitAllOptions

	service *AccountUpdaterService
	opts    []CallOption

	why     func() error            // nothing more may be sent; nil while it may
	stop    context.CancelCauseFunc // ends the walk; the first error counts
	stopped <-chan struct{}         // closed when it is over
	failed  atomic.Pointer[error]   // of the journal

	slots chan struct{}        // holds one for each batch that is being begun and sent
	queue chan chan *submitted // of the batches that were started; closed at the end of the stream
	turn  chan struct{}        // closed when the batch that was started last has been begun
	lost  atomic.Int64         // batches of unknown outcome in a row
	left  atomic.Bool          // the loop

	given   atomic.Int64 // cards
	blocked bool         // the stream is not waited for any longer

	// Of the stream, to be read when the queue is closed.
	whole    bool // it returned before the walk was over
	panicked any  // with what it did
}

// submitted is a batch that is decided.
type submitted struct {
	AccountUpdaterBatch

	raw    Response
	unsent bool // the walk was over before
}

func newBulkWalk(s *AccountUpdaterService, o SubmitAllOptions, opts []CallOption) *bulkWalk {
	w := &bulkWalk{
		SubmitAllOptions: o, service: s, opts: opts, turn: make(chan struct{}),
		slots: make(chan struct{}, o.Concurrency), queue: make(chan chan *submitted, 2*o.Concurrency-2), // run has one more
	}
	close(w.turn)
	return w
}

// check returns the context of the requests and what ends it, and stops a walk that cannot begin.
func (w *bulkWalk) check(ctx context.Context) (requests context.Context, end func()) {
	var p problems
	if ctx == nil {
		p.add("context", "is nil")
		ctx = context.Background()
	}
	if w.Journal != nil && w.Job == "" {
		p.add("Job", "is required with a Journal")
	}
	sending, stop := context.WithCancelCause(ctx)
	w.stop, w.stopped = stop, sending.Done()
	w.why = func() error {
		if ctx.Err() != nil {
			return safeCause(ctx, ctx.Err())
		}
		return context.Cause(sending)
	}
	if err := p.err(OpAccountUpdaterSubmit); err != nil {
		stop(err)
	}
	if requests = ctx; w.Graceful {
		requests = context.WithoutCancel(ctx)
	}
	requests, cancel := context.WithCancel(requests)
	return requests, func() {
		stop(context.Canceled)
		cancel()
	}
}

// over is the error of what is not sent since nothing more may be.
func (w *bulkWalk) over() error {
	if cause := w.why(); cause != nil {
		return unsentError(OpAccountUpdaterSubmit, cause)
	}
	return nil
}

// read cuts the stream into batches and starts them.
func (w *bulkWalk) read(ctx context.Context, cards iter.Seq[AccountUpdaterCard]) {
	defer close(w.queue)
	returned := false
	defer func() {
		if w.panicked = recover(); w.panicked == nil && !returned {
			w.panicked = errors.New("payvault: the stream of cards has ended its goroutine")
		}
	}()
	var next AccountUpdaterBatch
	var batch []AccountUpdaterCard
	start := func() {
		next.End = next.Start + len(batch)
		w.start(ctx, next, batch)
		next.Index, next.Start = next.Index+1, next.End
		batch = make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
	}
	if cards == nil {
		cards = slices.Values(batch)
	}
	for card := range cards {
		w.given.Add(1)
		if batch = append(batch, card); len(batch) == MaxAccountUpdaterCards {
			start()
		}
		if w.left.Load() {
			break
		}
	}
	returned, w.whole = true, w.over() == nil
	if len(batch) > 0 {
		start()
	}
}

// start has a batch decided in a goroutine of its own, when there is room for it. Batches are begun at the same time
// and sent in their order, so that none is sent after one that the journal refused.
func (w *bulkWalk) start(ctx context.Context, batch AccountUpdaterBatch, cards []AccountUpdaterCard) {
	if w.left.Load() {
		return
	}
	decided := make(chan *submitted, 1)
	w.queue <- decided
	w.slots <- struct{}{}
	turn, begun := w.turn, make(chan struct{})
	w.turn = begun
	go func() {
		b := &submitted{AccountUpdaterBatch: batch}
		send := w.begin(ctx, b)
		<-turn
		close(begun)
		if send {
			w.submit(ctx, b, cards)
		}
		<-w.slots // the next one is begun while this one is recorded
		if send {
			w.record(ctx, b)
		}
		decided <- b
	}()
}

// run yields the batches in their order.
func (w *bulkWalk) run(ctx context.Context, yield func(*submitted) bool) {
	last := &submitted{AccountUpdaterBatch: AccountUpdaterBatch{Index: -1}}
	resumed := true // as far as is known, without a batch
	for decided := range w.started() {
		last = <-decided
		if resumed = last.Earlier || resumed && last.Index > 0; !yield(last) {
			return
		}
	}
	w.rethrow()
	end := &submitted{AccountUpdaterBatch: AccountUpdaterBatch{Index: last.Index + 1, Start: last.End, End: last.End}}
	// Only a job that goes on can have begun more: a Begin without its End would be taken for that.
	if !resumed && w.over() == nil || w.begin(ctx, end) {
		w.record(ctx, end)
	}
	switch failed := w.failed.Load(); {
	case failed != nil && !errors.Is(last.Err, *failed):
		end.Err = unsentError(OpAccountUpdaterSubmit, *failed)
	case end.Earlier && end.Err != nil: // something was begun after the last card
	case !last.unsent && (w.blocked || !w.whole):
		end.Err = w.over()
	default:
		return
	}
	if end.Err != nil {
		yield(end)
	}
}

// started gives what comes through the queue. When the walk is over, it does not wait long for a stream that blocks.
func (w *bulkWalk) started() iter.Seq[chan *submitted] {
	return func(yield func(chan *submitted) bool) {
		stopped := w.stopped
		for {
			var late <-chan time.Time
			given := w.given.Load()
			if stopped == nil {
				late = time.After(streamPatience)
			}
			select {
			case decided, ok := <-w.queue:
				if !ok || !yield(decided) {
					return
				}
			case <-stopped:
				stopped = nil
			case <-late:
				if w.given.Load() == given {
					w.blocked = true
					return
				}
			}
		}
	}
}

// rethrow panics as the stream did.
func (w *bulkWalk) rethrow() {
	if w.blocked || w.panicked == nil {
		return
	}
	with := w.panicked
	w.panicked = nil
	panic(with)
}

// leave waits for the batches that were started, and for the stream unless it blocks.
func (w *bulkWalk) leave() {
	w.left.Store(true)
	if w.blocked {
		return
	}
	for decided := range w.started() {
		<-decided
	}
	w.rethrow()
}

// begin reports whether a batch is to be sent. The journal gets a context that does not end: a Begin that is cut
// off may have been recorded.
func (w *bulkWalk) begin(ctx context.Context, b *submitted) bool {
	if b.Err = w.over(); b.Err != nil {
		if e, ok := errors.AsType[*Error](b.Err); ok && w.Journal != nil && !e.refusedLocally() { // that one is shared
			e.unasked = true
		}
		b.unsent = true
		return false
	}
	if w.Journal == nil {
		return true
	}
	known, err := w.Journal.Begin(context.WithoutCancel(ctx), w.Job, b.Index)
	if err == nil {
		err = known.check(b.End - b.Start)
	}
	if err != nil {
		w.fail(err)
		return w.begin(ctx, b)
	}
	if known.Begun {
		b.Earlier = true
		b.RequestID, b.Err = known.result()
	}
	return !known.Begun
}

func (w *bulkWalk) submit(ctx context.Context, b *submitted, cards []AccountUpdaterCard) {
	if b.Err = w.over(); b.Err != nil {
		b.unsent = true
		return
	}
	opts := append(slices.Clip(w.opts), WithResponse(&b.raw), patient, func(o *callOptions) { o.stop = w.stopped })
	accepted, err := w.service.Submit(ctx, cards, opts...)
	if b.Err = err; accepted != nil {
		b.RequestID = accepted.RequestID
	}
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(err, errStopped) {
		e.cause = fmt.Errorf("%w: %w", errStopped, inShort(w.why()))
	}
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(err, ErrRateLimited) {
		if core := w.service.client.core; core.paces != nil || e.RetryAfter > core.longestWait { // it was not waited for
			w.stop(err)
		}
	}
	if !errors.Is(err, ErrOutcomeUnknown) {
		w.lost.Store(0)
	} else if n := w.lost.Add(1); n >= max(mostLost, 2*int64(w.Concurrency)) {
		w.stop(fmt.Errorf("the last %d batches are of unknown outcome", n))
	}
}

// record records what came of a batch. That of no cards stands for the end of the stream.
func (w *bulkWalk) record(ctx context.Context, b *submitted) {
	if w.Journal == nil {
		return
	}
	if err := w.Journal.End(context.WithoutCancel(ctx), w.Job, b.Index, outcomeOf(&b.AccountUpdaterBatch)); err != nil {
		w.fail(err)
	}
}

// fail ends the walk with an error of its journal.
func (w *bulkWalk) fail(err error) {
	err = fmt.Errorf("journal: %w", err)
	w.failed.CompareAndSwap(nil, &err)
	w.stop(err)
}

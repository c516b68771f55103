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
	// pool. More than 10,000 are taken for 10,000.
	Concurrency int
	// Journal lets a later run go on where this one ends, however it ends. Without one every walk sends all cards.
	Journal Journal
	// Job names the cards in the Journal, and is required with one, and only then. It has to be the same in each run of
	// the same cards, in the same order, for the same service and merchant. Under another name all cards are sent. Other
	// cards under the same name are taken for those that were sent before, so make the name from the cards: see
	// [JobName]. A batch with another number of cards than in an earlier run ends the walk: its error matches
	// ErrInvalidRequest and has the field Job.
	Job string
}

const (
	defaultConcurrency = 4
	maxConcurrency     = 10_000
)

// mostLost is how many batches in a row may be of unknown outcome, at least.
const mostLost = 10

// streamPatience is how long a walk that is over waits for a stream that gives nothing.
const streamPatience = time.Second

// AccountUpdaterBatch is what came of up to 100 cards of a stream. One without cards, with Start equal to End, is
// the last of a walk that did not begin, that ended before its stream, or whose journal failed: it has the error.
type AccountUpdaterBatch struct {
	Index       int           // zero-based, counted from the start of the stream
	Start       int           // position of the first card in the stream, zero-based
	End         int           // position after the last card
	Invalid     []InvalidCard // cards that cannot be sent, in the order of the stream; the others are sent without them
	Status      BatchStatus   // BatchAccepted, BatchRefused, BatchUnknown or BatchNotSent
	RequestID   string        // set if it is accepted
	Err         error         // an *Error, unless it is accepted
	FromJournal bool          // the journal has it from an earlier run, and nothing was sent in this one
}

// InvalidCard is a card that cannot be sent.
type InvalidCard struct {
	Position int   // in the stream, zero-based
	Err      error // of AccountUpdaterCard.Check
}

// Position returns the position in the stream of the card that an error of the batch calls data[i]. Invalid cards are
// not sent, so the service does not count them.
func (b *AccountUpdaterBatch) Position(i int) int {
	position := b.Start + i
	for _, invalid := range b.Invalid {
		if invalid.Position <= position {
			position++
		}
	}
	return position
}

// sent returns how many cards a request of the batch has.
func (b *AccountUpdaterBatch) sent() int { return b.End - b.Start - len(b.Invalid) }

// SubmitAll cuts cards into requests of 100 and keeps some of them in flight. It yields every batch exactly once
// and in the order of the stream, with the RequestID or with the error, as soon as it and those before it are
// decided, however slowly the stream comes. A batch whose outcome is unknown is never sent again by itself; with
// [WithReplay], which says that this does no harm, a lost request is repeated. Arguments that are invalid are one batch
// without cards, with the error, and the stream is not read.
//
// A card that cannot be sent is left out and named in Invalid; the rest of its batch is sent. A batch of nothing but
// such cards is not begun in the journal. It is yielded as not sent, with an error that matches [ErrInvalidRequest].
//
// Memory does not grow with the stream: 2 × Concurrency − 1 batches may have been read that were not yielded yet, and
// one more is being read. While it is sent, a batch takes what its cards take; then what its error or RequestID takes,
// or with [WithResponse] the whole answer. An answer has at most the bytes of [WithMaxResponseBytes], of which an
// honest one needs less than a thousand, and takes a few times that while it is read: a lower limit bounds what
// Concurrency answers of a hostile service take together.
//
// With a [Journal] a walk goes on where an earlier one ended, even if its process was killed: it yields what the
// journal knows as FromJournal, and sends the rest. What a killed process had begun and not ended is of unknown outcome
// for good: the requests in flight, those that were just about to be sent, and those whose answers were just being
// recorded, Concurrency batches at most. What waits for the rate limit is not begun. Without a Journal, what was sent
// and not yielded yet is lost with the process.
//
// The stream is read in a goroutine of its own, each time from its beginning. When it returns, the cards that it has
// given are taken for all cards. So with a Journal, a stream that fails half way, as a file may, has to cancel ctx
// before it returns, as in the example: otherwise its last batch is sent with too few cards, and the others of that
// batch never are. Without a Journal it is enough to look at the error of the stream after the loop. When the stream
// panics, so does the loop, after the batches that were read have been yielded. A panic of a transport, a key source or
// the journal ends the walk in the same way.
//
// A walk sends nothing more, and yields the rest of the stream as not sent, when
//
//   - ctx ends,
//   - the journal fails,
//   - the service answers with status 401 or 403, as it would to all other batches,
//   - the service refuses a batch with status 429 and asks for a longer wait than RetryPolicy.MaxBulkRetryAfter (15
//     minutes) or than ctx lasts; or RetryPolicy.MaxAttempts or [WithAttempts] is 1, so that it is not waited for; with
//     RetryPolicy.IgnoreOverload for the longer wait only,
//   - 10 batches in a row, or 2 × Concurrency if that is more, are of unknown outcome: the service seems to be gone,
//     and somebody has to look up each of them.
//
// Keep ranging to learn the outcome of every batch. Requests in flight go on to their end, within the time of one
// attempt, and are not repeated; but without a Journal they are cut off when ctx ends, which leaves their outcome
// unknown. Such a walk always yields an error, that of a last batch without cards if no other has one, unless the
// stream had returned and all its batches were sent. With a Journal an earlier run may have sent what this one did not
// ask about: [SafeToRetry] is false, and running the job again is what tells.
//
// Leaving the loop ends the walk as the end of ctx does: with a Journal it waits for the requests in flight and records
// them. A stream that blocks is left behind when it gives nothing for a second after the end of the walk, or
// after the loop was left: its goroutine stays until it gives the next card.
//
// POST /platform/aus/add.
func (s *AccountUpdaterService) SubmitAll(
	ctx context.Context, cards iter.Seq[AccountUpdaterCard], opt *SubmitAllOptions, opts ...CallOption,
) iter.Seq[*AccountUpdaterBatch] {
	var o SubmitAllOptions
	if opt != nil {
		o = *opt
	}
	if o.Concurrency = min(o.Concurrency, maxConcurrency); o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	opts = slices.Clone(opts) // what the caller changes later does not change the walk
	return func(yield func(*AccountUpdaterBatch) bool) {
		call := newCallOptions(opts)
		if cards == nil {
			call.problems.add("cards", "is nil")
		}
		if err := s.checkWalk(ctx, o, call.problems); err != nil {
			yield(&AccountUpdaterBatch{Status: BatchNotSent, Err: err})
			return
		}
		w := newBulkWalk(ctx, s, o, opts)
		w.keepRaw = call.response != nil
		go w.read(cards)
		defer w.leave()
		w.run(func(b *submitted) bool {
			if w.keepRaw {
				*call.response = b.raw
			}
			return yield(&b.AccountUpdaterBatch)
		})
	}
}

// checkWalk finds what would fail in every batch.
func (s *AccountUpdaterService) checkWalk(ctx context.Context, o SubmitAllOptions, p problems) error {
	if s.caller.actsFor != nil {
		return merchantError(OpAccountUpdaterSubmit)
	}
	if ctx == nil {
		p.add("context", "is nil")
	}
	switch {
	case o.Journal != nil && o.Job == "":
		p.add("Job", "is required with a Journal")
	case o.Journal == nil && o.Job != "":
		p.add("Journal", "is required with a Job")
	}
	return p.err(OpAccountUpdaterSubmit)
}

// bulkWalk is one pass over a stream of cards. One goroutine reads the stream and starts the batches, each in a
// goroutine of its own; that of the loop takes them from the queue, in their order.
type bulkWalk struct {
	SubmitAllOptions

	service *AccountUpdaterService
	opts    []CallOption
	keepRaw bool // answers are asked for

	sending  context.Context         //nolint:containedctx // of one walk; nothing more is sent after its end
	requests context.Context         //nolint:containedctx // of those in flight, and of what is recorded of them
	why      func() error            // why nothing more may be sent; nil while it may
	stop     context.CancelCauseFunc // ends the walk; the first error counts
	end      func()                  // ends the requests too; with a journal they go on
	failed   atomic.Pointer[error]   // of the journal
	panicked atomic.Pointer[any]     // with what the caller's own code did

	slots chan struct{}        // holds one for each batch that waits for the rate limit, or is begun, sent and recorded
	queue chan chan *submitted // of the batches that were started; closed at the end of the stream
	lost  atomic.Int64         // batches of unknown outcome in a row
	left  chan struct{}        // closed when the loop is left

	given   atomic.Int64 // cards
	blocked bool         // the stream is not waited for any longer
	whole   bool         // it returned before the walk was over; to be read when the queue is closed
}

// submitted is a batch that is decided.
type submitted struct {
	AccountUpdaterBatch

	raw    Response
	unsent bool // the walk was over before
	begun  bool // in the journal, and its end is to be recorded
}

func newBulkWalk(ctx context.Context, s *AccountUpdaterService, o SubmitAllOptions, opts []CallOption) *bulkWalk {
	w := &bulkWalk{
		SubmitAllOptions: o, service: s, opts: opts, left: make(chan struct{}),
		slots: make(chan struct{}, o.Concurrency),
		queue: make(chan chan *submitted, 2*o.Concurrency-2), // run has one more
	}
	sending, stop := context.WithCancelCause(ctx)
	w.sending, w.stop = sending, stop
	w.why = func() error {
		cause := context.Cause(sending) // before ctx is asked, whose cause may be the error of another call
		if ctx.Err() != nil {
			return safeCause(ctx, ctx.Err())
		}
		return cause
	}
	w.requests, w.end = context.WithoutCancel(ctx), func() {}
	if o.Journal == nil {
		w.requests, w.end = context.WithCancel(ctx)
	}
	return w
}

// over is the error of what is not sent since nothing more may be.
func (w *bulkWalk) over() error {
	if cause := w.why(); cause != nil {
		return unsentError(OpAccountUpdaterSubmit, cause)
	}
	return nil
}

// read cuts the stream into batches and starts them.
func (w *bulkWalk) read(cards iter.Seq[AccountUpdaterCard]) {
	defer close(w.queue)
	returned := false
	defer func() {
		if !returned {
			w.caught(recover())
		}
	}()
	var next AccountUpdaterBatch
	var batch []AccountUpdaterCard // those that can be sent
	start := func() {
		w.start(next, batch)
		next = AccountUpdaterBatch{Index: next.Index + 1, Start: next.End, End: next.End}
		batch = make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
	}
stream:
	for card := range cards {
		w.given.Add(1)
		if err := card.Check(); err != nil {
			next.Invalid = append(next.Invalid, InvalidCard{Position: next.End, Err: err})
		} else {
			batch = append(batch, card)
		}
		next.End++
		if next.End-next.Start == MaxAccountUpdaterCards {
			start()
		}
		select {
		case <-w.left:
			break stream
		default:
		}
	}
	w.whole = w.over() == nil
	if next.End > next.Start {
		start()
	}
	returned = true
}

// noCardError is the error of a batch whose cards are all invalid.
func noCardError() error {
	p := problems{"data": {"has no card that can be sent"}}
	return p.err(OpAccountUpdaterSubmit)
}

// start has a batch decided in a goroutine of its own, when there is room for it.
func (w *bulkWalk) start(batch AccountUpdaterBatch, cards []AccountUpdaterCard) {
	decided := make(chan *submitted, 1)
	select {
	case <-w.left:
		return
	case w.queue <- decided:
	}
	if len(cards) == 0 {
		batch.Status, batch.Err = BatchNotSent, noCardError()
		decided <- &submitted{AccountUpdaterBatch: batch}
		return
	}
	w.slots <- struct{}{}
	go func() {
		b, returned := &submitted{AccountUpdaterBatch: batch}, false
		defer func() {
			if !returned {
				w.caught(recover())
				w.stop(errors.New("panic"))
				if b.Status == "" { // it was not decided before
					b.Status, b.Err = BatchUnknown, panicError(OpAccountUpdaterSubmit)
				}
			}
			decided <- b
		}()
		w.send(b, cards)
		returned = true
	}()
}

// send begins, sends and records a batch, and starts over while the service limits the rate.
func (w *bulkWalk) send(b *submitted, cards []AccountUpdaterCard) {
	defer func() { <-w.slots }()
	err := w.service.caller.callInTurn(w.sending, OpAccountUpdaterSubmit, w.opts, func(opts []CallOption) error {
		b.Status, b.begun = "", false // undecided; what another run has begun meanwhile is not recorded here
		if w.begin(b) {
			w.submit(b, cards, opts)
		}
		if b.FromJournal {
			return nil
		}
		b.Status = statusOf(b.Err)
		if b.begun {
			w.record(b.Index, outcomeOf(&b.AccountUpdaterBatch))
		}
		return b.Err
	})
	if b.FromJournal {
		return
	}
	over := w.over()
	switch {
	case err == nil || b.unsent:
	case b.Err == nil && over != nil: // the walk was over before the turn of the batch came
		b.Err, b.unsent = over, true
	case b.Err == nil:
		b.Err = err
	case over != nil && (errors.Is(b.Err, errStopped) || errors.Is(b.Err, ErrRateLimited)): // before it was sent again
		b.Err = w.stopped(b.Err)
	}
	b.Status = statusOf(b.Err)
	w.learn(b.Err)
}

// stopped returns the error of a batch that is not sent again, with the reason.
func (w *bulkWalk) stopped(err error) error {
	e, failed := errors.AsType[*Error](err)
	if !failed {
		return err
	}
	stopped := *e // the call has given e to its observers
	stopped.cause = fmt.Errorf("%w: %w", errStopped, inShort(w.why()))
	return &stopped
}

// run yields the batches in their order.
func (w *bulkWalk) run(yield func(*submitted) bool) {
	last := &submitted{AccountUpdaterBatch: AccountUpdaterBatch{Index: -1}}
	for decided := range w.started() {
		if last = <-decided; !yield(last) {
			return
		}
	}
	w.rethrow()
	end := &submitted{AccountUpdaterBatch: AccountUpdaterBatch{
		Index: last.Index + 1, Start: last.End, End: last.End, Status: BatchNotSent,
	}}
	switch failed := w.failed.Load(); {
	case failed != nil && !errors.Is(last.Err, *failed):
		end.Err = unsentError(OpAccountUpdaterSubmit, *failed)
	case !last.unsent && (w.blocked || !w.whole):
		end.Err = w.over()
	}
	if end.Err != nil {
		yield(end)
	}
}

// started gives what comes through the queue. When the walk is over, it does not wait long for a stream that blocks.
func (w *bulkWalk) started() iter.Seq[chan *submitted] {
	return func(yield func(chan *submitted) bool) {
		stopped := w.sending.Done()
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

// caught keeps the first panic for the loop. Code that neither returned nor panicked has ended its goroutine.
func (w *bulkWalk) caught(with any) {
	if with == nil {
		with = errors.New("payvault: the stream, the transport or the journal of SubmitAll has ended its goroutine")
	}
	w.panicked.CompareAndSwap(nil, &with)
}

// rethrow panics as the caller's own code did.
func (w *bulkWalk) rethrow() {
	if with := w.panicked.Swap(nil); with != nil {
		panic(*with)
	}
}

// leave waits for the batches that were started, and for the stream unless it blocks.
func (w *bulkWalk) leave() {
	w.stop(context.Canceled)
	w.end()
	close(w.left)
	if w.blocked {
		return
	}
	for decided := range w.started() {
		<-decided
	}
	w.rethrow()
}

// begin reports whether a batch is to be sent.
func (w *bulkWalk) begin(b *submitted) bool {
	if b.Err = w.over(); b.Err != nil {
		if e, ok := errors.AsType[*Error](b.Err); ok && w.Journal != nil {
			e.final = true // it may have been sent in an earlier run
		}
		b.unsent = true
		return false
	}
	if w.Journal == nil {
		return true
	}
	known, err := w.Journal.Begin(w.sending, w.Job, b.Index)
	if err != nil {
		if w.why() == nil { // else it may have failed because the walk is over
			w.fail(err)
		}
		return w.begin(b)
	}
	if b.Err = known.check(b.Index, b.sent()); b.Err != nil {
		b.unsent = true
		w.stop(fmt.Errorf("the job %s %d", otherCards, b.Index))
		return false
	}
	if b.begun = !known.Begun; !b.begun {
		b.FromJournal = true
		b.Status, b.RequestID, b.Err = known.result()
	}
	return b.begun
}

// submit makes the call of a batch.
func (w *bulkWalk) submit(b *submitted, cards []AccountUpdaterCard, opts []CallOption) {
	if b.Err = w.over(); b.Err != nil {
		b.unsent = true
		return
	}
	opts = append(slices.Clip(opts), func(o *callOptions) { o.sending = w.sending })
	if w.keepRaw {
		opts = append(opts, WithResponse(&b.raw))
	}
	accepted, err := w.service.Submit(w.requests, cards, opts...)
	if b.Err = err; accepted != nil {
		b.RequestID = accepted.RequestID
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Attempts == 0 && errors.Is(err, errStopped) {
		b.Err, b.unsent = w.over(), true
	}
}

// learn ends the walk if the error of a batch says that the others would fail too.
func (w *bulkWalk) learn(err error) {
	unknown := errors.Is(err, ErrOutcomeUnknown)
	switch {
	case !unknown && errors.Is(err, ErrRateLimited) && w.endsWithRefusal(err),
		errors.Is(err, ErrUnauthorized), errors.Is(err, ErrForbidden):
		w.stop(err)
	}
	if !unknown {
		w.lost.Store(0)
		return
	}
	if n := w.lost.Add(1); n >= max(mostLost, 2*int64(w.Concurrency)) {
		w.stop(fmt.Errorf("the last %d batches are of unknown outcome", n))
	}
}

// endsWithRefusal reports whether the walk ends with a refusal with status 429, because it was not waited out. With
// IgnoreOverload each batch goes by its own attempts, and only a wait that is too long ends the walk.
func (w *bulkWalk) endsWithRefusal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	c := w.service.caller
	return ok && (c.paces != nil || e.RetryAfter > c.policy.MaxBulkRetryAfter)
}

// record records what came of a batch, even if the walk is over.
func (w *bulkWalk) record(batch int, o BatchOutcome) {
	if w.Journal == nil {
		return
	}
	if err := w.Journal.End(w.requests, w.Job, batch, o); err != nil {
		w.fail(err)
	}
}

// fail ends the walk with an error of its journal.
func (w *bulkWalk) fail(err error) {
	err = fmt.Errorf("journal: %w", err)
	w.failed.CompareAndSwap(nil, &err)
	w.stop(err)
}

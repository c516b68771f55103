package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault"
)

// journal has the recorded states of a job's batches. They remain when a process of the job is killed.
type journal struct {
	mu    sync.Mutex
	known map[int]payvault.BatchState
	calls int
}

// entry is the [payvault.Journal] of one process of the job. All processes share the embedded journal. Its mutex also
// guards begun and failed.
type entry struct {
	*journal

	caller *caller
	life   *life
	begun  map[int]bool // the batches that this process has begun
	failed map[int]bool // the batches for which the journal has returned an error to this process
}

var errJournal = errors.New("the journal fails")

// write runs f, with the fault that the plan has for this write. It does not run f after ctx has ended.
func (e *entry) write(ctx context.Context, what string, batch int, f func()) error {
	plan := e.caller.plan
	e.life.event()
	e.mu.Lock()
	e.calls++
	fault := ""
	if e.calls <= len(plan.Journal) {
		fault = plan.Journal[e.calls-1]
	}
	e.mu.Unlock()
	if fault == "slow" {
		e.caller.run.strike("journal: " + fault)
		_ = pause(ctx, time.Duration(1+batch%3)*time.Second)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.life.isDead() {
		return errDead
	}
	if err := ctx.Err(); err != nil {
		e.caller.run.strike("journal: its context has ended")
		e.caller.run.trace("journal", "call %d, batch %d: %s %v", e.caller.n, batch, what, err)
		return err
	}
	if fault == "fails" || fault == "fails when done" {
		e.caller.run.strike("journal: " + fault)
		e.caller.run.trace("journal", "call %d, batch %d: %s %s", e.caller.n, batch, what, fault)
		e.life.mu.Lock()
		e.life.failed = true
		e.life.mu.Unlock()
		e.failed[batch] = true
	}
	if fault == "fails" {
		return errJournal
	}
	f()
	e.caller.run.trace("journal", "call %d, batch %d: %s", e.caller.n, batch, what)
	if fault == "fails when done" {
		return errJournal
	}
	return nil
}

// Begin implements [payvault.Journal].
func (e *entry) Begin(ctx context.Context, job string, batch int) (state payvault.BatchState, err error) {
	e.check(job)
	err = e.write(ctx, "begin", batch, func() {
		state = e.known[batch]
		if state.Outcome != nil && state.Outcome.Status == payvault.BatchNotSent {
			state = payvault.BatchState{}
		}
		if !state.Begun {
			e.known[batch] = payvault.BatchState{Begun: true}
			e.begun[batch] = true
		}
	})
	e.life.event()
	if err != nil {
		return payvault.BatchState{}, err
	}
	return state, nil
}

// End implements [payvault.Journal].
func (e *entry) End(ctx context.Context, job string, batch int, outcome payvault.BatchOutcome) error {
	e.check(job)
	err := e.write(ctx, "end, "+string(outcome.Status), batch, func() {
		if !e.known[batch].Begun {
			e.caller.fail("batch %d ended and had not begun", batch)
		}
		e.known[batch] = payvault.BatchState{Begun: true, Outcome: &outcome}
	})
	shown := outcome
	shown.RequestID = "" // the service chooses this ID, so the SDK removes only card numbers from it
	if secret := leaked(fmt.Sprintf("%+v", shown), e.caller.kind.secrets()); secret != "" {
		e.caller.fail("%q stands in the journal: %+v", secret, shown)
	}
	if strings.Contains(outcome.RequestID, canaryCard) {
		e.caller.fail("a card number stands in the journal: %+v", outcome)
	}
	e.life.event()
	return err
}

func (e *entry) check(job string) {
	if job != jobName {
		e.caller.fail("the journal was told of job %q", job)
	}
}

const jobName = "cards of November"

// bulk submits a stream of cards. When the plan kills the job's process, a new process continues with the same journal.
// Each process is a life of the job.
func (c *caller) bulk(ctx context.Context, client *payvault.Client) {
	opt := &payvault.SubmitAllOptions{Concurrency: c.plan.Width}
	if !c.plan.Job {
		c.submitAll(ctx, client, opt, nil)
		return
	}
	kept := &journal{known: map[int]payvault.BatchState{}}
	deaths := c.plan.Deaths
	for number := range len(deaths) + 1 {
		l := &life{run: c.run, call: c.n, number: number}
		if number < len(deaths) {
			l.diesAt = deaths[number]
		}
		c.live(ctx, l, opt, kept)
		if !l.isDead() {
			return
		}
	}
}

// live runs the job in one process, with a client of its own.
func (c *caller) live(ctx context.Context, l *life, opt *payvault.SubmitAllOptions, kept *journal) {
	ctx, l.cancel = context.WithCancel(ctx)
	defer l.cancel()
	base := c.run.pool()
	base.DialContext = l.dial
	client, err := c.run.client(base)
	if err != nil {
		c.fail("no client: %v", err)
		return
	}
	c.mu.Lock()
	c.life = l
	c.mu.Unlock()
	own := *opt
	entry := &entry{journal: kept, caller: c, life: l, begun: map[int]bool{}, failed: map[int]bool{}}
	own.Journal, own.Job = entry, jobName
	before := c.sent()
	defer base.CloseIdleConnections()
	c.submitAll(ctx, client, &own, entry)
	c.auditLife(entry, before)
}

// sent returns the batches whose requests the service may have performed. No later process of the job may send them.
func (c *caller) sent() map[int]bool {
	sent := map[int]bool{}
	for batch := range c.plan.Length {
		if n := c.run.note(unit{c.n, batch}, nil); n.heads > n.turned+n.forbidden+n.leftOut {
			sent[batch] = true
		}
	}
	return sent
}

// auditLife checks that a process sent none of the batches that the service may have performed for earlier processes.
// If the process was not killed, auditLife also checks the journal:
//   - Each batch that the process began has an outcome, unless the journal failed for this batch.
//   - Each batch of the job has begun, unless something has ended the job early.
func (c *caller) auditLife(e *entry, before map[int]bool) {
	l := e.life
	for batch := range before {
		if now := c.run.note(unit{c.n, batch}, nil); now.lives[l.number] > 0 && !copiesUnseen(c.run.Caller) {
			c.fail("batch %d was sent again in life %d", batch, l.number)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.isDead() {
		return
	}
	isWhole := !l.failed && c.plan.End == 0 && !c.left && !c.limited
	for batch := range c.plan.Length {
		known := e.known[batch]
		if e.begun[batch] && known.Outcome == nil && !e.failed[batch] || isWhole && !known.Begun {
			c.fail("batch %d is open in the journal at the end of life %d", batch, l.number)
		}
	}
}

// auditRecord checks that the journal and the caller got the same outcome of a batch.
func (c *caller) auditRecord(e *entry, b *payvault.AccountUpdaterBatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.Status == payvault.BatchNotSent || b.FromJournal || e.failed[b.Index] {
		return
	}
	outcome := e.known[b.Index].Outcome
	if outcome == nil || outcome.Status != b.Status || (outcome.RequestID == "") != (b.RequestID == "") {
		c.fail("batch %d is %s with request ID %q, and the journal has %+v", b.Index, b.Status, b.RequestID, outcome)
	}
}

// submitAll calls SubmitAll and checks each batch. The entry is nil if the call has no journal.
func (c *caller) submitAll(
	ctx context.Context, client *payvault.Client, opt *payvault.SubmitAllOptions, kept *entry,
) {
	var l *life
	if kept != nil {
		l = kept.life
	}
	var raw payvault.Response
	var read atomic.Int64
	total := cardsOf(c.plan.Length)
	next, stop := 0, error(nil)
	breaks := 0
	if l == nil || l.number == 0 {
		breaks = c.plan.Breaks
	}
	cards := c.cards(ctx, total, breaks, &read)
	for b, err := range client.AccountUpdater.SubmitAll(ctx, cards, opt, c.options(&raw)...) {
		if l != nil {
			if l.event(); l.isDead() {
				continue // the process was killed, so nobody gets this batch
			}
		}
		if stop != nil || (b == nil) == (err == nil) {
			c.fail("%+v and the error %v after the error %v", b, err, stop)
		}
		if stop = err; err != nil {
			c.auditStop(ctx, l, err)
			continue
		}
		isWhole := b.End == min(total, b.Start+batchSize)
		if b.Index != next || b.Start != next*batchSize || !isWhole {
			c.fail("batch %d of cards %d to %d where batch %d was to come", b.Index, b.Start, b.End, next)
		}
		if (b.Err == nil) == (b.RequestID == "") {
			c.fail("batch %d has request ID %q and error %v", b.Index, b.RequestID, b.Err)
		}
		if b.FromJournal && (l == nil || l.number == 0) {
			c.fail("batch %d is of an earlier run, but there was none", b.Index)
		}
		if kept != nil {
			c.auditRecord(kept, b)
		}
		c.recordResultIn(l, b.Index, b.RequestID, b.Err, &raw)
		if ahead := int(read.Load()) - next*batchSize; ahead > (2*c.width()+1)*batchSize+1 {
			c.fail("%d cards were read ahead", ahead)
		}
		if next++; next == c.plan.Leave {
			c.run.strike("caller: leaves a job")
			c.left = true
			return
		}
		c.panicAt("loop")
	}
	if breaks > 0 {
		c.auditBreak(breaks)
	}
	dead := l != nil && l.isDead()
	if next < c.plan.Length && !dead && stop == nil {
		c.fail("%d batches of %d were yielded, and no error", next, c.plan.Length)
	}
}

// auditStop checks the error with which a job ends early. The error must be a StopError, and not be safe to retry.
// StopContext needs a context that has ended, StopJournal a journal that has failed, and StopStream a stream that has
// failed. StopOtherCards must not occur. The other reasons are not checked.
func (c *caller) auditStop(ctx context.Context, l *life, err error) {
	stop, ok := errors.AsType[*payvault.StopError](err)
	if !ok || payvault.SafeToRetry(err) {
		c.fail("the job ends with %v", err)
		return
	}
	c.run.strike("job: " + string(stop.Reason))
	switch stop.Reason {
	case payvault.StopContext:
		if ctx.Err() == nil {
			c.fail("the context has not ended: %v", err)
		}
	case payvault.StopJournal:
		if l == nil || !l.failed {
			c.fail("the journal has not failed: %v", err)
		}
	case payvault.StopStream:
		c.limited = true
		if !errors.Is(err, errStream) {
			c.fail("the stream has not failed: %v", err)
		}
	case payvault.StopRateLimit, payvault.StopKey, payvault.StopNoCode, payvault.StopUnknown, payvault.StopNotSent:
		c.limited = true
	default:
		c.fail("no reason of this scenario: %v", err)
	}
}

// auditBreak checks a job whose stream ended with an error after the given number of cards. The first process must not
// have sent the batch that has the last of these cards, because the card or the batch may be incomplete. It must not
// have sent a later batch either.
func (c *caller) auditBreak(cards int) {
	for batch := (cards - 1) / batchSize; batch < c.plan.Length; batch++ {
		if n := c.run.note(unit{c.n, batch}, nil); n.lives[0] > 0 {
			c.fail("batch %d was sent, although the stream broke off after %d cards", batch, cards)
		}
	}
}

var errStream = errors.New("the file of cards breaks off")

// cards returns a stream of cards, and counts in read the cards that it yields. If breaks is not 0, the stream fails
// with errStream after that number of cards. If ctx ends while the stream pauses, the stream ends without an error.
func (c *caller) cards(
	ctx context.Context, total, breaks int, read *atomic.Int64,
) iter.Seq2[payvault.AccountUpdaterCard, error] {
	cards, _ := c.request.([]payvault.AccountUpdaterCard)
	return func(yield func(payvault.AccountUpdaterCard, error) bool) {
		for i := range total {
			if i%batchSize == 50 {
				c.panicAt("stream")
				if c.plan.Slow > 0 {
					select {
					case <-time.After(c.plan.Slow):
					case <-ctx.Done():
						return
					}
				}
			}
			read.Add(1)
			card := cards[0]
			card.CardID = strconv.Itoa(i)
			if !yield(card, nil) {
				return
			}
			if i+1 == breaks {
				c.run.strike("caller: the stream breaks off")
				if pause(ctx, time.Second) != nil { // a batch that does not wait for its next card is sent meanwhile
					return
				}
				yield(payvault.AccountUpdaterCard{}, errStream)
				return
			}
		}
	}
}

// recordResultIn records the result of a batch with the number of the job's process. If another process may follow,
// recordResultIn also keeps a copy of the batch's present record.
func (c *caller) recordResultIn(l *life, batch int, id string, err error, raw *payvault.Response) {
	c.recordResult(batch, id, err, raw)
	o := &c.outcomes[len(c.outcomes)-1]
	n := c.run.note(o.unit, nil)
	o.seen = &n
	if l != nil {
		o.life = l.number
	}
	if l == nil || l.diesAt == 0 {
		o.seen = nil
	}
}

package temporalpayvault

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
)

// batchSize is how many cards a request has.
const batchSize = payvault.MaxAccountUpdaterCards

// order is what a workflow has an activity submit.
type order struct {
	Job        string
	Source     string
	Snapshot   Snapshot
	Journal    bool // of the worker that began the job
	Span       span
	Run        string        // that may send without a journal; "" if none may. A reset does pending orders in another
	InFlight   int           // requests
	Interval   time.Duration // between two requests
	MaxUnknown int
	Owed       []Outcome `json:",omitempty"` // of an order to record: what the journal may not have
}

// report is what an activity has come to: its heartbeat, its result, and the details of its failure.
type report struct {
	Outcomes []Outcome `json:"o,omitempty"`
	Sending  []int     `json:"a,omitempty"` // batches that were announced, and may have been sent; see know

	// Not of a heartbeat, after which what it does not mention was not sent. Otherwise that may have been sent.
	Left []span `json:"l,omitempty"` // were not sent
	Stop string `json:"s,omitempty"` // why the job has to pause; "" if it has not
}

const (
	maxRefused = 10   // batches in a row
	maxReason  = 200  // bytes as JSON, of a reason
	maxID      = 100  // of a request ID or a code, or of the type of a failure
	maxMessage = 1000 // of a failure
)

// cardNumber may be one: 12 digits in a row, groups of digits as on a card, or 12 digits in a text without letters. A
// UUID seldom has any.
var cardNumber = regexp.MustCompile(
	`\pN{12,}|(?:\pN{4}[^\pL\pN]+){3,}\pN{3,}|\pN{4}[^\pL\pN]+\pN{6}[^\pL\pN]+\pN{4,}|^(?:\PL*\pN){12}\PL*$`)

// beginning is what an activity finds out before a job hands out anything.
type beginning struct {
	Snapshot

	Journal bool `json:"journal,omitempty"` // the worker has one
}

// Reasons to pause.
const (
	stopUnknown = "too many batches of unknown outcome"
	stopChanged = "the snapshot of the cards has changed"
	badSnapshot = "a snapshot needs 0 cards or more, and a checksum without @"
	stopRefused = "one batch after the other is refused"
	stopCards   = "a worker has no Cards in its Activities"
	stopClient  = "a worker has no Client in its Activities"
	stopJournal = "the job was begun with a journal, and a worker has none"
	stopOther   = "the journal has batches of other cards under the name and the checksum of this job"
)

// unknownEarlier counts the unknown batches of another job.
func (r *report) unknownEarlier() (n int) {
	for _, o := range r.Outcomes {
		if o.Earlier && o.Status == payvault.BatchUnknown {
			n++
		}
	}
	return n
}

// refusedInRow goes on with a count of refused batches.
func refusedInRow(row int, outcomes []Outcome) int {
	for _, o := range outcomes {
		switch {
		case o.Earlier:
		case o.Status == payvault.BatchRefused:
			row++
		case o.Status == payvault.BatchAccepted:
			row = 0
		}
	}
	return row
}

// redo returns the batches of s that are not decided. Of what was not reported, and may have been sent, the journal
// says what came of it; without one it is unknown.
func (r *report) redo(s span, journal bool) []span {
	mentioned := decided(r.Outcomes)
	for _, left := range r.Left {
		for i := left.From; i < left.To; i++ {
			mentioned[i] = true
		}
	}
	redo := r.Left
	for _, lost := range s.without(mentioned) {
		if lost.Lost = true; journal {
			redo = append(redo, lost)
			continue
		}
		for i := lost.From; i < lost.To; i++ {
			r.Outcomes = append(r.Outcomes, Outcome{Batch: i, Status: payvault.BatchUnknown})
		}
	}
	return redo
}

// owed are the outcomes that the journal may not have.
func (r *report) owed() []Outcome {
	return slices.DeleteFunc(slices.Clone(r.Outcomes), func(o Outcome) bool {
		return !slices.Contains(r.Sending, o.Batch)
	})
}

// mentioned are the batches that may have been sent.
func (r *report) mentioned() map[int]bool {
	mentioned := decided(r.Outcomes)
	for _, i := range r.Sending {
		mentioned[i] = true
	}
	return mentioned
}

// decided are the batches of outcomes.
func decided(outcomes []Outcome) map[int]bool {
	decided := make(map[int]bool, len(outcomes))
	for _, o := range outcomes {
		decided[o.Batch] = true
	}
	return decided
}

// without returns the batches of s that are not among some.
func (s span) without(some map[int]bool) (left []span) {
	for i := s.From; i < s.To; i++ {
		last := len(left) - 1
		switch {
		case some[i]:
		case last >= 0 && left[last].To == i:
			left[last].To++
		default:
			left = append(left, span{From: i, To: i + 1, Lost: s.Lost})
		}
	}
	return left
}

func activityOptions(name string) activity.RegisterOptions {
	return activity.RegisterOptions{Name: name}
}

// snapshot describes the cards of a job.
func (a *Activities) snapshot(ctx context.Context, ref string) (*beginning, error) {
	if a.Cards == nil {
		return nil, temporal.NewNonRetryableApplicationError(stopCards, TypeSource, nil)
	}
	defer keepAlive(ctx, func() { activity.RecordHeartbeat(ctx) })()
	s, err := a.Cards.Snapshot(ctx, ref)
	if err != nil {
		return nil, silent(err, TypeSource)
	}
	if s.Cards < 0 || s.Checksum == "" || strings.Contains(s.Checksum, "@") { // which ends the name, for the journal
		return nil, temporal.NewNonRetryableApplicationError(badSnapshot, TypeSource, nil)
	}
	return &beginning{s, a.Journal != nil}, nil
}

// submit submits batches. Each is sent at most once, whatever happens to workers.
func (a *Activities) submit(ctx context.Context, o order) (*report, error) {
	info := activity.GetInfo(ctx)
	if o.Run != info.WorkflowExecution.RunID && !o.Journal {
		return nil, temporal.NewNonRetryableApplicationError(
			"the workflow was reset or retried, and without a journal nobody knows what it had sent", TypeReset, nil)
	}
	if activity.HasHeartbeatDetails(ctx) {
		return nil, startedAgain[report](ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := a.newSubmission(ctx, o)
	if missing := a.missing(o); missing != "" {
		s.halt(missing, nil)
		return s.end()
	}
	s.refused = func(err error) {
		if temporal.IsCanceledError(err) {
			s.halt("", nil) // what was done is the result
		} else {
			s.halt("", errHeartbeat(err))
		}
		cancel() // what is in flight goes on, and nothing more is begun
	}
	go func() {
		select {
		case <-s.stopping: // what is in flight is not repeated, and what waits is not sent
			cancel()
		case <-ctx.Done():
		}
	}()
	defer keepAlive(ctx, func() { _ = s.flush(ctx) })()
	s.run(ctx, a)
	return s.end()
}

// missing says what a worker does not have for an order, or "".
func (a *Activities) missing(o order) string {
	switch {
	case a.Cards == nil:
		return stopCards
	case a.Client == nil:
		return stopClient
	case o.Journal && a.Journal == nil:
		return stopJournal
	}
	return ""
}

func (a *Activities) newSubmission(ctx context.Context, o order) *submission {
	s := &submission{
		order: o, stopping: activity.GetWorkerStopChannel(ctx), halted: make(chan struct{}), due: time.Now(),
		ledger: ledger{a.newHeartbeat(ctx), map[int]Outcome{}, map[int]bool{}},
	}
	if o.Journal { // one that was added since does not know what was sent before
		s.journal = a.Journal
	}
	return s
}

// submission is one attempt of an activity. It is the journal of the SubmitAll that it runs.
type submission struct {
	order
	ledger

	journal  payvault.Journal
	refusals int             // batches in a row
	given    atomic.Int64    // batches that the stream has begun to give
	due      time.Time       // of the last request
	stopping <-chan struct{} // closed when the worker stops

	stop   sync.Once
	halted chan struct{} // closed when no more cards are to be read
	reason string        // why the job has to pause; set before halted is closed
	err    error         // why the attempt has failed; set before halted is closed
}

// halt ends the stream of cards. The first call counts.
func (s *submission) halt(reason string, err error) {
	s.stop.Do(func() {
		s.reason, s.err = reason, err
		close(s.halted)
	})
}

// run sends the batches.
func (s *submission) run(ctx context.Context, a *Activities) {
	options := &payvault.SubmitAllOptions{Concurrency: s.InFlight, Journal: s, Job: s.Job}
	for b := range a.Client.AccountUpdater.SubmitAll(ctx, s.cards(ctx, a.Cards), options) {
		switch {
		case b.FromJournal:
		case b.Err == nil:
			s.refusals = 0
		default:
			s.consider(b)
		}
	}
}

// sourceFailed ends the attempt, or has the job pause if the source does not want to be asked again.
func (s *submission) sourceFailed(err error) {
	err = silent(err, TypeSource)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.NonRetryable() {
		s.halt(app.Message(), nil)
		return
	}
	s.halt("", err)
}

// consider looks at why a batch has failed.
func (s *submission) consider(b *payvault.AccountUpdaterBatch) {
	e, _ := errors.AsType[*payvault.Error](b.Err)
	switch {
	case e.Fields["Job"] != nil: // known has ended the order
	case b.Start == b.End && invalid(e): // no batch can be sent
		s.halt(e.Error(), nil)
	case e.StatusCode == http.StatusUnauthorized, e.StatusCode == http.StatusForbidden:
		s.halt("the service answers with status "+strconv.Itoa(e.StatusCode), nil)
	case invalid(e): // and would be again
		i := s.Span.From + b.Index
		s.settle(i, &Outcome{Batch: i, Status: payvault.BatchRefused, Reason: bounded(e.Error(), maxReason)})
		s.refuse()
	case b.Status == payvault.BatchNotSent:
		s.halt("", temporal.NewApplicationErrorWithOptions(e.Error(), TypeSafeToRetry,
			temporal.ApplicationErrorOptions{NextRetryDelay: e.RetryAfter}))
	case b.Status == payvault.BatchUnknown:
		s.checkUnknown()
	default:
		s.refuse()
	}
}

// refuse has the job pause when nothing but refusals comes: something else than the cards may be wrong.
func (s *submission) refuse() {
	if s.refusals++; s.refusals >= maxRefused {
		s.halt(stopRefused, nil)
	}
}

func invalid(e *payvault.Error) bool {
	return errors.Is(e, payvault.ErrInvalidRequest) || errors.Is(e, payvault.ErrMerchantNotSupported)
}

// checkUnknown has the job pause when the share of unknown batches is used.
func (s *submission) checkUnknown() {
	unknown := 0
	for _, o := range s.progress().Outcomes {
		if o.Status == payvault.BatchUnknown && !o.Earlier {
			unknown++
		}
	}
	if unknown >= s.MaxUnknown {
		s.halt(stopUnknown, nil)
	}
}

// end returns what was done, or an error that has it among its details.
func (s *submission) end() (*report, error) {
	s.halt("", nil) // whoever comes now is too late
	done := s.progress()
	done.Left, done.Stop = s.Span.without(done.mentioned()), s.reason
	err := s.err
	if isClosed(s.stopping) && len(done.Left)+len(done.Sending) > 0 {
		err = errWorkerStops()
	}
	if s.reason == "" && err != nil {
		return nil, failed(err, done)
	}
	return &done, nil
}

// cards reads the batches. It ends between two of them.
func (s *submission) cards(ctx context.Context, source CardSource) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		start, end := s.Span.From*batchSize, min(s.Span.To*batchSize, s.Snapshot.Cards)
		cards, err := source.Cards(ctx, s.Source, start, end)
		if !s.unchanged(ctx, source) { // since before the cards were read, whatever came of that
			return
		}
		if err != nil {
			s.sourceFailed(err)
			return
		}
		if len(cards) != end-start {
			s.halt(stopChanged, nil)
			return
		}
		for batch := range slices.Chunk(cards, batchSize) {
			if !s.pace(ctx) {
				return
			}
			s.given.Add(1)
			for _, card := range batch {
				if !yield(card) {
					return
				}
			}
		}
	}
}

// unchanged reports whether the snapshot is that of the job.
func (s *submission) unchanged(ctx context.Context, source CardSource) bool {
	now, err := source.Snapshot(ctx, s.Source)
	if err != nil {
		s.sourceFailed(err)
	} else if now != s.Snapshot {
		s.halt(stopChanged, nil)
	}
	return !isClosed(s.halted)
}

// pace waits until the next request is due, and reports whether to go on.
func (s *submission) pace(ctx context.Context) bool {
	s.due = s.due.Add(s.Interval)
	if now := time.Now(); s.due.Before(now) {
		s.due = now
	}
	timer := time.NewTimer(time.Until(s.due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.halted:
	case <-s.stopping:
	}
	return ctx.Err() == nil && !isClosed(s.halted) && !isClosed(s.stopping)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Begin announces a batch in the heartbeat, and asks the journal if there is one. It implements [payvault.Journal], as
// End does. The batch after the last that was given stands for the end of the stream, which is not that of the job.
func (s *submission) Begin(ctx context.Context, job string, index int) (payvault.BatchState, error) {
	if index >= int(s.given.Load()) {
		return payvault.BatchState{}, nil
	}
	i := s.Span.From + index
	if err := s.announce(ctx, i); err != nil {
		return payvault.BatchState{}, err
	}
	if s.journal == nil {
		return payvault.BatchState{}, nil
	}
	state, err := s.journal.Begin(ctx, job, i)
	if err == nil && state.Begun { // after an error the batch stays announced: the journal may have it
		s.known(i, state.Outcome)
	}
	return state, err
}

// known takes over what the journal has of a batch, unless it is of other cards.
func (s *submission) known(i int, o *payvault.BatchOutcome) {
	outcome := &Outcome{Batch: i, Status: payvault.BatchUnknown}
	if o != nil {
		if o.Cards > 0 && o.Cards != s.Snapshot.size(i) {
			s.settle(i, nil)
			s.halt(stopOther, nil)
			return
		}
		if ended := outcomeOf(i, *o); ended != nil {
			outcome = ended
		}
	}
	outcome.Earlier = !s.Span.Lost
	s.settle(i, outcome)
}

// size is how many cards a batch has.
func (s Snapshot) size(batch int) int {
	return min((batch+1)*batchSize, s.Cards) - batch*batchSize
}

// End keeps what came of a batch for the next heartbeat, and records it in the journal.
func (s *submission) End(ctx context.Context, job string, index int, o payvault.BatchOutcome) error {
	if index >= int(s.given.Load()) {
		return nil
	}
	i := s.Span.From + index
	outcome := outcomeOf(i, o)
	if s.journal == nil {
		s.settle(i, outcome)
		return nil
	}
	s.know(outcome)
	err := s.journal.End(ctx, job, i, o)
	if err != nil { // it stays announced: the journal may have it, and another workflow may have begun it since
		s.halt("", errRecord(err))
		return err
	}
	s.settle(i, nil)
	return nil
}

// enter records in the journal what it may not have, though an activity has reported it.
func (a *Activities) enter(ctx context.Context, o order) error {
	if a.Journal == nil {
		return temporal.NewApplicationError(stopJournal, TypeSafeToRetry)
	}
	defer keepAlive(ctx, func() { activity.RecordHeartbeat(ctx) })()
	for _, owed := range o.Owed {
		err := a.Journal.End(ctx, o.Job, owed.Batch, payvault.BatchOutcome{
			Status: owed.Status, Cards: o.Snapshot.size(owed.Batch), RequestID: owed.RequestID,
			StatusCode: owed.StatusCode, Code: owed.Code, Message: owed.Reason,
		})
		if err != nil {
			return errRecord(err)
		}
	}
	return nil
}

func errRecord(err error) error {
	message := bounded("the journal has not recorded a batch: "+err.Error(), maxMessage)
	return temporal.NewApplicationError(message, TypeSafeToRetry)
}

// outcomeOf returns nil for a batch that was not performed.
func outcomeOf(batch int, o payvault.BatchOutcome) *Outcome {
	if o.Status == payvault.BatchNotSent {
		return nil
	}
	outcome := &Outcome{
		Batch: batch, Status: o.Status, RequestID: bounded(cardNumber.ReplaceAllString(o.RequestID, "[REDACTED]"), maxID),
		StatusCode: o.StatusCode, Code: bounded(o.Code, maxID),
	}
	if o.Status == payvault.BatchRefused {
		outcome.Reason = bounded(o.Message, maxReason)
	}
	return outcome
}

// bounded cuts a text, so that those of many batches go into a heartbeat, which has them as JSON.
func bounded(text string, most int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	for i, char := range text {
		escaped, err := json.Marshal(string(char)) // in quotes
		if most -= len(escaped) - 2; err != nil || most < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

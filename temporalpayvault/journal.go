package temporalpayvault

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"

	"example.com/payvault"
)

// rangeJournal is the journal for a SubmitAll over a range of batches. SubmitAll counts the batches of the range from
// 0, so a rangeJournal adds the number of the first batch. It also gives back the permit of each batch that is accepted
// or that the journal has already. When too many batches are refused or of unknown outcome, it stops SubmitAll.
type rangeJournal struct {
	payvault.Journal
	*permits

	logger log.Logger
	rest   func() bool // waits before End is tried again; returns false if the activity has ended
	first  int         // number of the first batch that SubmitAll gets

	mu    sync.Mutex
	known map[int]knowledge // by the number of the batch
}

// knowledge is what an attempt knows of a batch.
type knowledge string

const (
	sent      knowledge = "sent by this attempt"
	abandoned knowledge = "begun by another attempt, and not ended"
	recorded  knowledge = "ended by another attempt"
)

func newRangeJournal(ctx context.Context, journal payvault.Journal, p *permits) *rangeJournal {
	return &rangeJournal{
		Journal: journal, permits: p, logger: activity.GetLogger(ctx),
		rest: func() bool { return sleep(ctx, endPause) }, known: map[int]knowledge{},
	}
}

// Begin begins a batch in the journal of the job. If the journal says that the batch may have been sent before, the
// batch is not sent, and its permit becomes free.
func (j *rangeJournal) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	state, err := j.Journal.Begin(ctx, job, j.first+batch)
	if !state.Begun {
		return state, err
	}
	j.giveBack()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case state.Outcome == nil:
		j.known[j.first+batch] = abandoned
	case j.known[j.first+batch] != sent:
		j.known[j.first+batch] = recorded
	}
	return state, err
}

// End records the outcome of a batch. An accepted batch gives its permit back. The permit of a refused or unknown batch
// is lost. A batch that was not sent keeps its permit.
func (j *rangeJournal) End(ctx context.Context, job string, batch int, o payvault.BatchOutcome) error {
	err := j.record(ctx, job, j.first+batch, o)
	switch o.Status {
	case payvault.BatchAccepted:
		j.giveBack()
		j.earn()
	case payvault.BatchRefused, payvault.BatchUnknown:
		j.lose()
	case payvault.BatchNotSent: // the batch waits for its next attempt, or SubmitAll ends
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.known[j.first+batch] = sent
	return err
}

// record records the outcome of a batch. If the journal fails, record tries again as long as the activity may run,
// because the service gives its answer only once. It logs the outcome at the first and at the last failure, so that
// somebody can record it, even if the process is killed meanwhile. It tries and logs only once to record that a batch
// was not sent: another attempt of the activity may have begun the batch before a second try.
func (j *rangeJournal) record(ctx context.Context, job string, batch int, o payvault.BatchOutcome) error {
	for tries := 1; ; tries++ {
		err := j.Journal.End(ctx, job, batch, o)
		if err == nil {
			return nil
		}
		outcome := []any{"batch", batch, "status", o.Status, "requestID", o.RequestID, "error", err}
		isRepeatable := o.Status != payvault.BatchNotSent
		if tries == 1 && isRepeatable {
			j.logger.Warn("payvault: the journal fails to record an outcome and is tried again", outcome...)
		}
		if !isRepeatable || !j.rest() {
			j.logger.Error("payvault: the outcome of a batch is not recorded", outcome...)
			return err
		}
	}
}

const endPause = time.Second // time between two calls of End for a batch

// knows returns what the attempt knows of a batch; "" if the batch was neither sent nor found in the journal.
func (j *rangeJournal) knows(batch int) knowledge {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[batch]
}

// permits limits how many batches can be refused or of unknown outcome. Each batch takes a free permit before it is
// sent. An accepted batch gives its permit back. A batch that is refused or of unknown outcome loses its permit. After
// every ten accepted batches of an attempt, one lost permit becomes free again.
type permits struct {
	free    chan struct{}
	allLost func() // called when all permits are lost

	mu       sync.Mutex
	lost     int
	accepted int
	regained int // number of lost permits that became free again
}

const acceptedForOne = 10 // number of accepted batches after which a lost permit becomes free

// newPermits returns n free permits.
func newPermits(n int, allLost func()) *permits {
	p := &permits{free: make(chan struct{}, n), allLost: allLost}
	for range n {
		p.giveBack()
	}
	return p
}

// take waits for a permit. It returns false if ctx ends first.
func (p *permits) take(ctx context.Context) bool {
	select {
	case <-p.free:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *permits) giveBack() { p.free <- struct{}{} }

// lose counts a lost permit. When all permits are lost, it calls allLost.
func (p *permits) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost++
	if p.lost == cap(p.free) {
		p.allLost()
	}
}

// earn counts an accepted batch. After every ten accepted batches, a lost permit becomes free.
func (p *permits) earn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.lost > 0 && p.accepted%acceptedForOne == 0 {
		p.lost--
		p.regained++
		p.giveBack()
	}
}

// count returns the number of permits that are lost now, and the number of lost permits that became free again.
func (p *permits) count() (lost, regained int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost, p.regained
}

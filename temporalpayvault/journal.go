package temporalpayvault

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"example.com/payvault"
)

// rangeJournal is the journal for a SubmitAll over a range of batches. SubmitAll counts batches from 0, and the journal
// counts them from the beginning of the job. It sees every outcome first, so it holds the brake too.
type rangeJournal struct {
	payvault.Journal
	*permits

	first int                 // batch of the range
	stop  func(because error) // ends the walk
}

// Begin begins a batch in the journal of the job. A batch that the journal knows gives its permit back.
func (j *rangeJournal) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	state, err := j.Journal.Begin(ctx, job, j.first+batch)
	if state.Begun {
		j.giveBack()
	}
	return state, err
}

// End records the outcome of a batch. If the answer says nothing about the batch, it pauses the job.
func (j *rangeJournal) End(ctx context.Context, job string, batch int, o payvault.BatchOutcome) error {
	switch {
	case o.StatusCode == http.StatusUnauthorized, o.StatusCode == http.StatusForbidden:
		j.stop(pauseFor(fmt.Sprintf("the service refuses the key with status %d", o.StatusCode)))
	case o.StatusCode == http.StatusTooManyRequests:
	case o.StatusCode != 0 && o.Status == payvault.BatchNotSent:
		// Something in front of the service has answered, such as a proxy with a page in HTML.
		j.stop(pauseFor(fmt.Sprintf("status %d without a code, which decides nothing: is the base URL right?", o.StatusCode)))
	}
	err := j.Journal.End(ctx, job, j.first+batch, o)
	switch o.Status {
	case payvault.BatchAccepted:
		j.giveBack()
		j.earn()
	case payvault.BatchRefused, payvault.BatchUnknown:
		j.lose()
	case payvault.BatchNotSent: // it waits for the rate limit, or the walk is over
	}
	return err
}

// permits bounds how many batches go wrong. SubmitAll gets a batch when there is a permit for it. The permit comes back
// when the batch is accepted. It is lost when the batch is refused or of unknown outcome. After every ten accepted
// batches, counted from the start of the attempt, a lost permit comes back.
type permits struct {
	free    chan struct{}
	allLost func() // is called when all permits are lost

	mu       sync.Mutex
	lost     int
	accepted int
}

const acceptedForOne = 10 // accepted batches make up for one that went wrong

// newPermits returns n permits that are free.
func newPermits(n int, allLost func()) *permits {
	p := &permits{free: make(chan struct{}, n), allLost: allLost}
	for range n {
		p.giveBack()
	}
	return p
}

// take waits for a permit, and reports whether there is one before the end of ctx.
func (p *permits) take(ctx context.Context) bool {
	select {
	case <-p.free:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *permits) giveBack() { p.free <- struct{}{} }

// lose counts a batch that went wrong, whose permit does not come back.
func (p *permits) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost++
	if p.lost == cap(p.free) {
		p.allLost()
	}
}

// earn counts an accepted batch.
func (p *permits) earn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.lost > 0 && p.accepted%acceptedForOne == 0 {
		p.lost--
		p.giveBack()
	}
}

// count returns how many permits are lost.
func (p *permits) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

package main

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/riverqueue/river"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// failing is a journal. Its method Begin succeeds as often as the field left says, and then fails.
type failing struct{ left atomic.Int64 }

func (f *failing) Begin(context.Context, string, int) (payvault.BatchState, error) {
	if f.left.Add(-1) < 0 {
		return payvault.BatchState{}, errors.New("connection reset")
	}
	return payvault.BatchState{}, nil
}

func (*failing) End(context.Context, string, int, payvault.BatchOutcome) error { return nil }

// away is a journal whose method End fails three times for each batch, as if the database was away.
type away struct {
	failing

	mu       sync.Mutex
	failed   map[int]int
	recorded map[int]string // request IDs by number of the batch
}

func (a *away) End(_ context.Context, _ string, batch int, o payvault.BatchOutcome) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed[batch]++; a.failed[batch] <= 3 {
		return errors.New("connection refused")
	}
	a.recorded[batch] = o.RequestID
	return nil
}

// TestWork_databaseAway checks that the outcome of each batch is recorded when the database is back.
func TestWork_databaseAway(t *testing.T) {
	t.Parallel()
	srv, journal := newServer(t), &away{failed: map[int]int{}, recorded: map[int]string{}}
	journal.left.Store(1000)
	w := &worker{client: srv.Client(), journal: journal, cards: cards}
	require.NoError(t, w.Work(t.Context(), &river.Job[part]{Args: part{"job", perPart, 2 * perPart}}))
	for i := range perPart / payvault.MaxAccountUpdaterCards {
		assert.NotEmpty(t, journal.recorded[50+i], "batch %d of the job", 50+i)
	}
}

// TestPartJournal_End_givesUp checks that End logs the position of the first card of a batch, the status and the
// request ID if the database is still away when the River job ends. An outcome "not sent" is logged at once.
func TestPartJournal_End_givesUp(t *testing.T) { //nolint:paralleltest // it replaces the output of the logger
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	running, cancel := context.WithCancel(t.Context())
	cancel()
	journal := partJournal{&away{failed: map[int]int{}, recorded: map[int]string{}}, running, 50}
	err := journal.End(t.Context(), "job", 7, payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: "r-1"})
	require.EqualError(t, err, "connection refused")
	assert.Contains(t, logged.String(), `the batch of card 5700 is accepted, request ID "r-1", which is not recorded`)
	err = partJournal{journal.Journal, t.Context(), 50}.End(t.Context(), "job", 8,
		payvault.BatchOutcome{Status: payvault.BatchNotSent})
	require.EqualError(t, err, "connection refused", "tried only once")
	assert.Contains(t, logged.String(), `the batch of card 5800 is not sent, request ID "", which is not recorded`)
}

// TestWork_batchesLeft checks that Work returns an error if some batches of its job were not sent, so that River runs
// the job again.
func TestWork_batchesLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begins int64
		isAway bool
	}{
		"the journal fails":             {begins: 7},
		"the service cannot be reached": {begins: 1000, isAway: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			if test.isAway {
				srv.Close()
			}
			journal := &failing{}
			journal.left.Store(test.begins)
			w := &worker{client: srv.Client(), journal: journal, cards: cards}
			err := w.Work(t.Context(), &river.Job[part]{Args: part{"job", 0, perPart}})
			assert.Less(t, srv.Commits(op), perPart/payvault.MaxAccountUpdaterCards)
			stop, ok := errors.AsType[*payvault.StopError](err)
			require.True(t, ok, err)
			assert.True(t, stop.Reason.Passes(), err)
		})
	}
}

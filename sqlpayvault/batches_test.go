package sqlpayvault_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/sqlpayvault"
)

// TestUnresolved checks that the method Unresolved lists the batches of unknown outcome, and that the method Refused
// lists the refused batches. Each batch must have the position of its first card.
func TestUnresolved(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		outcomes := map[int]payvault.BatchOutcome{
			9:  {Status: payvault.BatchAccepted},
			10: {Status: payvault.BatchUnknown, Cards: 99, StatusCode: 503, Message: "unexpected EOF"},
			11: {Status: payvault.BatchRefused, Cards: 7, StatusCode: 400, Code: "2", Message: "no"},
			12: {Status: payvault.BatchNotSent},
			13: {},
		}
		for batch, outcome := range outcomes {
			mustBegin(t, j, batch)
			if outcome.Status != "" {
				require.NoError(t, j.End(t.Context(), job, batch, outcome))
			}
		}
		unresolved, err := j.Unresolved(t.Context(), job)
		require.NoError(t, err)
		assert.Equal(t, []sqlpayvault.Batch{
			{Job: job, Index: 10, Start: 1000, Outcome: outcomes[10]},
			{Job: job, Index: 13, Start: 1300, Outcome: payvault.BatchOutcome{
				Status: payvault.BatchUnknown, Message: "it was begun and not ended",
			}},
		}, unresolved)
		refused, err := j.Refused(t.Context(), job)
		require.NoError(t, err)
		assert.Equal(t, []sqlpayvault.Batch{{Job: job, Index: 11, Start: 1100, Outcome: outcomes[11]}}, refused)
		for _, list := range []func() ([]sqlpayvault.Batch, error){
			func() ([]sqlpayvault.Batch, error) { return j.Unresolved(t.Context(), "another job") },
			func() ([]sqlpayvault.Batch, error) { return j.Refused(t.Context(), "another job") },
		} {
			none, err := list()
			require.NoError(t, err)
			assert.Empty(t, none)
		}
	})
}

// TestFindAndCount checks that Jobs lists the jobs of a journal, that Find finds the batch of a request ID in any job,
// and that Count counts the batches of a job by status. A Resolve that fails must not add a job.
func TestFindAndCount(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		none, err := j.Jobs(t.Context())
		require.NoError(t, err)
		assert.Empty(t, none)
		for _, job := range []string{"b", "a"} {
			for i, status := range []payvault.BatchStatus{"accepted", "accepted", "refused", "unknown", "not sent", ""} {
				_, err := j.Begin(t.Context(), job, i)
				require.NoError(t, err)
				outcome := payvault.BatchOutcome{Status: status, Cards: 100}
				if status == payvault.BatchAccepted {
					outcome.RequestID = fmt.Sprint("2026-11-28-00000", job, i)
				}
				if status != "" {
					require.NoError(t, j.End(t.Context(), job, i, outcome))
				}
			}
		}
		err = j.Resolve(t.Context(), "misspelt", 0, payvault.BatchOutcome{Status: payvault.BatchAccepted})
		require.ErrorContains(t, err, "is neither of unknown outcome nor refused")
		jobs, err := j.Jobs(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, jobs)
		counts, err := j.Count(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, map[payvault.BatchStatus]int{"accepted": 2, "refused": 1, "unknown": 2, "not sent": 1}, counts)
		counts, err = j.Count(t.Context(), "c")
		require.NoError(t, err)
		assert.Empty(t, counts)
		found, err := j.Find(t.Context(), "2026-11-28-00000a1")
		require.NoError(t, err)
		assert.Equal(t, []sqlpayvault.Batch{{Job: "a", Index: 1, Start: 100, Outcome: payvault.BatchOutcome{
			Status: payvault.BatchAccepted, Cards: 100, RequestID: "2026-11-28-00000a1",
		}}}, found)
		for _, id := range []string{"", "another"} {
			found, err = j.Find(t.Context(), id)
			require.NoError(t, err)
			assert.Empty(t, found)
		}
	})
}

// TestResolve checks that Begin uses the outcomes that Resolve has recorded. Resolve must fail while another run is at
// work, for a batch that is accepted or has no row, and for a status other than accepted, refused or not sent. If
// another run has taken over the job, Resolve must wait for the lease of that run. Resolve must keep the recorded
// number of cards, which a later run compares with the number of cards in its own batch.
func TestResolve(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		first := opened(t, place)
		for batch, status := range []payvault.BatchStatus{"", "unknown", "refused", "accepted", "unknown"} {
			mustBegin(t, first, batch)
			if status != "" {
				mustEnd(t, first, batch, status)
			}
		}
		second := opened(t, place, sqlpayvault.WithLease(time.Hour)) // a heartbeat could make execute fail
		accepted := payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: "REQ"}
		require.ErrorIs(t, second.Resolve(t.Context(), job, 0, accepted), sqlpayvault.ErrRunning)
		require.NoError(t, first.Close())

		require.NoError(t, second.Resolve(t.Context(), job, 0, accepted))
		state, err := second.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Equal(t, &accepted, state.Outcome)
		for _, batch := range []int{1, 2} {
			require.NoError(t, second.Resolve(t.Context(), job, batch, payvault.BatchOutcome{Status: payvault.BatchNotSent}))
			mustBegin(t, second, batch)
		}
		require.NoError(t, second.Resolve(t.Context(), job, 4, accepted))
		state, err = second.Begin(t.Context(), job, 4)
		require.NoError(t, err)
		assert.Equal(t, 100, state.Outcome.Cards)
		reworded := accepted
		reworded.Message = "only the message differs"
		require.ErrorContains(t, second.Resolve(t.Context(), job, 4, reworded), "is neither of unknown outcome nor refused")
		for _, batch := range []int{3, 5} {
			err := second.Resolve(t.Context(), job, batch, payvault.BatchOutcome{Status: payvault.BatchNotSent})
			require.ErrorContains(t, err, "is neither of unknown outcome nor refused")
		}
		for _, status := range []payvault.BatchStatus{"", "begun", payvault.BatchUnknown} {
			err := second.Resolve(t.Context(), job, 1, payvault.BatchOutcome{Status: status})
			require.ErrorContains(t, err, "cannot be resolved as")
		}
		execute(t, place, `UPDATE payvault_jobs SET holder = 'a run that has taken over the job', lease = 3600000`)
		soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, second.Resolve(soon, job, 1, accepted), context.DeadlineExceeded, "it waits for that run")
	})
}

// TestID checks that a journal has the same ID each time it is opened, that another journal of the same name has
// another ID, and that ID adds no job. The ID must survive a call of Resolve for a job without a name, which is
// refused.
func TestID(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		ids := map[string]bool{}
		for range 2 {
			j := opened(t, place, sqlpayvault.WithoutLease())
			id, err := j.ID(t.Context())
			require.NoError(t, err)
			ids[id] = true
			jobs, err := j.Jobs(t.Context())
			require.NoError(t, err)
			assert.Empty(t, jobs)
			accepted := payvault.BatchOutcome{Status: payvault.BatchAccepted}
			require.ErrorContains(t, j.Resolve(t.Context(), "", 0, accepted), "the job has no name")
		}
		assert.Len(t, ids, 1)
		namesake := filepath.Join(t.TempDir(), filepath.Base(place))
		if !isFile(place) {
			namesake = newDatabase(t, postgres(t))
		}
		other, err := opened(t, namesake).ID(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, ids, other)
	})
}

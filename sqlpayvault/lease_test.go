package sqlpayvault_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/sqlpayvault"
)

// TestTwoRuns checks that a second run is refused while the first run is at work. After the first run has closed its
// journal, the second run can continue the job.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		first := opened(t, place)
		second := opened(t, place, sqlpayvault.WithLease(time.Minute))
		mustBegin(t, first, 0)
		start := time.Now()
		_, err := second.Begin(t.Context(), job, 1)
		require.ErrorIs(t, err, sqlpayvault.ErrRunning)
		assert.Less(t, time.Since(start), 4*time.Second, "two signs of life of the other one are enough")
		_, err = second.Begin(t.Context(), "another job", 0)
		require.NoError(t, err)
		require.NoError(t, first.Close())
		state, err := second.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.True(t, state.Begun)
		mustBegin(t, second, 1)
	})
}

// TestRunThatGivesNoSignOfLife checks that another run takes over the job of a run without heartbeats. While the new
// run is at work, the old run begins no batch, but may end the batches that it has begun. After that, the old run can
// take the lease again.
func TestRunThatGivesNoSignOfLife(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		frozen := opened(t, place, sqlpayvault.WithLease(time.Hour))
		next := opened(t, place, sqlpayvault.WithLease(time.Hour))
		mustBegin(t, frozen, 0)
		execute(t, place, `UPDATE payvault_jobs SET lease = 100`) // 100 ms, and frozen writes a heartbeat every 12 minutes
		state, err := next.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Equal(t, payvault.BatchState{Begun: true}, state)

		mustBegin(t, next, 1)
		mustEnd(t, next, 1, payvault.BatchNotSent)
		_, err = frozen.Begin(t.Context(), job, 1) // frozen has lost the lease, and learns it now
		require.ErrorIs(t, err, sqlpayvault.ErrRunning)
		mustBegin(t, next, 1) // the refused Begin did not begin the batch
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = frozen.Begin(ctx, job, 2) // now it waits for the lease of next, which lasts an hour
		require.ErrorIs(t, err, context.DeadlineExceeded)
		outcome := payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100, RequestID: "REQ"}
		require.NoError(t, frozen.End(t.Context(), job, 0, outcome))
		state, err = next.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Equal(t, &outcome, state.Outcome)

		require.NoError(t, next.Close())
		mustBegin(t, frozen, 2) // Begin takes the lease again
	})
}

// TestLostLease checks that a run begins no batch after it has lost its lease. Its calls of End must succeed, also if
// they are committed together with a Begin.
func TestLostLease(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		const batches = 20
		j := opened(t, place, sqlpayvault.WithLease(time.Hour))
		for batch := range batches {
			mustBegin(t, j, batch)
		}
		execute(t, place, `UPDATE payvault_jobs SET holder = 'another run'`)
		soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		var calls sync.WaitGroup
		for batch := range batches {
			calls.Go(func() {
				assert.NoError(t, j.End(t.Context(), job, batch, payvault.BatchOutcome{Status: payvault.BatchAccepted}))
			})
			calls.Go(func() {
				_, err := j.Begin(soon, job, batches+batch)
				assert.Error(t, err)
			})
		}
		calls.Wait()
		counts, err := j.Count(t.Context(), job)
		require.NoError(t, err)
		assert.Equal(t, map[payvault.BatchStatus]int{payvault.BatchAccepted: batches}, counts)
	})
}

// TestLastStatementOfAKilledRun checks that another run takes over the job of a killed run even if one late heartbeat
// of the killed run arrives.
func TestLastStatementOfAKilledRun(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		mustBegin(t, opened(t, place, sqlpayvault.WithLease(time.Hour)), 0)
		execute(t, place, `UPDATE payvault_jobs SET lease = 400`)
		go func() {
			<-time.After(100 * time.Millisecond)
			execute(t, place, `UPDATE payvault_jobs SET beat = beat + 1`)
		}()
		mustBegin(t, opened(t, place), 1)
	})
}

// rollback ends the transaction of conn, and closes conn. A second call does nothing.
func rollback(t *testing.T, conn *sql.Conn) {
	t.Helper()
	_, err := conn.ExecContext(t.Context(), `ROLLBACK`)
	if !errors.Is(err, sql.ErrConnDone) {
		assert.NoError(t, errors.Join(err, conn.Close()))
	}
}

// TestOpenOfALockedFile checks that Open returns ErrRunning if the file stays locked.
func TestOpenOfALockedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, opened(t, path).Close())
	conn, err := direct(t, path).Conn(t.Context())
	require.NoError(t, err)
	defer rollback(t, conn)
	_, err = conn.ExecContext(t.Context(), `BEGIN EXCLUSIVE`)
	require.NoError(t, err)
	_, err = sqlpayvault.Open(t.Context(), path)
	require.ErrorIs(t, err, sqlpayvault.ErrRunning)
	rollback(t, conn)
	mustBegin(t, opened(t, path), 0)
}

// TestRunThatIsFrozenInATransaction checks that Begin returns ErrRunning, and not a timeout, if a frozen run holds a
// lock of the database.
func TestRunThatIsFrozenInATransaction(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		frozen := opened(t, place, sqlpayvault.WithLease(time.Hour))
		mustBegin(t, frozen, 0)
		execute(t, place, `UPDATE payvault_jobs SET lease = 100`)
		conn, err := direct(t, place).Conn(t.Context())
		require.NoError(t, err)
		defer rollback(t, conn)
		for _, statement := range []string{`BEGIN`, `UPDATE payvault_jobs SET beat = beat`} {
			_, err = conn.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		next := opened(t, place)
		_, err = next.Begin(t.Context(), job, 1)
		require.ErrorIs(t, err, sqlpayvault.ErrRunning)
		rollback(t, conn)
		mustBegin(t, next, 1)
	})
}

// TestWaitIsLogged checks the log of a run that waits for the lease of a killed run: one record, with the time of the
// lease and without the name of the job. A run that need not wait must log nothing.
func TestWaitIsLogged(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		var text bytes.Buffer
		logger := sqlpayvault.WithLogger(slog.New(slog.NewTextHandler(&text, nil)))
		first := opened(t, place, logger, sqlpayvault.WithLease(time.Hour)) // without a heartbeat, like a killed run
		mustBegin(t, first, 0)
		assert.Empty(t, text.String())
		execute(t, place, `UPDATE payvault_jobs SET lease = 100`)
		mustBegin(t, opened(t, place, logger), 1)
		assert.Equal(t, 1, strings.Count(text.String(), "another run has the lease of the job"))
		assert.Contains(t, text.String(), "lease=100ms")
		assert.NotContains(t, text.String(), job, "the name is as private as the cards")
	})
}

// TestLeaseIsThatOfItsHolder checks that a run waits for the lease time of the holder, one hour, and not for its own
// lease time. When its context ends, it must stop waiting.
func TestLeaseIsThatOfItsHolder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		mustBegin(t, opened(t, place, sqlpayvault.WithLease(time.Hour)), 0)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := opened(t, place, sqlpayvault.WithLease(time.Millisecond)).Begin(ctx, job, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, sqlpayvault.ErrRunning)
	})
}

// TestDefaultLease checks that WithLease(0) sets the default of 5 s.
func TestDefaultLease(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		mustBegin(t, opened(t, place, sqlpayvault.WithLease(0)), 0)
		var lease int
		require.NoError(t, direct(t, place).QueryRowContext(t.Context(), `SELECT lease FROM payvault_jobs`).Scan(&lease))
		assert.Equal(t, 5000, lease)
	})
}

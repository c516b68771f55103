package sqlpayvault

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSettings: a commit survives a power cut.
func TestSettings(t *testing.T) {
	t.Parallel()
	j, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal"))
	require.NoError(t, err)
	var synchronous int
	require.NoError(t, j.db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&synchronous))
	assert.Equal(t, 2, synchronous, "FULL")
	require.NoError(t, j.Close())
}

// TestTransaction: it excludes other writers from its start, or it would fail when they write between its statements.
func TestTransaction(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Open(t.Context(), path)
	require.NoError(t, err)
	tx, err := j.transaction(t.Context())
	require.NoError(t, err)
	other, err := sql.Open("sqlite", path) // which waits for nobody
	require.NoError(t, err)
	_, err = other.ExecContext(t.Context(), "DELETE FROM payvault_jobs")
	require.ErrorContains(t, err, "locked")
	require.NoError(t, tx.Rollback())
	require.NoError(t, other.Close())
	require.NoError(t, j.Close())
}

// TestTakeOver: a sign of life that comes at the last moment keeps the lease.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	first, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal"))
	require.NoError(t, err)
	_, err = first.Begin(t.Context(), "job", 0)
	require.NoError(t, err)
	before, err := first.holding(t.Context(), "job")
	require.NoError(t, err)
	_, err = first.Begin(t.Context(), "job", 1)
	require.NoError(t, err)
	require.ErrorIs(t, first.takeOver(t.Context(), "job", before), ErrRunning)
	require.NoError(t, first.Close())
}

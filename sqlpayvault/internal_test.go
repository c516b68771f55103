package sqlpayvault

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSettings checks that SQLite has the setting synchronous=FULL, so that each commit survives a power failure.
func TestSettings(t *testing.T) {
	t.Parallel()
	j, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal"))
	require.NoError(t, err)
	var synchronous int
	require.NoError(t, j.db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&synchronous))
	assert.Equal(t, 2, synchronous, "FULL")
	require.NoError(t, j.Close())
}

// TestTakeFrom checks that takeFrom does not take a lease if its holder has written a heartbeat since the lease was
// read.
func TestTakeFrom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	first, err := Open(t.Context(), path)
	require.NoError(t, err)
	second, err := Open(t.Context(), path)
	require.NoError(t, err)
	_, err = first.Begin(t.Context(), "job", 0)
	require.NoError(t, err)
	before, err := first.holding(t.Context(), "job")
	require.NoError(t, err)
	_, err = first.change(t.Context(), `UPDATE payvault_jobs SET beat = beat + 1`)
	require.NoError(t, err)
	require.NoError(t, second.takeFrom(t.Context(), "job", before))
	after, err := first.holding(t.Context(), "job")
	require.NoError(t, err)
	assert.Equal(t, first.run, after.holder)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
}

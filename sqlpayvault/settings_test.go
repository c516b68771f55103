package sqlpayvault

import (
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

package sqlpayvault_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/sqlpayvault"
)

// TestOpenErrors checks that Open fails if the directory does not exist, and if the file is not a database.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	_, err := sqlpayvault.Open(t.Context(), filepath.Join(t.TempDir(), "missing", "journal"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte("this is no database, but a text of some length"), 0o600))
	_, err = sqlpayvault.Open(t.Context(), path)
	require.ErrorContains(t, err, "not a database")
}

// TestPaths checks that the journal is in the file with the given name, even if the name means something else to
// SQLite.
func TestPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{":memory:", "file:journal?mode=memory", "/" + t.TempDir() + "/journal"} {
		for _, begun := range []bool{false, true} {
			j, err := sqlpayvault.Open(t.Context(), path)
			require.NoError(t, err)
			state, err := j.Begin(t.Context(), job, 0)
			require.NoError(t, err)
			assert.Equal(t, begun, state.Begun, path)
			require.NoError(t, j.Close())
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Positive(t, info.Size())
	}
}

// copyFiles copies the files of a journal that have the given suffixes to another directory. If the journal is open,
// the copies are in the state in which a killed process leaves its files.
func copyFiles(t *testing.T, from string, suffixes ...string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "journal")
	for _, suffix := range suffixes {
		content, err := os.ReadFile(from + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, content, 0o600)) //nolint:gosec // in a temporary directory
	}
	return to
}

// TestFileThatIsNotWhole checks that Open refuses a copy of an open journal without the -wal file, and opens a copy
// with the -wal file. This holds before and after SQLite has copied batches from the -wal file into the main file.
// After Close, the main file alone is enough.
func TestFileThatIsNotWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := opened(t, path)
	for batch := range 3 {
		mustBegin(t, j, batch)
		if batch == 1 {
			execute(t, path, `PRAGMA wal_checkpoint(FULL)`)
		}
		alone := copyFiles(t, path, "")
		_, err := sqlpayvault.Open(t.Context(), alone)
		require.ErrorContains(t, err, "was moved or copied without journal-wal")
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(alone, link))
		require.NoError(t, os.WriteFile(link+"-wal", nil, 0o600))
		_, err = sqlpayvault.Open(t.Context(), link)
		require.ErrorContains(t, err, "was moved or copied without journal-wal", "the -wal is beside the file")
		unresolved, err := opened(t, copyFiles(t, path, "", "-wal")).Unresolved(t.Context(), job)
		require.NoError(t, err)
		assert.Len(t, unresolved, batch+1)
	}
	require.NoError(t, j.Close())
	unresolved, err := opened(t, copyFiles(t, path, "")).Unresolved(t.Context(), job)
	require.NoError(t, err)
	assert.Len(t, unresolved, 3, "a file that was closed is whole")
}

// TestFileThatWasMovedAway checks that Open refuses both paths if a file was moved away from its -wal file. At the new
// path the -wal file is missing, and at the old path SQLite would remove the -wal file.
func TestFileThatWasMovedAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	mustBegin(t, opened(t, path), 0)
	killed := copyFiles(t, path, "", "-wal")
	moved := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.Rename(killed, moved))
	for name, remedy := range map[string]string{killed: "remove journal-wal", moved: "make an empty journal-wal"} {
		_, err := sqlpayvault.Open(t.Context(), name)
		require.ErrorContains(t, err, "put both of them into one folder")
		require.ErrorContains(t, err, remedy)
	}
	require.NoError(t, os.Rename(moved, killed))
	unresolved, err := opened(t, killed).Unresolved(t.Context(), job)
	require.NoError(t, err)
	assert.Len(t, unresolved, 1)
}

// TestOlderBackup checks that Open refuses an older backup beside the -wal file of a run that was killed. SQLite would
// remove the -wal file, and the journal would forget the batches in it.
func TestOlderBackup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	first := opened(t, path)
	mustBegin(t, first, 0)
	require.NoError(t, first.Close())
	backup := copyFiles(t, path, "")
	mustBegin(t, opened(t, path), 1)
	killed := copyFiles(t, path, "", "-wal")
	require.NoError(t, os.Rename(backup, killed))
	_, err := sqlpayvault.Open(t.Context(), killed)
	require.ErrorContains(t, err, "an older backup")
	assert.FileExists(t, killed+"-wal")
}

// TestFileThatWasCutOff checks that Open refuses a file whose end is missing, as after a copy to a full disk.
func TestFileThatWasCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := opened(t, path)
	for batch := range 300 {
		mustBegin(t, j, batch)
	}
	require.NoError(t, j.Close())
	for _, part := range []float64{0.01, 0.3, 0.6, 0.95, 0.99, 0.999} {
		short := copyFiles(t, path, "")
		info, err := os.Stat(short)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(short, int64(part*float64(info.Size()))))
		start := time.Now()
		_, err = sqlpayvault.Open(t.Context(), short)
		require.Error(t, err, part)
		assert.Less(t, time.Since(start), 5*time.Second, "nobody waits for a file that stays damaged")
	}
}

// TestClose checks that only one file is left after two journals of the same file were closed.
func TestClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	first, second := opened(t, path), opened(t, path)
	mustBegin(t, first, 0)
	require.NoError(t, first.Close())
	_, err := sqlpayvault.Open(t.Context(), copyFiles(t, path, ""))
	require.ErrorContains(t, err, "was moved or copied without journal-wal", "the second one has it open")
	mustBegin(t, second, 1)
	require.NoError(t, second.Close())
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 1)
	unresolved, err := opened(t, path).Unresolved(t.Context(), job)
	require.NoError(t, err)
	assert.Len(t, unresolved, 2)
}

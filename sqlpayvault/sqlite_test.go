package sqlpayvault_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// TestOpenErrors checks that Open fails if the directory does not exist, if the file is not a database, for names of
// SQLite that are no paths, and with WithSchema. If the file is not a database, the error must name the file.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	_, err := sqlpayvault.Open(t.Context(), filepath.Join(t.TempDir(), "missing", "journal"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte("this is no database, but a text of some length"), 0o600))
	_, err = sqlpayvault.Open(t.Context(), path)
	require.ErrorContains(t, err, path+": file is not a database")
	for _, name := range []string{":memory:", "file:" + path + "?mode=memory"} {
		_, err = sqlpayvault.Open(t.Context(), name)
		require.ErrorContains(t, err, "is no path of a file")
	}
	_, err = sqlpayvault.Open(t.Context(), filepath.Join(t.TempDir(), "journal"), sqlpayvault.WithSchema("a"))
	require.ErrorContains(t, err, "WithSchema is for Postgres")
}

// endsAtCall is a context that ends when its method Done is called for the n-th time.
type endsAtCall struct {
	context.Context //nolint:containedctx // it wraps a context

	n      atomic.Int64
	cancel context.CancelFunc
}

func (c *endsAtCall) Done() <-chan struct{} {
	if c.n.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Done()
}

// TestOpenWhoseContextEnds checks that the errors of Open and New contain no advice about copies or versions if the
// context ends, at any step. Somebody who follows the advice would send all cards again. The advice is for a journal
// without a table or a column: Open and New refuse it and do not change it.
func TestOpenWhoseContextEnds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		mustBegin(t, j, 0)
		require.NoError(t, j.Close())
		const advice = "version of th"
		for n := int64(1); ; n++ {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ends := &endsAtCall{Context: ctx, cancel: cancel}
			ends.n.Store(n)
			_, closeAll, err := open(ends, place)
			if err == nil {
				require.NoError(t, closeAll())
			}
			if ctx.Err() == nil { // Open has made fewer than n calls
				break
			}
			if err != nil {
				assert.NotContains(t, err.Error(), advice)
			}
		}
		for _, missing := range [][2]string{{"batches", "fields"}, {"jobs", "lease"}} {
			execute(t, place, "ALTER TABLE payvault_"+missing[0]+" DROP COLUMN "+missing[1])
			_, _, err := open(t.Context(), place)
			require.ErrorContains(t, err, advice)
			require.ErrorContains(t, err, missing[1])
		}
		var n int
		require.NoError(t, direct(t, place).QueryRowContext(t.Context(), `SELECT count(*) FROM payvault_batches`).Scan(&n))
		assert.Equal(t, 1, n)
	})
}

// TestPaths checks that the journal is in the file with the given name, also if the name is relative or a symbolic
// link.
func TestPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, opened(t, "target").Close())
	target, err := filepath.Abs("target")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(target, link))
	for _, path := range []string{"a journal", "/" + t.TempDir() + "/journal", link} {
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
	assert.NoFileExists(t, link+"-journal")
}

// copyFile copies the main file of a journal to another directory. It uses another process: if this process closed the
// file, it would lose the locks of its journals.
func copyFile(t *testing.T, from string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "journal")
	require.NoError(t, exec.CommandContext(t.Context(), "cp", from, to).Run()) //nolint:gosec // paths of this test
	return to
}

// TestFileThatWasMovedAlone checks that a copy of the main file alone has each batch for which Begin has returned. The
// copy is made while the journal is open. A query reads the copy before Open does.
func TestFileThatWasMovedAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := opened(t, path)
	for batch := range 3 {
		mustBegin(t, j, batch)
		alone := copyFile(t, path)
		execute(t, alone, `SELECT * FROM payvault_batches`)
		unresolved, err := opened(t, alone).Unresolved(t.Context(), job)
		require.NoError(t, err)
		assert.Len(t, unresolved, batch+1)
	}
}

// TestFileThatWasMovedAway checks that a run stops at once if its file is moved away, and that Open makes no new file
// at the old place. A run with the file at its new place sends only the batches that were not sent before.
func TestFileThatWasMovedAway(t *testing.T) {
	t.Parallel()
	path, moved := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "journal")
	srv, start := newServer(t, payvaulttest.Fault{}), time.Now()
	journal, err := sqlpayvault.Open(t.Context(), path, sqlpayvault.WithLease(lease))
	require.NoError(t, err)
	options := &payvault.SubmitAllOptions{Concurrency: 1, Journal: journal, Job: job}
	for batch, err := range srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(1000), options) {
		if err != nil {
			require.ErrorContains(t, err, "the file was moved or removed while the journal was open")
			break
		}
		if batch.Index == 2 {
			require.NoError(t, os.Rename(path, moved))
		}
	}
	assert.Less(t, srv.Commits(payvault.OpAccountUpdaterSubmit), 10)
	assert.Less(t, time.Since(start), 9*time.Second, "nobody waits for a file that is gone")
	require.ErrorContains(t, journal.Close(), "the file was moved", "the lease cannot be released")
	_, err = sqlpayvault.Open(t.Context(), path)
	require.ErrorContains(t, err, "the journal was moved away", "a new journal would send all cards again")
	options.Journal = opened(t, moved)
	_, err = collect(srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(1000), options))
	require.NoError(t, err)
	assert.Equal(t, 10, srv.Commits(payvault.OpAccountUpdaterSubmit))
}

// TestFileInWAL checks that Open refuses a file in WAL mode, which keeps its latest batches in a second file. Open must
// not change the file. The command in the error makes the file usable.
func TestFileInWAL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, opened(t, path).Close())
	execute(t, path, `PRAGMA journal_mode=WAL`)
	for range 2 {
		_, err := sqlpayvault.Open(t.Context(), path)
		require.ErrorContains(t, err, "sqlite3 '"+path+"' 'PRAGMA journal_mode=TRUNCATE'")
	}
	execute(t, path, `PRAGMA journal_mode=TRUNCATE`)
	mustBegin(t, opened(t, path), 0)
}

// TestSwitchToWAL checks that a run stops and sends nothing if another program, such as Litestream, has switched the
// open file to WAL. End returns an error too, but records the outcome of a batch that was begun before. The journal
// does not have the batches for which Begin failed, so the next run can send them.
func TestSwitchToWAL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, srv := opened(t, path), newServer(t, payvaulttest.Fault{})
	mustBegin(t, j, 1000)
	litestream := direct(t, path)
	_, err := litestream.ExecContext(t.Context(), `PRAGMA journal_mode=WAL`)
	require.NoError(t, err)
	options := &payvault.SubmitAllOptions{Journal: j, Job: job}
	_, err = collect(srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(1000), options))
	require.ErrorContains(t, err, "another program has switched it")
	assert.Zero(t, srv.Commits(payvault.OpAccountUpdaterSubmit))
	err = j.End(t.Context(), job, 1000, payvault.BatchOutcome{Status: payvault.BatchAccepted})
	require.ErrorContains(t, err, "another program has switched it")
	require.NoError(t, j.Close())
	execute(t, path, `PRAGMA journal_mode=TRUNCATE`)
	counts, err := opened(t, path).Count(t.Context(), job)
	require.NoError(t, err)
	assert.Equal(t, map[payvault.BatchStatus]int{payvault.BatchAccepted: 1}, counts)
}

// TestOpenKeepsLocks checks that Open drops no lock that this process has on the file. Otherwise another process could
// write at the same time.
func TestOpenKeepsLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, opened(t, path).Close())
	conn, err := direct(t, path).Conn(t.Context())
	require.NoError(t, err)
	defer rollback(t, conn)
	_, err = conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	j, err := sqlpayvault.Open(t.Context(), path, sqlpayvault.WithoutLease())
	require.NoError(t, err)
	program := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // the test binary itself
	program.Env = append(os.Environ(), "SQLPAYVAULT_WRITE="+path)
	text, err := program.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(text), "database is locked")
	rollback(t, conn)
	require.NoError(t, j.Close())
}

// TestEmptyFile checks that Open refuses an empty file and a database without a journal, and makes no new file beside a
// -journal file that a moved journal has left. In each case a new journal would send all cards again.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := sqlpayvault.Open(t.Context(), path)
	require.ErrorContains(t, err, "is empty, as after a copy that failed")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Zero(t, info.Size())

	require.NoError(t, os.Remove(path))
	require.NoError(t, opened(t, path).Close())
	execute(t, path, `DROP TABLE payvault_batches`)
	_, err = sqlpayvault.Open(t.Context(), path)
	require.ErrorContains(t, err, "If it is a copy, the copy has failed")

	require.NoError(t, os.Remove(path))
	for _, pages := range []string{"pages", ""} { // a run that is killed between two writes leaves an empty file
		require.NoError(t, os.WriteFile(path+"-journal", []byte(pages), 0o600))
		_, err = sqlpayvault.Open(t.Context(), path)
		require.ErrorContains(t, err, "the journal was moved away. Use it at its new place")
		require.NoError(t, os.Remove(path+"-journal"))
	}
	require.NoError(t, opened(t, path).Close())
}

// TestReaderThatStays checks that a run stops with an error, and sends nothing, if another program, such as a database
// browser or a backup, reads the file for longer than 10 s. Begin must work again after that.
func TestReaderThatStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, srv := opened(t, path), newServer(t, payvaulttest.Fault{})
	mustBegin(t, j, 1000)
	conn, err := direct(t, path).Conn(t.Context())
	require.NoError(t, err)
	defer rollback(t, conn)
	for _, statement := range []string{`BEGIN`, `SELECT * FROM payvault_batches`} {
		_, err = conn.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	options := &payvault.SubmitAllOptions{Journal: j, Job: job}
	_, err = collect(srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(1000), options))
	require.ErrorIs(t, err, sqlpayvault.ErrRunning)
	require.ErrorContains(t, err, "another program has locked the file")
	assert.Zero(t, srv.Commits(payvault.OpAccountUpdaterSubmit))
	rollback(t, conn)
	mustBegin(t, j, 0)
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
	for _, part := range []float64{0, 0.01, 0.3, 0.6, 0.95, 0.99, 0.999} {
		short := copyFile(t, path)
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
	mustBegin(t, second, 1)
	require.NoError(t, second.Close())
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 1)
	unresolved, err := opened(t, path).Unresolved(t.Context(), job)
	require.NoError(t, err)
	assert.Len(t, unresolved, 2)
}

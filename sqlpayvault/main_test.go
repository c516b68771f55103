package sqlpayvault_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"iter"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the tests on Postgres
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

const job = "cards of November"

// TestMain runs the tests. If SQLPAYVAULT_SERVICE is set, it instead runs a program that submits cards, for TestKilled
// and TestTwoProcesses. If SQLPAYVAULT_WRITE is set, it instead runs a program that writes into a file, for
// TestOpenKeepsLocks.
func TestMain(m *testing.M) {
	if path := os.Getenv("SQLPAYVAULT_WRITE"); path != "" {
		write(path)
		return
	}
	if url := os.Getenv("SQLPAYVAULT_SERVICE"); url != "" {
		submit(url)
		return
	}
	goleak.VerifyTestMain(m)
}

// write changes a file, and fails at once if another process has a lock on the file.
func write(path string) {
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(context.Background(), `UPDATE payvault_jobs SET beat = beat + 1`)
	}
	if err != nil {
		log.Fatal(err) //nolint:forbidigo // a program ends in this way
	}
}

// eachDatabase runs a test with SQLite. If PAYVAULT_TEST_POSTGRES has a connection string, eachDatabase also runs the
// test with Postgres.
func eachDatabase(t *testing.T, test func(t *testing.T, place string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "a journal?.100%"))
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newDatabase(t, postgres(t)))
	})
}

// postgres returns the connection string of Postgres, or skips the test.
func postgres(tb testing.TB) string {
	tb.Helper()
	dsn := os.Getenv("PAYVAULT_TEST_POSTGRES")
	if dsn == "" {
		tb.Skip("PAYVAULT_TEST_POSTGRES is not set") // .ci/run starts a Postgres and sets the variable
	}
	return dsn
}

// newDatabase creates a database that is dropped after the test, and returns a connection string for the database. The
// isolation level is serializable. At this level concurrent statements may fail, and the journal has to repeat them.
func newDatabase(tb testing.TB, dsn string) string {
	tb.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	db, err := sql.Open("pgx", dsn)
	require.NoError(tb, err)
	_, err = db.ExecContext(tb.Context(), "CREATE DATABASE "+name)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context()) // the context of the test has ended
		_, err := db.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		assert.NoError(tb, err)
		assert.NoError(tb, db.Close())
	})
	return dsn + " dbname=" + name + " options='-c default_transaction_isolation=serializable'"
}

// isFile reports whether place is the path of a file. Any other place is a connection string of Postgres.
func isFile(place string) bool { return !strings.Contains(place, "dbname=") }

// driverOf returns the driver and the data source for the database at place.
func driverOf(place string) (driver, source string) {
	if isFile(place) {
		return "sqlite", "file:" + (&url.URL{Path: place}).EscapedPath() + "?_pragma=busy_timeout(5000)"
	}
	return "pgx", place
}

// direct opens the database of a journal by database/sql, without opening the journal.
func direct(tb testing.TB, place string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driverOf(place))
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, db.Close()) })
	return db
}

// execute runs a statement in the database of a journal.
func execute(tb testing.TB, place, statement string) {
	tb.Helper()
	db, err := sql.Open(driverOf(place))
	require.NoError(tb, err)
	_, err = db.ExecContext(tb.Context(), statement)
	require.NoError(tb, err)
	require.NoError(tb, db.Close())
}

// open opens a journal in a file or in Postgres. The returned function closeAll closes the journal and its connections.
func open(
	ctx context.Context, place string, opts ...sqlpayvault.Option,
) (j *sqlpayvault.Journal, closeAll func() error, err error) {
	if isFile(place) {
		if j, err = sqlpayvault.Open(ctx, place, opts...); err != nil {
			return nil, nil, err
		}
		return j, j.Close, nil
	}
	db, err := sql.Open("pgx", place)
	if err != nil {
		return nil, nil, err
	}
	if j, err = sqlpayvault.New(ctx, db, opts...); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return j, func() error {
		if err := j.Close(); err != nil {
			return err
		}
		return db.Close()
	}, nil
}

func opened(tb testing.TB, place string, opts ...sqlpayvault.Option) *sqlpayvault.Journal {
	tb.Helper()
	j, closeAll, err := open(tb.Context(), place, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, closeAll()) })
	return j
}

// mustBegin begins a batch that is not in the journal yet.
func mustBegin(tb testing.TB, j *sqlpayvault.Journal, batch int) {
	tb.Helper()
	state, err := j.Begin(tb.Context(), job, batch)
	require.NoError(tb, err)
	assert.Zero(tb, state)
}

// mustEnd records the outcome of a batch of 100 cards.
func mustEnd(tb testing.TB, j *sqlpayvault.Journal, batch int, status payvault.BatchStatus) {
	tb.Helper()
	require.NoError(tb, j.End(tb.Context(), job, batch, payvault.BatchOutcome{Status: status, Cards: 100}))
}

func stream(n int) iter.Seq2[payvault.AccountUpdaterCard, error] {
	return func(yield func(payvault.AccountUpdaterCard, error) bool) {
		for i := range n {
			if !yield(payvault.AccountUpdaterCard{
				CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CardID: "C" + strconv.Itoa(i),
			}, nil) {
				return
			}
		}
	}
}

// collect returns the batches that SubmitAll yields, and the error with which it ends, or nil.
func collect(
	seq iter.Seq2[*payvault.AccountUpdaterBatch, error],
) (batches []payvault.AccountUpdaterBatch, stopped error) {
	for batch, err := range seq {
		if err != nil {
			return batches, err
		}
		batches = append(batches, *batch)
	}
	return batches, nil
}

// newServer starts an emulator of the service. If fault.Kind is set, it injects the fault into the submissions.
func newServer(tb testing.TB, fault payvaulttest.Fault) *payvaulttest.Server {
	tb.Helper()
	srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
	tb.Cleanup(srv.Close)
	if fault.Kind != "" {
		fault.Operation = payvault.OpAccountUpdaterSubmit
		_, err := srv.Inject(fault)
		require.NoError(tb, err)
	}
	return srv
}

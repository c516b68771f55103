package sqlpayvault_test

import (
	"io"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// TestWeakerCommits checks which synchronous_commit is in force when the changes of Begin, End and Resolve are
// committed: "on", or "remote_apply" if that is the setting of the connection. Triggers at the commit record the value.
func TestWeakerCommits(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			place := newDatabase(t, postgres(t)) + " synchronous_commit=" + setting
			j, db := opened(t, place), direct(t, place)
			for _, statement := range []string{
				`CREATE TABLE commits (setting TEXT)`,
				`CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`,
				`CREATE CONSTRAINT TRIGGER record AFTER INSERT OR UPDATE ON payvault_batches DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW EXECUTE FUNCTION record()`,
			} {
				_, err := db.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			mustBegin(t, j, 0)
			mustEnd(t, j, 0, payvault.BatchUnknown)
			require.NoError(t, j.Resolve(t.Context(), job, 0, payvault.BatchOutcome{Status: payvault.BatchNotSent}))
			mustBegin(t, j, 0)
			var n int
			row := db.QueryRowContext(t.Context(), `SELECT count(*) FROM commits WHERE setting = $1`, want)
			require.NoError(t, row.Scan(&n))
			assert.Equal(t, 4, n)
		})
	}
}

// TestAnotherSearchPath checks that New fails if the search_path has changed to a schema without a journal. The error
// must name both schemas. With WithSchema, New must open the old journal in its schema, and make a new one in the other
// schema. New must also fail if no schema of the search_path exists.
func TestAnotherSearchPath(t *testing.T) {
	t.Parallel()
	place := newDatabase(t, postgres(t))
	execute(t, place, `CREATE SCHEMA "a ""new"" role"`)
	srv := newServer(t, payvaulttest.Fault{})
	submit := func(place string, opts ...sqlpayvault.Option) (sent int) {
		before := srv.Commits(payvault.OpAccountUpdaterSubmit)
		j, closeAll, err := open(t.Context(), place, opts...)
		require.NoError(t, err)
		options := &payvault.SubmitAllOptions{Journal: j, Job: job}
		_, err = collect(srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(1000), options))
		require.NoError(t, err)
		require.NoError(t, closeAll())
		return srv.Commits(payvault.OpAccountUpdaterSubmit) - before
	}
	assert.Equal(t, 10, submit(place))
	moved := place + ` search_path='"a ""new"" role", public'`
	_, _, err := open(t.Context(), moved)
	require.ErrorContains(t, err, `schema "a \"new\" role" has no journal`)
	require.ErrorContains(t, err, `the same database has one in schema "public"`)
	assert.Zero(t, submit(moved, sqlpayvault.WithSchema("public")))
	assert.Equal(t, 10, submit(moved, sqlpayvault.WithSchema(`a "new" role`)))
	assert.Zero(t, submit(moved))
	_, _, err = open(t.Context(), place+" search_path=missing")
	require.ErrorContains(t, err, "no schema of the search_path exists")
}

// TestSearchPathThatChanges checks that an open journal stays in its schema when the search_path of its connection
// changes, for example by a SET that leaked through pgbouncer.
func TestSearchPathThatChanges(t *testing.T) {
	t.Parallel()
	place := newDatabase(t, postgres(t))
	execute(t, place, `CREATE SCHEMA other`)
	require.NoError(t, opened(t, place, sqlpayvault.WithSchema("other")).Close())
	db := direct(t, place)
	db.SetMaxOpenConns(1)
	j, err := sqlpayvault.New(t.Context(), db, sqlpayvault.WithSchema("public"))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `SET search_path = other`)
	require.NoError(t, err)
	mustBegin(t, j, 0)
	mustEnd(t, j, 0, payvault.BatchUnknown)
	counts, err := j.Count(t.Context(), job)
	require.NoError(t, err)
	assert.Equal(t, map[payvault.BatchStatus]int{payvault.BatchUnknown: 1}, counts)
	require.NoError(t, j.Resolve(t.Context(), job, 0, payvault.BatchOutcome{Status: payvault.BatchAccepted}))
	require.NoError(t, j.Close())
	for _, table := range []string{"payvault_jobs", "payvault_batches"} {
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM other.`+table).Scan(&n))
		assert.Zero(t, n, table)
	}
}

// TestUnloggedTable checks that New refuses an unlogged table, which is empty after a crash of Postgres.
func TestUnloggedTable(t *testing.T) {
	t.Parallel()
	place := newDatabase(t, postgres(t))
	require.NoError(t, opened(t, place).Close())
	execute(t, place, `ALTER TABLE payvault_batches SET UNLOGGED`)
	_, _, err := open(t.Context(), place)
	require.ErrorContains(t, err, `schema "public" is unlogged`)
	execute(t, place, `ALTER TABLE payvault_batches SET LOGGED`)
	require.NoError(t, opened(t, place).Close())
}

// TestMissingRights checks the error of New if the role may not read the tables. It must not be the error for tables of
// another version, which says to drop the tables.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	place := newDatabase(t, postgres(t))
	require.NoError(t, opened(t, place).Close())
	execute(t, place, `GRANT CREATE ON SCHEMA public TO pg_monitor`)
	_, _, err := open(t.Context(), place+" role=pg_monitor")
	require.ErrorContains(t, err, "permission denied for table payvault_jobs")
	require.NotContains(t, err.Error(), "drop both tables")
}

// TestBeginWhoseAnswerIsLost checks a Begin that Postgres commits. The Begin fails, because for 10 s each connection
// breaks before the answer arrives. When connections work again, the batch must be recorded as not sent.
func TestBeginWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	place := newDatabase(t, postgres(t))
	j, d := newDropping(t, place)
	d.set(math.MaxInt, true)
	_, err := j.Begin(t.Context(), job, 0)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	d.set(0, false)
	require.Eventually(t, func() bool {
		counts, err := j.Count(t.Context(), job)
		return err == nil && counts[payvault.BatchNotSent] == 1
	}, 10*time.Second, 10*time.Millisecond)
}

// TestNotSentOverAnotherBegin checks that End with the outcome "not sent" does not change a batch that another call of
// Begin on the same journal has begun meanwhile. Postgres commits this outcome, but the connection breaks before the
// answer arrives, so End records it again. An activity of Temporal or a River job that is tried again, while its first
// attempt still runs in the same process, makes these calls.
func TestNotSentOverAnotherBegin(t *testing.T) {
	t.Parallel()
	j, d := newDropping(t, newDatabase(t, postgres(t)))
	for batch := range 30 {
		mustBegin(t, j, batch)
		d.set(1, true)
		var ending sync.WaitGroup
		ending.Go(func() { mustEnd(t, j, batch, payvault.BatchNotSent) })
		require.Eventually(t, func() bool {
			state, err := j.Begin(t.Context(), job, batch)
			return err == nil && !state.Begun
		}, 10*time.Second, time.Microsecond)
		ending.Wait()
		d.set(0, false)
		state, err := j.Begin(t.Context(), job, batch)
		require.NoError(t, err)
		require.True(t, state.Begun, "batch %d would be sent twice", batch)
	}
}

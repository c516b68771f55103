package sqlpayvault_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// throughBouncer returns the connection string of a new database behind pgbouncer in transaction mode. The pool of
// pgbouncer has fewer connections than the tests have clients.
func throughBouncer(t *testing.T) string {
	t.Helper()
	bouncer := os.Getenv("PAYVAULT_TEST_PGBOUNCER")
	if bouncer == "" {
		t.Skip("PAYVAULT_TEST_PGBOUNCER is not set") // .ci/run starts a pgbouncer and sets the variable
	}
	_, name, _ := strings.Cut(newDatabase(t, postgres(t)), " dbname=test_")
	name, _, _ = strings.Cut(name, " ")
	return bouncer + " dbname=test_" + name
}

// TestBehindPgbouncer checks that journals work behind pgbouncer: several journals that are open at the same time, and
// two runs of SubmitAll one after the other.
func TestBehindPgbouncer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			place := throughBouncer(t) + " default_query_exec_mode=" + mode
			srv := newServer(t, payvaulttest.Fault{})
			for run := range 2 {
				for range 4 {
					mustBegin(t, opened(t, place, sqlpayvault.WithoutLease()), 1000+run)
					execute(t, place, `DELETE FROM payvault_batches WHERE batch >= 1000`)
				}
				j := opened(t, place)
				got, err := collect(srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(5000), &payvault.SubmitAllOptions{
					Concurrency: 8, Journal: j, Job: job,
				}))
				require.NoError(t, err)
				for _, batch := range got {
					require.NoError(t, batch.Err)
					assert.Equal(t, run == 1, batch.FromJournal)
				}
				unresolved, err := j.Unresolved(t.Context(), job)
				require.NoError(t, err)
				assert.Empty(t, unresolved)
				require.NoError(t, j.Close())
			}
			assert.Equal(t, 50, srv.Commits(payvault.OpAccountUpdaterSubmit))
		})
	}
}

// TestPreparedStatementsBehindPgbouncer checks that the error names the setting that pgx needs, if pgx uses its default
// mode behind pgbouncer.
func TestPreparedStatementsBehindPgbouncer(t *testing.T) {
	t.Parallel()
	place := throughBouncer(t)
	for batch := range 20 {
		j, err := sqlpayvault.New(t.Context(), direct(t, place), sqlpayvault.WithoutLease())
		if err == nil {
			_, err = j.Begin(t.Context(), job, batch)
			_ = j.Close() // Close fails in the same way
		}
		if err != nil {
			require.ErrorContains(t, err, "pgx needs default_query_exec_mode=exec in its connection string")
			return
		}
	}
	t.Log("this pgbouncer keeps prepared statements")
}

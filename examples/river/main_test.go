package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const cardsInTest = 20_050

// TestMain is the worker that is killed, if the environment says so.
func TestMain(m *testing.M) {
	if url := os.Getenv("RIVER_TEST_URL"); url != "" {
		pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
		if err != nil {
			panic(err)
		}
		client, err := payvault.NewClient(url, os.Getenv("RIVER_TEST_KEY"))
		if err != nil {
			panic(err)
		}
		_, err = run(context.Background(), pool, client, "job", cardsInTest)
		panic(err)
	}
	os.Exit(m.Run())
}

// Workers that are killed submit nothing twice, and nothing is left out.
func TestKilled(t *testing.T) {
	t.Parallel()
	dsn := os.Getenv("PAYVAULT_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("PAYVAULT_TEST_POSTGRES is not set") // .ci/run starts a Postgres and sets it
	}
	ctx := t.Context()
	schema := "test_" + strings.ToLower(rand.Text())
	pool, err := pgxpool.New(ctx, dsn+" search_path="+schema)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
		assert.NoError(t, err)
	})
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	const op = payvault.OpAccountUpdaterSubmit
	for _, kind := range []payvaulttest.FaultKind{payvaulttest.DropAfterCommit, payvaulttest.DropBeforeCommit} {
		_, err := srv.Inject(payvaulttest.Fault{Operation: op, Kind: kind, Times: 3})
		require.NoError(t, err)
	}
	for kill := range 2 {
		//nolint:gosec // this program
		worker := exec.CommandContext(ctx, os.Args[0])
		worker.Env = append(os.Environ(), "RIVER_TEST_URL="+srv.URL, "RIVER_TEST_KEY="+srv.Merchant().APIKey,
			"DATABASE_URL="+dsn+" search_path="+schema)
		worker.Stderr = os.Stderr
		require.NoError(t, worker.Start())
		require.Eventually(t, func() bool { return srv.Commits(op) > 50*(kill+1) }, 20*time.Second, time.Millisecond)
		require.NoError(t, worker.Process.Kill())
		_ = worker.Wait()
		// What River does after RescueStuckJobsAfter.
		_, err := pool.Exec(ctx, "UPDATE river_job SET state = 'available' WHERE state = 'running'")
		require.NoError(t, err)
	}
	counts, err := run(ctx, pool, srv.Client(), "job", cardsInTest)
	require.NoError(t, err)
	t.Log(counts)
	before := srv.Commits(op)
	again, err := run(ctx, pool, srv.Client(), "job", cardsInTest)
	require.NoError(t, err)
	assert.Equal(t, counts, again)
	assert.Equal(t, before, srv.Commits(op), "the same job again")

	performed := map[int]int{}
	for _, r := range srv.AccountUpdaterRequests.All() {
		var first int
		_, err := fmt.Sscanf(r.Cards[0].CardID, "card-%d", &first)
		require.NoError(t, err)
		performed[first/payvault.MaxAccountUpdaterCards]++
	}
	rows, err := pool.Query(ctx, `SELECT split_part(job, '/', 2)::int / 100 + batch, status FROM payvault_batches
		WHERE status <> 'end'`)
	require.NoError(t, err)
	total := 0
	for rows.Next() {
		var batch int
		var status string
		require.NoError(t, rows.Scan(&batch, &status))
		total++
		assert.LessOrEqual(t, performed[batch], 1, "batch %d", batch)
		if status == string(payvault.BatchAccepted) {
			assert.Equal(t, 1, performed[batch], "batch %d", batch)
		}
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, 201, total)
	assert.Len(t, performed, before)
}

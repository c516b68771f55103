package sqlpayvault_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

const (
	kills        = 20
	cardsPerKill = 5000
	lostOneIn    = 20

	concurrency = 32
	lease       = 250 * time.Millisecond
)

// forgetful is a transport that loses one of every lostOneIn answers on average.
type forgetful struct{ http.RoundTripper }

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := f.RoundTripper.RoundTrip(req)
	if err == nil && rand.IntN(lostOneIn) == 0 { //nolint:gosec // need not be secure
		return nil, errors.Join(io.ErrUnexpectedEOF, resp.Body.Close())
	}
	return resp, err
}

// submitCards submits the cards of the job that no run has sent yet, and returns all batches of the job. Its transport
// loses some answers. It takes a lease unless opts contains WithoutLease.
func submitCards(
	ctx context.Context, url, key, place string, cards int, opts ...sqlpayvault.Option,
) ([]payvault.AccountUpdaterBatch, error) {
	pool := http.DefaultTransport.(*http.Transport).Clone()
	defer pool.CloseIdleConnections()
	client, err := payvault.NewClient(url, key, payvault.WithHTTPClient(&http.Client{Transport: forgetful{pool}}))
	if err != nil {
		return nil, err
	}
	j, closeAll, err := open(ctx, place, append(opts, sqlpayvault.WithLease(lease))...)
	if err != nil {
		return nil, err
	}
	options := &payvault.SubmitAllOptions{Concurrency: concurrency, Journal: j, Job: job}
	batches, err := collect(client.AccountUpdater.SubmitAll(ctx, stream(cards), options))
	return batches, errors.Join(err, closeAll())
}

// submit is the program that TestKilled kills.
func submit(url string) {
	var opts []sqlpayvault.Option
	if os.Getenv("SQLPAYVAULT_SHARED") != "" {
		opts = append(opts, sqlpayvault.WithoutLease())
	}
	cards, err := strconv.Atoi(os.Getenv("SQLPAYVAULT_CARDS"))
	if err == nil {
		key, place := os.Getenv("SQLPAYVAULT_KEY"), os.Getenv("SQLPAYVAULT_PLACE")
		_, err = submitCards(context.Background(), url, key, place, cards, opts...)
	}
	if err != nil {
		log.Fatal(err) //nolint:forbidigo // a program ends in this way
	}
}

// TestKilled kills a program again and again. The program must submit no card twice, and report every batch.
func TestKilled(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		srv := newServer(t, payvaulttest.Fault{
			Kind: payvaulttest.Delay, Delay: 4 * time.Millisecond,
			AfterCommit: true, // the service performs the requests of a killed process
		})
		for range kills {
			killed(t, srv, place, kills*cardsPerKill)
		}
		batches, err := submitCards(t.Context(), srv.URL, srv.Merchant().APIKey, place, kills*cardsPerKill)
		require.NoError(t, err)
		audit(t, srv, batches, kills*cardsPerKill)
	})
}

// audit checks that the service has performed no batch twice, and that the last run has reported each batch of the job:
// as accepted, with its request ID, or as a batch of unknown outcome. The earlier runs may have left at most as many
// batches begun and not ended as kills() runs can have in flight.
func audit(t *testing.T, srv *payvaulttest.Server, batches []payvault.AccountUpdaterBatch, cards int) {
	t.Helper()
	performed := map[int]string{} // maps the index of a batch to its request ID
	for _, request := range srv.AccountUpdaterRequests.All() {
		first, err := strconv.Atoi(strings.TrimPrefix(request.Cards[0].CardID, "C"))
		require.NoError(t, err)
		assert.Len(t, request.Cards, 100)
		assert.NotContains(t, performed, first/100, "it was submitted twice")
		performed[first/100] = request.RequestID
	}
	require.Len(t, batches, cards/100)
	accepted, begun := 0, 0
	for i, batch := range batches {
		assert.Equal(t, i, batch.Index)
		if batch.Err == nil {
			accepted++
			assert.Equal(t, performed[i], batch.RequestID)
			continue
		}
		require.ErrorIs(t, batch.Err, payvault.ErrOutcomeUnknown)
		if strings.Contains(batch.Err.Error(), "did not end it") {
			begun++
		}
	}
	t.Logf("%d accepted, %d begun, %d performed", accepted, begun, len(performed))
	assert.Positive(t, accepted)
	assert.LessOrEqual(t, begun, kills*concurrency, "more than are begun at a time")
}

// newProgram returns the program submit, which is not started yet.
func newProgram(t *testing.T, srv *payvaulttest.Server, place string, cards int, env ...string) *exec.Cmd {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // the test binary itself
	program.Env = append(os.Environ(), "SQLPAYVAULT_SERVICE="+srv.URL, "SQLPAYVAULT_PLACE="+place,
		"SQLPAYVAULT_KEY="+srv.Merchant().APIKey, "SQLPAYVAULT_CARDS="+strconv.Itoa(cards))
	program.Env = append(program.Env, env...)
	return program
}

// TestTwoProcesses checks that two processes with one journal submit no card twice, with and without a lease. With a
// lease, one of them may be refused. Without a lease, both must succeed. One process names the SQLite file by a
// symbolic link to its folder, like a container that has mounted the folder.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	for _, shared := range []string{"", "1"} {
		t.Run("shared="+shared, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, place string) {
				t.Helper()
				srv, mounted := newServer(t, payvaulttest.Fault{}), place
				if isFile(place) {
					folder := filepath.Join(t.TempDir(), "mounted")
					require.NoError(t, os.Symlink(filepath.Dir(place), folder))
					mounted = filepath.Join(folder, filepath.Base(place))
				}
				var running sync.WaitGroup
				var succeeded atomic.Int64
				for _, place := range []string{place, mounted} {
					running.Go(func() {
						text, err := newProgram(t, srv, place, cardsPerKill, "SQLPAYVAULT_SHARED="+shared).CombinedOutput()
						if err == nil {
							succeeded.Add(1)
						} else {
							assert.Empty(t, shared)
							assert.Contains(t, string(text), sqlpayvault.ErrRunning.Error())
						}
					})
				}
				running.Wait()
				assert.Positive(t, succeeded.Load())
				batches, err := submitCards(t.Context(), srv.URL, srv.Merchant().APIKey, mounted, cardsPerKill)
				require.NoError(t, err)
				audit(t, srv, batches, cardsPerKill)
			})
		})
	}
}

// killed starts the program, waits until the service has accepted a random number of new batches, from 0 to 3, and
// kills the program up to 5 ms later.
func killed(t *testing.T, srv *payvaulttest.Server, place string, cards int) {
	t.Helper()
	program := newProgram(t, srv, place, cards)
	program.Stderr = os.Stderr
	enough := srv.Commits(payvault.OpAccountUpdaterSubmit) + rand.IntN(4) //nolint:gosec // need not be secure
	require.NoError(t, program.Start())
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	waitFor(t, srv, enough, ended)
	<-time.After(time.Duration(rand.IntN(5000)) * time.Microsecond) //nolint:gosec // need not be secure
	require.NoError(t, program.Process.Kill())
	err := <-ended
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, err)
	require.Equal(t, -1, exit.ExitCode(), "it did not end by itself")
}

// waitFor waits until the service has performed a number of submissions. It fails the test if the run ends earlier.
func waitFor(t *testing.T, srv *payvaulttest.Server, enough int, ended <-chan error) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for srv.Commits(payvault.OpAccountUpdaterSubmit) < enough {
		select {
		case <-look.C:
		case err := <-ended:
			require.FailNow(t, "the run has ended", err)
		}
	}
}

// startPostgres starts a Postgres whose processes the test may kill, or skips the test. The Postgres has
// synchronous_commit=off: when its processes are killed, it can lose the commits of the last seconds. It keeps a commit
// whose transaction has set synchronous_commit=on.
func startPostgres(t *testing.T) (place string) {
	t.Helper()
	postgres(t)
	if _, err := exec.LookPath("initdb"); err != nil {
		t.Skip("initdb is not in PATH") // .ci/run puts it there
	}
	dir, err := os.MkdirTemp("", "") //nolint:usetesting // Postgres may not enter the folder of t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	prefix := []string{}
	if os.Geteuid() == 0 { // Postgres does not run as root
		require.NoError(t, exec.CommandContext(t.Context(), "chown", "postgres", dir).Run()) //nolint:gosec // a new folder
		prefix = []string{"runuser", "-u", "postgres", "--"}
	}
	run := func(args ...string) {
		args = append(slices.Clone(prefix), args...)
		program := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...) //nolint:gosec // see below
		program.Dir = dir
		output, err := os.Create(filepath.Join(t.TempDir(), "output")) // a pipe would stay open as long as Postgres runs
		require.NoError(t, err)
		defer output.Close() //nolint:errcheck // only for the reader of a failed test
		program.Stdout, program.Stderr = output, output
		require.NoError(t, program.Run(), args)
	}
	run("initdb", "-D", dir+"/data", "-A", "trust", "-U", "postgres")
	run("pg_ctl", "-D", dir+"/data", "-w", "start", "-l", dir+"/log", "-o", "-c listen_addresses= "+
		"-c synchronous_commit=off -c wal_writer_delay=10s -c unix_socket_directories="+dir)
	t.Cleanup(func() { run("pg_ctl", "-D", dir+"/data", "-m", "immediate", "-w", "stop") })
	return "host=" + dir + " user=postgres dbname=postgres sslmode=disable"
}

// TestKilledDatabase kills a process of Postgres during a run, again and again. Postgres then ends all its processes
// and restarts. The next run must submit no card twice.
func TestKilledDatabase(t *testing.T) {
	t.Parallel()
	place := startPostgres(t)
	srv := newServer(t, payvaulttest.Fault{Kind: payvaulttest.Delay, Delay: 4 * time.Millisecond})
	for range kills {
		ctx, stop := context.WithCancel(t.Context())
		enough := srv.Commits(payvault.OpAccountUpdaterSubmit) + 5 + rand.IntN(30) //nolint:gosec // need not be secure
		ended := make(chan error, 1)
		go func() {
			_, err := submitCards(ctx, srv.URL, srv.Merchant().APIKey, place, kills*cardsPerKill)
			ended <- err
		}()
		waitFor(t, srv, enough, ended)
		killProcess(t, place, stop)
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	batches, err := submitCards(t.Context(), srv.URL, srv.Merchant().APIKey, place, kills*cardsPerKill)
	require.NoError(t, err)
	audit(t, srv, batches, kills*cardsPerKill)
}

// killProcess kills the process that serves a connection to Postgres, and calls stop. It waits until Postgres has ended
// all its processes and has restarted.
func killProcess(t *testing.T, place string, stop func()) {
	t.Helper()
	db, err := sql.Open("pgx", place)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // some of its connections are dead
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // as above
	var pid int
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	other := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(t.Context(), `SELECT pg_sleep(60)`)
		other <- err
	}()
	process, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	stop()
	require.Error(t, <-other)
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, 30*time.Second, 10*time.Millisecond)
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A program is one run of the emulator.
type program struct {
	url    string
	stdout string           // everything that the run printed before it was ready
	stderr *strings.Builder // complete only after the run has ended
	exit   chan int
}

func launch(t *testing.T, start func(stdout, stderr io.Writer) int) program {
	t.Helper()
	p := program{stderr: &strings.Builder{}, exit: make(chan int, 1)}
	in, out := io.Pipe()
	go func() {
		code := start(out, p.stderr)
		_ = out.Close()
		p.exit <- code
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		p.stdout += lines.Text() + "\n"
		if url, ok := strings.CutPrefix(lines.Text(), "listening on  "); ok {
			p.url = url
			return p
		}
	}
	require.Fail(t, "the program did not start", p.stderr.String())
	return p
}

// launchRun runs the emulator with arguments on a free port. The returned function ends the run and waits for its exit.
func launchRun(t *testing.T, args ...string) (p program, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p = launch(t, func(stdout, stderr io.Writer) int {
		return run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), stdout, stderr)
	})
	return p, func() {
		cancel()
		assert.Equal(t, exitOK, <-p.exit)
	}
}

// list sends an API key and asks for the list of customers. It returns the status of the answer.
func (p program) list(t *testing.T, key string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/platform/vault/customer?page=2", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth("", key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// TestRun checks the accounts and records that a run prints, the answers to a known and to an unknown API key, and that
// the log contains no API key and no query string.
func TestRun(t *testing.T) {
	t.Parallel()
	p, stop := launchRun(t, "-base-path", "/sandbox")
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/sandbox$`, p.url)
	assert.True(t, strings.HasPrefix(p.stdout, fmt.Sprintf("pid           %d\n", os.Getpid())), p.stdout)
	for _, line := range []string{
		"merchant      100001  key merchant-api-key",
		"merchant      100002  key second-merchant-api-key",
		"partner       900001  key partner-vendor-key  vendor 7001  acts for [100001 100002]",
		"subscription  5001  merchant 100001, customer CUST5001, active, 3 transactions",
		"subscription  5003  merchant 100002, customer CUST5003, paused, 0 transactions",
		"invoice       INV6001  merchant 100001, saved",
		"dispute       7101  merchant 100001, first_time",
		"dispute       7102  merchant 100001, retrieval",
		"webhook       WH8001  merchant 100001, notifies http://127.0.0.1:8702/notifications of nothing yet",
	} {
		assert.Contains(t, p.stdout, line+"\n")
	}
	assert.Equal(t, http.StatusOK, p.list(t, "merchant-api-key"))
	assert.Equal(t, http.StatusUnauthorized, p.list(t, "unknown-key"))

	stop()
	log := p.stderr.String()
	assert.Equal(t, 2, strings.Count(log, "\n"), log)
	assert.Contains(t, log, "operation=customers.list method=GET route=/platform/vault/customer status=200 "+
		"merchant_id=100001")
	assert.Contains(t, log, "status=401")
	assert.NotContains(t, log, "-key")
	assert.NotContains(t, log, "page=")
}

// TestInspect checks that each curl command in the help works, and that the program can end while an event stream is
// open.
func TestInspect(t *testing.T) {
	t.Parallel()
	p, stop := launchRun(t, "-inspect", "localhost:0")
	found := regexp.MustCompile(`\ninspect       (http://\S+)/\n`).FindStringSubmatch(p.stdout)
	require.Len(t, found, 2, p.stdout)
	do := func(method, path, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, found[1]+path, strings.NewReader(body))
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		return resp
	}
	var events *http.Response
	lines := regexp.MustCompile(
		`(?m)^  curl (?:-X (\w+) )?(?:-N )?(?:-d '(.*)' )?'?http://127.0.0.1:8701(/[^' \n]*)`,
	).FindAllStringSubmatch(usage, -1)
	require.Len(t, lines, strings.Count(usage, "  curl "))
	for _, line := range lines {
		method := cmp.Or(line[1], map[bool]string{true: http.MethodGet, false: http.MethodPost}[line[2] == ""])
		resp := do(method, line[3], line[2])
		assert.Equal(t, 2, resp.StatusCode/100, line[0])
		if line[3] == "/events" {
			events = resp
			continue
		}
		require.NoError(t, resp.Body.Close())
	}
	require.NotNil(t, events)
	stop()
	_, _ = io.Copy(io.Discard, events.Body) // the stream has ended
	assert.NoError(t, events.Body.Close())
}

// TestSignalsStopIt checks that the program exits with code 0 after SIGINT and after SIGTERM.
func TestSignalsStopIt(t *testing.T) { //nolint:paralleltest // a signal reaches every program of the process
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := launch(t, func(stdout, stderr io.Writer) int {
			return runUntilSignal([]string{"-addr", "localhost:0"}, stdout, stderr)
		})
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(signal))
		assert.Equal(t, exitOK, <-p.exit)
	}
}

// writeSeed writes a seed to a new file and returns the name of the file.
func writeSeed(t *testing.T, seed string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(name, []byte(seed), 0o600))
	return name
}

// TestSeedFile checks that the records of a seed file, and its accounts if it has any, replace the default ones.
func TestSeedFile(t *testing.T) {
	t.Parallel()
	seed := writeSeed(t, `{"accounts":[{"merchant_id":5,"api_key":"five"}],
		"webhooks":[{"webhook_id":"W","events":["a","b"]}]}`)
	p, stop := launchRun(t, "-seed", seed, "-allow-remote")
	assert.Contains(t, p.stdout, "merchant      5  key five\n")
	assert.Contains(t, p.stdout, "of a b\n")
	assert.NotContains(t, p.stdout, "100001")
	assert.Equal(t, http.StatusOK, p.list(t, "five"))
	stop()

	seed = writeSeed(t, `{"invoices":[{"invoice_id":"I"}]}`)
	srv, err := start(settings{addr: "127.0.0.1:0", seedFile: seed}, io.Discard)
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	assert.Len(t, srv.Accounts(), 3)
	assert.Len(t, srv.Invoices.All(), 1)
	assert.Empty(t, srv.Disputes.All())
}

// TestRate checks that the program answers 429 above the limit of -rate, with the Retry-After header of -retry-after.
func TestRate(t *testing.T) {
	t.Parallel()
	p, stop := launchRun(t, "-rate", "0.01", "-retry-after", "7")
	client, err := payvault.NewClient(p.url, "key")
	require.NoError(t, err)
	_, err = client.Customers.List(t.Context(), nil)
	require.ErrorIs(t, err, payvault.ErrUnauthorized, "it is let through")
	_, err = client.Customers.List(t.Context(), nil, payvault.WithMaxAttempts(1))
	require.ErrorIs(t, err, payvault.ErrRateLimited)
	failed, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok)
	assert.Equal(t, 7*time.Second, failed.RetryAfter)
	client.CloseIdleConnections()
	stop()
}

// TestRunThatFails checks the exit code and the standard error of runs that print the help or fail. Standard output
// must stay empty.
func TestRunThatFails(t *testing.T) {
	t.Parallel()
	bad := writeSeed(t, "{")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // if a run does not fail as it should, it ends at once
	for _, test := range []struct {
		args   string // arguments after -addr 127.0.0.1:0
		code   int
		stderr string
	}{
		{"-h", exitOK, "go build -o payvault-emulator ./cmd/payvault-emulator\n"},
		{"-h", exitOK, "-allow-remote"},
		{"-x", exitUsage, "-x"},
		{"serve", exitUsage, "serve"},
		{"-addr :0", exitFailed, "-allow-remote"},
		{"-addr 0.0.0.0:0", exitFailed, "-allow-remote"},
		{"-addr localhost.example.com:80", exitFailed, "-allow-remote"},
		{"-addr 127.0.0.1", exitFailed, "missing port"},
		{"-addr 127.0.0.1:99999", exitFailed, "listen"},
		{"-base-path v1", exitFailed, "base path"},
		{"-seed " + bad, exitFailed, "seed"},
		{"-seed " + bad + "x", exitFailed, "seed"},
		{"-rate -1", exitFailed, "-rate: "},
		{"-retry-after 1", exitFailed, "needs -rate"},
		{"-allow-remote -inspect :0", exitFailed, "-inspect :0 is not a loopback"},
		{"-inspect 0.0.0.0:0", exitFailed, "-inspect 0.0.0.0:0 is not a loopback"},
		{"-inspect 127.0.0.1:99999", exitFailed, "-inspect: "},
		{"-inspect 127.0.0.1", exitFailed, "-inspect must be host:port, such as"},
	} {
		var stdout, stderr strings.Builder
		args := append([]string{"-addr", "127.0.0.1:0"}, strings.Fields(test.args)...)
		assert.Equal(t, test.code, run(ctx, args, &stdout, &stderr), test.args)
		assert.Contains(t, stderr.String(), test.stderr, test.args)
		assert.Empty(t, stdout.String(), test.args)
	}
}

// TestIsLoopback checks which addresses count as loopback.
func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"[::1]:80": true, "127.1.2.3:80": true, "localhost:80": true, "localhost.example.com:80": false, ":80": false,
	} {
		assert.Equal(t, want, isLoopback(addr), addr)
	}
}

// TestStart checks that the server keeps no history of requests. Without -allow-remote it notifies only loopback
// addresses.
func TestStart(t *testing.T) {
	t.Parallel()
	seed := writeSeed(t, `{"accounts":[{"merchant_id":5,"api_key":"five"}],
		"webhooks":[{"notification_url":"http://192.0.2.1/","events":["e"]}]}`)
	srv, err := start(settings{addr: "127.0.0.1:0", seedFile: seed}, io.Discard)
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	assert.Equal(t, 1, srv.TriggerEvent(5, "e", nil))
	require.NoError(t, srv.WaitDeliveries(t.Context()))
	require.ErrorContains(t, srv.Deliveries()[0].Err, "not on loopback")
	assert.Equal(t, http.StatusOK, program{url: srv.URL}.list(t, "five"))
	assert.Empty(t, srv.Requests())
}

package main

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestShortRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	status := run(t.Context(), []string{
		"-calls", "2000", "-callers", "16", "-period", "250", "-faults", "0.2", "-every",
		"1m",
	}, &out)
	assert.Zero(t, status, out.String())
	for _, want := range []string{
		"2000 calls in", " success\n", " answered 403\n", " unknown\n", " unknown 200\n",
		" unknown 502\n", "heap KiB: ",
	} {
		assert.Contains(t, out.String(), want)
	}
}

// TestEveryOperation: the calls are of all operations.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	want := []payvault.Operation{opTokenizeSaved}
	for _, info := range payvault.Operations() {
		want = append(want, info.Op)
	}
	assert.ElementsMatch(t, want, slices.Collect(maps.Keys(newPeriod(&soak{}, srv).makers())))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-calls", "0"}, {"-no-such-flag"}, {"word"}} {
		var out bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), args, &out))
		assert.Contains(t, out.String(), "usage")
	}
}

func TestInterruptedRunIsNoSuccess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	assert.Equal(t, 1, run(ctx, nil, &out))
	assert.Contains(t, out.String(), "BROKEN: interrupted")
}

func TestAuditFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := newSoak(config{calls: 1, callers: 1, period: 1, every: time.Minute}, &out)
	if !assert.NoError(t, err) {
		return
	}
	t.Cleanup(s.merchant.CloseIdleConnections)
	t.Cleanup(s.partner.CloseIdleConnections)
	srv, err := s.start()
	if !assert.NoError(t, err) {
		return
	}
	t.Cleanup(srv.Close)
	p := newPeriod(s, srv)
	performed := func(n int) func(*state) int { return func(*state) int { return n } }
	p.records = []record{
		{"customers.create", succeeded, performed(2)},
		{"customers.create", unknown, performed(2)},
		{"customers.create", decided, performed(1)},
		{"invoices.send", succeeded, performed(1)}, // which the emulator knows nothing of
		{"customers.list", succeeded, performed(-1)},
	}
	p.audit()
	s.watch.search([]byte("the number " + canaryCard))
	for i := range 8 {
		s.samples = append(s.samples, sample{heap: 1 << 20 << i, goroutines: 10, sockets: 10})
	}
	assert.Equal(t, 1, s.verdict(t.Context()))
	for _, want := range []string{
		`the caller was told "success", but it was performed 2 times`,
		`the caller was told "unknown", but it was performed 2 times`,
		`the caller was told "not performed", but it was performed 1 times`,
		"invoices.send: 1 successes and 0 unknown outcomes, but 0 commits",
		"customers.list: 1 successes, but only 0 commits", "secrets in log lines or errors", "heap KiB grew",
	} {
		assert.Contains(t, out.String(), want)
	}
}

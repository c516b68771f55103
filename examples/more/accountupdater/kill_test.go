package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// counter is a log handler that tells when some requests have been logged.
type counter struct {
	slog.Handler

	requests chan struct{}
}

func (*counter) Enabled(context.Context, slog.Level) bool { return true }

func (c *counter) Handle(context.Context, slog.Record) error {
	select {
	case c.requests <- struct{}{}:
	default: // nobody counts
	}
	return nil
}

// TestKilledRunNeverSubmitsABatchTwice kills the program, as kill -9 does, again and again at some point between sending and
// recording, until all batches are dealt with.
func TestKilledRunNeverSubmitsABatchTwice(t *testing.T) {
	t.Parallel()
	count := &counter{slog.DiscardHandler, make(chan struct{}, 1)}
	f := newFixture(t, 6050, payvaulttest.WithLogger(slog.New(count)))
	kills := 0
	for f.killAfter(count, 9+kills) {
		kills++
	}
	assert.Greater(t, kills, 2)
	arrived := f.arrived()
	for batch, state := range f.states() {
		if state != unknown {
			assert.Equal(t, accepted, state, batch)
		}
	}
	flags := f.lookUp(arrived)
	t.Logf("killed %d times; %d batches of unknown outcome", kills, len(flags)/2)
	_, err := f.run(t.Context(), io.Discard, flags...)
	require.NoError(t, err)
	assert.Len(t, f.arrived(), 6050)
}

// killAfter runs the program, kills it after some requests, and reports whether it came to that.
func (f *fixture) killAfter(count *counter, requests int) bool {
	f.t.Helper()
	program := exec.CommandContext(f.t.Context(), os.Args[0], "-cards", f.cards) //nolint:gosec // this very program
	program.Env = append(os.Environ(), "ACCOUNTUPDATER_PROGRAM=1")
	for name, value := range sandboxed(f.srv) {
		program.Env = append(program.Env, name+"="+value)
	}
	require.NoError(f.t, program.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = program.Wait()
	}()
	for range requests {
		select {
		case <-count.requests:
		case <-ended:
			return false
		}
	}
	_ = program.Process.Kill() // it may have ended just now
	<-ended
	return true
}

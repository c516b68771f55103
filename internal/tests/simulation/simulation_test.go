package simulation

import (
	"flag"
	"io"
	"log"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

//nolint:gochecknoglobals // flags
var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	scenarios = flag.Uint64("scenarios", 5000, "how many are played")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800)   // run the garbage collector less often, which makes scenarios faster
	log.SetOutput(io.Discard) //nolint:forbidigo // net/http logs answers that nobody asked for
	goleak.VerifyTestMain(m)
}

func newWorld(t *testing.T) *World {
	t.Helper()
	w, err := NewWorld("../../../testdata")
	require.NoError(t, err)
	return w
}

// TestScenarios checks that no scenario in a range of seeds breaks an invariant, or changes the documented answers that
// all scenarios share.
//
//nolint:tparallel // its workers are parallel
func TestScenarios(t *testing.T) {
	t.Parallel()
	count := *scenarios
	if testing.Short() {
		count = min(count, 500)
	}
	w := newWorld(t)
	summary := w.Drive(t, Job{From: *firstSeed, Count: count, Workers: runtime.GOMAXPROCS(0), Most: 1})
	for i := range summary.Failures {
		t.Error(summary.Failures[i].String())
	}
	t.Log(summary)
	assert.Equal(t, newWorld(t).documents, w.documents, "a scenario has changed what all share")
}

// TestKept checks that the scenarios in testdata, which once revealed defects, break no invariant.
func TestKept(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	w := newWorld(t)
	for _, file := range files {
		s, err := Read(file)
		require.NoError(t, err)
		for range 20 { // play it 20 times, because goroutines may run in another order each time
			assert.Empty(t, w.Run(t, s).Failures, file)
		}
	}
}

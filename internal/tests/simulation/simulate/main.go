// Command simulate plays scenarios of package simulation: the scenarios of a range of seeds, or a single one.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/payvault/internal/tests/simulation"
)

func main() {
	debug.SetGCPercent(800)   // run the garbage collector less often, which makes scenarios faster
	log.SetOutput(io.Discard) // net/http logs answers that belong to no request
	testing.Init()
	var one *simulation.Scenario // if it is not nil, only this scenario is played
	flag.Func("seed", "play the scenario of this seed, and print it with its trace", func(text string) error {
		seed, err := strconv.ParseUint(text, 10, 64)
		s := simulation.Draw(seed)
		one = &s
		return err
	})
	flag.Func("file", "play the scenario of this file, and print it with its trace", func(file string) error {
		s, err := simulation.Read(file)
		one = &s
		return err
	})
	times := flag.Int("times", 1, "how often one scenario is played; the order of goroutines may differ")
	job := simulation.Job{}
	flag.Uint64Var(&job.From, "from", 1, "the first seed")
	flag.Uint64Var(&job.Count, "n", 1000000, "how many scenarios")
	flag.IntVar(&job.Workers, "workers", runtime.GOMAXPROCS(0), "how many at a time")
	limit := flag.Duration("for", 1000*time.Hour, "time after which no more scenarios begin")
	flag.IntVar(&job.Most, "failures", 3, "failures after which it ends")
	shrink := flag.Bool("shrink", true, "look for the simplest scenario that fails")
	testdata := flag.String("testdata", "../../../testdata", "the documented answers")
	flag.Parse()
	job.AsDrawn = !*shrink
	simulate := func(t *testing.T) {
		t.Helper()
		world, err := simulation.NewWorld(*testdata)
		if err != nil {
			t.Fatal(err)
		}
		if one != nil {
			replay(t, world, *one, *times)
			return
		}
		// After SIGINT or SIGTERM no more scenarios begin, and the summary is printed.
		ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, *limit)
		defer cancel()
		job.Done = ctx.Done()
		play(t, world, job)
	}
	// synctest.Test needs a *testing.T, so the scenarios are played as a test.
	all := func(_, _ string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "simulate", F: simulate}}, nil, nil)
}

// replay plays a scenario until it fails, but at most the given number of times. It prints the scenario and the last
// trace.
func replay(t *testing.T, world *simulation.World, s simulation.Scenario, times int) {
	t.Helper()
	var result simulation.Result
	for range times {
		if result = world.Run(t, s); len(result.Failures) > 0 {
			t.Fail()
			break
		}
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Join(result.Failures, "\n")
	fmt.Printf("%s\n%s%d broken\n%s\n", text, result.Trace, len(result.Failures), broken)
}

func play(t *testing.T, world *simulation.World, job simulation.Job) {
	t.Helper()
	began, goroutines := heap(), runtime.NumGoroutine()
	job.Report = func(s simulation.Summary) {
		text := s.String()
		if s.Scenarios%tableEvery != 0 {
			text, _, _ = strings.Cut(text, "\n")
		}
		last := job.From + uint64(s.Scenarios) - 1 //nolint:gosec // positive
		fmt.Fprintf(os.Stderr, "%s up to seed %d: %s\n", time.Now().UTC().Format(time.TimeOnly), last, text)
	}
	job.Failed = func(f simulation.Failure) { fmt.Println(f.String()) }
	summary := world.Drive(t, job)
	if len(summary.Failures) > 0 {
		t.Fail()
	}
	fmt.Printf("seeds %d to %d\n%s", job.From, job.From+uint64(summary.Scenarios)-1, summary) //nolint:gosec // positive
	ended, left := heap(), runtime.NumGoroutine()
	fmt.Printf("heap from %d to %d KiB, goroutines from %d to %d\n", began, ended, goroutines, left)
	if ended > began+mostHeap {
		t.Errorf("the heap has grown by %d KiB, more than %d", ended-began, mostHeap)
	}
	if left > goroutines {
		t.Errorf("%d goroutines are left", left-goroutines)
	}
}

// tableEvery is the number of scenarios between two reports that include the table of faults. So the output has a table
// even if the process is killed later.
const tableEvery = 100_000

// mostHeap is the number of KiB by which the heap may grow while all scenarios are played. Caches may use that much.
const mostHeap = 4 << 10

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 10
}

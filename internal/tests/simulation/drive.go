package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Job is a range of seeds whose scenarios are played.
type Job struct {
	From    uint64 // the first seed
	Count   uint64
	Workers int
	Done    <-chan struct{} // when it is closed, no more scenarios begin
	Most    int             // the job ends after this many failures; 0 for no limit
	AsDrawn bool            // failing scenarios are reported without a search for a simpler one
	Report  func(Summary)   // called every 10,000 scenarios; may be nil
	Failed  func(Failure)   // called after each failure; may be nil
}

// Summary is the result of a Job so far.
type Summary struct {
	Scenarios, Calls int
	Took             time.Duration
	Struck           map[string]int // how often each fault happened
	Failures         []Failure
}

// Failure is a scenario in which an invariant was broken.
type Failure struct {
	Scenario Scenario // the simplest failing scenario that was found
	Broken   []string
	Trace    Trace
	Note     string // "shrunk", "as it was drawn" or "not seen again"
}

// String returns the whole report of a failure.
func (f *Failure) String() string {
	scenario, err := json.MarshalIndent(f.Scenario, "", "  ")
	if err != nil {
		return err.Error()
	}
	broken := strings.Join(f.Broken, "\n")
	return fmt.Sprintf("seed %d, %s:\n%s\n%s\n%s\n", f.Scenario.Seed, f.Note, broken, scenario, f.Trace)
}

// String returns the totals, and a table of how often each fault happened.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d scenarios, %d calls in %v, %.0f calls a second, %d failures\n",
		s.Scenarios, s.Calls, s.Took.Round(time.Second), float64(s.Calls)/s.Took.Seconds(), len(s.Failures))
	for _, fault := range slices.Sorted(maps.Keys(s.Struck)) {
		fmt.Fprintf(&b, "%11d  %s\n", s.Struck[fault], fault)
	}
	return b.String()
}

// stuckAfter is the real time after which a scenario counts as stuck. It is long enough for a busy machine.
const stuckAfter = 5 * time.Minute

// driver plays the scenarios of a Job.
type driver struct {
	*World

	job   Job
	start time.Time
	next  atomic.Uint64

	mu      sync.Mutex
	summary Summary
}

// Drive plays the scenarios of a Job and returns the result.
func (w *World) Drive(t *testing.T, job Job) Summary {
	t.Helper()
	d := &driver{World: w, job: job, start: time.Now(), summary: Summary{Struck: map[string]int{}}}
	d.next.Store(job.From)
	t.Run("scenarios", func(t *testing.T) {
		for range max(1, job.Workers) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				d.work(t)
			})
		}
	})
	d.summary.Took = time.Since(d.start)
	return d.summary
}

func (d *driver) work(t *testing.T) {
	t.Helper()
	for !d.ended() {
		seed := d.next.Add(1) - 1
		if seed >= d.job.From+d.job.Count {
			return
		}
		result := d.watched(t, Draw(seed))
		if len(result.Failures) > 0 {
			f := Failure{Draw(seed), result.Failures, result.Trace, "as it was drawn"}
			if !d.job.AsDrawn {
				f = d.shrink(t, f)
			}
			d.failed(f)
		}
		d.add(result)
	}
}

func (d *driver) ended() bool {
	select {
	case <-d.job.Done:
		return true
	default:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.job.Most > 0 && len(d.summary.Failures) >= d.job.Most
}

func (d *driver) failed(f Failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.summary.Failures = append(d.summary.Failures, f)
	if d.job.Failed != nil {
		d.job.Failed(f)
	}
}

func (d *driver) add(r Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.summary.Scenarios++
	d.summary.Calls += r.Calls
	for fault, n := range r.Struck {
		d.summary.Struck[fault] += n
	}
	if d.job.Report != nil && d.summary.Scenarios%10000 == 0 {
		d.summary.Took = time.Since(d.start)
		d.job.Report(d.summary)
	}
}

// watched plays a scenario. It ends the process if the scenario takes longer than stuckAfter of real time. The virtual
// clock cannot measure this, because it stops while a goroutine loops or waits for a mutex.
func (d *driver) watched(t *testing.T, s Scenario) Result {
	t.Helper()
	stuck := time.AfterFunc(stuckAfter, func() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		panic(fmt.Sprintf("seed %d does not end\n%s", s.Seed, stacks))
	})
	defer stuck.Stop()
	return d.Run(t, s)
}

// shrink looks for a simpler scenario that fails in the same way. It plays each simpler scenario up to 8 times, because
// a failure may depend on the order of goroutines.
func (d *driver) shrink(t *testing.T, f Failure) Failure {
	t.Helper()
	const tries, most = 8, 2000
	s, kind, runs := f.Scenario, kindOfFailure(f.Broken), 0
	f.Note = "not seen again"
	fails := func(s Scenario) (Result, bool) {
		for range tries {
			if runs++; runs > most {
				break
			}
			if r := d.watched(t, s); len(r.Failures) > 0 && kindOfFailure(r.Failures) == kind {
				return r, true
			}
		}
		return Result{}, false
	}
	for range 5 {
		if again, ok := fails(s); ok {
			f.Broken, f.Trace, f.Note = again.Failures, again.Trace, "as it was drawn"
			break
		}
	}
	for smaller := f.Note != "not seen again"; smaller; {
		smaller = false
		for _, candidate := range f.Scenario.shrunk() {
			if simpler, ok := fails(candidate); ok {
				f, smaller = Failure{candidate, simpler.Failures, simpler.Trace, "shrunk"}, true
				break
			}
		}
	}
	return f
}

var digits = regexp.MustCompile(`[0-9]+`)

// kindOfFailure returns the text of the first failure without numbers and other parts that differ between runs.
func kindOfFailure(failures []string) string {
	text, _, _ := strings.Cut(failures[0], "\n")
	_, text, found := strings.Cut(text, ": ")
	if !found {
		text = failures[0]
	}
	text, _, _ = strings.Cut(text, ": payvault")
	return digits.ReplaceAllString(text[:min(len(text), 60)], "0")
}

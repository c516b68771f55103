// Package benchmarks measures payvault side by side with hand-written net/http and with other client SDKs. Machines drift, so
// what is compared takes turns in short rounds: the ratio is the median of the ratios of all rounds.
package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/perf/benchmath"
)

// Variant is one of several ways to do the same work.
type Variant struct {
	Name string
	Run  func(n int) error // does it n times
}

// Each makes a Variant of work that is done once per call.
func Each(name string, once func() error) Variant {
	return Variant{name, func(n int) error {
		for range n {
			if err := once(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}}
}

// Stat is what came of a variant.
type Stat struct {
	Name   string
	Wall   []float64 // seconds per operation, one per round
	CPU    []float64 // seconds of processor time per operation, garbage collection included
	Allocs float64   // per operation
	Bytes  float64   // per operation

	WallRatio float64 // to the first variant: median of the rounds
	CPURatio  float64
	P         float64 // chance that a difference like this is noise (Mann-Whitney, processor time)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Race lets variants take turns. Each round gives each of them about slice, in random order.
func Race(rounds int, slice time.Duration, variants ...Variant) ([]Stat, error) {
	stats := make([]Stat, len(variants))
	counts := make([]int, len(variants))
	for i, v := range variants {
		stats[i].Name = v.Name
		n, err := calibrate(v, slice)
		if err != nil {
			return nil, err
		}
		counts[i] = n
		stats[i].Allocs, stats[i].Bytes, err = allocations(v, min(n, 1000))
		if err != nil {
			return nil, err
		}
	}
	for range rounds {
		for _, i := range rand.Perm(len(variants)) { //nolint:gosec // an order need not be unpredictable
			runtime.GC()                                             // so that none pays for the garbage of the one before it
			if err := variants[i].Run(1 + counts[i]/8); err != nil { // fills what the collection has emptied
				return nil, err
			}
			start, cpu := time.Now(), cpuTime()
			if err := variants[i].Run(counts[i]); err != nil {
				return nil, err
			}
			stats[i].Wall = append(stats[i].Wall, time.Since(start).Seconds()/float64(counts[i]))
			stats[i].CPU = append(stats[i].CPU, (cpuTime()-cpu).Seconds()/float64(counts[i]))
		}
	}
	for i := range stats {
		compare(&stats[i], stats[0])
	}
	return stats, nil
}

// join adds the rounds of another race of the same variants.
func join(all, more []Stat) []Stat {
	if all == nil {
		return more
	}
	for i := range all {
		all[i].Wall, all[i].CPU = append(all[i].Wall, more[i].Wall...), append(all[i].CPU, more[i].CPU...)
		compare(&all[i], all[0])
	}
	return all
}

// calibrate finds how many operations take about slice of processor time.
func calibrate(v Variant, slice time.Duration) (int, error) {
	for n := 1; ; n *= 2 {
		start, cpu := time.Now(), cpuTime()
		if err := v.Run(n); err != nil {
			return 0, err
		}
		used := cpuTime() - cpu
		if used > slice/2 || time.Since(start) > 4*slice {
			return max(n, int(float64(n)*slice.Seconds()/used.Seconds())), nil
		}
	}
}

// allocations counts those of the whole process, so nothing else may run.
func allocations(v Variant, n int) (allocs, bytes float64, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err = v.Run(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n), err
}

func compare(s *Stat, base Stat) {
	s.WallRatio, s.CPURatio = ratio(s.Wall, base.Wall), ratio(s.CPU, base.CPU)
	s.P = chance(s.CPU, base.CPU)
}

// chance is the probability that a difference like this is noise (Mann-Whitney).
func chance(values, base []float64) float64 {
	thresholds := benchmath.DefaultThresholds
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &thresholds)
	}
	return benchmath.AssumeNothing.Compare(sample(base), sample(values)).P
}

func probability(values, base []float64) string { return fmt.Sprintf("%.3f", chance(values, base)) }

// ratio is the median of the ratios of all rounds.
func ratio(values, base []float64) float64 {
	ratios := make([]float64, len(base))
	for i := range base {
		ratios[i] = values[i] / base[i]
	}
	return median(ratios)
}

// cpuTime is what the process has used of its processors. Unlike the clock it does not count what others do meanwhile.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

package benchmarks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// programs are the directories below cold, with the names of the clients.
func programs() [][2]string {
	return [][2]string{
		{"floor", nameFloor},
		{"sdk", nameSDK},
		{"stripego", "stripe-go"},
		{"gogithub", "go-github"},
		{"openaigo", "openai-go"},
		{"resty", "resty"},
	}
}

// Cold builds a program per client and runs each in a fresh process. The working directory has to be that of
// the module.
func Cold(ctx context.Context, rounds int) (Section, error) {
	s := Section{
		Title: "cold cost, canned transport",
		Head:  []string{"client", "size added to the floor's program", "package initialization", "its allocations", "making the client", "first call", "second call"},
	}
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var base int64
	for _, program := range programs() {
		binary := filepath.Join(dir, program[0])
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cold/"+program[0]) //nolint:gosec // a list of our own
		if out, err := build.CombinedOutput(); err != nil {
			return s, fmt.Errorf("%w: %s", err, out)
		}
		info, err := os.Stat(binary)
		if err != nil {
			return s, err
		}
		if program[1] == nameFloor {
			base = info.Size()
		}
		c, err := coldRuns(ctx, binary, rounds)
		if err != nil {
			return s, err
		}
		s.row(program[1], megabytes(float64(info.Size()-base)), seconds(median(c.init)), int(median(c.allocs)),
			seconds(median(c.times[0])), seconds(median(c.times[1])), seconds(median(c.times[2])))
	}
	return s, nil
}

// coldStats are the figures of several runs, in seconds.
type coldStats struct {
	init, allocs []float64
	times        [3][]float64
}

func coldRuns(ctx context.Context, binary string, rounds int) (c coldStats, err error) {
	initLine := regexp.MustCompile(`(?m)^init .*?, ([0-9.]+) ms clock, [0-9]+ bytes, ([0-9]+) allocs`)
	for range rounds {
		run := exec.CommandContext(ctx, binary)
		run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace, out writer
		run.Stderr, run.Stdout = &trace, &out
		if err := run.Run(); err != nil {
			return c, err
		}
		var clock, allocs float64
		for _, match := range initLine.FindAllStringSubmatch(string(trace), -1) {
			clock += parse(match[1]) / 1e3
			allocs += parse(match[2])
		}
		c.init, c.allocs = append(c.init, clock), append(c.allocs, allocs)
		var ns [3]int64
		if _, err := fmt.Sscan(string(out), &ns[0], &ns[1], &ns[2]); err != nil {
			return c, err
		}
		for i := range ns {
			c.times[i] = append(c.times[i], time.Duration(ns[i]).Seconds())
		}
	}
	return c, nil
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

func parse(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64) // the pattern takes numbers only
	return f
}

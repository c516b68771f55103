// Command report runs all measurements and prints one table of the figures to reach, and the details. Run it in
// the directory of the module:
//
//	go run ./cmd/report [-quick] [-only small,load] [-readme README.md] [-summary ../README.md]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"example.com/payvault/benchmarks"
)

func main() {
	quick := flag.Bool("quick", false, "a tenth of the work, for a first look")
	only := flag.String("only", "", "parts to run, separated by commas; all if empty")
	readme := flag.String("readme", "", "file whose text between the report markers is replaced")
	summary := flag.String("summary", "", "file whose text between the bench markers is replaced by a short table")
	flag.Parse()
	if err := run(*quick, *only, *readme, *summary); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

type part struct {
	name string
	run  func() (benchmarks.Section, error)
}

func parts(quick bool) []part {
	scale := 1
	if quick {
		scale = 10
	}
	return []part{
		{"small", func() (benchmarks.Section, error) { return benchmarks.Small(max(10, 100/scale)) }},
		{"loopback", func() (benchmarks.Section, error) { return benchmarks.Loopback(10, max(1, 20/scale)) }},
		{"decode", func() (benchmarks.Section, error) { return benchmarks.Decode(max(5, 40/scale)) }},
		{"load", func() (benchmarks.Section, error) { return benchmarks.Load(max(1, 5/scale), 5, 64, 2000/scale) }},
		{"pool", func() (benchmarks.Section, error) { return benchmarks.Pool(max(2, 20/scale), 64, 2000/scale) }},
		{"pages", func() (benchmarks.Section, error) {
			return benchmarks.Pages(max(1, 5/scale), 200/scale, 20*time.Millisecond)
		}},
		{"upload", func() (benchmarks.Section, error) {
			return benchmarks.Upload(max(1, 50/scale), 100_000_000/int64(scale))
		}},
		{"batches", func() (benchmarks.Section, error) {
			return benchmarks.Batches(max(1, 5/scale), 1_000_000/scale, 32, 5*time.Millisecond)
		}},
		{"growth", func() (benchmarks.Section, error) { return benchmarks.Growth(max(3, 40/scale)) }},
		{"cold", func() (benchmarks.Section, error) { return benchmarks.Cold(context.Background(), max(3, 21/scale)) }},
	}
}

func run(quick bool, only, readme, summary string) error {
	if (quick || only != "") && (readme != "" || summary != "") {
		return errors.New("a file takes the report of all parts only")
	}
	known := parts(quick)
	for name := range strings.SplitSeq(only, ",") {
		if only != "" && !slices.ContainsFunc(known, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q", name)
		}
	}
	var sections []benchmarks.Section
	for _, p := range known {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		start := time.Now()
		s, err := p.run()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Title, time.Since(start).Round(100*time.Millisecond))
		sections = append(sections, s)
	}
	var report, short bytes.Buffer
	where := fmt.Sprintf("%s, %s/%s, %d processors (%s); %s", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), processor(), time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(&report, "%s; command: go run ./cmd/report %s\n\n", where, strings.Join(os.Args[1:], " "))
	fmt.Fprintf(&short, "%s. Several figures in a cell are in the order of the first column.\n\n", where)
	benchmarks.WriteSummary(&short, sections)
	benchmarks.WriteGoals(&report, sections)
	for _, s := range sections {
		s.Write(&report)
	}
	if _, err := os.Stdout.Write(report.Bytes()); err != nil {
		return err
	}
	if readme != "" {
		if err := replace(readme, "<!-- report -->\n", "<!-- end of the report -->\n", report.Bytes()); err != nil {
			return err
		}
	}
	if summary != "" {
		return replace(summary, "<!-- bench -->\n", "<!-- end of bench -->\n", short.Bytes())
	}
	return nil
}

// processor is the model of the processor, where the system tells.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown model"
}

// replace puts a text between two lines of a file.
func replace(path, begin, end string, report []byte) error {
	text, err := os.ReadFile(path) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s has no place for it between %q and %q", path, begin, end)
	}
	return os.WriteFile(path, slices.Concat(before, []byte(begin+"\n"), report, []byte(end), after), 0o600) //nolint:gosec // named on the command line
}

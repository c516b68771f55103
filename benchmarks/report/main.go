// Command report runs all benchmarks of this module in several rounds, so that a slow period of the machine affects all
// benchmarks alike. It runs the tests of overload_test.go only once, because they run in virtual time. The command
// prints the output of benchstat, and writes tables of the medians to README.md.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 15, "how often each benchmark runs")
	flag.Parse()
	if err := report(*rounds); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(rounds int) error {
	dir, err := os.MkdirTemp("", "payvault-before-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	before, errBefore := checkOut(buildBefore, dir)
	if errBefore != nil {
		_, _ = fmt.Fprintln(os.Stderr, "the build before is not measured:", errBefore)
	}
	var lines []byte
	for round := range rounds {
		_, _ = fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		more, err := command("test", "-run=^$", "-bench=.", "-shuffle=on", "-benchtime=100ms", ".", "./transactions")
		if err != nil {
			return err
		}
		lines = append(lines, more...)
		if errBefore != nil {
			continue
		}
		more, err = command("test", "-modfile="+before, "-run=^$", "-bench=./impl=payvault", "-benchtime=100ms",
			"./transactions")
		if err != nil {
			return err
		}
		lines = append(lines, bytes.ReplaceAll(more, []byte("/impl=payvault"), []byte("/impl=before"))...)
	}
	const virtual = "-run=TestLimited|TestDown|TestBurst" // in virtual time, so one run is enough
	more, err := command("test", virtual, "-v", ".")
	if err != nil {
		return err
	}
	lines = append(lines, more...)
	if err := os.WriteFile("results.txt", lines, 0o600); err != nil {
		return err
	}
	details, err := command("tool", "-modfile=../tools/go.mod", "benchstat", "-col=/impl@alpha", "results.txt")
	if err != nil {
		return err
	}
	_, _ = os.Stdout.Write(details)
	processor := regexp.MustCompile(`(?m)^cpu: .*`).Find(lines)
	machine := fmt.Sprintf("%s, %s/%s, %s, %d processors; %s; %d rounds.\n\n", runtime.Version(), runtime.GOOS,
		runtime.GOARCH, processor, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), rounds)
	s := parse(string(lines))
	return replace("README.md", machine+goals(s))
}

// command runs the go command and returns its output.
func command(args ...string) ([]byte, error) { return run("go", args...) }

func run(program string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(context.Background(), program, args...).Output() //nolint:gosec // our own arguments
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		out = append(out, failed.Stderr...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return out, nil
}

// buildBefore is an old commit. The report also runs package transactions with this build of payvault, for comparison.
// That build reads every date and every amount with a regular expression.
const buildBefore = "2fe18b7b5c0c77df7249bec30238391b71a3440e"

// checkOut writes the files of a commit into dir, and returns the path of a go.mod that makes the benchmarks of this
// module use that build of payvault. It takes the commit from the local repository, and vets package transactions with
// that build.
func checkOut(commit, dir string) (module string, err error) {
	archive, err := run("git", "-C", "..", "archive", "--format=zip", commit)
	if err != nil {
		return "", err
	}
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return "", err
	}
	build := filepath.Join(dir, "build")
	if err := os.CopyFS(build, files); err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name) //nolint:gosec // a file of this module
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil { //nolint:gosec // as above
			return "", err
		}
	}
	module = filepath.Join(dir, "go.mod")
	if _, err := command("mod", "edit", "-replace=example.com/payvault="+build, module); err != nil {
		return "", err
	}
	_, err = command("vet", "-modfile="+module, "./transactions")
	return module, err
}

// replace puts a text between the comments "bench" and "end of bench" of a file.
func replace(path, text string) error {
	marks := regexp.MustCompile(`(?s)(<!-- bench -->\n).*(<!-- end of bench -->)`)
	old, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	if !marks.Match(old) || strings.Contains(text, "NaN") {
		return fmt.Errorf("%s has no place for the table, or a figure is missing:\n%s", path, text)
	}
	return os.WriteFile(path, marks.ReplaceAll(old, []byte("${1}\n"+text+"\n${2}")), 0o600) //nolint:gosec // as above
}

// key identifies a series of figures: the name of a benchmark without /impl=, a unit and an implementation.
type key struct{ bench, unit, impl string }

// samples has the figures of each key, one for each round.
type samples map[key][]float64

func parse(lines string) samples {
	s := samples{}
	line := regexp.MustCompile(`(?m)^Benchmark(\S+)/impl=(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	for _, found := range line.FindAllStringSubmatch(lines, -1) {
		fields := strings.Fields(found[3])
		for pair := range slices.Chunk(fields, 2) {
			if value, err := strconv.ParseFloat(pair[0], 64); err == nil {
				k := key{found[1], pair[1], found[2]}
				s[k] = append(s[k], value)
			}
		}
	}
	return s
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

const (
	cpu  = "cpu-ns/op"
	wall = "ns/op"
)

// goals returns the two tables of benchmarks/README.md.
func goals(s samples) string {
	return "| figure | against | goal | measured |\n|---|---|---|---|\n" +
		s.line("small call in memory: CPU time", "Call/net=canned", cpu, "≤", 1.5, "byhand") +
		s.line("small call in memory: allocations", "Call/net=canned", "allocs/op", "≤", 57, "") +
		s.line("small call, HTTP/1.1: CPU time", "Call/net=http1", cpu, "≤", 1.15, "byhand") +
		s.line("small call, TLS: CPU time", "Call/net=tls", cpu, "≤", 1.15, "byhand") +
		s.line("small call in memory: speed", "Call/net=canned", cpu, "≥", 1, "resty") +
		s.line("small call, HTTP/1.1: speed", "Call/net=http1", cpu, "≥", 1, "resty") +
		s.line("small call, TLS: speed", "Call/net=tls", cpu, "≥", 1, "resty") +
		s.line("a page of 100 transactions: speed", "Transactions", cpu, "≥", 1.7, "before") +
		s.line("a page of 100 transactions: CPU time", "Transactions", cpu, "≤", 0.55, "encodingjson") +
		s.line("a page of 100 transactions: CPU time", "Transactions", cpu, "≤", 1.15, "decoder") +
		s.line("a page of 100 transactions: memory allocated", "Transactions", "B/op", "≤", 1.1, "encodingjson") +
		s.line("a page of 100 customers: speed", "Page", cpu, "≥", 2.3, "encodingjson") +
		s.line("1,000,000 transactions, `Prefetch: 8`: records per CPU second", "AllTransactions", cpu, "≥", 1.6, "before") +
		s.line("200 pages of 20 ms, `Prefetch: 8`: speed", "Pages/prefetch=8", wall, "≥", 0.9, "byhand") +
		s.line("200 pages of 20 ms, `Prefetch: 32`: speed", "Pages/prefetch=32", wall, "≥", 0.9, "byhand") +
		s.line("`SubmitAll`, 500 requests of 20 ms, 32 in flight: speed", "SubmitAll", wall, "≥", 0.9, "byhand") +
		s.line("64 callers × 500 calls, HTTP/1.1: connections", "Callers/net=http1", "connections", "≤", 70, "") +
		s.line("64 callers × 500 calls, TLS: connections", "Callers/net=tls", "connections", "≤", 70, "") +
		s.line("64 callers × 500 calls, HTTP/1.1: calls per CPU second", "Callers/net=http1", cpu, "≥", 0.85, "byhand") +
		s.line("64 callers × 500 calls, TLS: calls per CPU second", "Callers/net=tls", cpu, "≥", 0.85, "byhand") +
		s.line("upload of 100 MB: rate", "Upload", wall, "≥", 0.9, "byhand") +
		s.line("upload of 100 MB: memory allocated", "Upload", "B/op", "≤", 1e6, "") +
		s.line("service down, 10 calls a second: requests per call", "Down", "requests/call", "≤", 1.3, "") +
		s.line("429 for all requests, 10 calls a second: requests per call", "Outage", "requests/call", "≤", 1.3, "") +
		s.line("one 429, then 100 calls at once: failed calls", "Burst/refusals=1", "failed", "≤", 0, "") +
		s.line("two 429, then 100 calls at once: failed calls", "Burst/refusals=2", "failed", "≤", 0, "") +
		s.line("one 429, then 100 calls at once: unknown outcomes", "Burst/refusals=1", "unknown", "≤", 0, "") +
		s.line("two 429, then 100 calls at once: unknown outcomes", "Burst/refusals=2", "unknown", "≤", 0, "") +
		"\n| service permits | goal | share of the rate | refusals per success | failed |\n|---|---|---|---|---|\n" +
		s.limitedWithBurst(20, 200, "", 0.85) + s.limitedWithBurst(20, 200, "1", 0.85) +
		s.limitedWithBurst(20, 2000, "", 0.95) + s.limitedWithBurst(20, 2000, "1", 0.95) +
		s.limitedWithBurst(200, 2000, "", 0.85) + s.limitedWithBurst(200, 2000, "1", 0.85) +
		s.limited("one request in 50 ms, 1 client", "strict/clients=1", 0.85) +
		s.limited("one request in 50 ms, 5 clients", "strict/clients=5", 0.6) +
		s.limited("20/s, 64 callers of single calls, 100 s", "callers", 0.95) +
		s.limited("1,200 a minute, 13,200 items, Retry-After", "per-minute", 0.9)
}

// limitedWithBurst returns the table row of a service with a token bucket. The argument rate is both the number of
// requests that the service permits per second and the number that it permits at once.
func (s samples) limitedWithBurst(rate, items int, after string, share float64) string {
	what := fmt.Sprintf("%d/s, %d items", rate, items)
	if after != "" {
		what += ", Retry-After"
	}
	return s.limited(what, fmt.Sprintf("rate=%d/items=%d/after=%s", rate, items, after), share)
}

// limited returns the table row of a service with a rate limit: the figures of payvault, and in brackets the figures of
// the retryer of the AWS SDK. The goal is that payvault reaches at least the given share of the permitted rate, with at
// most 0.1 refusals per success and no failed item.
func (s samples) limited(what, bench string, share float64) string {
	const mostRefusals, mostFailed = 0.1, 0
	own := func(unit string) float64 { return median(s[key{"Limited/" + bench, unit, "payvault"}]) }
	both := func(unit string) string {
		aws := median(s[key{"Limited/" + bench, unit, "aws-standard"}])
		return quantity(own(unit), unit) + " (" + quantity(aws, unit) + ")"
	}
	isReached := own("share") >= share && own("refusals") <= mostRefusals && own("failed") <= mostFailed
	return fmt.Sprintf("| %s | ≥%v%s | %s | %s | %s |\n",
		what, share, missed(isReached), both("share"), both("refusals"), both("failed"))
}

// line returns the table row that compares payvault with a rival. If symbol is "≤", payvault may cost at most limit
// times as much. If symbol is "≥", payvault has to be at least limit times as fast. If against is "", limit is the goal
// for the figure of payvault itself.
func (s samples) line(what, bench, unit, symbol string, limit float64, against string) string {
	own, theirs := s[key{bench, unit, "payvault"}], s[key{bench, unit, against}]
	names := strings.NewReplacer("byhand", "by hand", "encodingjson", "encoding/json", "decoder", "the JSON decoder alone",
		"before", "the build before")
	if against == "before" && theirs == nil { // such as in a shallow clone
		return fmt.Sprintf("| %s | %s | %s%v | not measured, because commit %.8s cannot be had |\n",
			what, names.Replace(against), symbol, limit, buildBefore)
	}
	goal, got, measured := quantity(limit, unit), median(own), quantity(median(own), unit)
	if against != "" {
		var ratios []float64
		for i := range min(len(own), len(theirs)) {
			ratios = append(ratios, own[i]/theirs[i])
		}
		goal, got = fmt.Sprint(limit), median(ratios)
		if symbol == "≥" {
			got = 1 / got
		}
		measured = fmt.Sprintf("%.2f (%s:%s)", got, measured, quantity(median(theirs), unit))
	}
	isReached := symbol == "≤" && got <= limit || symbol == "≥" && got >= limit
	return fmt.Sprintf("| %s | %s | %s%s%s | %s |\n",
		what, names.Replace(against), symbol, goal, missed(isReached), measured)
}

// missed returns the note that follows a goal in a table. The note is empty if the goal is reached.
func missed(isReached bool) string {
	if isReached {
		return ""
	}
	return ", **missed**"
}

// quantity returns a figure in a readable form. A time has three digits.
func quantity(value float64, unit string) string {
	switch unit {
	case cpu, wall:
		return time.Duration(value).Round(time.Duration(math.Pow10(int(math.Log10(value)) - 2))).String()
	case "share", "refusals", "requests/call":
		return fmt.Sprintf("%.2f", value)
	case "B/op":
		return fmt.Sprintf("%.2f MB", value/1e6)
	}
	return fmt.Sprintf("%.0f", value)
}

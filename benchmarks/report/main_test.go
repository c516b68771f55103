package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const lines = `cpu: any
BenchmarkCall/net=canned/impl=payvault-2   100   9 ns/op    5000 cpu-ns/op   29 allocs/op
BenchmarkCall/net=canned/impl=byhand-2     100   9 ns/op    4000 cpu-ns/op   42 allocs/op
BenchmarkCall/net=canned/impl=resty-2      100   9 ns/op    6500 cpu-ns/op   64 allocs/op
BenchmarkCall/net=canned/impl=payvault     100   9 ns/op  350000 cpu-ns/op   29 allocs/op
BenchmarkCall/net=canned/impl=byhand       100   9 ns/op  200000 cpu-ns/op   42 allocs/op
BenchmarkUpload/impl=payvault-2             10   9 ns/op      12 connections  2000000 B/op
BenchmarkLimited/callers/impl=payvault 1 0.951 share 0.110 refusals 0 failed
BenchmarkLimited/callers/impl=aws-standard 1 0.260 share 3.650 refusals 1449 failed
BenchmarkLimited/per-minute/impl=payvault 1 0.951 share 0.090 refusals 1 failed
PASS
`

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTable checks the lines of the table that the report computes from the output of benchmarks. The report must write
// them between the comments "bench" and "end of bench" of a file, and refuse a table with a missing figure.
func TestTable(t *testing.T) {
	t.Parallel()
	s := parse(lines)
	assert.Equal(t, "| a | by hand | ≤1.5 | 1.50 (178µs:102µs) |\n",
		s.line("a", "Call/net=canned", cpu, "≤", 1.5, "byhand"), "the median of 1.25 and 1.75")
	assert.Equal(t, "| b | resty | ≥1.5, **missed** | 1.30 (178µs:6.5µs) |\n",
		s.line("b", "Call/net=canned", cpu, "≥", 1.5, "resty"))
	assert.Equal(t, "| d | the build before | ≥1.7 | not measured, because commit 2fe18b7b cannot be had |\n",
		s.line("d", "Upload", cpu, "≥", 1.7, "before"))
	_, err := checkOut("0000000000000000000000000000000000000000", t.TempDir())
	require.Error(t, err)
	assert.Equal(t, "| c |  | ≤1.00 MB, **missed** | 2.00 MB |\n", s.line("c", "Upload", "B/op", "≤", 1e6, ""))
	assert.Equal(t, "| e | ≥0.95, **missed** | 0.95 (0.26) | 0.11 (3.65) | 0 (1449) |\n", s.limited("e", "callers", 0.95))
	assert.Contains(t, s.limited("f", "per-minute", 0.95), "missed", "an item failed")

	path := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(path, []byte("a\n<!-- bench -->\nold\n<!-- end of bench -->\nb\n"), 0o600))
	assert.ErrorContains(t, replace(path, goals(s)), "missing")
	require.NoError(t, replace(path, "new"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "a\n<!-- bench -->\n\nnew\n<!-- end of bench -->\nb\n", string(text))
}

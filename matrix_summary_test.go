package payvault_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// summaryRows are the rows of the summary for readers, and the effects that each stands for.
func summaryRows() []struct {
	title   string
	effects []effect
} {
	return []struct {
		title   string
		effects []effect
	}{
		{"no connection, DNS failure, TLS handshake cut off", []effect{effectUnsent}},
		{"untrusted certificate", []effect{effectDistrusted}},
		{"idle connection dead, nothing written", []effect{effectHealed}},
		{"connection closed while it is made or written to", []effect{summaryRace}},
		{"connection lost or attempt timed out", []effect{effectLost}},
		{"429", []effect{effectTurnedAway}},
		{"429, Retry-After beyond the cap", []effect{effectHeldOff}},
		{"502, 503, 504", []effect{effectGatewayDown, effectGatewayCode}},
		{"any other 5xx", []effect{effectFailed, effectFailedCode}},
		{"401, 403, 404, 409; 200 with another code", []effect{effectRefused, effectRejected}},
		{"200 empty, cut off, malformed or without a code", []effect{effectMalformed, effectUnreadable}},
		{"endless body, compressed bomb, redirect", []effect{effectTooLarge, effectRedirected}},
	}
}

// Rows of faults that have several effects.
const (
	summaryRace effect = "race"
)

func (f *matrixFault) summaryEffect() effect {
	switch {
	case f.or != "":
		return summaryRace
	}
	return f.is
}

// summary computes the rows of the summary from the rules that TestMatrix holds the client against.
func summary(t *testing.T, faults []matrixFault) (rows [][]string) {
	t.Helper()
	ops, left := matrixOperations(), len(faults)
	for _, row := range summaryRows() {
		words := map[string]map[string]bool{}
		for i := range faults {
			if !slices.Contains(row.effects, faults[i].summaryEffect()) {
				continue
			}
			left--
			for k := range ops {
				for _, run := range faults[i].runs() {
					column := matrixColumn(&ops[k], run.withReplay)
					for _, outcome := range faults[i].possible(&ops[k], run.withReplay, run.stays) {
						if words[column] == nil {
							words[column] = map[string]bool{}
						}
						words[column][outcome.word(&faults[i])] = true
					}
				}
			}
		}
		line := []string{row.title}
		for _, column := range matrixColumns() {
			text := strings.Join(slices.Sorted(maps.Keys(words[column])), " or ")
			if text == "error: unknown" && len(line) > 1 && line[1] == "retried" {
				text += ", never repeated"
			}
			line = append(line, text)
		}
		rows = append(rows, line)
	}
	assert.Zero(t, left, "faults that are in no row, or in two")
	return rows
}

// word is an outcome in a word or two. After another status than that of the fault it was net/http that tried again.
func (o matrixOutcome) word(f *matrixFault) string {
	if o.ok || o.attempts > 1 || o.status != f.status {
		return "retried"
	}
	return "error: " + o.delivery
}

// TestMatrixSummary holds what docs/failures.md says of the matrix against its rules.
func TestMatrixSummary(t *testing.T) {
	t.Parallel()
	rows := summary(t, matrixFaults(t))
	var table strings.Builder
	table.WriteString("| When… | replayable | all others | others, `WithReplay` |\n|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s |\n", strings.Join(row, " | "))
	}
	compareText(t, "docs/failures.md", `(?s)(<!-- matrix[^\n]*-->\n).*?(<!-- end of matrix -->)`, table.String())
}

// compareText compares a text with what stands in a file between two places, and writes it there if -update is given.
func compareText(t *testing.T, file, places, want string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	at := regexp.MustCompile(places).FindSubmatchIndex(content)
	require.NotNil(t, at, file)
	begin, end := at[3], at[4]
	if *update {
		require.NoError(t, os.WriteFile(file, slices.Concat(content[:begin], []byte(want), content[end:]), 0o600)) //nolint:gosec // of the repository
		return
	}
	assert.Equal(t, want, string(content[begin:end]), "%s: write it anew with: go test -run 'TestMatrixSummary$' . -update", file)
}

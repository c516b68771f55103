package faults

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "write anew what a test compares with")

// race is the row of faults that have two effects.
const race effect = "race"

// rows are those of the table for readers, and the effects that each stands for.
func rows() []struct {
	title   string
	effects []effect
} {
	return []struct {
		title   string
		effects []effect
	}{
		{"no connection, DNS failure, TLS handshake cut off", []effect{unsent}},
		{"untrusted certificate, no API key", []effect{distrusted, noKey}},
		{"idle connection dead, nothing written", []effect{healed}},
		{"connection closed while it is made or written to", []effect{race}},
		{"connection lost or attempt timed out", []effect{lost, cutRedirect}},
		{"429", []effect{turnedAway}},
		{"429, Retry-After beyond the cap", []effect{heldOff}},
		{"502, 503, 504", []effect{gatewayDown}},
		{"any other 5xx; 503, Retry-After beyond the cap", []effect{failed}},
		{"any other 4xx; 200 with another code", []effect{refused, rejected}},
		{"200 empty, cut off, malformed or without a code", []effect{malformed}},
		{"endless body, compressed bomb, redirect", []effect{tooLarge, redirected}},
	}
}

// columns are the classes of calls; what is repeated anyway is the same with WithReplay.
func columns() []string { return []string{"replayable", "all others", "others, `WithReplay`"} }

func (c *cell) column() string {
	switch {
	case c.call.Repeats:
		return columns()[0]
	case !c.withReplay:
		return columns()[1]
	}
	return columns()[2]
}

// word is an outcome in a word or two. After another status than that of the fault it was net/http that tried again.
func (c *cell) word(o outcome) string {
	if o.ok || o.attempts > 1 || o.status != c.fault.status {
		return "retried"
	}
	return "error: " + o.delivery
}

// TestDocs computes the table of docs/failures.md from the rules that TestFaults holds the client against. It is
// written anew with -update.
func TestDocs(t *testing.T) {
	t.Parallel()
	all := faults(t)
	left := len(all)
	var table strings.Builder
	fmt.Fprintf(&table, "| When… | %s |\n|---|---|---|---|\n", strings.Join(columns(), " | "))
	for _, row := range rows() {
		words := map[string]map[string]bool{}
		for _, column := range columns() {
			words[column] = map[string]bool{}
		}
		for i := range all {
			if f := &all[i]; slices.Contains(row.effects, f.row()) {
				left--
				f.tell(words)
			}
		}
		fmt.Fprintf(&table, "| %s", row.title)
		for i, column := range columns() {
			text := strings.Join(slices.Sorted(maps.Keys(words[column])), " or ")
			if text == "error: unknown" && i == 1 && words[columns()[0]]["retried"] {
				text += ", never repeated"
			}
			fmt.Fprintf(&table, " | %s", text)
		}
		table.WriteString(" |\n")
	}
	assert.Zero(t, left, "faults that are in no row, or in two")
	service.CompareDoc(t, "docs/failures.md", "matrix", table.String(), *update)
}

func (f *fault) row() effect {
	if f.or != "" {
		return race
	}
	return f.is
}

// tell adds what may come of a fault, by column.
func (f *fault) tell(words map[string]map[string]bool) {
	for _, call := range calls.All() {
		for _, c := range f.cells(&call) {
			if f.accepted != nil && f.accepted(c.call) {
				continue
			}
			for _, o := range c.possible() {
				words[c.column()][c.word(o)] = true
			}
		}
	}
}

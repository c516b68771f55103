package faults

import (
	"flag"
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

// row is one of the table for readers, with the effects that it stands for.
type row struct {
	title   string
	effects []effect
}

func rows() []row {
	return []row{
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

// The columns are the classes of calls; what is repeated anyway is the same with WithReplay.
const header = "| When… | replayable | all others | others, `WithReplay` |\n|---|---|---|---|\n"

func (c *cell) column() int {
	switch {
	case c.call.Repeats:
		return 0
	case !c.withReplay:
		return 1
	}
	return 2
}

// TestDocs computes the table of docs/failures.md from the rules that TestFaults holds the client against. It is
// written anew with -update.
func TestDocs(t *testing.T) {
	t.Parallel()
	all := faults(t)
	left := len(all)
	table := header
	for _, row := range rows() {
		words := [3]map[string]bool{{}, {}, {}}
		for _, f := range all {
			if f.or != "" && row.effects[0] == race || f.or == "" && slices.Contains(row.effects, f.is) {
				left--
				f.tell(&words)
			}
		}
		table += "| " + row.title
		for i := range words {
			text := strings.Join(slices.Sorted(maps.Keys(words[i])), " or ")
			if text == "error: unknown" && i == 1 && words[0]["retried"] {
				text += ", never repeated"
			}
			table += " | " + text
		}
		table += " |\n"
	}
	assert.Zero(t, left, "faults that are in no row, or in two")
	service.CompareDoc(t, "docs/failures.md", "matrix", table, *update)
}

// tell adds what may come of a fault, in a word or two, by column.
func (f *fault) tell(words *[3]map[string]bool) {
	for _, call := range calls.All() {
		for _, c := range f.cells(&call) {
			if f.accepted != nil && f.accepted(c.call) {
				continue
			}
			for _, o := range c.possible() {
				word := "error: " + o.delivery
				if o.ok || o.attempts > 1 || o.status != f.status { // after another status net/http has tried again
					word = "retried"
				}
				words[c.column()][word] = true
			}
		}
	}
}

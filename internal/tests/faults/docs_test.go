package faults

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault/internal/tests/service"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "write anew what a test compares with")

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
		{"connection closed while it is made or written to", []effect{lost, unsent}},
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

// TestDocs computes the table of docs/failures.md from the rules that TestFaults holds the client against. It is
// written anew with -update.
func TestDocs(t *testing.T) {
	t.Parallel()
	told, struck := map[effect]bool{}, map[effect]bool{}
	var table strings.Builder
	table.WriteString("| When… | replayable | all others | others, `WithReplay` |\n|---|---|---|---|\n")
	for _, row := range rows() {
		table.WriteString("| " + row.title)
		for _, repeats := range []bool{true, false, true} { // what is not replayable is with WithReplay
			words := map[string]bool{}
			for _, e := range row.effects {
				words[e.word(repeats)], told[e] = true, true
			}
			text := strings.Join(slices.Sorted(maps.Keys(words)), " or ")
			if text == "error: unknown" && ruleFor(row.effects[0]).repeats == ifRepeated {
				text += ", never repeated"
			}
			table.WriteString(" | " + text)
		}
		table.WriteString(" |\n")
	}
	for _, f := range faults(t) {
		struck[f.is] = true
	}
	assert.Equal(t, struck, told)
	service.CompareDoc(t, "docs/failures.md", "matrix", table.String(), *update)
}

// word is what comes of a call in a word or two. A call repeats, or does not, what may have been performed.
func (e effect) word(repeats bool) string {
	if rule := ruleFor(e); e != healed && !rule.repeats.holds(repeats) {
		return "error: " + rule.delivery.String()
	}
	return "retried"
}

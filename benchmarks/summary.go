package benchmarks

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// line is a row of the summary: figures of one part that belong together, in this order.
type line struct {
	what, part string
	figures    []string
}

// lines are the figures of the report that were set as goals.
func lines() []line {
	return []line{
		{"one small call, canned: time ÷ floor; allocations", "one small call, canned", []string{"time ÷ floor", "allocations"}},
		{"the same over loopback: time ÷ floor, HTTP/1.1, TLS, HTTP/2", "one small call, loopback", []string{"time ÷ floor"}},
		{"the same, canned: time of stripe-go, go-github, openai-go, resty ÷ payvault's", "one small call, canned", []string{"'s time ÷ payvault's"}},
		{"Debug log disabled: allocations; time ÷ without", "one small call, canned", []string{"allocations of logging that is disabled", "time with disabled logging ÷ without"}},
		{"a page of 100 customers: speed ÷ one bare json.Unmarshal", "decoding", []string{"speed of Customers.List ÷ bare Unmarshal"}},
		{"100 transactions: time ÷ float64 and time.Time", "decoding", []string{"transactions: time ÷ float64 and time.Time"}},
		{
			"64 callers, HTTP/1.1, TLS, HTTP/2, each with the tuned and its own pool: connections; calls per CPU second ÷ floor", "callers ×",
			[]string{"connections", "calls per CPU second ÷ floor"},
		},
		{
			"200 pages of 20 ms: Prefetch 8, 32, and 8 with a busy caller, speed ÷ sequential", "pages ×",
			[]string{"Prefetch 8, speed ÷ sequential", "Prefetch 32, speed ÷ sequential", "Prefetch 8, caller busy 40ms per page, speed ÷ sequential"},
		},
		{"upload of 100 MB, without and with a failed attempt: MB/s ÷ io.MultiReader; heap", "upload of a PDF", []string{"MB/s ÷ io.MultiReader", "heap"}},
		{
			"SubmitAll of 1,000,000 cards, canned and loopback: ideal ÷ time; time by hand ÷ time; growth of the heap", "SubmitAll of",
			[]string{"ideal ÷ time", "time by hand ÷ time", "heap at the end − at 1/4"},
		},
		{"twice the pages, cards, callers, KB down and up: CPU time; allocations", "growth", []string{"CPU time when doubled", "allocations when doubled"}},
	}
}

// WriteSummary writes a short table of the figures, reached or not, as far as their parts were run.
func WriteSummary(w io.Writer, sections []Section) {
	var rows [][]string
	for _, l := range lines() {
		if row := l.row(sections); row != nil {
			rows = append(rows, row)
		}
	}
	writeTable(w, []string{"what", "wanted", "measured", "reached"}, rows)
}

// row has the goals of each figure together, since they want the same.
func (l line) row(sections []Section) []string {
	if !slices.ContainsFunc(sections, l.isOf) {
		return nil
	}
	var wanted, measured []string
	met, all := 0, 0
	for _, figure := range l.figures {
		var got []string
		want := ""
		for _, g := range l.goals(sections, figure) {
			want, got = g.Want, append(got, g.Got)
			all++
			if g.Met {
				met++
			}
		}
		if got == nil { // the figure has another name now
			want, got, all = "?", []string{"not measured"}, all+1
		}
		wanted, measured = append(wanted, want), append(measured, strings.Join(got, ", "))
	}
	reached := "yes"
	if met < all {
		reached = fmt.Sprintf("**%d of %d**", met, all)
	}
	return []string{l.what, strings.Join(wanted, "; "), strings.Join(measured, "; "), reached}
}

func (l line) isOf(s Section) bool { return strings.Contains(s.Title, l.part) }

// goals are those of a figure, for whatever variant comes after a comma or before an apostrophe.
func (l line) goals(sections []Section, figure string) []Goal {
	var found []Goal
	for _, s := range sections {
		if l.isOf(s) {
			found = append(found, s.Goals...)
		}
	}
	return slices.DeleteFunc(found, func(g Goal) bool {
		return g.What != figure && !strings.HasPrefix(g.What, figure+",") && (figure[0] != '\'' || !strings.HasSuffix(g.What, figure))
	})
}

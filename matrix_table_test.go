package payvault_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"example.com/payvault"
)

// matrixTable collects the marks of all cells.
type matrixTable struct {
	mu    sync.Mutex
	marks map[string]map[string][]string // by cell of the table and mark: the operations
	cells int
}

// matrixColumns are the classes of operations; a replayable one is the same with WithReplay.
func matrixColumns() []string { return []string{"replayable", "all others", "others, WithReplay"} }

func matrixColumn(op *matrixOp, withReplay bool) string {
	switch {
	case op.replayable:
		return matrixColumns()[0]
	case !withReplay:
		return matrixColumns()[1]
	}
	return matrixColumns()[2]
}

func matrixKey(f *matrixFault, column string, stays bool) string {
	return fmt.Sprint(f.name, column, stays)
}

func (m *matrixTable) add(f *matrixFault, op *matrixOp, run matrixRun, got matrixOutcome) {
	key, mark := matrixKey(f, matrixColumn(op, run.withReplay), run.stays), got.mark()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells++
	if m.marks[key] == nil {
		m.marks[key] = map[string][]string{}
	}
	if !slices.Contains(m.marks[key][mark], op.name) {
		m.marks[key][mark] = append(m.marks[key][mark], op.name)
	}
}

// mark is an outcome in a few words. That the outcome is unknown is not said twice.
func (o matrixOutcome) mark() string {
	words := []string{"ok"}
	if !o.ok {
		words = []string{o.delivery}
	}
	if o.status != 0 {
		words = append(words, strconv.Itoa(o.status))
	}
	if names := slices.DeleteFunc(slices.Clone(o.is), isOutcomeUnknown); len(names) > 0 {
		words = append(words, strings.Join(names, "+"))
	}
	if o.safe {
		words = append(words, "safe")
	}
	return fmt.Sprintf("%s ×%d c%d", strings.Join(words, " "), o.attempts, o.commits)
}

func isOutcomeUnknown(sentinel string) bool { return sentinel == payvault.ErrOutcomeUnknown.Error() }

const matrixLegend = `
Each cell: ok, or the Delivery of the error; its status; its sentinels, besides ErrOutcomeUnknown, which goes with "unknown";
"safe" if SafeToRetry holds; × attempts; c commits, how often the operation was performed. Below the line are the operations of
a class that differ from most of it, which those of a race may do in one run and not in the next. payees.delete,
disputes.respond, subscriptions.cancel and invoices.send are performed once per record: a repetition is refused.
`

// text prints the table: what happened, not what was expected.
func (m *matrixTable) text(faults []matrixFault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cells: every operation under every fault. An attempt is made at most %d times.\n%s", m.cells, attemptsAtMost, matrixLegend)
	for _, stays := range []bool{false, true} {
		title := "THE FAULT STRIKES ONCE"
		if stays {
			title = "THE FAULT STAYS"
		}
		b.WriteByte('\n')
		matrixLine(&b, append([]string{title}, matrixColumns()...))
		matrixLine(&b, slices.Repeat([]string{strings.Repeat("-", 41)}, 4))
		for i := range faults {
			m.line(&b, &faults[i], stays)
		}
	}
	return b.String()
}

func matrixLine(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "%-41s | %-42s | %-42s | %s\n", cells[0], cells[1], cells[2], cells[3])
}

// line prints the line of a fault, and what is different for some operations.
func (m *matrixTable) line(b *strings.Builder, f *matrixFault, stays bool) {
	cells, rest := []string{f.name}, []string{}
	for _, column := range matrixColumns() {
		marks := m.marks[matrixKey(f, column, stays)]
		if len(marks) == 0 {
			return
		}
		sorted := slices.SortedFunc(maps.Keys(marks), func(x, y string) int {
			return cmp.Or(len(marks[y])-len(marks[x]), strings.Compare(x, y))
		})
		cells = append(cells, sorted[0])
		for _, mark := range sorted[1:] {
			rest = append(rest, fmt.Sprintf("%s: %s: %s", column, mark, strings.Join(marks[mark], ", ")))
		}
	}
	if f.note != "" {
		rest = append(rest, f.note)
	}
	matrixLine(b, cells)
	for _, line := range rest {
		fmt.Fprintf(b, "    %s\n", line)
	}
}

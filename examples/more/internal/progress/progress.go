// Package progress prints the progress of a long run: as a bar on a terminal, and as about ten lines of text on any
// other output.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress counts towards a total. It is not safe for concurrent use.
type Progress struct {
	out         io.Writer
	bar         *progressbar.ProgressBar // nil if out is no terminal
	what        string
	done, total int
	next        int // number at which the next line is printed
}

// lines is the number of lines that are printed for a large total if out is no terminal.
const lines = 10

// New returns a Progress that counts up to total and prints to out. The string what, such as "customers", names the
// counted things.
func New(out io.Writer, what string, total int) *Progress {
	p := &Progress{out: out, what: what, total: total}
	p.next = p.step()
	if IsTerminal(out) {
		p.bar = newBar(out, what, total)
	}
	return p
}

// IsTerminal reports whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func newBar(out io.Writer, what string, total int) *progressbar.ProgressBar {
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionSetRenderBlankState(true), progressbar.OptionSetWidth(40),
		progressbar.OptionThrottle(100*time.Millisecond))
}

// Add adds n to the number of things that are done. It ignores errors of printing, because they must not stop the run.
func (p *Progress) Add(n int) {
	p.done += n
	if p.bar != nil {
		_ = p.bar.Add(n)
		return
	}
	if p.done >= p.next {
		p.line()
		p.next = p.done - p.done%p.step() + p.step()
	}
}

// Stop stops the bar and begins a new line on the terminal.
func (p *Progress) Stop() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.out)
	}
}

func (p *Progress) line() {
	_, _ = fmt.Fprintf(p.out, "%d of %d %s\n", p.done, p.total, p.what)
}

func (p *Progress) step() int { return max(p.total/lines, 1) }

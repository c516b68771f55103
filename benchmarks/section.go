package benchmarks

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Section is one part of the report.
type Section struct {
	Title string
	Head  []string
	Rows  [][]string
	Goals []Goal
}

// Goal is a figure to reach.
type Goal struct {
	What, Want, Got string
	Met             bool
}

func (s *Section) row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = text(cell)
	}
	s.Rows = append(s.Rows, row)
}

// atMost adds a goal with a ceiling, atLeast one with a floor.
func (s *Section) atMost(what string, want, got float64, unit string) {
	s.Goals = append(s.Goals, Goal{what, "≤ " + number(want) + unit, number(got) + unit, got <= want})
}

func (s *Section) atLeast(what string, want, got float64) {
	s.Goals = append(s.Goals, Goal{what, "≥ " + number(want), number(got), got >= want})
}

// race adds a row per variant of a Race.
func (s *Section) race(prefix string, stats []Stat) {
	for _, st := range stats {
		s.row(prefix+st.Name, seconds(median(st.Wall)), st.WallRatio, seconds(median(st.CPU)), st.CPURatio,
			fmt.Sprintf("%.3f", st.P), int(st.Allocs+0.5), int(st.Bytes+0.5))
	}
}

func raceHead(what string) []string {
	return []string{what, "time", "ratio", "CPU time", "ratio", "p", "allocations", "bytes"}
}

// find gives the figures of a variant.
func find(stats []Stat, name string) Stat {
	for _, st := range stats {
		if st.Name == name {
			return st
		}
	}
	return Stat{}
}

func text(cell any) string {
	switch cell := cell.(type) {
	case float64:
		return number(cell)
	case time.Duration:
		return duration(cell)
	}
	return fmt.Sprint(cell)
}

func number(f float64) string {
	switch {
	case f == float64(int64(f)):
		return strconv.FormatInt(int64(f), 10)
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func duration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d >= 10*time.Microsecond:
		return d.Round(100 * time.Nanosecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }

// WriteGoals writes the table of all figures.
func WriteGoals(w io.Writer, sections []Section) {
	var rows [][]string
	for _, s := range sections {
		for _, g := range s.Goals {
			met := "yes"
			if !g.Met {
				met = "**no**"
			}
			rows = append(rows, []string{s.Title, g.What, g.Want, g.Got, met})
		}
	}
	writeTable(w, []string{"part", "figure", "wanted", "measured", "reached"}, rows)
}

// Write writes the details of a section.
func (s *Section) Write(w io.Writer) {
	_, _ = fmt.Fprintf(w, "### %s\n\n", s.Title)
	writeTable(w, s.Head, s.Rows)
}

func writeTable(w io.Writer, head []string, rows [][]string) {
	line := func(cells []string) { _, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, row := range rows {
		line(row)
	}
	_, _ = fmt.Fprintln(w)
}

// Package listing filters, sorts and pages the records of lists.
package listing

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on

	"example.com/payvault/internal/openapi"
)

// DefaultCount is the number of records per page when a query has no count.
const DefaultCount = 25

// The conditionals that filters know.
const (
	BetweenDates = "BETWEEN_DATES" // two dates, both included; for dates and times
	Equals       = "EQUALS"
	NotEquals    = "NOT_EQUALS"
	GreaterThan  = "GREATER_THAN" // for numbers, dates and times
	LessThan     = "LESS_THAN"    // for numbers, dates and times
	Contains     = "CONTAINS"     // for texts
)

// Columns are the fields that a list can be sorted and filtered by.
type Columns map[string]Kind

// A Kind says how the values of a column compare.
type Kind int

// The kinds of values.
const (
	Text   Kind = iota
	Number      // exact decimals
	Time        // as RFC 3339 has it
	Date        // YYYY-MM-DD
)

// A row is a record and, where the list is sorted or filtered, the texts of its fields.
type row[T any] struct {
	record T
	cells  map[string]string
}

// Page filters and sorts records as a query says, and gives one page of them and how many there are on how many pages.
// The problems are those of the query, by parameter.
func Page[T any](query url.Values, columns Columns, records []T) (found []T, total, pages int, wrong openapi.Problems) {
	p := openapi.Problems{}
	count := atLeast(p, query, "count", DefaultCount, 1)
	page := atLeast(p, query, "page", 0, 0)
	order := query.Get("order_on")
	if _, known := columns[order]; !known && query.Has("order_on") {
		p["order_on"] = []string{"is not a field of the record"}
	}
	var tests []func(map[string]string) bool
	for _, filter := range query["filter"] {
		test, message := newTest(columns, filter)
		if test == nil {
			p["filter"] = append(p["filter"], message)
		}
		tests = append(tests, test)
	}
	if len(p) > 0 {
		return nil, 0, 0, p
	}
	rows := make([]row[T], 0, len(records))
	for _, record := range records {
		row := row[T]{record: record}
		if order != "" || len(tests) > 0 {
			row.cells = cellsOf(record)
		}
		if !slices.ContainsFunc(tests, func(test func(map[string]string) bool) bool { return !test(row.cells) }) {
			rows = append(rows, row)
		}
	}
	sortRows(rows, columns[order], order, query.Get("order_by") == "desc")
	count = min(count, len(rows)+1)
	from := min(page, len(rows)/count+1) * count
	found = []T{}
	for _, row := range rows[min(from, len(rows)):min(from+count, len(rows))] {
		found = append(found, row.record)
	}
	return found, len(rows), (len(rows) + count - 1) / count, nil
}

// atLeast reads a parameter whose form was checked.
func atLeast(p openapi.Problems, query url.Values, name string, without, low int) int {
	if !query.Has(name) {
		return without
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < low {
		p[name] = []string{"must be an integer of at least " + strconv.Itoa(low)}
	}
	return max(n, low)
}

// cellsOf gives the texts of a record's fields.
func cellsOf(record any) map[string]string {
	cells := map[string]string{}
	text, _ := json.Marshal(record)
	value, _ := openapi.Parse("", text)
	fields, _ := value.(map[string]any)
	for name, field := range fields {
		switch field.(type) {
		case string, bool, stdjson.Number:
			cells[name] = fmt.Sprint(field)
		}
	}
	cells["tran_date"] = day(cells["tran_time"])
	return cells
}

// day is the day that a time has in its own offset.
func day(text string) string { return text[:min(len(text), len(time.DateOnly))] }

// newTest builds the test of a filter, which is a field, a conditional and its values, or says why there is none.
func newTest(columns Columns, filter string) (func(map[string]string) bool, string) {
	parts := strings.Split(filter, ",")
	field, conditional, operands := parts[0], parts[1], parts[2:]
	kind, known := columns[field]
	wanted := 1
	if conditional == BetweenDates {
		wanted = 2
	}
	compares := slices.Contains([]string{Equals, NotEquals}, conditional) ||
		slices.Contains([]string{GreaterThan, LessThan}, conditional) && kind != Text
	switch {
	case !known:
		return nil, "names a field that the record does not have"
	case len(operands) != wanted || slices.Contains(operands, ""):
		return nil, "has the wrong number of values for its conditional"
	case conditional == BetweenDates && (kind == Time || kind == Date):
		from, to := operands[0], operands[1]
		if !Date.takes(from) || !Date.takes(to) || from > to {
			return nil, "must have a start date and an end date, YYYY-MM-DD"
		}
		return func(cells map[string]string) bool { return from <= day(cells[field]) && day(cells[field]) <= to }, ""
	case conditional == Contains && kind == Text:
		return func(cells map[string]string) bool { return strings.Contains(cells[field], operands[0]) }, ""
	case !compares:
		return nil, "has a conditional that the field does not know"
	case !kind.takes(operands[0]):
		return nil, "has a value that the field cannot have"
	}
	return func(cells map[string]string) bool {
		order := kind.compare(cells[field], operands[0])
		return conditional == Equals && order == 0 || conditional == NotEquals && order != 0 ||
			conditional == GreaterThan && order > 0 || conditional == LessThan && order < 0
	}, ""
}

// sortRows orders by a column, equal records in their default order; without a column the default order
// is kept, or reversed.
func sortRows[T any](rows []row[T], kind Kind, order string, desc bool) {
	switch {
	case order == "" && desc:
		slices.Reverse(rows)
	case order != "":
		slices.SortStableFunc(rows, func(a, b row[T]) int {
			if desc {
				a, b = b, a
			}
			return kind.compare(a.cells[order], b.cells[order])
		})
	}
}

// takes reports whether a text is a value of the kind.
func (k Kind) takes(text string) bool {
	var err error
	switch k {
	case Number:
		_, ok := parseNumber(text)
		return ok
	case Time:
		_, err = time.Parse(time.RFC3339Nano, text)
	case Date:
		_, err = time.Parse(time.DateOnly, text)
	case Text:
	}
	return err == nil
}

// compare compares two values; one that is not there is the lowest.
func (k Kind) compare(a, b string) int {
	switch k {
	case Number:
		x, _ := parseNumber(a)
		y, _ := parseNumber(b)
		return x.Cmp(y)
	case Time:
		x, _ := time.Parse(time.RFC3339Nano, a)
		y, _ := time.Parse(time.RFC3339Nano, b)
		return x.Compare(y)
	default:
		return cmp.Compare(a, b)
	}
}

// parseNumber reads a decimal number exactly; it knows no exponents, which could be huge.
func parseNumber(text string) (*big.Rat, bool) {
	const longest = 64
	if len(text) <= longest && strings.Trim(text, "0123456789.-") == "" {
		if number, ok := new(big.Rat).SetString(text); ok {
			return number, true
		}
	}
	return new(big.Rat), false
}

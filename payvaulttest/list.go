package payvaulttest

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/payvault/payvaulttest/internal/openapi"
)

// columns has the names of the fields by which a list can be sorted and filtered. The value of a name is true if the
// field is a date or a time.
type columns map[string]bool

// names returns the names of the fields, joined with commas.
func (c columns) names() string { return strings.Join(slices.Sorted(maps.Keys(c)), ", ") }

// dates returns the names of the date fields, joined with commas.
func (c columns) dates() string {
	dates := maps.Clone(c)
	maps.DeleteFunc(dates, func(_ string, isDate bool) bool { return !isDate })
	return dates.names()
}

// A row has a record of a list. If the request sorts or filters the list, the row also has the record's JSON fields.
type row[T any] struct {
	record T
	fields map[string]any
}

// list answers a list request with one page of the records, filtered and sorted. The query has already passed the check
// against api/openapi.yaml.
func list[T any](query url.Values, known columns, records []T) (any, error) {
	p := problems{}
	count, page := 25, 0
	_, _ = fmt.Sscanf(query.Get("count"), "%d", &count)
	_, _ = fmt.Sscanf(query.Get("page"), "%d", &page)
	p.check(count > 0, "count", "must be at least 1")
	order := query.Get("order_on")
	_, ok := known[order]
	p.check(ok || order == "", "order_on", "is none of the fields that the list can be sorted by: "+known.names())
	var tests []func(fields map[string]any) bool
	for i, filter := range query["filter"] {
		test, message := newTest(known, filter)
		p.check(test != nil, fmt.Sprintf("filter[%d]", i), message)
		tests = append(tests, test)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	rows := []row[T]{}
	for _, record := range records {
		row := row[T]{record: record}
		if order != "" || len(tests) > 0 {
			row.fields = fieldsOf(record)
		}
		if !slices.ContainsFunc(tests, func(holds func(map[string]any) bool) bool { return !holds(row.fields) }) {
			rows = append(rows, row)
		}
	}
	if order != "" {
		slices.SortStableFunc(rows, func(a, b row[T]) int { return compare(a.fields[order], b.fields[order]) })
	}
	if query.Get("order_by") == "desc" {
		slices.Reverse(rows)
	}
	found, pages := []T{}, slices.Collect(slices.Chunk(rows, count))
	if page < len(pages) {
		for _, row := range pages[page] {
			found = append(found, row.record)
		}
	}
	answer := success(found)
	answer.TotalRecords, answer.TotalPages = new(len(rows)), new(len(pages))
	return answer, nil
}

// fieldsOf returns the JSON fields of a record. It adds the field tran_date, which is the day of tran_time.
func fieldsOf(record any) map[string]any {
	value, _ := openapi.Parse("", encode(record))
	fields, _ := value.(map[string]any)
	fields["tran_date"] = day(fields["tran_time"])
	return fields
}

// day returns the date at the beginning of an RFC 3339 time, without converting the time to another UTC offset. It
// returns a date unchanged.
func day(value any) string {
	text, _ := value.(string)
	return text[:min(len(text), len(time.DateOnly))]
}

// oneEach says how a request has to send its filters.
const oneEach = "send each filter in a parameter of its own: " +
	"filter=FIELD%2CCONDITIONAL%2CVALUE&filter=FIELD%2CCONDITIONAL%2CVALUE"

// checkFilterNames adds a problem for each parameter that sends a filter as an element of an array, such as filter[] or
// filter[0].
func (p problems) checkFilterNames(query url.Values) {
	for name := range query {
		p.check(!strings.HasPrefix(name, "filter["), name, oneEach)
	}
}

// isJoined reports whether the value of a filter contains another filter: behind a comma, the name of a field and at
// least two more parts.
func isJoined(known columns, value string) bool {
	parts := strings.Split(value, ",")
	return slices.ContainsFunc(parts[1:max(1, len(parts)-2)], func(part string) bool {
		_, isField := known[part]
		return isField
	})
}

// newTest returns a function that reports whether a record passes a filter. If the filter is invalid, newTest returns
// nil and a message. A filter is a field, a condition and values, separated by commas.
func newTest(known columns, filter string) (func(fields map[string]any) bool, string) {
	parts := strings.SplitN(filter, ",", 3)
	field, conditional, value := parts[0], parts[1], parts[2]
	isDate, ok := known[field]
	switch {
	case !ok:
		return nil, "names none of the fields that the list can be filtered by: " + known.names()
	case isJoined(known, value):
		return nil, "has more than one filter; " + oneEach
	case conditional == "EQUALS": // compares the texts of the values
		return func(fields map[string]any) bool { return fmt.Sprint(fields[field]) == value }, ""
	case conditional == "BETWEEN_DATES": // includes the first and the last day
		from, to, _ := strings.Cut(value, ",")
		if !isDate {
			return nil, "names a field that is no date; the dates of the list: " + cmp.Or(known.dates(), "none")
		}
		if !isDay(from) || !isDay(to) || from > to {
			return nil, "must have a start date and an end date, YYYY-MM-DD"
		}
		return func(fields map[string]any) bool { return from <= day(fields[field]) && day(fields[field]) <= to }, ""
	default:
		return nil, "has a conditional that is not BETWEEN_DATES or EQUALS, which the emulator knows"
	}
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// compare orders two values of a field, like cmp.Compare. A value may be nil, which is the lowest.
func compare(a, b any) int {
	m, s := key(a)
	n, t := key(b)
	return cmp.Or(cmp.Compare(m, n), cmp.Compare(s, t))
}

// key returns the number by which a value is sorted, and the text that decides between equal numbers.
func key(value any) (float64, string) {
	switch v := value.(type) {
	case nil:
		return math.Inf(-1), ""
	case stdjson.Number:
		n, _ := v.Float64()
		return n, ""
	}
	text := fmt.Sprint(value)
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return float64(t.UnixMicro()), ""
	}
	return 0, text
}

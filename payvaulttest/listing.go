package payvaulttest

import (
	"cmp"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultCount is the number of records per page when a list request has no count. The interface
// does not show the service's own.
const DefaultCount = 25

// The conditionals that filters know. The interface shows [BetweenDates] only; the others are the
// emulator's own choice.
const (
	BetweenDates = "BETWEEN_DATES" // two dates, both included; for dates and times
	Equals       = "EQUALS"
	NotEquals    = "NOT_EQUALS"
	GreaterThan  = "GREATER_THAN" // for numbers, dates and times
	LessThan     = "LESS_THAN"    // for numbers, dates and times
	Contains     = "CONTAINS"     // for texts
)

// A kind tells how the values of a column compare.
type kind int

const (
	textKind kind = iota
	numberKind
	timeKind
	dateKind
	flagKind
)

// A column is a field that a list can be sorted and filtered by.
type column[T any] struct {
	name string
	kind kind
	text func(*T) string
}

type columns[T any] []column[T]

func (c columns[T]) find(name string) (column[T], bool) {
	i := slices.IndexFunc(c, func(column column[T]) bool { return column.name == name })
	if i < 0 {
		return column[T]{}, false
	}
	return c[i], true
}

// A value is a cell or an operand in the form in which it compares.
type value struct {
	text   string
	number *big.Rat
	at     time.Time
}

// parse reads a text as a value of the kind. The empty text of a record is the lowest value.
func (k kind) parse(text string) (value, bool) {
	v := value{text: text, number: new(big.Rat)}
	if text == "" {
		return v, true
	}
	var err error
	ok := true
	switch k {
	case numberKind:
		v.number, ok = parseNumber(text)
	case timeKind:
		v.at, err = time.Parse(time.RFC3339Nano, text)
	case dateKind:
		v.at, err = time.Parse(time.DateOnly, text)
	case flagKind:
		ok = text == "true" || text == "false"
	case textKind:
	}
	return v, ok && err == nil
}

// The characters of a number: reading more than a few exactly takes time that grows with their square.
const maxNumber = 64

// parseNumber reads a decimal number exactly; it knows no exponents, which could be huge.
func parseNumber(text string) (*big.Rat, bool) {
	if len(text) > maxNumber || strings.Trim(text, "0123456789.-") != "" {
		return new(big.Rat), false
	}
	if number, ok := new(big.Rat).SetString(text); ok {
		return number, true
	}
	return new(big.Rat), false
}

func (k kind) compare(a, b value) int {
	switch k {
	case numberKind:
		return a.number.Cmp(b.number)
	case timeKind, dateKind:
		return a.at.Compare(b.at)
	default:
		return cmp.Compare(a.text, b.text)
	}
}

// A listQuery is a list request, ready to be applied to the records of a merchant.
type listQuery[T any] struct {
	filters []func(*T) bool
	order   *column[T]
	desc    bool
	count   int
	page    int
}

func parseListQuery[T any](query url.Values, columns columns[T]) (listQuery[T], error) {
	p := problems{}
	q := listQuery[T]{count: DefaultCount}
	if query.Has("count") {
		q.count = parseCount(p, "count", query.Get("count"), 1)
	}
	if query.Has("page") {
		q.page = parseCount(p, "page", query.Get("page"), 0)
	}
	q.parseOrder(p, query, columns)
	for _, text := range query["filter"] {
		if filter := parseFilter(p, text, columns); filter != nil {
			q.filters = append(q.filters, filter)
		}
	}
	return q, p.err()
}

func parseCount(p problems, name, text string, low int) int {
	n, err := strconv.Atoi(text)
	p.check(err == nil && n >= low && strconv.Itoa(n) == text, name, "must be an integer of at least "+strconv.Itoa(low))
	return n
}

func (q *listQuery[T]) parseOrder(p problems, query url.Values, columns columns[T]) {
	if query.Has("order_on") {
		column, known := columns.find(query.Get("order_on"))
		p.check(known, "order_on", "is not a field of the record")
		q.order = &column
	}
	if query.Has("order_by") {
		direction := query.Get("order_by")
		p.check(direction == "asc" || direction == "desc", "order_by", "must be asc or desc")
		q.desc = direction == "desc"
	}
}

// parseFilter reads field, conditional and value, and gives nil after it noted a problem.
func parseFilter[T any](p problems, text string, columns columns[T]) func(*T) bool {
	parts := strings.Split(text, ",")
	if len(parts) < 3 {
		p.add("filter", "must be a field, a conditional and a value")
		return nil
	}
	column, known := columns.find(parts[0])
	if !known {
		p.add("filter", "names a field that the record does not have")
		return nil
	}
	test, message := newTest(column.kind, parts[1], parts[2:])
	if test == nil {
		p.add("filter", "%s", message)
		return nil
	}
	return func(record *T) bool { return test(column.text(record)) }
}

// newTest builds the test of a conditional, or says why there is none.
func newTest(k kind, conditional string, operands []string) (func(string) bool, string) {
	want := 1
	if conditional == BetweenDates {
		want = 2
	}
	if len(operands) != want || slices.Contains(operands, "") {
		return nil, "has the wrong number of values for its conditional"
	}
	ordered := k == numberKind || k == timeKind || k == dateKind
	switch {
	case conditional == BetweenDates && (k == timeKind || k == dateKind):
		return betweenDates(operands[0], operands[1])
	case conditional == Contains && k == textKind:
		return func(cell string) bool { return strings.Contains(cell, operands[0]) }, ""
	case conditional == Equals, conditional == NotEquals, ordered && (conditional == GreaterThan || conditional == LessThan):
		return comparison(k, conditional, operands[0])
	}
	return nil, "has a conditional that the field does not know"
}

// betweenDates compares the day that a time has in its own offset; both ends are included.
func betweenDates(from, to string) (func(string) bool, string) {
	if !isDate(from) || !isDate(to) || from > to {
		return nil, "must have a start date and an end date, YYYY-MM-DD"
	}
	return func(cell string) bool {
		day := cell[:min(len(cell), len(time.DateOnly))]
		return from <= day && day <= to
	}, ""
}

func comparison(k kind, conditional, operand string) (func(string) bool, string) {
	right, ok := k.parse(operand)
	if !ok {
		return nil, "has a value that the field cannot have"
	}
	return func(cell string) bool {
		left, ok := k.parse(cell)
		if !ok {
			return false
		}
		order := k.compare(left, right)
		switch conditional {
		case Equals:
			return order == 0
		case NotEquals:
			return order != 0
		case GreaterThan:
			return order > 0
		default:
			return order < 0
		}
	}, ""
}

// answer filters, sorts and cuts the records to one page.
func (q listQuery[T]) answer(rows []*T) envelope {
	rows = slices.DeleteFunc(rows, q.excludes)
	q.sort(rows)
	records := len(rows)
	pages := records / q.count
	if records%q.count > 0 {
		pages++
	}
	answer := success(cut(rows, q.page, q.count))
	answer.TotalRecords, answer.TotalPages = &records, &pages
	return answer
}

func (q listQuery[T]) excludes(row *T) bool {
	return slices.ContainsFunc(q.filters, func(filter func(*T) bool) bool { return !filter(row) })
}

// sort orders by order_on, equal records in their default order; without order_on the default order
// is kept, or reversed.
func (q listQuery[T]) sort(rows []*T) {
	if q.order == nil {
		if q.desc {
			slices.Reverse(rows)
		}
		return
	}
	keys := make(map[*T]value, len(rows))
	for _, row := range rows {
		keys[row], _ = q.order.kind.parse(q.order.text(row))
	}
	slices.SortStableFunc(rows, func(a, b *T) int {
		order := q.order.kind.compare(keys[a], keys[b])
		if q.desc {
			return -order
		}
		return order
	})
}

// cut returns one page, which is empty after the last one.
func cut[T any](rows []*T, page, count int) []*T {
	if len(rows) == 0 || page > (len(rows)-1)/count {
		return []*T{}
	}
	rest := rows[page*count:]
	return rest[:min(count, len(rest))]
}

// parseQuery reads the raw query as the interface writes it: known names, once each except filter,
// and every comma encoded.
func parseQuery(raw string, known []string) (url.Values, error) {
	if strings.Contains(raw, ",") {
		return nil, refuse(http.StatusBadRequest, "commas in a URL must be encoded as %%2C")
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query is malformed")
	}
	for name := range query {
		if !slices.Contains(known, name) {
			return nil, problems{name: {"is not a query parameter of this operation"}}.err()
		}
		if name != "filter" && len(query[name]) > 1 {
			return nil, problems{name: {"is given more than once"}}.err()
		}
	}
	return query, nil
}

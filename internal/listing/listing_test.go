package listing

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type record struct {
	ID     string   `json:"id"`
	Size   Amount   `json:"size"`
	Time   string   `json:"tran_time"`
	Day    string   `json:"day,omitzero"`
	Flag   bool     `json:"flag"`
	Nested []string `json:"nested"`
}

// An Amount is a number with its digits.
type Amount string

func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a), nil }

func columns() Columns {
	return Columns{"id": Text, "size": Number, "tran_time": Time, "tran_date": Date, "day": Date, "flag": Text}
}

func records() []record {
	return []record{
		{ID: "a", Size: "9", Time: "2026-01-31T23:59:59-05:00", Day: "2026-02-01"},
		{ID: "b", Size: "10.5", Time: "2026-02-01T00:00:00-08:00", Flag: true},
		{ID: "c", Size: "10.50", Time: "2026-02-01T04:00:00Z", Day: "2026-01-01"},
	}
}

// ids lists what a query finds.
func ids(t *testing.T, raw string) string {
	t.Helper()
	query, err := url.ParseQuery(raw)
	require.NoError(t, err)
	found, _, _, wrong := Page(query, columns(), records())
	require.Empty(t, wrong, raw)
	var b strings.Builder
	for _, r := range found {
		b.WriteString(r.ID)
	}
	return b.String()
}

func TestQueries(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                             "abc",
		"order_by=desc":                                "cba",
		"order_on=size":                                "abc",
		"order_on=size&order_by=desc":                  "bca",
		"order_on=tran_time":                           "cab",
		"order_on=day":                                 "bca",
		"order_on=flag":                                "acb",
		"count=2":                                      "ab",
		"count=2&page=1":                               "c",
		"count=2&page=2":                               "",
		"page=9223372036854775807":                     "",
		"count=9223372036854775807":                    "abc",
		"filter=size,EQUALS,10.500":                    "bc",
		"filter=size,NOT_EQUALS,9.0":                   "bc",
		"filter=size,GREATER_THAN,9":                   "bc",
		"filter=day,LESS_THAN,2026-02-01":              "bc",
		"filter=id,CONTAINS,b":                         "b",
		"filter=flag,EQUALS,true":                      "b",
		"filter=tran_date,EQUALS,2026-02-01":           "bc",
		"filter=tran_time,EQUALS,2026-02-01T04:59:59Z": "a",
		"filter=tran_time,BETWEEN_DATES,2026-01-31,2026-01-31":                       "a",
		"filter=size,GREATER_THAN,9&filter=tran_time,LESS_THAN,2026-02-01T05:00:00Z": "c",
	} {
		assert.Equal(t, want, ids(t, raw), raw)
	}
	found, total, pages, _ := Page(url.Values{"count": {"2"}, "page": {"5"}}, columns(), records())
	assert.Equal(t, []int{0, 3, 2}, []int{len(found), total, pages})
	found, total, pages, _ = Page(nil, columns(), []record{})
	assert.Equal(t, []int{0, 0, 0}, []int{len(found), total, pages})
	assert.NotNil(t, found)
}

func TestWrongQueries(t *testing.T) {
	t.Parallel()
	for raw, field := range map[string]string{
		"count=0": "count", "count=99999999999999999999": "count", "page=-1": "page", "order_on=nested": "order_on",
		"order_on=":              "order_on",
		"filter=nested,EQUALS,1": "filter", "filter=id,EQUALS,": "filter", "filter=id,EQUALS,a,b": "filter",
		"filter=id,LIKE,a":         "filter",
		"filter=id,GREATER_THAN,a": "filter", "filter=size,CONTAINS,1": "filter", "filter=size,EQUALS,x": "filter",
		"filter=size,EQUALS,1e9": "filter", "filter=size,EQUALS,1.2.3": "filter", "filter=day,EQUALS,2026-02-30": "filter",
		"filter=tran_time,EQUALS,2026-01-01": "filter", "filter=id,BETWEEN_DATES,2026-01-01,2026-01-02": "filter",
		"filter=day,BETWEEN_DATES,2026-01-02,2026-01-01": "filter", "filter=day,BETWEEN_DATES,2026-01-02": "filter",
	} {
		query, err := url.ParseQuery(raw)
		require.NoError(t, err)
		found, _, _, wrong := Page(query, columns(), records())
		assert.Empty(t, found)
		assert.NotEmpty(t, wrong[field], raw)
	}
}

package payvaulttest

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

type thing struct {
	ID     string          `json:"id"`
	Size   payvault.Amount `json:"size"`
	Time   string          `json:"tran_time"`
	Day    string          `json:"day,omitzero"`
	Flag   bool            `json:"flag"`
	Nested []string        `json:"nested"`
}

func columns() []string {
	return []string{"id", "size", "tran_time", "tran_date", "day", "flag", "missing"}
}

func things() []thing {
	return []thing{
		{ID: "a", Size: payvault.MustAmount("9"), Time: "2026-01-31T23:59:59-05:00", Day: "2026-02-01"},
		{ID: "b", Size: payvault.MustAmount("10.5"), Time: "2026-02-01T00:00:00-08:00", Flag: true},
		{ID: "c", Size: payvault.MustAmount("10.50"), Time: "2026-02-01T04:00:00Z", Day: "2026-01-01"},
	}
}

// found lists what a query finds.
func found(t *testing.T, raw string) string {
	t.Helper()
	query, err := url.ParseQuery(raw)
	require.NoError(t, err)
	answer, err := list(query, columns(), things())
	require.NoError(t, err, raw)
	var b strings.Builder
	for _, r := range dataOf(t, answer) {
		b.WriteString(r.ID)
	}
	return b.String()
}

func dataOf(t *testing.T, answer any) []thing {
	t.Helper()
	page, _ := answer.(envelope)
	data, ok := page.Data.([]thing)
	require.True(t, ok)
	return data
}

func TestQueries(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                   "abc",
		"order_by=desc":                      "cba",
		"order_on=size":                      "abc",
		"order_on=size&order_by=desc":        "cba",
		"order_on=tran_time":                 "cab",
		"order_on=day":                       "bca",
		"order_on=flag":                      "acb",
		"count=2":                            "ab",
		"count=2&page=1":                     "c",
		"count=2&page=2":                     "",
		"page=9223372036854775807":           "",
		"count=9223372036854775807":          "abc",
		"order_on=id&order_by=desc":          "cba",
		"order_on=missing":                   "abc",
		"filter=size,EQUALS,10.50":           "c",
		"filter=size,EQUALS,x":               "",
		"filter=size,EQUALS,1e999999999":     "",
		"filter=id,EQUALS,b":                 "b",
		"filter=id,EQUALS,a,b":               "",
		"filter=flag,EQUALS,true":            "b",
		"filter=tran_date,EQUALS,2026-02-01": "bc",
		"filter=tran_time,BETWEEN_DATES,2026-01-31,2026-01-31":                  "a",
		"filter=day,BETWEEN_DATES,2026-01-01,2026-02-01":                        "ac",
		"filter=size,EQUALS,10.50&filter=tran_time,EQUALS,2026-02-01T04:00:00Z": "c",
	} {
		assert.Equal(t, want, found(t, raw), raw)
	}
	past, err := list(url.Values{"count": {"2"}, "page": {"5"}}, columns(), things())
	require.NoError(t, err)
	assert.Equal(t, envelope{Message: "Success", Data: []thing{}, TotalRecords: new(3), TotalPages: new(2)}, past)
	none, err := list(nil, columns(), []thing{})
	require.NoError(t, err)
	assert.Equal(t, envelope{Message: "Success", Data: []thing{}, TotalRecords: new(0), TotalPages: new(0)}, none)
}

func TestWrongQueries(t *testing.T) {
	t.Parallel()
	for raw, field := range map[string]string{
		"count=0": "count", "count=-1": "count", "order_on=nested": "order_on",
		"filter=nested,EQUALS,1": "filter[0]", "filter=id,LIKE,a": "filter[0]", "filter=id,equals,a": "filter[0]",
		"filter=day,BETWEEN_DATES,2026-01-02,2026-01-01": "filter[0]", "filter=day,BETWEEN_DATES,2026-01-02": "filter[0]",
		"filter=day,BETWEEN_DATES,2026-02-01,2026-02-30": "filter[0]", "filter=day,BETWEEN_DATES,x,2026-02-01": "filter[0]",
	} {
		query, err := url.ParseQuery(raw)
		require.NoError(t, err)
		_, err = list(query, columns(), things())
		refused, ok := errors.AsType[*refusal](err)
		require.True(t, ok, raw)
		assert.NotEmpty(t, refused.fields[field], raw)
		if strings.Contains(raw, "LIKE") {
			assert.Contains(t, refused.Error(), "BETWEEN_DATES or EQUALS")
		}
	}
}

package calls

import (
	"encoding/json"
	"fmt"
	"time"

	"example.com/payvault"
)

// The functions request, answered and read decode values from the files in testdata. These files are written by hand.
// The tests of package operations check that every field is read and has the right name.

// request reads a request with all its fields from testdata/<name>.request.json.
func request[T any](name string) T { return read[T](name + ".request.json") }

// answered returns a function that reads the result in testdata/<name>.response.json. members are the names of the JSON
// members that lead to the result.
func answered[T any](name string, members ...string) func() any {
	return func() any { return new(read[T](name+".response.json", members...)) }
}

// read decodes a value in a file of testdata. members are the names of the JSON members that lead to the value.
func read[T any](name string, members ...string) T {
	text := []byte(Fixture(name))
	for _, member := range members {
		var object map[string]json.RawMessage
		must(json.Unmarshal(text, &object))
		text = object[member]
	}
	var v T
	must(json.Unmarshal(text, &v))
	return v
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func secret(text string) payvault.Secret { return payvault.NewSecret(text) }

func day(year int, month time.Month, d int) payvault.Date {
	return payvault.Date{Year: year, Month: month, Day: d}
}

// withEvidence returns the request with its file, which is not part of the JSON.
func withEvidence(r payvault.DisputeRespondRequest) *payvault.DisputeRespondRequest {
	r.Evidence = payvault.FileFromBytes("evidence.pdf", []byte(Fixture("disputes/evidence.pdf")))
	return &r
}

// fullListOptions returns the list options whose query is in testdata/list.query.
func fullListOptions() *payvault.ListOptions {
	return &payvault.ListOptions{
		OrderOn: "tran_time", OrderBy: payvault.Descending, Count: 25, Page: 2, MerchantID: ActingFor,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", day(2026, time.January, 1), day(2026, time.January, 31)),
			payvault.Where("tran_status", "EQUALS", "P"), payvault.Where("tran_status", "IN", "P", "Q", "R"),
			payvault.Where("comments", "EQUALS", ""), payvault.Where("comments", "LIKE", "100% a&b=c+d@x #1"),
		},
	}
}

// badListOptions returns invalid list options, and their problems by field.
func badListOptions() (*payvault.ListOptions, fields) {
	where, dates := payvault.Where, payvault.ConditionBetweenDates
	options := &payvault.ListOptions{
		OrderOn: "tran_time desc", OrderBy: "ASC", Count: -1, Page: -1, Prefetch: -1, MerchantID: ThirdParty,
		Filters: []payvault.Filter{payvault.BetweenDates("tran_date", day(2026, 1, 1), day(2026, 1, 1))},
	}
	const noName = "contains a blank, a comma or a control character"
	problems := fields{
		"order_on": {noName}, "order_by": {"is neither asc nor desc"}, "count": {"is negative"}, "page": {"is negative"},
		"Prefetch": {"is negative"}, "merchant_id": {ThirdNamed},
	}
	for problem, filters := range map[string][]payvault.Filter{
		"needs a field, a condition and a value": {where("", "EQUALS", "P"), where("a", "", "P"), where("a", "EQUALS")},
		noName + " in its field or condition": {
			where("a,b", "EQUALS", "P"), where(" a", "EQUALS", "P"), where("a\u00a0", "EQUALS", "P"),
			where("a", "EQ,UALS", "P"), where("a", "EQUALS\n", "P"), where("a", "EQ\x00", "P"),
		},
		"contains a comma, which separates the parts of a filter": {where("a", "IN", "P", "Q,R")},
		"BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last": {
			where("a", dates, "2026-01-01"), where("a", dates, "2026-02-29", "2026-03-01"),
			where("a", dates, "2026-01-01", "2026-02-30"), where("a", dates, "2026-03-01", "2026-01-01"),
			payvault.BetweenDates("a", payvault.Date{}, payvault.Date{}),
		},
	} {
		for _, filter := range filters {
			problems[fmt.Sprintf("filter[%d]", len(options.Filters))] = []string{problem}
			options.Filters = append(options.Filters, filter)
		}
	}
	return options, problems
}

package payvaulttest

import (
	"net/url"

	"example.com/payvault/internal/listing"
)

// DefaultCount is the number of records per page when a list request has no count. The interface
// does not show the service's own.
const DefaultCount = listing.DefaultCount

// The conditionals that filters know. The interface shows [BetweenDates] only; the others are the
// emulator's own choice.
const (
	BetweenDates = listing.BetweenDates // two dates, both included; for dates and times
	Equals       = listing.Equals
	NotEquals    = listing.NotEquals
	GreaterThan  = listing.GreaterThan // for numbers, dates and times
	LessThan     = listing.LessThan    // for numbers, dates and times
	Contains     = listing.Contains    // for texts
)

// list answers a list request.
func list[T any](query url.Values, columns listing.Columns, records []T) (any, error) {
	found, total, pages, wrong := listing.Page(query, columns, records)
	answer := success(found)
	answer.TotalRecords, answer.TotalPages = &total, &pages
	return answer, problems(wrong).err()
}

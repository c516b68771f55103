package payvaulttest

import (
	"net/url"

	"example.com/payvault/internal/listing"
)

// DefaultCount is the number of records per page when a list request has no count. The interface
// does not show the service's own.
const DefaultCount = listing.DefaultCount

// The conditionals that filters know. The interface shows [BetweenDates] only; the other is the emulator's own choice.
const (
	BetweenDates = listing.BetweenDates // two dates, both included; for dates and times
	Equals       = listing.Equals
)

// list answers a list request.
func list[T any](query url.Values, columns []string, records []T) (any, error) {
	found, total, pages, wrong := listing.Page(query, columns, records)
	answer := success(found)
	answer.TotalRecords, answer.TotalPages = &total, &pages
	return answer, problems(wrong).err()
}

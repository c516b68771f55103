package overload

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestRetryAfter checks which wait RetryAfter reads from a header.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header string
		date   string // Date header of the answer; the clock of the server may be wrong, or that of the client
		want   time.Duration
	}{
		"seconds":        {"7", "", 7 * time.Second},
		"spaces":         {" 7 ", "", 7 * time.Second},
		"a day":          {"86400", "", 24 * time.Hour},
		"above a day":    {"86401", "", 24 * time.Hour},
		"absurd":         {"99999999999999999999", "", 24 * time.Hour},
		"date":           {"Sat, 01 Jan 2000 00:00:09 GMT", "", 9 * time.Second},
		"date, RFC 850":  {"Saturday, 01-Jan-00 00:00:09 GMT", "", 9 * time.Second},
		"far date":       {"Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour},
		"past date":      {"Fri, 31 Dec 1999 23:59:59 GMT", "", 0},
		"zero":           {"0", "", 0},
		"negative":       {"-5", "", 0},
		"fraction":       {"1.5", "", 2 * time.Second},
		"small fraction": {"0.001", "", time.Second},
		"exponent":       {"1e3", "", 0},
		"infinity":       {"Inf", "", 0},
		"two points":     {"1.5.0", "", 0},
		"point":          {".", "", 0},
		"server ahead":   {"Sat, 01 Jan 2000 00:10:03 GMT", "Sat, 01 Jan 2000 00:10:00 GMT", 3 * time.Second},
		"server behind":  {"Fri, 31 Dec 1999 23:50:03 GMT", "Fri, 31 Dec 1999 23:50:00 GMT", 3 * time.Second},
		"wrong Date":     {"Sat, 01 Jan 2000 00:00:09 GMT", "yesterday", 9 * time.Second},
		"digits, letter": {"5s", "", 0},
		"empty":          {"", "", 0},
	} {
		synctest.Test(t, func(t *testing.T) { // the clock of a bubble starts at 2000-01-01 00:00:00 UTC
			got := RetryAfter(http.Header{"Retry-After": {test.header}, "Date": {test.date}})
			assert.Equal(t, test.want, got, name)
		})
	}
}

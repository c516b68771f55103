package bulk

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// perPage is the number of records on a page. The last page has one record less.
const perPage = 3

// pageBody returns the JSON of a page with these totals and records, as the service writes it.
func pageBody(totalPages, totalRecords int, ids ...string) string {
	records := make([]string, len(ids))
	for i, id := range ids {
		records[i] = `{"customer_id":"` + id + `","billing_cards":[{"card_id":"CARD` + id + `"}]}`
	}
	return fmt.Sprintf(`{"code":0,"message":"Success","totalPages":%d,"totalRecords":%d,"data":[%s]}`,
		totalPages, totalRecords, strings.Join(records, ","))
}

// recordIDs returns the IDs of the records on one page of a list of n pages.
func recordIDs(page, n int) (ids []string) {
	for i := range perPage {
		if page < n && (page < n-1 || i < perPage-1) {
			ids = append(ids, fmt.Sprintf("P%dR%d", page, i))
		}
	}
	return ids
}

// allIDs returns the IDs of all records on the pages from first to n-1 of a list of n pages.
func allIDs(first, n int) (ids []string) {
	for page := first; page < n; page++ {
		ids = append(ids, recordIDs(page, n)...)
	}
	return ids
}

// correct returns the JSON of one page of a list of n pages, with correct totals.
func correct(page, n int) string { return pageBody(n, n*perPage-1, recordIDs(page, n)...) }

// lying returns a service that answers a request for a page with the text body(page). The totals in the text may be
// wrong. If the text is empty, the service answers with status 404.
func lying(body func(page int) string) *fake {
	return &fake{answer: func(r asked) (*http.Response, error) {
		if body(r.n) == "" {
			return service.Reply(http.StatusNotFound, ""), nil
		}
		return service.Reply(http.StatusOK, body(r.n)), nil
	}}
}

type customers = iter.Seq2[*payvault.Customer, error]

func (s *fake) all(t *testing.T, o *payvault.ListOptions, opts ...payvault.CallOption) customers {
	t.Helper()
	return s.client(t).Customers.All(t.Context(), o, opts...)
}

// walk runs a loop over all records. It returns their IDs, and the errors that the loop got, joined.
func walk(seq customers) (ids []string, err error) {
	for customer, e := range seq {
		if e != nil {
			err = errors.Join(err, e)
			continue // the iterator must end by itself after an error
		}
		ids = append(ids, customer.ID)
	}
	return ids, err
}

// eachPrefetch runs a test with Prefetch 0, 1, 3 and 32, each in a synctest bubble.
func eachPrefetch(t *testing.T, test func(t *testing.T, ahead *payvault.ListOptions)) {
	t.Helper()
	forEach(t, []int{0, 1, 3, 32}, func(t *testing.T, prefetch int) {
		test(t, &payvault.ListOptions{Prefetch: prefetch})
	})
}

// TestWalkInOrderAndOnce checks that a walk yields all records in order and requests each page once, and that a second
// loop starts again. Changes of the options after the call of All have no effect.
func TestWalkInOrderAndOnce(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const n = 7
		for _, first := range []int{0, 3, 6, 9} {
			s, options, opts := &fake{pages: n}, *ahead, append(make([]payvault.CallOption, 0, 8), payvault.WithMaxAttempts(2))
			options.Page, options.Filters = first, []payvault.Filter{payvault.Where("a", "IN", "P", "Q")}
			seq := s.all(t, &options, opts...)
			options.Filters[0].Values[0], options.Filters[0].Field = "X", "x"
			opts[0] = payvault.WithMaxAttempts(-1)
			options = payvault.ListOptions{Page: 77, Prefetch: 99, Count: -1}
			synctest.Wait()
			assert.Empty(t, s.seen, "nothing is asked before it is ranged over")
			walks := func() {
				ids, err := walk(seq)
				assert.NoError(t, err)
				assert.Equal(t, allIDs(first, n), ids)
			}
			walks()
			want := []string{"filter=a%2CIN%2CP%2CQ&page=" + strconv.Itoa(first)}
			last := n
			if first == n-1 {
				last++ // the walk also requests page n, to see whether it exists
			}
			for page := first + 1; page < last; page++ {
				want = append(want, "filter=a%2CIN%2CP%2CQ&page="+strconv.Itoa(page))
			}
			assert.Equal(t, want, s.queries(), "each page once")
			service.Together(8, walks)
		}
	})
}

// TestWalkFromALaterPage checks that a walk that begins after page 0 gets all records from its first page on. If Count
// is set, the walk must not request a page after the last one, because some services answer such a request with status
// 404.
func TestWalkFromALaterPage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ claimed, pages, first, count int }{
		"the last page": {3, 3, 2, perPage},
		"pages smaller than Count, and totals rounded down": {10, 11, 2, 2 * perPage},
		"the same, from the last page that is claimed":      {10, 11, 9, 10 * perPage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
				s := lying(func(page int) string {
					if page >= test.pages {
						return ""
					}
					return pageBody(test.claimed, test.pages*perPage-1, recordIDs(page, test.pages)...)
				})
				ahead.Page, ahead.Count = test.first, test.count
				ids, err := walk(s.all(t, ahead))
				require.NoError(t, err)
				assert.Equal(t, allIDs(test.first, test.pages), ids)
			})
		})
	}
}

// TestWalkOverPages checks that Customers.Pages yields the same records as Customers.All, page by page, and an error
// with a nil page if a page fails.
func TestWalkOverPages(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const n, failing = 7, 5
		s := lying(func(page int) string {
			if page == failing {
				return ""
			}
			return correct(page, n)
		})
		ahead.Page = 2
		var numbers []int
		var ids []string
		for page, err := range s.client(t).Customers.Pages(t.Context(), ahead) {
			if err != nil {
				assert.Nil(t, page)
				assert.ErrorContains(t, err, "page 5")
				continue // the iterator must end by itself after an error
			}
			numbers = append(numbers, page.Number)
			for _, customer := range page.Items {
				ids = append(ids, customer.ID)
			}
		}
		assert.Equal(t, []int{2, 3, 4}, numbers)
		assert.Equal(t, allIDs(2, n)[:3*perPage], ids)
	})
}

// TestWalkThatIsLeft checks that a break out of the loop ends the requests that are in flight.
func TestWalkThatIsLeft(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		s := &fake{pages: 100, gates: newGates(1)}
		for _, err := range s.all(t, ahead) {
			require.NoError(t, err)
			synctest.Wait() // requests for the next pages are in flight
			break
		}
		assert.Zero(t, s.flying.Load())
		assert.Len(t, s.seen, 1+ahead.Prefetch)
	})
}

// TestWalkThatPanics checks that a panic of the RoundTripper comes out of the caller's loop, after the records of all
// earlier pages.
func TestWalkThatPanics(t *testing.T) {
	t.Parallel()
	for _, page := range []int{0, 2} {
		eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
			s := &fake{pages: 7, answer: func(r asked) (*http.Response, error) {
				if r.n == page {
					panic("broken")
				}
				return nil, nil
			}}
			ids := []string{}
			assert.PanicsWithValue(t, "broken", func() {
				for customer, err := range s.all(t, ahead) {
					assert.NoError(t, err)
					ids = append(ids, customer.ID)
				}
			})
			assert.Equal(t, allIDs(0, 7)[:page*perPage], append([]string{}, ids...))
			assert.Zero(t, s.flying.Load())
		})
	}
}

// TestWalkKeepsPrefetchPagesInFlight checks that after the first page a walk keeps Prefetch requests in flight, or one
// if Prefetch is 0, as long as enough pages are left.
func TestWalkKeepsPrefetchPagesInFlight(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		s := &fake{pages: 50, gates: newGates(0)}
		done := make(chan []string)
		go func() {
			ids, err := walk(s.all(t, ahead))
			assert.NoError(t, err)
			done <- ids
		}()
		for page := range 50 {
			synctest.Wait()
			want := min(max(ahead.Prefetch, 1), 50-page)
			if page == 0 {
				want = 1 // the walk learns the number of pages from the first page
			}
			assert.EqualValues(t, want, s.flying.Load())
			close(s.gates[page])
		}
		assert.Equal(t, allIDs(0, 50), <-done)
	})
}

// TestWalkWithAnError checks that a walk ends with its first error, and that WithResponse gives the response of the
// page whose records the loop is getting, not of a page fetched ahead.
func TestWalkWithAnError(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const broken = 3
		s, n := &fake{pages: 7, answer: gives(http.StatusNotFound, "<html>", broken)}, 0
		var raw payvault.Response
		var last error
		for customer, err := range s.all(t, ahead, payvault.WithResponse(&raw)) {
			require.NoError(t, last, "it goes on after the error")
			synctest.Wait() // the pages ahead and the error have arrived by now
			if last = err; err == nil {
				assert.Equal(t, allIDs(0, 7)[n], customer.ID)
				assert.Equal(t, correct(n/perPage, 7), string(raw.Body))
				n++
			}
		}
		require.ErrorIs(t, last, payvault.ErrNotFound)
		require.EqualError(t, last, "page 3: payvault: customers.list: status 404 Not Found")
		assert.Equal(t, http.StatusNotFound, service.AsError(t, last).StatusCode)
		assert.Equal(t, "<html>", string(raw.Body))
		assert.Equal(t, broken*perPage, n)
		assert.Len(t, s.seen, min(7, max(broken, ahead.Prefetch)+1), "no further page is asked for")

		ahead.Count = -1
		_, err := walk(s.all(t, ahead))
		require.ErrorContains(t, err, "payvault: customers.list: invalid request")
		assert.NotContains(t, err.Error(), "page 0", "a local check is not about a page")
	})
}

// TestWalkOverServicesThatLie checks that a walk over a list with wrong totals, repeated pages or missing data ends,
// with all records or with an error.
func TestWalkOverServicesThatLie(t *testing.T) {
	t.Parallel()
	type pages []string // the last body is also the body of all later pages
	malformed := payvault.ErrMalformedResponse
	for name, test := range map[string]struct {
		pages pages
		want  string // IDs of the records that the walk yields
		err   error
		most  int // maximum number of requests, without those of Prefetch
	}{
		"claims 2^31-1 pages, has two": {
			pages{pageBody(math.MaxInt32, 0, "A", "B"), pageBody(math.MaxInt32, 0, "C"), pageBody(math.MaxInt32, 0)},
			"ABC", nil, 3,
		},
		"claims a negative number":      {pages{pageBody(-3, 0, "A"), pageBody(-3, 0, "B"), pageBody(-3, 0)}, "AB", nil, 3},
		"claims on the first page only": {pages{pageBody(2, 0, "A"), pageBody(0, 0, "B"), pageBody(0, 0)}, "AB", nil, 3},
		"grows": {
			pages{pageBody(2, 0, "A"), pageBody(3, 0, "B"), pageBody(3, 0, "C")}, "ABC", nil, 4,
		},
		"claims too few records": {
			pages{pageBody(3, 1, "A"), pageBody(3, 1, "B"), pageBody(3, 1, "C")}, "ABC", nil, 4,
		},
		"counts records on the first page only": {
			pages{pageBody(1, 4, "A", "B"), pageBody(1, 0, "C"), pageBody(1, 0, "D"), pageBody(1, 0)}, "ABCD", nil, 3,
		},
		"shrinks":                   {pages{pageBody(9, 0, "A"), pageBody(2, 0, "B"), pageBody(2, 0)}, "AB", nil, 3},
		"shrinks to nothing":        {pages{pageBody(9, 0, "A"), pageBody(0, 0)}, "A", nil, 2},
		"has no data":               {pages{`{"code":0,"totalPages":1,"totalRecords":5}`}, "", malformed, 1},
		"has null on its only page": {pages{`{"code":0,"totalPages":1,"data":null}`}, "", nil, 1},
		"has null before its last page": {
			pages{pageBody(3, 8, "A"), `{"code":0,"totalPages":3,"totalRecords":8,"data":null}`}, "A", malformed, 2,
		},
		"has null beyond its last page": {
			pages{pageBody(1, 99, "A"), `{"code":0,"totalPages":1,"totalRecords":99,"data":null}`}, "A", nil, 2,
		},
		"ignores the page number": {pages{`{"code":0,"data":[{"customer_id":"A"}]}`}, "A", malformed, 2},
		"repeats its second page": {
			pages{pageBody(9, 18, "A", "B"), pageBody(9, 18, "C", "D")}, "ABCD", malformed, 3,
		},
		"repeats a page with other totals": {pages{pageBody(5, 0, "A"), pageBody(6, 7, "A")}, "A", malformed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
				s := lying(func(page int) string { return test.pages[min(page, len(test.pages)-1)] })
				ids, err := walk(s.all(t, ahead))
				require.ErrorIs(t, err, test.err)
				if test.err != nil {
					assert.Equal(t, payvault.OpCustomersList, service.AsError(t, err).Op)
				}
				assert.Equal(t, test.want, strings.Join(ids, ""))
				assert.LessOrEqual(t, len(s.seen), test.most+ahead.Prefetch)
			})
		})
	}
}

// pagingExample is a row of the table in docs/paging.md.
type pagingExample struct {
	totalPages, totalRecords, count int
	pages                           []int  // number of records of each page
	then                            string // answer to a request for a later page
	records, requests               int    // how many records the walk yields, and how many requests it makes
}

// pagingExamples reads the table in docs/paging.md.
func pagingExamples(t *testing.T) (examples []pagingExample) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/paging.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| Records | Requests |\n|---|---|---|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.NewReplacer("–", "0", "*", "", " of 27", "", " of 24", "").Replace(row), "|")
		e := pagingExample{then: strings.TrimSpace(cells[5])}
		numbers := map[int][]*int{2: {&e.count}, 3: {&e.totalPages, &e.totalRecords}, 6: {&e.records}, 7: {&e.requests}}
		for i, into := range numbers {
			for j, text := range strings.Split(cells[i], ",") {
				*into[j], err = strconv.Atoi(strings.TrimSpace(text))
				require.NoError(t, err, row)
			}
		}
		for text := range strings.SplitSeq(strings.TrimSpace(cells[4]), ", ") {
			times, length, isRepeated := strings.Cut(text, " × ")
			if !isRepeated {
				times, length = "1", text
			}
			n, err1 := strconv.Atoi(times)
			records, err2 := strconv.Atoi(length)
			require.NoError(t, errors.Join(err1, err2), row)
			e.pages = append(e.pages, slices.Repeat([]int{records}, n)...)
		}
		examples = append(examples, e)
	}
	return examples
}

// reply answers a request for a page.
func (e pagingExample) reply(page int) *http.Response {
	if page >= len(e.pages) {
		switch e.then {
		case "first page":
			page = 0
		case "last page":
			page = len(e.pages) - 1
		case "code 4":
			return service.Reply(http.StatusOK, `{"code":4,"message":"page out of range"}`)
		case "page of a proxy":
			return service.Reply(http.StatusNotFound, "404 page not found\n")
		case "empty":
			return service.Reply(http.StatusOK, pageBody(e.totalPages, e.totalRecords))
		default:
			status, _ := strconv.Atoi(e.then)
			return service.Reply(status, "")
		}
	}
	var ids []string
	for i := range e.pages[page] {
		ids = append(ids, fmt.Sprintf("P%dR%d", page, i))
	}
	return service.Reply(http.StatusOK, pageBody(e.totalPages, e.totalRecords, ids...))
}

// TestWalkEndsAsDocumented checks the examples in docs/paging.md. With any Prefetch a walk yields the documented number
// of different records. With a Prefetch of 0 or 1 it makes the documented number of requests. With a larger Prefetch it
// may make one request more, or request all pages that totalPages promises.
func TestWalkEndsAsDocumented(t *testing.T) {
	t.Parallel()
	examples := pagingExamples(t)
	require.Len(t, examples, 20)
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		for _, e := range examples {
			s := &fake{answer: func(r asked) (*http.Response, error) { return e.reply(r.n), nil }}
			var last payvault.Response
			ahead.Count = e.count
			ids, err := walk(s.all(t, ahead, payvault.WithResponse(&last)))
			require.NoError(t, err)
			slices.Sort(ids)
			assert.Len(t, slices.Compact(ids), e.records, "%+v", e)
			assert.Equal(t, http.StatusOK, last.StatusCode, "it belongs to the last page, not to a refusal after it")
			if ahead.Prefetch <= 1 {
				assert.Len(t, s.seen, e.requests, "%+v", e)
			}
			assert.LessOrEqual(t, len(s.seen), max(e.requests+1, e.totalPages))
		}
	})
}

// TestWalkBeyondTheTotals checks that a walk ends with an error in these cases:
//   - The first page that the totals do not promise gets status 401, 403 or 500, or the HTML page of a proxy.
//   - The second page that the totals do not promise gets an error code.
//   - More than 100 pages in a row are empty, although the totals promise them. Exactly 100 empty pages are no error.
func TestWalkBeyondTheTotals(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError} {
			refused := pagingExample{totalPages: 1, totalRecords: 5, pages: []int{5}, then: strconv.Itoa(status)}
			s := &fake{answer: func(r asked) (*http.Response, error) { return refused.reply(r.n), nil }}
			ids, err := walk(s.all(t, ahead))
			assert.Equal(t, status, service.AsError(t, err).StatusCode)
			assert.Len(t, ids, 5)
		}
		for _, empty := range []int{100, 101} {
			pages := append(append([]int{1}, make([]int, empty)...), 1)
			gap := pagingExample{totalPages: len(pages), totalRecords: len(pages), pages: pages, then: "empty"}
			s := &fake{answer: func(r asked) (*http.Response, error) { return gap.reply(r.n), nil }}
			ids, err := walk(s.all(t, ahead))
			if empty == 100 {
				require.NoError(t, err)
				assert.Len(t, ids, 2)
				continue
			}
			require.ErrorIs(t, err, payvault.ErrMalformedResponse)
			require.ErrorContains(t, err, "more than 100 pages in a row are empty")
			assert.False(t, payvault.SafeToRetry(err), "the next walk would fail in the same way")
			assert.Len(t, ids, 1)
		}
		for _, broken := range []pagingExample{
			{totalPages: 1, totalRecords: 10, pages: []int{10}, then: "page of a proxy"},
			{totalPages: 1, totalRecords: 10, pages: []int{10, 10}, then: "code 4"},
		} {
			s := &fake{answer: func(r asked) (*http.Response, error) { return broken.reply(r.n), nil }}
			ids, err := walk(s.all(t, ahead))
			require.Error(t, err, broken.then)
			assert.Len(t, ids, 10*len(broken.pages))
		}
	})
}

// TestWalkFromTheLastPage checks a walk that begins at the last page of a list whose other pages are longer. The walk
// does not know the length of the other pages. So it cannot tell whether it has all records, and requests a further
// page. A 404 for that page must end the walk without an error.
func TestWalkFromTheLastPage(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		for _, count := range []int{0, 1000} { // the service sends 50 at most
			list := pagingExample{totalPages: 3, totalRecords: 118, pages: []int{50, 50, 18}, then: "404"}
			s := &fake{answer: func(r asked) (*http.Response, error) { return list.reply(r.n), nil }}
			ahead.Page, ahead.Count = 2, count
			ids, err := walk(s.all(t, ahead))
			require.NoError(t, err)
			assert.Len(t, ids, 18)
		}
	})
}

// TestWalkFarFromTheFirstPage checks that a walk ends with an error after page 1,048,575 if the service claims a
// further page.
func TestWalkFarFromTheFirstPage(t *testing.T) {
	t.Parallel()
	const bound = 1 << 20
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		s := lying(func(page int) string { return pageBody(page+100, 0, strconv.Itoa(page)) })
		ahead.Page = bound - 2
		ids, err := walk(s.all(t, ahead))
		require.ErrorIs(t, err, payvault.ErrMalformedResponse)
		require.ErrorContains(t, err, "there are more than 1048576 pages")
		assert.Equal(t, []string{strconv.Itoa(bound - 2), strconv.Itoa(bound - 1)}, ids)
	})
}

// TestWalkWhoseRecordsAreChanged checks that a walk ends with an error if the service repeats a page, even if the loop
// has changed the records of the page.
func TestWalkWhoseRecordsAreChanged(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		seen := 0
		var last error
		for customer, err := range lying(func(int) string { return correct(0, 9) }).all(t, ahead) {
			if last = err; err == nil {
				seen++
				customer.ID, customer.Comments = "same", "same"
				customer.BillingCards[0].CardID = strconv.Itoa(seen)
			}
			require.LessOrEqual(t, seen, perPage, "it goes round in circles")
		}
		require.ErrorIs(t, last, payvault.ErrMalformedResponse)
	})
}

func (s *fake) queries() []string {
	var queries []string
	for _, r := range s.asked() {
		queries = append(queries, r.query)
	}
	slices.Sort(queries)
	return queries
}

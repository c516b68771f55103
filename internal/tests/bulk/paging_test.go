package bulk

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
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

// perPage is the number of records on a page. The last page has one less.
const perPage = 3

// pageBody returns a page with these totals, in the form of the service.
func pageBody(totalPages, totalRecords int, ids ...string) string {
	records := make([]string, len(ids))
	for i, id := range ids {
		records[i] = `{"customer_id":"` + id + `","billing_cards":[{"card_id":"CARD` + id + `"}]}`
	}
	return fmt.Sprintf(`{"code":0,"message":"Success","totalPages":%d,"totalRecords":%d,"data":[%s]}`,
		totalPages, totalRecords, strings.Join(records, ","))
}

// recordIDs returns the IDs on one of n pages.
func recordIDs(page, n int) (ids []string) {
	for i := range perPage {
		if page < n && (page < n-1 || i < perPage-1) {
			ids = append(ids, fmt.Sprintf("P%dR%d", page, i))
		}
	}
	return ids
}

// allIDs returns the IDs on the pages from first on, of n pages in all.
func allIDs(first, n int) (ids []string) {
	for page := first; page < n; page++ {
		ids = append(ids, recordIDs(page, n)...)
	}
	return ids
}

// correct returns one of n pages, with correct totals.
func correct(page, n int) string { return pageBody(n, n*perPage-1, recordIDs(page, n)...) }

// lying returns a service that answers with body(page). An empty body is a 404.
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

// walk returns the IDs of all records and the error that ends the walk.
func walk(seq customers) (ids []string, err error) {
	for customer, e := range seq {
		if e != nil {
			err = errors.Join(err, e)
			continue // the walk must end by itself
		}
		ids = append(ids, customer.ID)
	}
	return ids, err
}

// eachPrefetch runs a test for several values of Prefetch.
func eachPrefetch(t *testing.T, test func(t *testing.T, ahead *payvault.ListOptions)) {
	t.Helper()
	forEach(t, []int{0, 1, 3, 32}, func(t *testing.T, prefetch int) {
		test(t, &payvault.ListOptions{Prefetch: prefetch})
	})
}

// TestWalkInOrderAndOnce checks that each range over a walk starts anew and requests each page once. Later changes of
// the options have no effect.
func TestWalkInOrderAndOnce(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const n = 7
		for _, first := range []int{0, 3, 6, 9} {
			s, options, opts := &fake{pages: n}, *ahead, append(make([]payvault.CallOption, 0, 8), payvault.WithMaxAttempts(2))
			options.Page, options.Filters = first, []payvault.Filter{payvault.Where("a", "IN", "P", "Q")}
			seq := s.all(t, &options, opts...)
			options.Filters[0].Values[0], options.Filters[0].Field = "X", "x"
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
				last++ // the last page alone does not show how many records are before it, so one more page is requested
			}
			for page := first + 1; page < last; page++ {
				want = append(want, "filter=a%2CIN%2CP%2CQ&page="+strconv.Itoa(page))
			}
			assert.Equal(t, want, s.queries(), "each page once")
			service.Together(8, walks)
		}
	})
}

// TestWalkFromTheLastPage checks that a walk with a Count requests no page beyond the last one. Some services answer
// such a page with 404.
func TestWalkFromTheLastPage(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const n = 3
		ahead.Page, ahead.Count = n-1, perPage
		s := lying(func(page int) string {
			if page >= n {
				return ""
			}
			return correct(page, n)
		})
		ids, err := walk(s.all(t, ahead))
		require.NoError(t, err)
		assert.Equal(t, recordIDs(n-1, n), ids)
	})
}

// TestWalkOverPages checks that a walk over pages has the records of a walk over records. An error comes without a
// page.
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
		options := *ahead
		options.Page = 2
		var ids []string
		next := options.Page
		for page, err := range s.client(t).Customers.Pages(t.Context(), &options) {
			if err != nil {
				assert.Nil(t, page)
				assert.ErrorContains(t, err, "page 5")
				continue // the walk must end by itself
			}
			assert.Equal(t, next, page.Number)
			next++
			for _, customer := range page.Items {
				ids = append(ids, customer.ID)
			}
		}
		assert.Equal(t, failing, next)
		assert.Equal(t, append(append(recordIDs(2, n), recordIDs(3, n)...), recordIDs(4, n)...), ids)
	})
}

// TestWalkThatIsLeft checks that leaving the loop ends the requests in flight.
func TestWalkThatIsLeft(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		s := &fake{pages: 100, gates: newGates(1)}
		for _, err := range s.all(t, ahead) {
			require.NoError(t, err)
			synctest.Wait() // the pages ahead are in flight
			break
		}
		assert.Zero(t, s.flying.Load())
		assert.Len(t, s.seen, 1+ahead.Prefetch)
	})
}

// TestWalkOfBrokenCode checks that a panic of the caller's code in a goroutine reaches the loop when its page is due.
func TestWalkOfBrokenCode(t *testing.T) {
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

// TestWalkKeepsPrefetchPagesInFlight checks that exactly Prefetch pages are requested at a time.
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
				want = 1 // the first page tells how many there are
			}
			assert.EqualValues(t, want, s.flying.Load())
			close(s.gates[page])
		}
		assert.Equal(t, allIDs(0, 50), <-done)
	})
}

// TestWalkWithAnError checks that a walk ends with its first error. WithResponse has the page that is in use, even if
// later pages have arrived.
func TestWalkWithAnError(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const broken = 3
		s, n := &fake{pages: 7, answer: answerAt(http.StatusNotFound, "<html>", broken)}, 0
		var raw payvault.Response
		var last error
		for customer, err := range s.all(t, ahead, payvault.WithResponse(&raw)) {
			require.NoError(t, last, "it goes on after the error")
			synctest.Wait() // later pages and the error arrive before they are due
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
	})
}

// TestWalkOverServicesThatLie checks that a walk ends, with the existing records or with an error, whatever the service
// reports.
func TestWalkOverServicesThatLie(t *testing.T) {
	t.Parallel()
	// claims returns a service with n pages. It reports totals[i] pages on page i, and the last of totals on later pages.
	claims := func(n int, totals ...int) *fake {
		return lying(func(page int) string {
			return pageBody(totals[min(page, len(totals)-1)], 0, recordIDs(page, n)...)
		})
	}
	always := func(body string) *fake { return lying(func(int) string { return body }) }
	malformed := payvault.ErrMalformedResponse
	for name, test := range map[string]struct {
		s    *fake
		want []string
		err  error
		most int // requests without the prefetched ones
	}{
		"ignores the page, without totals": {always(`{"code":0,"data":[{"customer_id":"A"}]}`), []string{"A"}, malformed, 2},
		"claims 2^31-1 pages, has none":    {always(pageBody(math.MaxInt32, 0)), nil, nil, 1},
		"claims records, has no data":      {always(`{"code":0,"totalPages":1,"totalRecords":5}`), nil, malformed, 1},
		"claims 2^31-1 pages, has two":     {claims(2, math.MaxInt32), allIDs(0, 2), nil, 3},
		"claims no pages, has some":        {claims(4, 0), allIDs(0, 4), nil, 5},
		"claims a negative number":         {claims(4, -3), allIDs(0, 4), nil, 5},
		"claims on the first page only":    {claims(4, 4, 0), allIDs(0, 4), nil, 5},
		"has no pages":                     {always(pageBody(0, 0)), nil, nil, 1},
		"has an empty page":                {always(pageBody(1, 0)), nil, nil, 1},
		"has null on a page":               {always(`{"code":0,"data":null,"totalPages":1}`), nil, nil, 1},
		"claims -2^31 pages, has none":     {always(pageBody(math.MinInt32, 0)), nil, nil, 1},
		"empty last page":                  {claims(3, 4), allIDs(0, 3), nil, 4},
		"grows on its last page":           {claims(6, 3, 3, 6), allIDs(0, 6), nil, 6},
		"null beyond its last page": {lying(func(page int) string {
			if page < 3 {
				return pageBody(2, 99, recordIDs(page, 4)...)
			}
			return `{"code":0,"totalPages":2,"totalRecords":99,"data":null}`
		}), allIDs(0, 4)[:9], nil, 4},
		"null before its last page": {lying(func(page int) string {
			if page < 1 {
				return pageBody(3, 8, recordIDs(page, 3)...)
			}
			return `{"code":0,"totalPages":3,"totalRecords":8,"data":null}`
		}), allIDs(0, 3)[:3], malformed, 2},
		"shrinks, empty beyond": {claims(3, 9, 3), allIDs(0, 3), nil, 3},
		"repeats a page in the middle": {
			lying(func(page int) string { return correct(min(page, 3), 7) }), allIDs(0, 7)[:4*perPage], malformed, 5,
		},
		"repeats a page with other totals": {
			lying(func(page int) string { return pageBody(page+5, 7*page, "A") }), []string{"A"}, malformed, 2,
		},
		"shrinks, not found beyond": {lying(func(page int) string {
			return []string{pageBody(9, 0, recordIDs(0, 3)...), correct(1, 3), correct(2, 3), ""}[min(page, 3)]
		}), allIDs(0, 3), nil, 3},
		"shrinks to nothing": {lying(func(page int) string {
			return pageBody([]int{9, 0}[min(page, 1)], 0, recordIDs(page, 1)...)
		}), allIDs(0, 1), nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
				s := &fake{answer: test.s.answer}
				ids, err := walk(s.all(t, ahead))
				require.ErrorIs(t, err, test.err)
				if test.err != nil {
					assert.Equal(t, payvault.OpCustomersList, service.AsError(t, err).Op)
				}
				assert.Equal(t, test.want, ids)
				assert.LessOrEqual(t, len(s.seen), test.most+ahead.Prefetch)
			})
		})
	}
}

// TestWalkFarFromTheFirstPage checks that a walk ends with an error after 1,048,576 pages, since a service may always
// report another page.
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

		s = lying(func(page int) string { return map[int]string{bound - 2: pageBody(bound, 0, "a")}[page] })
		_, err = walk(s.all(t, ahead))
		require.ErrorContains(t, err, "page 1048575: payvault: customers.list: status 404")
	})
}

// TestWalkWhoseRecordsAreChanged checks that a repeated page is detected even if the loop changes the records.
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

// TestWalkOfSmallerPages checks that a walk that begins on a later page gets all records, even if the pages are smaller
// than Count and the service rounds their number down.
func TestWalkOfSmallerPages(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const n = 10 // the pages that the service reports; there is one more
		s := lying(func(page int) string {
			if page > n {
				return ""
			}
			return pageBody(n, (n+1)*perPage-1, recordIDs(page, n+1)...)
		})
		ahead.Page, ahead.Count = 2, 10*perPage
		ids, err := walk(s.all(t, ahead))
		require.NoError(t, err)
		var want []string
		for page := 2; page <= n; page++ {
			want = append(want, recordIDs(page, n+1)...)
		}
		assert.Equal(t, want, ids)
	})
}

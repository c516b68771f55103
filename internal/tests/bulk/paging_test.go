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

// pageBody returns a page with the given totals and records, as the service writes it.
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

// correct returns one of n pages, with true totals.
func correct(page, n int) string { return pageBody(n, n*perPage-1, recordIDs(page, n)...) }

// lying returns a service with a body for each page. A page with an empty body is answered with status 404.
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

// walk returns the IDs of all records, and the error that ends the walk.
func walk(seq customers) (ids []string, err error) {
	for customer, e := range seq {
		if e != nil {
			err = errors.Join(err, e)
			continue // the walk ends by itself
		}
		ids = append(ids, customer.ID)
	}
	return ids, err
}

// eachPrefetch runs a test with several values of Prefetch, each in a bubble of testing/synctest.
func eachPrefetch(t *testing.T, test func(t *testing.T, ahead *payvault.ListOptions)) {
	t.Helper()
	forEach(t, []int{0, 1, 3, 32}, func(t *testing.T, prefetch int) {
		test(t, &payvault.ListOptions{Prefetch: prefetch})
	})
}

// TestWalkInOrderAndOnce checks that a walk yields all records in their order and asks for each page once. Each walk
// begins anew. Changes of the options after the call have no effect.
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
				last++ // the last page alone does not show how many records there are before it
			}
			for page := first + 1; page < last; page++ {
				want = append(want, "filter=a%2CIN%2CP%2CQ&page="+strconv.Itoa(page))
			}
			assert.Equal(t, want, s.queries(), "each page once")
			service.Together(8, walks)
		}
	})
}

// TestWalkFromALaterPage checks a walk that does not begin with page 0. It gets all records from there on. It asks for
// no page beyond the last one, because some services answer that with status 404.
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
		ahead.Page = 2
		var numbers []int
		var ids []string
		for page, err := range s.client(t).Customers.Pages(t.Context(), ahead) {
			if err != nil {
				assert.Nil(t, page)
				assert.ErrorContains(t, err, "page 5")
				continue // the walk ends by itself
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

// TestWalkThatIsLeft checks that leaving the loop ends the requests in flight.
func TestWalkThatIsLeft(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		s := &fake{pages: 100, gates: newGates(1)}
		for _, err := range s.all(t, ahead) {
			require.NoError(t, err)
			synctest.Wait() // pages ahead are in flight
			break
		}
		assert.Zero(t, s.flying.Load())
		assert.Len(t, s.seen, 1+ahead.Prefetch)
	})
}

// TestWalkThatPanics checks that a panic of a transport comes out of the loop, after the pages before it.
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

// TestWalkKeepsPrefetchPagesInFlight checks that a walk keeps Prefetch requests in flight after the first page.
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
				want = 1 // the first page has the number of pages
			}
			assert.EqualValues(t, want, s.flying.Load())
			close(s.gates[page])
		}
		assert.Equal(t, allIDs(0, 50), <-done)
	})
}

// TestWalkWithAnError checks that a walk ends with its first error. WithResponse has the answer of the page that the
// loop has got, not of a page that was fetched ahead.
func TestWalkWithAnError(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
		const broken = 3
		s, n := &fake{pages: 7, answer: gives(http.StatusNotFound, "<html>", broken)}, 0
		var raw payvault.Response
		var last error
		for customer, err := range s.all(t, ahead, payvault.WithResponse(&raw)) {
			require.NoError(t, last, "it goes on after the error")
			synctest.Wait() // later pages, and the error, have arrived before the loop needs them
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

// TestWalkOverServicesThatLie checks that a walk over a service with wrong totals ends, with all records or with an
// error.
func TestWalkOverServicesThatLie(t *testing.T) {
	t.Parallel()
	type pages []string // the last one is the answer for all later pages
	malformed := payvault.ErrMalformedResponse
	for name, test := range map[string]struct {
		pages pages
		want  string // the records of the walk
		err   error
		most  int // most requests, without prefetched ones
	}{
		"claims 2^31-1 pages, has two": {
			pages{pageBody(math.MaxInt32, 0, "A", "B"), pageBody(math.MaxInt32, 0, "C"), pageBody(math.MaxInt32, 0)},
			"ABC", nil, 3,
		},
		"claims a negative number":      {pages{pageBody(-3, 0, "A"), pageBody(-3, 0, "B"), pageBody(-3, 0)}, "AB", nil, 3},
		"claims on the first page only": {pages{pageBody(2, 0, "A"), pageBody(0, 0, "B"), pageBody(0, 0)}, "AB", nil, 3},
		"grows": {
			pages{pageBody(2, 0, "A"), pageBody(3, 0, "B"), pageBody(3, 0, "C")}, "ABC", nil, 3,
		},
		"claims too few records": {
			pages{pageBody(3, 1, "A"), pageBody(3, 1, "B"), pageBody(3, 1, "C")}, "ABC", nil, 3,
		},
		"shrinks":                   {pages{pageBody(9, 0, "A"), pageBody(2, 0, "B"), pageBody(2, 0)}, "AB", nil, 2},
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

// TestWalkFarFromTheFirstPage checks that a walk ends with an error after 1,048,576 pages, because a service may always
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
	})
}

// TestWalkWhoseRecordsAreChanged checks that the loop may change its records. The walk still notices a page that
// repeats.
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

// Package paging holds lists and walks over them against services that page in all sorts of ways.
package paging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pager is a RoundTripper that stands for a service with pages. It keeps what it was asked for.
type pager struct {
	answer func(page int) (status int, body string)
	gates  []chan struct{} // if set, the request for a page waits until its gate is closed, or for its context

	mu             sync.Mutex
	asked          []int
	queries        []string
	inFlight, most int
}

func (p *pager) RoundTrip(req *http.Request) (*http.Response, error) {
	page, _ := strconv.Atoi(req.URL.Query().Get("page"))
	p.mu.Lock()
	p.asked, p.queries = append(p.asked, page), append(p.queries, req.URL.RawQuery)
	p.inFlight++
	p.most = max(p.most, p.inFlight)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.inFlight--
	}()
	if p.gates != nil {
		select {
		case <-p.gates[page]:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	status, body := p.answer(page)
	return &http.Response{
		StatusCode: status, Header: http.Header{"X-Page": {strconv.Itoa(page)}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// pages gives a copy of what was asked for.
func (p *pager) pages() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// flying is how many requests are in flight.
func (p *pager) flying() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight
}

// cannedClient is a client whose requests go to rt.
func cannedClient(t *testing.T, rt http.RoundTripper) *payvault.Client {
	t.Helper()
	return service.Client(t, "https://service.test/gateway/v1", service.Over(rt),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: time.Microsecond, MaxBackoff: time.Microsecond}))
}

// pageBody is a page with the given totals, written as the service does.
func pageBody(totalPages, totalRecords int, ids ...string) string {
	records := make([]string, len(ids))
	for i, id := range ids {
		records[i] = `{"customer_id":"` + id + `","billing_cards":[{"card_id":"CARD` + id + `"}]}`
	}
	return fmt.Sprintf(`{"code":0,"message":"Success","totalPages":%d,"totalRecords":%d,"data":[%s]}`,
		totalPages, totalRecords, strings.Join(records, ","))
}

// newGates are the gates of n pages; the first ones are open.
func newGates(n, open int) []chan struct{} {
	gates := make([]chan struct{}, n)
	for i := range gates {
		if gates[i] = make(chan struct{}); i < open {
			close(gates[i])
		}
	}
	return gates
}

// perPage is how many records the pages of a test have, but for the last one.
const perPage = 3

// recordIDs are the IDs on one of n pages; the last page has one record less.
func recordIDs(page, n int) []string {
	var ids []string
	for i := range perPage {
		if page < n && (page < n-1 || i < perPage-1) {
			ids = append(ids, fmt.Sprintf("P%dR%d", page, i))
		}
	}
	return ids
}

// allIDs are the IDs on n pages from the first one on.
func allIDs(first, n int) (ids []string) {
	for page := first; page < n; page++ {
		ids = append(ids, recordIDs(page, n)...)
	}
	return ids
}

// correct is a service of n pages.
func correct(n int) func(int) (int, string) {
	return func(page int) (int, string) {
		return http.StatusOK, pageBody(n, n*perPage-1, recordIDs(page, n)...)
	}
}

// walk gives the IDs of all records, and the error that ends the walk.
func walk(seq iter.Seq2[*payvault.Customer, error]) (ids []string, err error) {
	for customer, e := range seq {
		if e != nil {
			err = errors.Join(err, e)
			continue // the walk ends by itself
		}
		ids = append(ids, customer.ID)
	}
	return ids, err
}

// prefetches are the windows that each kind of walk is tried with.
func prefetches() []int { return []int{0, 1, 2, 3, 8, 32} }

// eachPrefetch runs a test in a bubble per window.
func eachPrefetch(t *testing.T, f func(t *testing.T, prefetch int)) {
	t.Helper()
	for _, prefetch := range prefetches() {
		t.Run(fmt.Sprintf("prefetch %d", prefetch), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { f(t, prefetch) })
		})
	}
}

func TestWalkInOrderAndOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 7} {
		for _, first := range []int{0, 1, 3, 6, 9} {
			t.Run(fmt.Sprintf("%d pages from %d", n, first), func(t *testing.T) {
				t.Parallel()
				eachPrefetch(t, func(t *testing.T, prefetch int) {
					t.Helper()
					p := &pager{answer: correct(n)}
					seq := cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Page: first, Prefetch: prefetch})
					synctest.Wait()
					assert.Empty(t, p.pages(), "nothing is asked before it is ranged over")
					want := []int{first}
					for page := first + 1; page < n; page++ {
						want = append(want, page)
					}
					for range 2 { // it can be started again
						p.asked = nil
						ids, err := walk(seq)
						require.NoError(t, err)
						assert.Equal(t, allIDs(first, n), ids)
						asked := p.pages()
						slices.Sort(asked) // pages in flight overtake each other
						assert.Equal(t, want, asked, "each page once")
					}
				})
			})
		}
	}
}

func TestWalkOfNilOptionsAndNothing(t *testing.T) {
	t.Parallel()
	p := &pager{answer: correct(3)}
	ids, err := walk(cannedClient(t, p).Customers.All(t.Context(), nil))
	require.NoError(t, err)
	assert.Equal(t, allIDs(0, 3), ids)
	assert.Equal(t, []string{"page=0", "page=1", "page=2"}, p.queries)

	for _, body := range []string{
		pageBody(0, 0), pageBody(1, 0), `{"code":0,"data":null,"totalPages":0}`, `{"code":0,"data":null,"totalPages":1}`,
	} {
		p := &pager{answer: func(int) (int, string) { return http.StatusOK, body }}
		ids, err := walk(cannedClient(t, p).Customers.All(t.Context(), nil))
		require.NoError(t, err, body)
		assert.Empty(t, ids)
		assert.Len(t, p.pages(), 1)
	}
}

func TestWalkOfTransactions(t *testing.T) {
	t.Parallel()
	p := &pager{answer: func(page int) (int, string) {
		return http.StatusOK, fmt.Sprintf(`{"code":0,"totalPages":3,"totalRecords":3,"data":[{"pg_id":"PG%d"}]}`, page)
	}}
	var ids []string
	for transaction, err := range cannedClient(t, p).Subscriptions.AllTransactions(t.Context(), 8,
		&payvault.ListOptions{Prefetch: 2}) {
		require.NoError(t, err)
		ids = append(ids, transaction.PGID)
	}
	assert.Equal(t, []string{"PG0", "PG1", "PG2"}, ids)
}

func TestWalkForMerchant(t *testing.T) {
	t.Parallel()
	p := &pager{answer: correct(2)}
	options := &payvault.ListOptions{Count: 3}
	client := cannedClient(t, p)
	ids, err := walk(client.ForMerchant(7).Customers.All(t.Context(), options))
	require.NoError(t, err)
	assert.Equal(t, allIDs(0, 2), ids)
	assert.Equal(t, []string{"count=3&merchant_id=7&page=0", "count=3&merchant_id=7&page=1"}, p.queries)
	assert.Zero(t, options.MerchantID)

	_, err = walk(client.ForMerchant(7).Customers.All(t.Context(), &payvault.ListOptions{MerchantID: 8}))
	service.AssertInvalid(t, err, payvault.OpCustomersList,
		map[string][]string{"merchant_id": {"names another merchant than ForMerchant"}})
	assert.Len(t, p.queries, 2)
}

func TestWalkStopsOnBreak(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, perPage, perPage + 1, 3 * perPage} {
		t.Run(fmt.Sprintf("after %d", after), func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, prefetch int) {
				t.Helper()
				needed := (after-1)/perPage + 1
				p := &pager{answer: correct(100), gates: newGates(100, needed)}
				seen := 0
				for _, err := range cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}) {
					require.NoError(t, err)
					synctest.Wait() // pages ahead are in flight
					if seen++; seen == after {
						break
					}
				}
				assert.Zero(t, p.flying(), "nothing is in flight after the loop")
				assert.Len(t, p.pages(), needed+prefetch)
				synctest.Wait()
				assert.Len(t, p.pages(), needed+prefetch, "nothing is asked after the loop")
			})
		})
	}
}

// TestWalkIsOnDemand looks at what is in flight at each record.
func TestWalkIsOnDemand(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		const n = 40
		p := &pager{answer: correct(n)}
		record := 0
		for _, err := range cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}) {
			require.NoError(t, err)
			synctest.Wait() // whatever is fetched ahead is there
			ahead := len(p.pages()) - (record/perPage + 1)
			assert.Equal(t, min(prefetch, n-1-record/perPage), ahead, "record %d", record)
			record++
		}
		assert.Equal(t, n*perPage-1, record)
		assert.LessOrEqual(t, p.most, max(prefetch, 1))
	})
}

// TestWalkKeepsPrefetchPagesInFlight lets nothing through before as many requests wait as may.
func TestWalkKeepsPrefetchPagesInFlight(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		const n = 50
		p := &pager{answer: correct(n), gates: newGates(n, 0)}
		done := make(chan []string)
		go func() {
			ids, err := walk(cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}))
			assert.NoError(t, err)
			done <- ids
		}()
		synctest.Wait()
		assert.Equal(t, 1, p.flying(), "the first page tells how many there are")
		close(p.gates[0])
		for page := 1; page < n; page++ {
			synctest.Wait()
			assert.Equal(t, min(max(prefetch, 1), n-page), p.flying())
			close(p.gates[page])
		}
		assert.Equal(t, allIDs(0, n), <-done)
		assert.Equal(t, max(prefetch, 1), p.most)
	})
}

// TestWalkDecodesWhatIsThere: an answer that is late holds up no other.
func TestWalkDecodesWhatIsThere(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		n := 1 + max(prefetch, 1)
		p := &pager{answer: correct(n), gates: newGates(n, n)}
		oldest := make(chan struct{})
		p.gates[1] = oldest
		var decoded atomic.Int64
		client, err := payvault.NewClient("https://service.test", "test-api-key",
			payvault.WithHTTPClient(&http.Client{Transport: p}),
			payvault.WithObserver(payvault.Observer{
				End: func(context.Context, payvault.CallInfo, payvault.CallResult) { decoded.Add(1) },
			}))
		require.NoError(t, err)
		done := make(chan []string)
		go func() {
			ids, err := walk(client.Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}))
			assert.NoError(t, err)
			done <- ids
		}()
		synctest.Wait()
		assert.Equal(t, 1, p.flying(), "all but the oldest have their answers")
		assert.EqualValues(t, n-1, decoded.Load())
		close(oldest)
		assert.Equal(t, allIDs(0, n), <-done)
	})
}

func TestWalkEndsWithItsFirstError(t *testing.T) {
	t.Parallel()
	for _, broken := range []int{0, 1, 3, 6} {
		t.Run(fmt.Sprintf("page %d", broken), func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, prefetch int) {
				t.Helper()
				p := &pager{answer: func(page int) (int, string) {
					if page == broken {
						return http.StatusNotFound, `{"code":44,"message":"no such page"}`
					}
					return correct(7)(page)
				}}
				var ids []string
				var failures []error
				for customer, err := range cannedClient(t, p).Customers.All(t.Context(),
					&payvault.ListOptions{Prefetch: prefetch}) {
					synctest.Wait() // the error is there long before it is due
					if err != nil {
						assert.Nil(t, customer)
						failures = append(failures, err)
						continue
					}
					require.Empty(t, failures, "a record after the error")
					ids = append(ids, customer.ID)
				}
				require.Len(t, failures, 1)
				require.ErrorIs(t, failures[0], payvault.ErrNotFound)
				assert.Equal(t, append([]string{}, allIDs(0, 7)[:broken*perPage]...), append([]string{}, ids...))
				assert.Zero(t, p.flying())
			})
		})
	}
}

// TestWalkOverServicesThatLie ends each walk with the records that there are, or with an error.
func TestWalkOverServicesThatLie(t *testing.T) {
	t.Parallel()
	ok := func(body string) (int, string) { return http.StatusOK, body }
	// claims has records on n pages, and says of their number what is in totals; the last one goes for all others.
	claims := func(n int, totals ...int) func(int) (int, string) {
		return func(page int) (int, string) {
			return ok(pageBody(totals[min(page, len(totals)-1)], 0, recordIDs(page, n)...))
		}
	}
	always := func(body string) func(int) (int, string) { return func(int) (int, string) { return ok(body) } }
	malformed := payvault.ErrMalformedResponse
	for name, test := range map[string]struct {
		answer func(page int) (int, string)
		want   []string
		err    error
		most   int // requests, besides those that are prefetched
	}{
		"repeats its only page":            {always(pageBody(1<<31, 1<<33, "A", "B")), []string{"A", "B"}, malformed, 2},
		"ignores the page, without totals": {always(`{"code":0,"data":[{"customer_id":"A"}]}`), []string{"A"}, malformed, 2},
		"claims 2^62 pages, has none":      {always(pageBody(1<<62, 0)), nil, malformed, 1},
		"claims records, has no data":      {always(`{"code":0,"totalPages":1,"totalRecords":5}`), nil, malformed, 1},
		"claims 2^31 pages, has two":       {claims(2, 1<<31), allIDs(0, 2), malformed, 3},
		"claims no pages, has some":        {claims(4, 0), allIDs(0, 4), nil, 5},
		"claims a negative number":         {claims(4, -3), allIDs(0, 4), nil, 5},
		"claims on the first page only":    {claims(4, 4, 0), allIDs(0, 4), nil, 5},
		"empty last page":                  {claims(3, 4), allIDs(0, 3), nil, 4},
		"grows":                            {claims(6, 2, 3, 4, 5, 6), allIDs(0, 6), nil, 6},
		"grows on its last page":           {claims(6, 3, 3, 6), allIDs(0, 6), nil, 6},
		"shrinks, empty beyond":            {claims(3, 9, 3), allIDs(0, 3), nil, 3},
		"repeats a page in the middle": {
			func(page int) (int, string) { return correct(7)(min(page, 3)) }, allIDs(0, 7)[:4*perPage], malformed, 5,
		},
		"repeats a page with other totals": {
			func(page int) (int, string) { return ok(pageBody(page+5, page, "A")) }, []string{"A"}, malformed, 2,
		},
		"claims pages, has a gap": {func(page int) (int, string) {
			if page == 2 {
				return ok(pageBody(5, 10))
			}
			return correct(5)(page)
		}, allIDs(0, 5)[:2*perPage], malformed, 3},
		"claims nothing": {func(page int) (int, string) {
			body := pageBody(0, 0, recordIDs(page, 4)...)
			return ok(strings.Replace(body, `"totalPages":0,"totalRecords":0,`, "", 1))
		}, allIDs(0, 4), nil, 5},
		"shrinks, not found beyond": {func(page int) (int, string) {
			if page >= 3 {
				return http.StatusNotFound, ""
			}
			return claims(3, 9, 3)(page)
		}, allIDs(0, 3), nil, 3},
		"shrinks, last page beyond": {func(page int) (int, string) {
			return ok(pageBody([]int{9, 3}[min(page, 1)], 8, recordIDs(min(page, 2), 3)...))
		}, allIDs(0, 3), nil, 3},
		"shrinks to nothing": {func(page int) (int, string) {
			if page == 0 {
				return ok(pageBody(9, 27, recordIDs(page, 3)...))
			}
			return ok(pageBody(0, 0))
		}, allIDs(0, 3)[:perPage], nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, prefetch int) {
				t.Helper()
				p := &pager{answer: test.answer}
				ids, err := walk(cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}))
				require.ErrorIs(t, err, test.err)
				if test.err != nil {
					assert.Equal(t, payvault.OpCustomersList, service.AsError(t, err).Op)
				}
				assert.Equal(t, test.want, ids)
				assert.LessOrEqual(t, len(p.pages()), test.most+prefetch)
			})
		})
	}
}

// TestWalkWithoutEnd: a service that always claims another page is left at a bound.
func TestWalkWithoutEnd(t *testing.T) {
	t.Parallel()
	const bound = 1 << 20
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		p := &pager{answer: func(page int) (int, string) { return http.StatusOK, pageBody(page+100, 0, strconv.Itoa(page)) }}
		options := &payvault.ListOptions{Page: bound - 2, Prefetch: prefetch}
		ids, err := walk(cannedClient(t, p).Customers.All(t.Context(), options))
		require.ErrorIs(t, err, payvault.ErrMalformedResponse)
		require.ErrorContains(t, err, "there are more than 1048576 pages")
		assert.Equal(t, []string{strconv.Itoa(bound - 2), strconv.Itoa(bound - 1)}, ids)
	})
}

// The records belong to the loop: changing them neither hides that a page repeats nor makes it look as if one did.
func TestWalkWhoseRecordsAreChanged(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		p := &pager{answer: func(page int) (int, string) {
			return http.StatusOK, pageBody(1<<31, 1<<33, recordIDs(0, 9)...)
		}}
		seen := 0
		var last error
		for customer, err := range cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}) {
			if last = err; err == nil {
				seen++
				customer.ID, customer.Comments = "same", "same"
				customer.BillingCards[0].CardID = fmt.Sprint("seen", seen)
			}
			require.Less(t, seen, 20, "it goes round in circles")
		}
		require.ErrorIs(t, last, payvault.ErrMalformedResponse)
		assert.LessOrEqual(t, seen, perPage)
	})
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		seen := 0
		for customer, err := range cannedClient(t, &pager{answer: correct(9)}).Customers.All(t.Context(),
			&payvault.ListOptions{Prefetch: prefetch}) {
			require.NoError(t, err)
			*customer = payvault.Customer{}
			seen++
		}
		assert.Equal(t, 9*perPage-1, seen)
	})
}

// TestWalkAtTheLastNumbers: the number of a page does not overflow.
func TestWalkAtTheLastNumbers(t *testing.T) {
	t.Parallel()
	for _, page := range []int{math.MaxInt, math.MaxInt - 1} {
		p := &pager{answer: correct(1)}
		_, err := walk(cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Page: page}))
		service.AssertInvalid(t, err, payvault.OpCustomersList, service.Fields{"page": {"is out of range"}})
		assert.Empty(t, p.pages())
	}
}

func TestWalkWhoseContextEnds(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		for _, after := range []int{0, 1, perPage, 2*perPage + 1} {
			p := &pager{answer: correct(100)}
			ctx, cancel := context.WithCancel(t.Context())
			if after == 0 {
				cancel()
			}
			seen := 0
			var failures []error
			for customer, err := range cannedClient(t, p).Customers.All(ctx, &payvault.ListOptions{Prefetch: prefetch}) {
				if err != nil {
					assert.Nil(t, customer)
					failures = append(failures, err)
					continue
				}
				if seen++; seen == after {
					cancel()
				}
			}
			cancel()
			require.Len(t, failures, 1)
			require.ErrorIs(t, failures[0], context.Canceled)
			assert.GreaterOrEqual(t, seen, after)
			assert.LessOrEqual(t, seen, after+(prefetch+1)*perPage, "what has been fetched is still yielded")
			assert.Zero(t, p.flying())
		}
	})
}

func TestWalkWhoseConsumerPanics(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		p := &pager{answer: correct(100), gates: newGates(100, 1)}
		assert.PanicsWithValue(t, "consumer", func() {
			for _, err := range cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}) {
				assert.NoError(t, err)
				synctest.Wait()
				assert.Equal(t, prefetch, p.flying())
				panic("consumer")
			}
		})
		assert.Zero(t, p.flying())
		assert.Len(t, p.pages(), 1+prefetch)
	})
}

func TestWalkDoesNotSeeLaterChanges(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		const want = "count=3&filter=tran_status%2CIN%2CP%2CQ&order_by=asc&order_on=customer_id&page="
		p := &pager{answer: correct(3)}
		options := &payvault.ListOptions{
			OrderOn: "customer_id", OrderBy: payvault.Ascending, Count: 3, Prefetch: prefetch,
			Filters: []payvault.Filter{payvault.Where("tran_status", "IN", "P", "Q")},
		}
		seq := cannedClient(t, p).Customers.All(t.Context(), options)
		change := func() {
			options.Filters[0].Values[0] = "X"
			options.Filters[0].Field = "x"
			options.Filters = nil
			*options = payvault.ListOptions{Page: 77, Prefetch: 99, Count: -1}
		}
		change()
		options = &payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("a", "b", "c")}}
		ids, err := walk(seq)
		require.NoError(t, err)
		assert.Equal(t, allIDs(0, 3), ids)
		slices.Sort(p.queries)
		assert.Equal(t, []string{want + "0", want + "1", want + "2"}, p.queries)
	})
}

func TestWalksShareTheirOptions(t *testing.T) {
	t.Parallel()
	options := &payvault.ListOptions{
		Count: 3, Prefetch: 2, Filters: []payvault.Filter{payvault.Where("tran_status", "IN", "P", "Q")},
	}
	p := &pager{answer: correct(5)}
	client := cannedClient(t, p)
	callOptions := append(make([]payvault.CallOption, 0, 8), payvault.WithHeader("X-Walk", "1"), payvault.WithAttempts(2))
	seq := client.Customers.All(t.Context(), options, callOptions...)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			ids, err := walk(client.Customers.All(t.Context(), options, callOptions...))
			assert.NoError(t, err)
			assert.Equal(t, allIDs(0, 5), ids)
			ids, err = walk(seq)
			assert.NoError(t, err)
			assert.Equal(t, allIDs(0, 5), ids)
			_, err = client.Customers.List(t.Context(), options, callOptions...)
			assert.NoError(t, err)
		})
	}
	running.Wait()
	assert.Equal(t, &payvault.ListOptions{
		Count: 3, Prefetch: 2, Filters: []payvault.Filter{payvault.Where("tran_status", "IN", "P", "Q")},
	}, options)
}

func TestWalkWithResponse(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		const broken = 5
		p := &pager{answer: func(page int) (int, string) {
			if page == broken {
				return http.StatusForbidden, "<html>page 5</html>"
			}
			return correct(7)(page)
		}}
		var raw payvault.Response
		callOptions := append(make([]payvault.CallOption, 0, 4), payvault.WithResponse(&raw))
		record := 0
		for customer, err := range cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch},
			callOptions...) {
			synctest.Wait() // later pages have arrived
			assert.Equal(t, 1, raw.Attempts)
			assert.Equal(t, strconv.Itoa(record/perPage), raw.Header.Get("X-Page"))
			if err != nil {
				assert.Equal(t, http.StatusForbidden, raw.StatusCode)
				assert.Equal(t, "<html>page 5</html>", string(raw.Body))
				break
			}
			assert.Equal(t, http.StatusOK, raw.StatusCode)
			assert.Contains(t, string(raw.Body), `"`+customer.ID+`"`)
			record++
		}
		assert.Equal(t, broken*perPage, record)
	})
}

func TestWalkRepeatsAFailedPage(t *testing.T) {
	t.Parallel()
	eachPrefetch(t, func(t *testing.T, prefetch int) {
		t.Helper()
		var mu sync.Mutex
		failed := map[int]bool{}
		p := &pager{answer: func(page int) (int, string) {
			mu.Lock()
			defer mu.Unlock()
			if !failed[page] {
				failed[page] = true
				return http.StatusServiceUnavailable, ""
			}
			return correct(4)(page)
		}}
		ids, err := walk(cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Prefetch: prefetch}))
		require.NoError(t, err)
		assert.Equal(t, allIDs(0, 4), ids)
		assert.Len(t, p.pages(), 8)
	})
}

// TestWalkWithANegativeNumberOfPages ends, wherever it starts.
func TestWalkWithANegativeNumberOfPages(t *testing.T) {
	t.Parallel()
	for _, total := range []int{math.MinInt, -1} {
		p := &pager{answer: func(int) (int, string) { return http.StatusOK, pageBody(total, 0) }}
		_, err := walk(cannedClient(t, p).Customers.All(t.Context(), &payvault.ListOptions{Page: 1}))
		require.NoError(t, err)
		assert.Len(t, p.pages(), 1)
	}
}

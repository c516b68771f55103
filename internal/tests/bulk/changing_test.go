package bulk

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// live is a service whose list of customers grows while a walk reads it.
type live struct {
	fake

	perPage int
	totals  func(records, perPage int) (totalPages, totalRecords int) // totals that the service claims
	before  func(r asked)                                             // called before each answer; may be nil

	mu  sync.Mutex
	ids []string
}

// newLive returns a service whose list has the records C0, C1 and so on.
func newLive(records, perPage int) *live {
	l := &live{perPage: perPage, totals: roundedUp}
	for i := range records {
		l.ids = append(l.ids, fmt.Sprintf("C%d", i))
	}
	l.answer = func(r asked) (*http.Response, error) {
		if l.before != nil {
			l.before(r)
		}
		return service.Reply(http.StatusOK, l.page(r.n)), nil
	}
	return l
}

func (l *live) page(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	totalPages, totalRecords := l.totals(len(l.ids), l.perPage)
	from := min(n*l.perPage, len(l.ids))
	return pageBody(totalPages, totalRecords, l.ids[from:min(from+l.perPage, len(l.ids))]...)
}

// add inserts a new record before all other records.
func (l *live) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = slices.Insert(l.ids, 0, fmt.Sprintf("new%d", len(l.ids)))
}

func roundedUp(records, perPage int) (int, int) { return (records + perPage - 1) / perPage, records }

// totals returns the ways in which a service may compute the totals of its list.
func totals() map[string]func(records, perPage int) (totalPages, totalRecords int) {
	return map[string]func(int, int) (int, int){
		"rounded up":   roundedUp,
		"rounded down": func(records, perPage int) (int, int) { return records / perPage, records },
		"only pages":   func(records, perPage int) (int, int) { return (records + perPage - 1) / perPage, 0 },
		"only records": func(records, _ int) (int, int) { return 0, records },
		"none":         func(int, int) (int, int) { return 0, 0 },
	}
}

// TestWalkOverAnyTotals checks that a walk gets all records, whatever totals the service claims. The walk must not make
// too many requests: besides its first page and the pages that exist or that the service claims, it may request at most
// Prefetch pages, or one page if Prefetch is 0.
func TestWalkOverAnyTotals(t *testing.T) {
	t.Parallel()
	all := totals()
	all["of another list"] = func(int, int) (int, int) { return 9, 99 }
	all["up to a maximum"] = func(records, perPage int) (int, int) { return roundedUp(min(records, 10), perPage) }
	all["whole pages"] = func(records, perPage int) (int, int) {
		pages, _ := roundedUp(records, perPage)
		return pages, pages * perPage
	}
	for name, totals := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
				const perPage = 5
				for records := range 20 {
					for first := range 3 {
						l, options := newLive(records, perPage), *ahead
						want := append([]string{}, l.ids[min(first*perPage, records):]...)
						l.totals, options.Page = totals, first
						ids, err := walk(l.all(t, &options))
						require.NoError(t, err)
						assert.Equal(t, want, append([]string{}, ids...), "%d records from page %d on", records, first)
						claimed, _ := totals(records, perPage)
						pages := max(1, (records+perPage-1)/perPage-first, claimed-first)
						assert.LessOrEqual(t, len(l.seen), pages+1+max(ahead.Prefetch-1, 0))
					}
				}
			})
		})
	}
}

// TestWalkWhileRecordsAreAdded checks that a walk yields every record that was in the list at first, even if records
// are inserted meanwhile.
func TestWalkWhileRecordsAreAdded(t *testing.T) {
	t.Parallel()
	for name, totals := range totals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, []int{0, 1, 2, 8, 32}, func(t *testing.T, prefetch int) {
				for seed := range uint64(20) {
					random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test has to be repeatable
					l := newLive(60, 3)
					l.totals = totals
					there := slices.Clone(l.ids)
					var mu sync.Mutex
					l.before = func(r asked) {
						mu.Lock()
						takes, adds := time.Duration(random.IntN(100))*time.Millisecond, random.IntN(8) == 0
						mu.Unlock()
						_ = r.sleep(takes)
						if adds {
							l.add()
						}
					}
					ids, err := walk(l.all(t, &payvault.ListOptions{Prefetch: prefetch}))
					require.NoError(t, err)
					for _, id := range there {
						require.Contains(t, ids, id, "seed %d: it was there all along", seed)
					}
				}
			})
		})
	}
}

// TestWalkOfAChangingListGoesOnPageByPage checks that a walk that has fetched pages ahead requests them again, one at a
// time, if the totals have changed between two pages.
func TestWalkOfAChangingListGoesOnPageByPage(t *testing.T) {
	t.Parallel()
	forEach(t, []int{2, 8}, func(t *testing.T, prefetch int) {
		l := newLive(60, 3)
		l.before = func(r asked) {
			if r.n == 1 && r.nth <= 1+prefetch { // page 1 is answered after the next pages
				_ = r.sleep(time.Second)
				l.add()
			}
		}
		seen := 0
		var raw payvault.Response
		for customer, err := range l.all(t, &payvault.ListOptions{Prefetch: prefetch}, payvault.WithResponse(&raw)) {
			require.NoError(t, err)
			assert.Contains(t, string(raw.Body), strconv.Quote(customer.ID), "the response is that of the page in use")
			if seen++; seen > 3 {
				assert.LessOrEqual(t, l.flying.Load(), int64(1))
			}
		}
		assert.Equal(t, 61, seen, "one of them twice, and not the new one")
		assert.LessOrEqual(t, len(l.seen), 21+prefetch, "only the pages that were asked for ahead come twice")
	})
}

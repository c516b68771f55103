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

// live is a service whose list of customers can change during a walk.
type live struct {
	fake

	perPage int
	totals  func(records, perPage int) (totalPages, totalRecords int) // the totals that the service reports
	before  func(r asked)                                             // called before each answer; may be nil

	mu  sync.Mutex
	ids []string
}

// newLive returns a service with this number of records: C0, C1 and so on.
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

// add inserts a new record before all others.
func (l *live) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = slices.Insert(l.ids, 0, fmt.Sprintf("new%d", len(l.ids)))
}

// remove removes the first n records.
func (l *live) remove(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = l.ids[min(n, len(l.ids)):]
}

func roundedUp(records, perPage int) (int, int) { return (records + perPage - 1) / perPage, records }

func roundedDown(records, perPage int) (int, int) { return records / perPage, records }

func onlyPages(records, perPage int) (int, int) { return (records + perPage - 1) / perPage, 0 }

func onlyRecords(records, _ int) (int, int) { return 0, records }

func noTotals(int, int) (int, int) { return 0, 0 }

// TestWalkOverAnyTotals checks that a walk returns all records, whichever totals the service reports and however it
// rounds them.
func TestWalkOverAnyTotals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		totals func(records, perPage int) (int, int)
		beyond int // how many pages beyond the existing ones may be requested
	}{
		"rounded up":   {roundedUp, 1}, // a walk that begins on the last page requests one page too many
		"rounded down": {roundedDown, 1},
		"only pages":   {onlyPages, 0},
		"only records": {onlyRecords, 1},
		"none":         {noTotals, 1},
		"of all lists": {func(int, int) (int, int) { return 9, 99 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
				const perPage = 2
				for records := range 8 {
					for first := range 3 {
						l, options := newLive(records, perPage), *ahead
						want := append([]string{}, l.ids[min(first*perPage, records):]...)
						l.totals, options.Page = test.totals, first
						ids, err := walk(l.all(t, &options))
						require.NoError(t, err)
						assert.Equal(t, want, append([]string{}, ids...), "%d records from page %d on", records, first)
						most := max(1, (records+perPage-1)/perPage-first) + test.beyond + max(ahead.Prefetch-1, 0)
						assert.LessOrEqual(t, len(l.seen), most)
					}
				}
			})
		})
	}
}

// TestWalkWhileRecordsAreRemoved checks that a walk ends without an error when records are removed. It may miss records
// that move to an earlier page.
func TestWalkWhileRecordsAreRemoved(t *testing.T) {
	t.Parallel()
	for _, removed := range []int{1, 2, 5, 100} {
		for name, totals := range map[string]func(int, int) (int, int){
			"rounded up": roundedUp, "rounded down": roundedDown, "only pages": onlyPages, "none": noTotals,
		} {
			t.Run(fmt.Sprint(removed, " ", name), func(t *testing.T) {
				t.Parallel()
				eachPrefetch(t, func(t *testing.T, ahead *payvault.ListOptions) {
					l := newLive(20, 2)
					l.totals = totals
					seen := 0
					for customer, err := range l.all(t, ahead) {
						require.NoError(t, err)
						require.NotEmpty(t, customer.ID)
						if seen++; seen == 3 {
							l.remove(removed)
						}
					}
					assert.GreaterOrEqual(t, seen, 4)
				})
			})
		}
	}
}

// TestWalkWhileRecordsAreAdded checks that a walk returns every record that existed when it began. It may return some
// twice.
func TestWalkWhileRecordsAreAdded(t *testing.T) {
	t.Parallel()
	for name, totals := range map[string]func(int, int) (int, int){
		"rounded up": roundedUp, "rounded down": roundedDown, "only pages": onlyPages, "only records": onlyRecords,
		"none": noTotals,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, []int{0, 1, 2, 8, 32}, func(t *testing.T, prefetch int) {
				for seed := range uint64(20) {
					random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test that can be repeated
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

// TestWalkOfAChangingListGoesOnPageByPage checks that a page with other totals is requested again, and that later pages
// are requested one at a time.
func TestWalkOfAChangingListGoesOnPageByPage(t *testing.T) {
	t.Parallel()
	forEach(t, []int{2, 8}, func(t *testing.T, prefetch int) {
		l := newLive(60, 3)
		l.before = func(r asked) {
			if r.nth == 2 { // page 1: all pages ahead of it are answered before a record is added
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
		assert.LessOrEqual(t, len(l.seen), 21+prefetch, "each page once, but for those that were asked for ahead")
	})
}

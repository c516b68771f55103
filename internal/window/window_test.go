package window

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count returns a function that gives n jobs, of which each returns its number.
func count(n int, run func(i int)) func() (func() int, bool) {
	given := 0
	return func() (func() int, bool) {
		if given == n {
			return nil, false
		}
		i := given
		given++
		return func() int {
			run(i)
			return i
		}, true
	}
}

// TestResultsInOrder: whichever job ends first, and never more than size of them at a time.
func TestResultsInOrder(t *testing.T) {
	t.Parallel()
	for _, size := range []int{-1, 0, 1, 3, 8, 100} {
		synctest.Test(t, func(t *testing.T) {
			var running, most atomic.Int64
			var mu sync.Mutex
			w := New(size, count(50, func(int) {
				mu.Lock()
				most.Store(max(most.Load(), running.Add(1)))
				mu.Unlock()
				<-time.After(time.Duration(1+rand.IntN(1000)) * time.Millisecond) //nolint:gosec // any will do
				running.Add(-1)
			}))
			for want := range 50 {
				got, ok := w.Pop()
				require.True(t, ok)
				assert.Equal(t, want, got)
				assert.LessOrEqual(t, running.Load(), int64(max(size, 0)))
				w.Fill()
				synctest.Wait()
				assert.LessOrEqual(t, running.Load(), int64(max(size, 0)))
			}
			_, ok := w.Pop()
			assert.False(t, ok)
			assert.EqualValues(t, min(max(size, 1), 50), most.Load(), "as many at a time as may")
		})
	}
}

// TestLazy: nothing runs before Fill or Pop; with size 0 Fill starts nothing.
func TestLazy(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int64{0: 0, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			var begun atomic.Int64
			w := New(size, count(10, func(int) { begun.Add(1) }))
			synctest.Wait()
			assert.Zero(t, begun.Load())
			w.Fill()
			w.Fill()
			synctest.Wait()
			assert.Equal(t, want, begun.Load())
			w.Wait()
		})
	}
}

// TestMoreJobsLater: that there is no job at one moment does not end the window.
func TestMoreJobsLater(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 3} {
		open, given := 1, 0
		w := New(size, func() (func() int, bool) {
			if given == open {
				return nil, false
			}
			given++
			i := given
			return func() int { return i }, true
		})
		for round := range 5 {
			open++
			got, ok := w.Pop()
			assert.True(t, ok)
			assert.Equal(t, round+1, got)
		}
		w.Wait()
	}
}

// TestPanics reach who pops the job, and not before its turn.
func TestPanics(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 3} {
		w := New(size, count(10, func(i int) {
			if i == 2 {
				panic("broken")
			}
		}))
		for want := range 2 {
			got, _ := w.Pop()
			assert.Equal(t, want, got)
		}
		assert.PanicsWithValue(t, "broken", func() { w.Pop() })
		w.Wait()
	}
}

// TestWait: a window that is left waits for its jobs.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		w := New(4, count(10, func(int) {
			<-time.After(time.Minute)
			ended.Add(1)
		}))
		w.Fill()
		w.Wait()
		assert.EqualValues(t, 4, ended.Load())
	})
}

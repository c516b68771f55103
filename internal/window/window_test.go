package window

import (
	"math"
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

// TestResultsInOrder checks that Pop returns the results in the order in which the jobs were started, and that the
// window runs as many jobs at the same time as it has room for.
func TestResultsInOrder(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3, 8, 100, math.MaxInt} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			running, most := 0, 0
			w := New[int](size)
			go func() {
				defer w.End()
				for i := range 50 {
					w.Start(func() int {
						mu.Lock()
						running++
						most = max(most, running)
						mu.Unlock()
						<-time.After(time.Duration(1+rand.IntN(1000)) * time.Millisecond) //nolint:gosec // any will do
						mu.Lock()
						running--
						mu.Unlock()
						return i
					})
				}
			}()
			for want := range 50 {
				got, ok := w.Pop()
				require.True(t, ok)
				assert.Equal(t, want, got)
			}
			_, ok := w.Pop()
			assert.False(t, ok)
			assert.Equal(t, min(size, 50), most, "as many at a time as may")
		})
	}
}

// TestRoom checks that a job takes up room until its result is popped, even if the job has ended.
func TestRoom(t *testing.T) {
	t.Parallel()
	for _, size := range []int{-1, 0, 1, 3} {
		w := New[int](size)
		for i := range max(size, 0) {
			require.True(t, w.HasRoom())
			w.Start(func() int { return i })
		}
		assert.False(t, w.HasRoom())
		w.Wait()
	}
	w := New[int](2)
	for i := range 20 {
		for w.HasRoom() {
			w.Start(func() int { return i })
		}
		_, ok := w.Pop()
		assert.True(t, ok)
		assert.True(t, w.HasRoom(), "the result has made room")
	}
	w.Wait()
}

// TestPopWaitsForAJob checks that Pop waits for a job that starts later, but not for the job after it.
func TestPopWaitsForAJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, start := New[int](3), time.Now()
		go func() {
			defer w.End()
			for i := range 3 {
				<-time.After(time.Minute)
				w.Start(func() int { return i })
			}
			<-time.After(time.Hour)
		}()
		for i := range 3 {
			got, _ := w.Pop()
			assert.Equal(t, i, got)
			assert.Equal(t, time.Duration(i+1)*time.Minute, time.Since(start), "it does not wait for the next one")
		}
		_, ok := w.Pop()
		assert.False(t, ok)
	})
}

// TestPanics checks that a panic of a job comes out of the Pop that would return its result, or out of Wait.
func TestPanics(t *testing.T) {
	t.Parallel()
	start := func(size int) *Window[int] {
		w := New[int](size)
		for i := range size {
			w.Start(func() int {
				if i == 2 {
					panic("broken")
				}
				return i
			})
		}
		return w
	}
	w := start(3)
	for want := range 2 {
		got, _ := w.Pop()
		assert.Equal(t, want, got)
	}
	assert.PanicsWithValue(t, "broken", func() { w.Pop() })
	w.Wait()
	assert.PanicsWithValue(t, "broken", start(5).Wait)
}

// TestStop checks that Start starts no job after Stop, and that Wait waits for the jobs that are running.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		w, started, given := New[int](4), 0, make(chan struct{})
		go func() {
			defer close(given)
			for w.Start(func() int {
				<-time.After(time.Minute)
				ended.Add(1)
				return 0
			}) {
				started++
			}
		}()
		synctest.Wait()
		assert.False(t, w.IsStopped())
		w.Stop()
		<-given
		assert.True(t, w.IsStopped())
		w.Wait()
		empty := New[int](4)
		empty.Stop()
		for range 20 {
			assert.False(t, empty.Start(func() int { return 0 }), "though there is room")
		}
		assert.Equal(t, 4, started)
		assert.EqualValues(t, 4, ended.Load())
	})
}

package payvault

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestTurns: the oldest job waits for none, and of those that wait the older ones come first.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, processors := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			turns := newTurns(processors)
			places := max(1, processors-1)
			var first []func()
			for job := range places {
				first = append(first, turns.wait(100+job))
			}
			turns.setOldest(7)
			turns.wait(7)()
			var mu sync.Mutex
			var order []int
			for _, job := range []int{12, 10, 15, 8, 11} {
				go func() {
					done := turns.wait(job)
					mu.Lock()
					order = append(order, job)
					mu.Unlock()
					done()
				}()
				synctest.Wait()
			}
			assert.Empty(t, order, "there is no place for them")
			turns.setOldest(12)
			synctest.Wait()
			assert.Equal(t, []int{12}, order, "and no place is free after it")
			first[0]()
			synctest.Wait()
			assert.Equal(t, []int{12, 8, 10, 11, 15}, order)
			for _, done := range first[1:] {
				done()
			}
			assert.Equal(t, places, turns.free)
		})
	}
}

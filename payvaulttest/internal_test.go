package payvaulttest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestPermittedRate checks that in ten seconds PermitRate permits ten times its Rate, plus the requests of one second
// at the start.
func TestPermittedRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{20: 20 + 200, 0.5: 1 + 5} {
		synctest.Test(t, func(t *testing.T) {
			var f faults
			f.add(Fault{Kind: PermitRate, Rate: rate})
			taken := 0
			for range 10_001 { // one request each millisecond, for ten seconds
				if f.take("").Kind == "" {
					taken++
				}
				<-time.After(time.Millisecond)
			}
			assert.InDelta(t, want, taken, 1, "at %v a second", rate)
		})
	}
}

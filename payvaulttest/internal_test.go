package payvaulttest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTheDocumentIsCompiledOnce checks that all servers share one compiled document, which is most of the cost of a
// server.
func TestTheDocumentIsCompiledOnce(t *testing.T) {
	t.Parallel()
	assert.Same(t, theDocument(), theDocument())
}

// TestPermittedRate checks how many requests PermitRate permits in ten seconds: its rate, and a burst of one second at
// the start.
func TestPermittedRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{20: 20 + 200, 0.5: 1 + 5} {
		synctest.Test(t, func(t *testing.T) {
			var f faults
			f.add(Fault{Kind: PermitRate, Rate: rate})
			taken := 0
			for range 10_001 { // ten seconds, in steps of a millisecond
				if f.take("").Kind == "" {
					taken++
				}
				<-time.After(time.Millisecond)
			}
			assert.InDelta(t, want, taken, 1, "at %v a second", rate)
		})
	}
}

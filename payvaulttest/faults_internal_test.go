package payvaulttest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestPermittedRate checks how many requests a fault of the kind PermitRate permits in ten seconds: ten times the rate,
// plus a burst at the start. The burst has the requests of one second, and at least one.
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

// TestSlowDripWithoutDelay checks that SlowDrip waits for 10 ms after each byte if the fault has no Delay.
func TestSlowDripWithoutDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, w := time.Now(), httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		(&Fault{Kind: SlowDrip}).around(nil, false).ServeHTTP(w, r)
		assert.Equal(t, time.Duration(w.Body.Len())*10*time.Millisecond, time.Since(began))
	})
}

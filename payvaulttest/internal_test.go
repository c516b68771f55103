package payvaulttest

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A silentTransport never answers.
type silentTransport struct{}

func (silentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestDeliveryTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t.Context(), false, slog.New(slog.DiscardHandler))
		d.client.Transport = silentTransport{}
		began := time.Now()
		d.post("http://127.0.0.1:1/", notification{WebhookID: "W", Event: "e"})
		<-d.due()[0]
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.ErrorIs(t, d.history[0].Err, context.DeadlineExceeded)
		d.wait()
	})
}

// After the end of a server nothing is delivered: nothing would wait for it.
func TestNothingIsPostedAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := newDispatcher(ctx, false, slog.New(slog.DiscardHandler))
	cancel()
	d.wait()
	d.post("http://127.0.0.1:1/", notification{WebhookID: "W", Event: "e"})
	assert.Empty(t, d.due())
}

// The rate holds over time, with as many at once as come in a second.
func TestPermittedRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{20: 20 + 200, 0.5: 1 + 5} {
		synctest.Test(t, func(t *testing.T) {
			var f faults
			f.add(Fault{Kind: PermitRate, Rate: rate})
			taken := 0
			for range 10_001 { // ten seconds
				if f.take("") == nil {
					taken++
				}
				<-time.After(time.Millisecond)
			}
			assert.InDelta(t, want, taken, 1, "at %v a second", rate)
		})
	}
}

package payvaulttest

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/inspect"
)

// A timedTransport answers after a delay, which is the host of the URL: http://3s/ is answered after three seconds.
type timedTransport struct{}

func (timedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	delay, err := time.ParseDuration(r.URL.Hostname())
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(delay):
		return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A lateTransport notices a second too late that the context of a request has ended.
type lateTransport struct{}

func (lateTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	<-time.After(time.Second)
	return nil, r.Context().Err()
}

// timedDispatcher returns a dispatcher that delivers with a timedTransport.
func timedDispatcher(ctx context.Context) *dispatcher {
	d := newDispatcher(ctx, false, slog.New(slog.DiscardHandler), inspect.NewFeed())
	d.client.Transport = timedTransport{}
	return d
}

// events returns the events of the deliveries, in the order in which the deliveries ended.
func (d *dispatcher) events() (list []payvault.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, delivery := range d.history {
		list = append(list, delivery.Event)
	}
	return list
}

// TestDeliveriesInOrder checks that the deliveries of one webhook keep their order and do not delay those of another
// webhook.
func TestDeliveriesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, began := timedDispatcher(t.Context()), time.Now()
		d.post("http://3s/", nil, Delivery{WebhookID: "one", Event: "a"})
		d.post("http://1s/", nil, Delivery{WebhookID: "one", Event: "b"})
		d.post("http://2s/", nil, Delivery{WebhookID: "two", Event: "c"})
		d.post("http://9s/", nil, Delivery{WebhookID: "three", Event: "d"})
		require.NoError(t, d.wait(t.Context()))
		assert.Equal(t, []payvault.Event{"c", "a", "b", "d"}, d.events())
		assert.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, d.history[3].Err, context.DeadlineExceeded)
		assert.Equal(t, "timeout", class(d.history[3].Err), "in the log")
	})
}

// TestWaitDeliveries checks that wait waits only for the deliveries that were triggered before the call, and only until
// the context ends.
func TestWaitDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, began := timedDispatcher(t.Context()), time.Now()
		require.NoError(t, d.wait(t.Context()), "nothing is due")
		d.post("http://2s/", nil, Delivery{WebhookID: "W", Event: "a"})
		time.AfterFunc(time.Second, func() { d.post("http://2s/", nil, Delivery{WebhookID: "W", Event: "b"}) })
		require.NoError(t, d.wait(t.Context()))
		assert.Equal(t, 2*time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, d.wait(ctx), context.DeadlineExceeded)
		require.NoError(t, d.wait(t.Context()))
	})
}

// TestCloseWaitsForDeliveries checks that close returns only when the delivery under way has ended.
func TestCloseWaitsForDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := timedDispatcher(ctx)
		d.client.Transport = lateTransport{}
		d.post("http://hook/", nil, Delivery{WebhookID: "W", Event: "a"})
		synctest.Wait()
		cancel()
		d.close()
		assert.Equal(t, []payvault.Event{"a"}, d.events())
	})
}

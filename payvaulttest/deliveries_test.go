package payvaulttest

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest/internal/inspect"
)

// silentTransport is a transport that never answers.
type silentTransport struct{}

func (silentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestDeliveryTimeout checks that a delivery without an answer ends after five seconds.
func TestDeliveryTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t.Context(), false, slog.New(slog.DiscardHandler), inspect.NewFeed())
		d.client.Transport = silentTransport{}
		began := time.Now()
		d.post("http://127.0.0.1:1/", nil, Delivery{WebhookID: "W", Event: "e"})
		require.NoError(t, d.wait(t.Context()))
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.ErrorIs(t, d.history[0].Err, context.DeadlineExceeded)
		d.close()
	})
}

// TestNothingIsPostedAfterTheEnd checks that a closed server delivers nothing, since nothing would wait for the
// delivery.
func TestNothingIsPostedAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := newDispatcher(ctx, false, slog.New(slog.DiscardHandler), inspect.NewFeed())
	cancel()
	d.close()
	d.post("http://127.0.0.1:1/", nil, Delivery{WebhookID: "W", Event: "e"})
	assert.Empty(t, d.last)
}

// TestDeliveries checks that the deliveries of a webhook keep their order, and that failed ones are logged without
// their URL.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	d := newDispatcher(ctx, false, slog.New(slog.NewTextHandler(&out, nil)), inspect.NewFeed())
	var bodies []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer receiver.Close()
	d.post(receiver.URL, []byte("1"), Delivery{WebhookID: "W", Event: "a"})
	d.post(receiver.URL, []byte("2"), Delivery{WebhookID: "W", Event: "b"})
	d.post("http://user:secret@192.0.2.1/secret", nil, Delivery{WebhookID: "W", Event: "c"})
	d.post("http://127.0.0.1/\x7f", nil, Delivery{WebhookID: "W", Event: "d"})
	require.NoError(t, d.wait(t.Context()))

	assert.Equal(t, []string{"1", "2"}, bodies)
	history := d.history
	require.Len(t, history, 4)
	assert.Equal(t, http.StatusAccepted, history[0].Status)
	require.ErrorContains(t, history[2].Err, "not on loopback")
	require.ErrorContains(t, history[3].Err, "build a notification")
	assert.Contains(t, out.String(), `event=c status=0 error="the notification URL is not on loopback"`)
	assert.Contains(t, out.String(), `event=d status=0 error="no usable answer"`)
	assert.NotContains(t, out.String(), "secret")

	cancel()
	d.close()
	require.ErrorContains(t, d.wait(t.Context()), "the server is closed")
}

// TestClasses checks that the log describes a failed delivery in fixed words, whatever the receiver sends.
func TestClasses(t *testing.T) {
	t.Parallel()
	echo := func(c net.Conn) { _, _ = io.Copy(c, io.LimitReader(c, 20)) } // sends the request, with its URL, back
	lost := func(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) }
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	defer secured.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for url, want := range map[string]string{
		receive(t, echo): "no usable answer",
		receive(t, lost): "no usable answer",
		secured.URL:      "no usable answer",
		strings.Replace(plain.URL, "http:", "https:", 1): "no usable answer",
		"http://127.0.0.1:1":                             "connection refused",
		"http://127.0.0.1:s":                             "no usable answer",
	} {
		var out strings.Builder
		d := newDispatcher(t.Context(), false, slog.New(slog.NewTextHandler(&out, nil)), inspect.NewFeed())
		d.post(url+"/s3cret?s3cret", nil, Delivery{WebhookID: "W", Event: "e"})
		require.NoError(t, d.wait(t.Context()))
		assert.Contains(t, strings.ReplaceAll(out.String(), `"`, ""), "error="+want+"\n", url)
		assert.NotContains(t, out.String(), "s3cret")
	}
	assert.Equal(t, "timeout", class(&url.Error{Op: "Post", Err: context.DeadlineExceeded}))
}

// receive returns the URL of a receiver that handles each connection and closes it.
func receive(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var receiver sync.WaitGroup
	t.Cleanup(func() { assert.NoError(t, listener.Close()); receiver.Wait() })
	receiver.Go(func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			handle(c)
			_ = c.Close()
		}
	})
	return "http://" + listener.Addr().String()
}

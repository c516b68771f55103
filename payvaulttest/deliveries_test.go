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

// A silentTransport never answers.
type silentTransport struct{}

func (silentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

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

// After the end of a server nothing is delivered: nothing would wait for it.
func TestNothingIsPostedAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := newDispatcher(ctx, false, slog.New(slog.DiscardHandler), inspect.NewFeed())
	cancel()
	d.close()
	d.post("http://127.0.0.1:1/", nil, Delivery{WebhookID: "W", Event: "e"})
	assert.Empty(t, d.last)
}

// The record of a delivery that failed says why in fixed words, whatever the receiver sends back.
func TestClasses(t *testing.T) {
	t.Parallel()
	echo := func(c net.Conn) { _, _ = io.Copy(c, io.LimitReader(c, 20)) } // the URL comes back
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

// receive is the URL of a receiver that does something with each connection and closes it.
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

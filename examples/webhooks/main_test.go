package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// sandboxed returns the environment variables with which the program uses srv as its sandbox.
func sandboxed(srv *payvaulttest.Server) map[string]string {
	return map[string]string{
		"PAYVAULT_BASE_URL":    srv.URL,
		"PAYVAULT_API_KEY":     srv.Merchant().APIKey,
		"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(srv.Merchant().MerchantID), 10),
		"PAYVAULT_LISTEN":      "127.0.0.1:0",
	}
}

// TestOfflineRunReceivesAllEvents checks that an offline run receives one notification of each event and then ends.
func TestOfflineRunReceivesAllEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), environment(nil), &out))
	for _, event := range []payvault.Event{
		payvault.EventTransactionStatusUpdated, payvault.EventAccountUpdaterRequestCreated,
		payvault.EventAccountUpdaterRequestCompleted,
	} {
		assert.Contains(t, out.String(), "Received: "+strconv.Quote(string(event))+"\n")
	}
	assert.True(t, strings.HasPrefix(out.String(), "Offline: "))
	assert.True(t, strings.HasSuffix(out.String(), "Shut down; 3 notifications received.\n"))
}

// TestSandboxRunEndsWithItsContext checks that a run against a sandbox fails without PAYVAULT_WEBHOOK_ID, and that it
// ends when its context ends.
func TestSandboxRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	variables := sandboxed(srv)
	require.EqualError(t, run(t.Context(), environment(variables), &bytes.Buffer{}), "set PAYVAULT_WEBHOOK_ID")

	webhook := srv.Webhooks.Seed(payvaulttest.Webhook{}).ID
	variables["PAYVAULT_WEBHOOK_ID"] = string(webhook)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	go func() {
		_, _ = reader.Read(make([]byte, 1)) // the program listens when it writes its first output
		cancel()
		_, _ = io.Copy(io.Discard, reader)
	}()
	err := run(ctx, environment(variables), writer)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled, "it was still attaching the events")
	}
	require.NoError(t, writer.Close())
}

// TestFailureToAttachEndsTheProgram checks that run returns an error if the service does not know the webhook, or if
// PAYVAULT_LISTEN is invalid.
func TestFailureToAttachEndsTheProgram(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	variables := sandboxed(srv)
	variables["PAYVAULT_WEBHOOK_ID"] = "unknown"
	require.ErrorIs(t, run(t.Context(), environment(variables), &bytes.Buffer{}), payvault.ErrNotFound)
	variables["PAYVAULT_LISTEN"] = "nowhere:-1"
	require.Error(t, run(t.Context(), environment(variables), &bytes.Buffer{}))
}

// gate is an output of the program. When the receiver prints a notification, gate closes arrived and blocks until
// release is closed.
type gate struct{ arrived, release chan struct{} }

func (g gate) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("Received")) {
		close(g.arrived)
		<-g.release
	}
	return len(p), nil
}

// TestNotificationUnderWayIsFinished checks that serve waits for a notification that is being received when the context
// ends. The sender of the notification must get status 204.
func TestNotificationUnderWayIsFinished(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	g := gate{make(chan struct{}), make(chan struct{})}
	r := newReceiver(g)
	status := make(chan int, 1)
	go func() {
		status <- post(t.Context(), "http://"+listener.Addr().String()+"/notifications", strings.NewReader("{}"))
	}()
	err = serve(ctx, listener, r, func(ctx context.Context) error {
		<-g.arrived
		interrupt()
		<-ctx.Done()
		go func() {
			waitForShutdown(context.WithoutCancel(ctx), listener.Addr().String())
			close(g.release)
		}()
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, <-status)
	assert.Equal(t, 1, r.count())
}

// waitForShutdown returns when no connection to the address can be made any more.
func waitForShutdown(ctx context.Context, address string) {
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		_ = connection.Close()
	}
}

// post sends body and returns the status of the response, or 0 if there is no response.
func post(ctx context.Context, url string, body io.Reader) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestServerThatFailsEndsTheWork checks that serve cancels the context of its work if its HTTP server fails, and
// returns the errors of both.
func TestServerThatFailsEndsTheWork(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	err = serve(t.Context(), listener, newReceiver(&bytes.Buffer{}), func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("stopped")
	})
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorContains(t, err, "stopped")
}

// TestReceive checks that receive prints and counts each notification, even if its body equals an earlier one or has an
// unknown form.
func TestReceive(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newReceiver(&out)
	for _, body := range []string{`{"event":"a"}`, `{"event":"a"}`, `[]`} {
		require.NoError(t, r.receive(t.Context(), &payvault.Notification{Body: []byte(body)}))
	}
	assert.Equal(t, "Received: \"a\"\nReceived: \"a\"\nReceived: 2 bytes of an unknown shape\n", out.String())
	assert.Equal(t, 3, r.count(), "equal bodies may be two notifications")
}

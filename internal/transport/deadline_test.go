package transport

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipes returns an *http.Transport whose connections are pipes, which work in a synctest bubble. serve gets the
// server's end of each pipe.
func pipes(t *testing.T, serve func(net.Conn)) *http.Transport {
	t.Helper()
	var servers sync.WaitGroup
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		servers.Go(func() {
			defer func() { _ = server.Close() }()
			serve(server)
		})
		return client, nil
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		servers.Wait()
	})
	return tr
}

// queued is a connection whose writes do not wait for the reader. On a net.Pipe each write waits for the reader. If
// both ends of a net.Pipe write at the same time, as HTTP/2 and TLS may do, each waits for the other.
type queued struct {
	net.Conn

	writes chan []byte
}

// newQueued returns a queued connection over conn. It starts a goroutine, which ends when the caller closes the channel
// writes.
func newQueued(conn net.Conn) queued {
	q := queued{conn, make(chan []byte, 100)}
	go func() {
		for p := range q.writes {
			_, _ = conn.Write(p)
		}
	}()
	return q
}

func (q queued) Write(p []byte) (int, error) {
	q.writes <- bytes.Clone(p)
	return len(p), nil
}

// readRequest reads one request and its body.
func readRequest(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
}

// drip returns a server that announces a body of n bytes, and sends one byte each second until the connection breaks.
func drip(n string) func(net.Conn) {
	return func(conn net.Conn) {
		if readRequest(bufio.NewReader(conn)) != nil {
			return
		}
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+n+"\r\n\r\n")
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for err == nil {
			<-tick.C
			_, err = io.WriteString(conn, "x")
		}
	}
}

// TestAttemptDeadlineCoversTheBody checks that the timeout of an attempt includes reading the response body.
func TestAttemptDeadlineCoversTheBody(t *testing.T) {
	t.Parallel()
	for replay, attempts := range map[bool]int{true: 3, false: 1} {
		synctest.Test(t, func(t *testing.T) {
			config := testConfig(pipes(t, drip("60")))
			config.AttemptTimeout = 9*time.Second + time.Second/2
			var durations []time.Duration
			request := post(replay).to(t, "http://service.test/")
			request.Observe = func(a Attempt) { durations = append(durations, a.Duration) }
			result, err := New(config).Do(t.Context(), request)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, slices.Repeat([]time.Duration{config.AttemptTimeout}, attempts), durations)
			assert.Equal(t, Unknown, result.Delivery)
			assert.Equal(t, http.StatusOK, result.Status)
			assert.Equal(t, "xxxxxxxxx", string(result.Body), "what had come is kept")
		})
	}
}

// TestAttemptTimeout checks that the timeout of an attempt is AttemptTimeout or the Timeout of the http.Client,
// whichever is shorter, plus 4 seconds for each MiB of the request body.
func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, test := range map[string]struct {
		config, client time.Duration // client is the Timeout of the http.Client
		length         int64         // length of an upload; 0 means a short body in memory
		want           time.Duration
	}{
		"small upload":    {config: 10 * time.Second, length: 1000, want: 10 * time.Second},
		"upload of 1 MiB": {config: 10 * time.Second, length: mib, want: 14 * time.Second},
		"upload of 2 MiB": {config: 10 * time.Second, length: 2 * mib, want: 18 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: times(2, hang)}
				config := testConfig(s)
				config.AttemptTimeout = test.config
				config.HTTP.Timeout = test.client
				var durations []time.Duration
				request := post(true)
				if test.length > 0 {
					request.upload(test.length)
				}
				request.MaxAttempts = 2
				request.Observe = func(a Attempt) { durations = append(durations, a.Duration) }
				_, err := New(config).Do(t.Context(), request)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, []time.Duration{test.want, test.want}, durations)
				if test.length > 0 {
					assert.Len(t, s.sent[1].body, int(test.length), "the whole upload, again")
				}
			})
		})
	}
}

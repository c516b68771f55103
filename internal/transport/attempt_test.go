package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/overload"
)

var errNoKey = errors.New("the vault is sealed")

// TestAttemptLeavesNothing checks that the heap grows by less than 1 MiB during 5,000 calls with one context: neither
// the context nor the timer of an attempt may keep the body or the key in memory.
//
//nolint:paralleltest // it measures the heap of the process
func TestAttemptLeavesNothing(t *testing.T) {
	caller, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last context.Context
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		last = req.Context()
		last.Done()
		return response(http.StatusOK, strings.NewReader("{}"), 2), nil
	})))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 5000 {
		_, err := c.Do(caller, post(false))
		require.NoError(t, err)
	}
	assert.Less(t, heap(), before+1<<20)
	assert.ErrorIs(t, last.Err(), context.Canceled, "the attempt is over")
}

// TestKeySourceHasNoHooks checks that the context of the key source does not have the httptrace hooks of the request.
// With the hooks, a connection of the key source would count as a connection of the request.
func TestKeySourceHasNoHooks(t *testing.T) {
	t.Parallel()
	config := testConfig(&script{steps: []step{answer(http.StatusOK, "")}})
	config.Authorization = func(ctx context.Context) (string, error) {
		assert.Nil(t, httptrace.ContextClientTrace(ctx))
		return "Basic key", nil
	}
	_, err := New(config).Do(t.Context(), post(false))
	require.NoError(t, err)
}

// TestAuthorizationPerAttempt checks that each attempt gets a new key, and a header map of its own.
func TestAuthorizationPerAttempt(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(429, ""), refused(errRefused), answer(200, "")}}
	config := testConfig(s)
	keys := 0
	config.Authorization = func(context.Context) (string, error) {
		keys++
		return fmt.Sprintf("Basic key%d", keys), nil
	}
	request := post(false)
	request.Header.Set("X-Request", "kept")
	result, err := New(config).Do(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, s.sent, 3)
	for i, sent := range s.sent { // in a shared map, a later key would have replaced this one
		assert.Equal(t, []string{fmt.Sprintf("Basic key%d", i+1)}, sent.header["Authorization"])
		assert.Equal(t, []string{"kept"}, sent.header["X-Request"])
	}
	assert.Equal(t, []string{"Basic key1", "Basic key2", "Basic key3"}, result.Keys)
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

// TestLargestLimits checks that the largest MaxResponseBytes and AttemptTimeout cause no overflow.
func TestLargestLimits(t *testing.T) {
	t.Parallel()
	config := testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		return response(http.StatusOK, strings.NewReader("body"), 4), req.Context().Err()
	}))
	config.MaxResponseBytes = math.MaxInt64
	config.AttemptTimeout = math.MaxInt64
	for _, request := range []*Request{post(false), post(false).upload(10 * uploadRate)} {
		result, err := New(config).Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, "body", string(result.Body))
	}
}

// TestCauseOfTheContext checks that Do returns context.Canceled and not the cause of the context, which may be the
// error of another call.
func TestCauseOfTheContext(t *testing.T) {
	t.Parallel()
	returnsCause := func(req *http.Request) (*http.Response, error) { return nil, context.Cause(req.Context()) }
	for _, cause := range []error{&overload.HeldError{After: time.Minute}, &KeyError{errNoKey}, ErrTooLarge, ErrStopped} {
		for _, end := range []step{returnsCause, answer(503, "")} {
			ctx, cancel := context.WithCancelCause(t.Context())
			config := testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
				cancel(cause)
				return end(req)
			}))
			config.Policy.MinBackoff, config.Policy.MaxBackoff = time.Hour, time.Hour
			_, err := New(config).Do(ctx, post(true))
			require.Equal(t, context.Canceled, err)
		}
	}
}

// TestPanicOfARoundTripper checks that a panic of the RoundTripper reaches the caller of Do, and that the request body
// cannot be read after the panic.
func TestPanicOfARoundTripper(t *testing.T) {
	t.Parallel()
	var body io.Reader
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		body = req.Body
		panic(errLost)
	})))
	assert.PanicsWithError(t, errLost.Error(), func() { _, _ = c.Do(t.Context(), post(false)) })
	_, err := body.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

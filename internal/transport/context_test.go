package transport

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSentTwiceByNetHTTP checks that the result is unsure if net/http sends a request again after it lost a reused
// connection. The first request may have been performed.
func TestSentTwiceByNetHTTP(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	c := New(testConfig(pipes(t, func(conn net.Conn) {
		first, r := connections.Add(1) == 1, bufio.NewReader(conn)
		for n := 1; readRequest(r) == nil && (!first || n < 2); n++ {
			_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
	})))
	for _, unsure := range []bool{false, true} {
		request := post(true).to(t, "http://service.test/")
		request.Method, request.Body, request.Length = http.MethodGet, nil, 0
		result, err := c.Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, http.StatusNotFound, result.Status)
		assert.Equal(t, 1, result.Attempts)
		assert.Equal(t, unsure, result.Unsure)
	}
	assert.EqualValues(t, 2, connections.Load())
}

// forgetful is a RoundTripper made from a function. It records nothing.
type forgetful step

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestAttemptLeavesNothing checks that the memory of an attempt, with its body and key, is free after the attempt.
// Neither its timer nor the caller's context may keep it.
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

// TestKeySourceHasNoHooks checks that the key source gets a context without the hooks of the request. Its connections
// must not be taken for those of the request.
func TestKeySourceHasNoHooks(t *testing.T) {
	t.Parallel()
	config := testConfig(&script{steps: []step{func(*http.Request) (*http.Response, error) { return nil, errRefused }}})
	config.Authorization = func(ctx context.Context) (string, error) {
		_, limited := ctx.Deadline()
		assert.True(t, limited)
		assert.Nil(t, httptrace.ContextClientTrace(ctx))
		return "Basic key", nil
	}
	result, err := New(config).Do(t.Context(), post(false))
	require.ErrorIs(t, err, errRefused)
	assert.Equal(t, Unknown, result.Delivery, "a transport that calls no hooks proves nothing")
}

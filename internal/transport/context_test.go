package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSentTwiceByNetHTTP: a request that net/http itself sends again, since a connection that was used before was lost,
// may have been performed the first time, whatever the answer to the second is.
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

// forgetful is a RoundTripper that keeps nothing.
type forgetful step

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestAttemptLeavesNothing: neither its timer nor the caller's context keep what an attempt used, the body and the key
// among it.
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

// TestKeySourceHasNoHooks: connections of the key source are not taken for those of the request.
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

// TestEndOfAttemptWithAnotherError: a RoundTripper that may speak HTTP/2 may be writing the headers when the time of
// the attempt is over, whatever error it returns then.
func TestEndOfAttemptWithAnotherError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			trace.GetConn("service.test:443")
			trace.GotConn(httptrace.GotConnInfo{})
			<-req.Context().Done()
			return nil, errors.New("another error")
		})))
		result, err := c.Do(t.Context(), post(false))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, Unknown, result.Delivery)
		assert.Equal(t, 1, result.Attempts)
	})
}

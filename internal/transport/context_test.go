package transport

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forgetful makes a RoundTripper from a function. Unlike a script, it records no requests.
type forgetful step

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

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

package transport

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBodyCap checks that a response fails with ErrTooLarge if its body or its Content-Length exceeds MaxResponseBytes,
// and that reading stops soon after this limit. Any other body must be read to its end.
func TestBodyCap(t *testing.T) {
	t.Parallel()
	const limit = 5000
	for name, test := range map[string]struct {
		size      int
		announced int64
		want      error
		read      int // maximum number of bytes that may be read
	}{
		"empty":                      {0, 0, nil, 0},
		"more than the first buffer": {513, -1, nil, 513},
		"exactly":                    {limit, limit, nil, limit},
		"exactly, not announced":     {limit, -1, nil, limit},
		"exactly, announced smaller": {limit, 10, nil, limit},
		"one more, not announced":    {limit + 1, -1, ErrTooLarge, limit + 1},
		"one more, announced":        {limit + 1, limit + 1, ErrTooLarge, 0},
		"announced larger":           {10, limit, nil, 10},
		"only announced":             {10, 1 << 62, ErrTooLarge, 0},
		"endless":                    {1 << 30, -1, ErrTooLarge, 3 * limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{steps: []step{func(*http.Request) (*http.Response, error) {
				return response(200, io.LimitReader(zeros{}, int64(test.size)), test.announced), nil
			}}}
			config := testConfig(s)
			config.MaxResponseBytes = limit
			result, err := New(config).Do(t.Context(), post(false))
			require.ErrorIs(t, err, test.want)
			assert.Equal(t, 200, result.Status)
			assert.LessOrEqual(t, len(result.Body), limit)
			size := max(len(result.Body), min(int(test.announced), mostAtOnce))
			assert.Less(t, cap(result.Body), 2*size+1025, "it may be kept for long")
			assert.LessOrEqual(t, s.bodies[0].read, test.read)
			s.assertClosed(t)
			if test.want == nil {
				assert.Len(t, result.Body, test.size)
				assert.True(t, s.bodies[0].atEOF, "read to the end, so that the connection can be used again")
			}
		})
	}
}

// TestBodyBetweenAttempts checks that the client reads hardly more than 1 MiB of a response if it makes another
// attempt, and that it reads the last response to its end.
func TestBodyBetweenAttempts(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	large := func(status int) step {
		return func(*http.Request) (*http.Response, error) {
			return response(status, io.LimitReader(zeros{}, size), -1), nil
		}
	}
	for _, status := range []int{429, 502, 503, 504} {
		s := &script{steps: times(3, large(status))}
		config := testConfig(s)
		config.MaxResponseBytes = 2 * size
		result, err := New(config).Do(t.Context(), post(true))
		require.NoError(t, err)
		require.Len(t, s.bodies, 3)
		assert.LessOrEqual(t, s.bodies[0].read, mostAtOnce+1, status)
		assert.LessOrEqual(t, s.bodies[1].read, mostAtOnce+1, status)
		assert.Len(t, result.Body, size, status)
		s.assertClosed(t)
	}
	s := &script{steps: []step{large(503)}} // without Replay a 503 is not retried
	config := testConfig(s)
	config.MaxResponseBytes = 2 * size
	result, err := New(config).Do(t.Context(), post(false))
	require.NoError(t, err)
	assert.Len(t, result.Body, size)
}

// TestAnnouncedLengthIsNotAllocated checks that readBody does not allocate a Content-Length of 1 TiB for a short body.
func TestAnnouncedLengthIsNotAllocated(t *testing.T) {
	t.Parallel()
	body, err := readBody(response(http.StatusOK, strings.NewReader("x"), 1<<40), 1<<41) //nolint:bodyclose // it does
	require.NoError(t, err)
	assert.Equal(t, "x", string(body))
	assert.LessOrEqual(t, cap(body), mostAtOnce+bytes.MinRead)
}

// TestBodyCapCountsAfterDecompression checks that MaxResponseBytes limits the decompressed size of a gzip body.
func TestBodyCapCountsAfterDecompression(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		n, err := strconv.ParseInt(r.URL.Path[1:], 10, 64)
		assert.NoError(t, err)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.CopyN(z, zeros{}, n)
		_ = z.Close()
	}))
	t.Cleanup(server.Close)
	config := testConfig(nil)
	config.MaxResponseBytes = 300_000
	c := New(config)
	t.Cleanup(c.CloseIdleConnections)
	for n, want := range map[int]error{300_000: nil, 300_001: ErrTooLarge, 20 << 20: ErrTooLarge} {
		result, err := c.Do(t.Context(), post(false).to(t, server.URL+"/"+strconv.Itoa(n)))
		require.ErrorIs(t, err, want, "%d bytes", n)
		assert.Len(t, result.Body, min(n, 300_000))
	}
}

// countConnections starts a server. It returns the server and a counter of the connections that the server has
// accepted.
func countConnections(
	t *testing.T, handler http.HandlerFunc, start func(*httptest.Server),
) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	server, opened := httptest.NewUnstartedServer(handler), new(atomic.Int64)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	start(server)
	t.Cleanup(server.Close)
	return server, opened
}

// TestConnectionIsUsedAgain checks that successive calls share one connection, whatever the status, size and transfer
// encoding of the answers. Before each of these calls, a call to an address without a server fails. This failure must
// not close the connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server, opened := countConnections(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		query := r.URL.Query()
		size, err := strconv.Atoi(query.Get("size"))
		assert.NoError(t, err)
		status, err := strconv.Atoi(query.Get("status"))
		assert.NoError(t, err)
		if status == http.StatusServiceUnavailable && n%2 == 0 { // so that the retry succeeds
			status = http.StatusOK
		}
		if query.Get("chunked") == "" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		w.WriteHeader(status)
		for left := size; left > 0; left -= 10_000 {
			_, _ = io.WriteString(w, repeated(min(left, 10_000)))
			w.(http.Flusher).Flush()
		}
	}), (*httptest.Server).Start)
	c := New(testConfig(nil))
	t.Cleanup(c.CloseIdleConnections)
	for _, chunked := range []string{"", "&chunked=1"} {
		for _, status := range []string{"200", "302", "400", "404", "500", "503", "503"} {
			for _, size := range []int{0, 1, 511, 512, 5000, 100_000, 1 << 20} {
				_, err := c.Do(t.Context(), post(true).to(t, "http://127.0.0.1:1"))
				require.Error(t, err)
				address := server.URL + "/?size=" + strconv.Itoa(size) + "&status=" + status + chunked
				result, err := c.Do(t.Context(), post(true).to(t, address))
				require.NoError(t, err)
				require.Len(t, result.Body, size)
			}
		}
	}
	assert.EqualValues(t, 1, opened.Load())
}

// TestRedirectsAreNotFollowed checks that Do returns a response with a status 3xx unchanged and sends no second
// request.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for _, location := range []string{"https://other.test/x", "/relative", "", "://%zz", "mailto:x@y"} {
			s := &script{steps: []step{answer(status, "moved", "Location", location, "X-Other", "1")}}
			result, err := New(testConfig(s)).Do(t.Context(), post(true))
			require.NoError(t, err, "%d to %q", status, location)
			assert.Equal(t, status, result.Status)
			assert.Equal(t, "moved", string(result.Body))
			assert.Equal(t, location, result.Header.Get("Location"), "the caller sees it")
			assert.Equal(t, "1", result.Header.Get("X-Other"))
			assert.Len(t, s.sent, 1)
			s.assertClosed(t)
		}
	}
}

// TestResponsesThatHandMadeRoundTrippersGive checks that a nil Body or Header in a response of the caller's
// RoundTripper counts as an empty one.
func TestResponsesThatHandMadeRoundTrippersGive(t *testing.T) {
	t.Parallel()
	for _, resp := range []http.Response{
		{StatusCode: 200, Header: http.Header{}},
		{StatusCode: 200},
		{StatusCode: 101},
		{StatusCode: 429},
		{StatusCode: 200, ContentLength: -7},
	} {
		c := New(testConfig(forgetful(func(*http.Request) (*http.Response, error) { return &resp, nil })))
		result, err := c.Do(t.Context(), post(false))
		require.NoError(t, err)
		assert.Equal(t, resp.StatusCode, result.Status)
		assert.Empty(t, result.Body)
		assert.Equal(t, Answered, result.Delivery)
	}
}

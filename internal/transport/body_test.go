package transport

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/pool"
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

// TestRequestBodies checks the Content-Length, the Transfer-Encoding and the body that reach the server.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	type arrived struct {
		length   int64
		encoding []string
		body     string
	}
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		got.Store(arrived{r.ContentLength, r.TransferEncoding, string(b)})
	}))
	t.Cleanup(server.Close)
	c := New(testConfig(nil))
	t.Cleanup(c.CloseIdleConnections)
	for name, test := range map[string]struct {
		request *Request
		want    arrived
	}{
		"POST, JSON":   {(&Request{Method: http.MethodPost}).text(`{}`), arrived{2, nil, `{}`}},
		"POST, empty":  {&Request{Method: http.MethodPost}, arrived{0, nil, ""}},
		"POST, upload": {(&Request{Method: http.MethodPost}).upload(3), arrived{3, nil, "\x00\x00\x00"}},
		"DELETE":       {&Request{Method: http.MethodDelete}, arrived{0, nil, ""}},
		"GET":          {&Request{Method: http.MethodGet}, arrived{0, nil, ""}},
		"GET, JSON":    {(&Request{Method: http.MethodGet}).text(`{}`), arrived{2, nil, `{}`}},
	} {
		for _, replay := range []bool{false, true} {
			request := test.request.to(t, server.URL)
			request.Header, request.Replay = http.Header{}, replay
			_, err := c.Do(t.Context(), request)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.Load(), "%s, replay %t", name, replay)
		}
	}
}

// TestUploadThatIsRefused checks uploads that the server refuses without reading them. In each case the call must get
// the refusal. If an upload has at least 64 KiB and the Transport uses only HTTP/1, the client must ask the server
// first (Expect: 100-continue), and so read no byte of the upload. Otherwise the client does not ask.
func TestUploadThatIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Expected", r.Header.Get("Expect"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	both := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(both.CloseIdleConnections)
	const asks = "100-continue"
	for name, test := range map[string]struct {
		rt   http.RoundTripper
		size int64
		want string
	}{
		"long":               {nil, 64 << 10, asks},
		"very long":          {nil, 8 << 20, asks},
		"short":              {nil, 64<<10 - 1, ""},
		"HTTP/2 is possible": {both, 64 << 10, ""},
	} {
		c := New(testConfig(test.rt))
		t.Cleanup(c.CloseIdleConnections)
		request := post(false).upload(test.size).to(t, server.URL)
		var read atomic.Bool
		open := request.Open
		request.Open = func() io.Reader { return reported{open(), &read} }
		result, err := c.Do(t.Context(), request)
		require.NoError(t, err, name)
		assert.Equal(t, http.StatusUnauthorized, result.Status, name)
		assert.Equal(t, Answered, result.Delivery, name)
		assert.Equal(t, test.want, result.Header.Get("Expected"), name)
		assert.Equal(t, test.want != asks, read.Load(), name)
	}
}

// reported is an io.Reader that sets read to true when its method Read is called.
type reported struct {
	io.Reader

	read *atomic.Bool
}

func (r reported) Read(p []byte) (int, error) {
	r.read.Store(true)
	return r.Reader.Read(p)
}

// TestUploadWithoutConsent checks an upload to a server that never sends status 100. A server that waits for the upload
// gets it after a second. If the server closes the connection instead, a request without Replay is not repeated. Its
// outcome is unknown, because the server has the headers.
func TestUploadWithoutConsent(t *testing.T) {
	t.Parallel()
	for closes, want := range map[bool]Delivery{false: Answered, true: Unknown} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			requests := 0
			serve := func(conn net.Conn) {
				defer func() { _ = conn.Close() }()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				requests++
				if closes {
					return
				}
				n, _ := io.Copy(io.Discard, request.Body)
				assert.EqualValues(t, 64<<10, n)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
			own := pool.New()
			own.DialContext = func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go serve(server)
				return client, nil
			}
			defer own.CloseIdleConnections()
			result, err := New(testConfig(own)).Do(t.Context(), post(false).upload(64<<10).to(t, "http://service.test"))
			assert.Equal(t, closes, err != nil, "%v", err)
			assert.Equal(t, want, result.Delivery)
			assert.Equal(t, 1, requests)
			if !closes {
				assert.Equal(t, time.Second, time.Since(start))
			}
		})
	}
}

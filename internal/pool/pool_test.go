package pool

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProxy checks that only requests with https use the proxy from the environment. A proxy could read the key of any
// other request.
func TestProxy(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://service.test/pg/tokenize": "http://proxy.test:3128",
		"http://service.test/pg/tokenize":  "<nil>",
		"http://127.0.0.1/pg/tokenize":     "<nil>",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, http.NoBody)
		require.NoError(t, err)
		got, err := New().Proxy(req)
		require.NoError(t, err)
		if got == nil {
			assert.Equal(t, want, "<nil>", address)
			continue
		}
		assert.Equal(t, want, got.String(), address)
	}
}

// TestHeaderLimit checks that a response with 2 MiB of headers fails, and that one with 500 KiB does not.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{500 << 10: true, 2 << 20: false} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Large", strings.Repeat("x", size))
		}))
		defer srv.Close()
		pool := New()
		defer pool.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, http.NoBody)
		require.NoError(t, err)
		resp, err := pool.RoundTrip(req)
		assert.Equal(t, fits, err == nil, "%d bytes: %v", size, err)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
	}
}

// TestPoolSettings checks those settings of the default transport that no other test notices.
func TestPoolSettings(t *testing.T) {
	t.Parallel()
	pool := New()
	assert.Zero(t, pool.MaxIdleConns, "only MaxIdleConnsPerHost limits the idle connections")
	assert.Zero(t, pool.MaxConnsPerHost, "more callers are not throttled")
	assert.Positive(t, pool.IdleConnTimeout)
	assert.Less(t, pool.IdleConnTimeout, 60*time.Second, "before load balancers do")
	assert.Positive(t, pool.TLSHandshakeTimeout)
	assert.LessOrEqual(t, pool.TLSHandshakeTimeout, 30*time.Second)
	assert.NotNil(t, pool.DialContext, "with a timeout for each connection")
	assert.EqualValues(t, tls.VersionTLS12, pool.TLSClientConfig.MinVersion)
}

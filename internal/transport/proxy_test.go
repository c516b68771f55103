package transport

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProxy: a proxy of the environment sees no request without TLS, in which the key could be read.
func TestProxy(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://service.test/pg/tokenize": "http://proxy.test:3128",
		"http://service.test/pg/tokenize":  "<nil>",
		"http://127.0.0.1/pg/tokenize":     "<nil>",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, http.NoBody)
		require.NoError(t, err)
		got, err := newPool().Proxy(req)
		require.NoError(t, err)
		if got == nil {
			assert.Equal(t, want, "<nil>", address)
			continue
		}
		assert.Equal(t, want, got.String(), address)
	}
}

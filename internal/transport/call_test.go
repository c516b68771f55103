package transport

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHost checks that the Host field of a request is set, for RoundTrippers that sign requests.
func TestHost(t *testing.T) {
	t.Parallel()
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		assert.Equal(t, "service.test", req.Host)
		return nil, io.ErrUnexpectedEOF
	})))
	_, err := c.Do(t.Context(), post(false))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

package transport

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttemptsOnHTTP2 checks that net/http does not repeat streams that HTTP/2 has reset. The server gets one request
// per attempt.
func TestAttemptsOnHTTP2(t *testing.T) {
	t.Parallel()
	const protocolError, refusedStream = 1, 7
	for _, scheme := range []string{"https", "http"} {
		for _, code := range []uint32{protocolError, refusedStream} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				t.Run(fmt.Sprintf("%s, code %d, %s", scheme, code, method), func(t *testing.T) {
					t.Parallel()
					c, address, streams := resetting(t, scheme, code, 2)
					r := (&Request{Method: method, Header: http.Header{}, Replay: true, MaxAttempts: 2}).to(t, address)
					if method == http.MethodPost {
						r.text("{}")
					}
					result, err := c.Do(t.Context(), r)
					require.Error(t, err)
					require.NotErrorIs(t, err, context.Canceled, "nobody has canceled the call")
					assert.Equal(t, 2, result.Attempts)
					assert.EqualValues(t, 2, streams.Load())
				})
			}
		}
	}
}

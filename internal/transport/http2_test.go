package transport

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttemptsOnHTTP2: net/http, which sends again what HTTP/2 has reset, does not add to the attempts.
func TestAttemptsOnHTTP2(t *testing.T) {
	t.Parallel()
	const protocolError, refusedStream = 1, 7
	for _, scheme := range []string{"https", "http"} {
		for _, code := range []uint32{protocolError, refusedStream} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				for _, before := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, code %d, %s, HTTP/1 before: %v", scheme, code, method, before), func(t *testing.T) {
						t.Parallel()
						c, address, streams := resetting(t, scheme, code)
						c.http1.Store(before)
						r := (&Request{Method: method, Header: http.Header{}, Replay: true, MaxAttempts: 2}).to(t, address)
						if method == http.MethodPost {
							r.Body = []byte("{}")
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
}

// TestHTTP2AfterHTTP1: what the client takes for HTTP/1, since the last answer came over it, may be HTTP/2 now.
func TestHTTP2AfterHTTP1(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"https", "http"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			c, address, streams := resetting(t, scheme, 1)
			c.http1.Store(true)
			r := (&Request{Method: http.MethodPost, Header: http.Header{}, Body: []byte("{}")}).to(t, address)
			result, err := c.Do(t.Context(), r)
			require.Error(t, err)
			require.NotErrorIs(t, err, context.Canceled, "nobody has canceled the call")
			assert.Equal(t, Unknown, result.Delivery)
			assert.EqualValues(t, 1, streams.Load())
		})
	}
}

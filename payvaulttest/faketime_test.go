package payvaulttest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestFakeTime checks what the package comment shows: in a synctest bubble, a client waits for its retries in fake
// time, although the server was started outside of the bubble.
func TestFakeTime(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	inject(t, srv, payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "20", Times: 3})
	synctest.Test(t, func(t *testing.T) {
		single := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		client := srv.Client(payvault.WithHTTPClient(single))
		began := time.Now()
		_, err := client.Customers.List(t.Context(), nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(began), 3*20*time.Second)
	})
}

// TestServerInBubble checks that a server does not start in a synctest bubble. The open socket of a server would stop
// the fake clock.
func TestServerInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := payvaulttest.Start()
		require.ErrorContains(t, err, "start the server before synctest.Test")
		assert.Panics(t, func() { payvaulttest.NewServer() })
	})
}

package bulk

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cannedClient is a client whose requests go to rt.
func cannedClient(tb testing.TB, rt http.RoundTripper) *payvault.Client {
	tb.Helper()
	c, err := payvault.NewClient("https://service.test/gateway/v1", service.APIKey, service.Over(rt),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: time.Microsecond, MaxBackoff: time.Microsecond}))
	require.NoError(tb, err)
	return c
}

// newGates are twenty gates; the first ones are open.
func newGates(open int) []chan struct{} {
	gates := make([]chan struct{}, 20)
	for i := range gates {
		if gates[i] = make(chan struct{}); i < open {
			close(gates[i])
		}
	}
	return gates
}

func tableCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}}
}

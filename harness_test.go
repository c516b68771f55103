package payvault_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

const apiKey = service.APIKey

type roundTripper = service.RoundTripper

func tableCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}}
}

func newGates(n, open int) []chan struct{} {
	gates := make([]chan struct{}, n)
	for i := range gates {
		if gates[i] = make(chan struct{}); i < open {
			close(gates[i])
		}
	}
	return gates
}

func asError(tb testing.TB, err error) *payvault.Error { tb.Helper(); return service.AsError(tb, err) }

func cannedClient(tb testing.TB, rt http.RoundTripper) *payvault.Client {
	tb.Helper()
	c, err := payvault.NewClient("https://service.test/gateway/v1", "test-api-key", service.Over(rt),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: time.Microsecond, MaxBackoff: time.Microsecond}))
	require.NoError(tb, err)
	return c
}

func assertInvalid(t *testing.T, err error, op payvault.Operation, want service.Fields) {
	t.Helper()
	service.AssertInvalid(t, err, op, want)
}

func assertNoMerchant(t *testing.T, err error, op payvault.Operation) {
	t.Helper()
	service.AssertError(t, err, payvault.Error{Op: op, Delivery: payvault.NotSent}, payvault.ErrMerchantNotSupported)
}

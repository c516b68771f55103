package payvault_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// answeredBy returns a client whose RoundTripper answers without the hooks of net/http.
func answeredBy(t *testing.T, answer func(*http.Request) (int, string)) *payvault.Client {
	t.Helper()
	rt := roundTripper(func(req *http.Request) (*http.Response, error) {
		status, body := answer(req)
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(body))}, nil
	})
	client, err := payvault.NewClient("https://service.test", apiKey, payvault.WithHTTPClient(&http.Client{Transport: rt}))
	require.NoError(t, err)
	return client
}

// TestError_repeatsNoQuery: a gateway names the URL that it got, in which a value is escaped.
func TestError_repeatsNoQuery(t *testing.T) {
	t.Parallel()
	client := answeredBy(t, func(req *http.Request) (int, string) {
		return http.StatusBadRequest, `{"code":9,"message":"no such page: ` + req.URL.RawQuery + `"}`
	})
	_, err := client.Customers.List(t.Context(), &payvault.ListOptions{
		Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", "ada ä+b%y&ron@example.com")},
	})
	require.ErrorIs(t, err, payvault.ErrRejected)
	assert.Contains(t, err.Error(), "no such page")
	for _, part := range []string{"ada", "C3", "ron", "example.com"} {
		assert.NotContains(t, err.Error(), part)
	}
}

// TestSafeToRetry_earlyAnswer: where it is not known whether a 408 was sent before the request came, it decides nothing.
func TestSafeToRetry_earlyAnswer(t *testing.T) {
	t.Parallel()
	early := answeredBy(t, func(*http.Request) (int, string) { return http.StatusRequestTimeout, "" })
	_, err := early.Customers.List(t.Context(), nil)
	require.Error(t, err)
	assert.True(t, payvault.SafeToRetry(err), err)
	err = early.Payees.Delete(t.Context(), 7)
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	assert.False(t, payvault.SafeToRetry(err), err)
}

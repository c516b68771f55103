package sandbox_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault/examples/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestClient checks for which environment variables Client returns a client, nil, or an error.
func TestClient(t *testing.T) {
	t.Parallel()
	const all = "set all of PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID"
	tests := map[string]struct {
		env     map[string]string
		client  bool
		problem string
	}{
		"nothing": {nil, false, ""},
		"no URL":  {map[string]string{"PAYVAULT_API_KEY": "k", "PAYVAULT_MERCHANT_ID": "1"}, false, all},
		"no key": {
			map[string]string{"PAYVAULT_BASE_URL": "https://x.example", "PAYVAULT_MERCHANT_ID": "1"},
			false, all,
		},
		"no merchant": {map[string]string{"PAYVAULT_BASE_URL": "https://x.example", "PAYVAULT_API_KEY": "k"}, false, all},
		"not a number": {map[string]string{
			"PAYVAULT_BASE_URL": "https://x.example", "PAYVAULT_API_KEY": "k",
			"PAYVAULT_MERCHANT_ID": "x",
		}, false, "PAYVAULT_MERCHANT_ID is not a positive number"},
		"not encrypted": {map[string]string{
			"PAYVAULT_BASE_URL": "http://x.example", "PAYVAULT_API_KEY": "k",
			"PAYVAULT_MERCHANT_ID": "1",
		}, false, "plain http"},
		"all": {map[string]string{
			"PAYVAULT_BASE_URL": "https://x.example", "PAYVAULT_API_KEY": "k",
			"PAYVAULT_MERCHANT_ID": "1",
		}, true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := sandbox.Client(func(name string) string { return test.env[name] })
			if test.problem != "" {
				require.ErrorContains(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.client, client != nil)
		})
	}
}

// TestOffline checks the line that Offline prints. If there are flags, Offline must print nothing and return an error.
func TestOffline(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.ErrorContains(t, sandbox.Offline(&out, true),
		"set PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID")
	assert.Empty(t, out.String())
	require.NoError(t, sandbox.Offline(&out, false))
	assert.Regexp(t, `^Offline: .* emulator .*\n$`, out.String())
}

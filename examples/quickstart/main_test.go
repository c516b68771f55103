package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// TestOfflineRun checks that an offline run prints a result for every part of the service, and no full account number.
func TestOfflineRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), environment(nil), &out))
	assert.True(t, strings.HasPrefix(out.String(), "Offline: "))
	for _, info := range payvault.Operations() {
		part, _, _ := strings.Cut(string(info.Op), ".")
		assert.Contains(t, out.String(), "\n"+part+".", "examples/quickstart has no step for it")
	}
	assert.NotContains(t, out.String(), "left out")
	assert.NotContains(t, out.String(), "000987654321", "the account number of the payee")
}

// TestSandboxNeedsAllThreeVariables checks that run returns an error if only one of the three variables of a sandbox is
// set.
func TestSandboxNeedsAllThreeVariables(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PAYVAULT_BASE_URL", "PAYVAULT_API_KEY", "PAYVAULT_MERCHANT_ID"} {
		var out bytes.Buffer
		err := run(t.Context(), environment(map[string]string{name: "https://sandbox.example.com"}), &out)
		require.ErrorContains(t, err, "set all of PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID")
		assert.Empty(t, out.String())
	}
}

// TestSandboxRunLeavesOutWhatHasNoID checks that a run against a sandbox skips the calls whose IDs are not set, and
// makes all others.
func TestSandboxRunLeavesOutWhatHasNoID(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	merchant := srv.Merchant()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), environment(map[string]string{
		"PAYVAULT_BASE_URL":    srv.URL,
		"PAYVAULT_API_KEY":     merchant.APIKey,
		"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(merchant.MerchantID), 10),
	}), &out))
	assert.Contains(t, out.String(), "left out: set PAYVAULT_INVOICE_ID")
	assert.Equal(t, 1, srv.Commits(payvault.OpCustomersCreate))
	assert.Zero(t, srv.Commits(payvault.OpInvoicesSend))
}

// TestSandboxNumbersAreNumbers checks that run returns an error if PAYVAULT_CHANNEL_ID is not a number.
func TestSandboxNumbersAreNumbers(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), environment(map[string]string{
		"PAYVAULT_BASE_URL": "https://sandbox.example.com", "PAYVAULT_API_KEY": "key", "PAYVAULT_MERCHANT_ID": "1",
		"PAYVAULT_CHANNEL_ID": "mine",
	}), &bytes.Buffer{})
	require.EqualError(t, err, "PAYVAULT_CHANNEL_ID is not a number")
}

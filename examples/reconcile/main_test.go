package main

import (
	"bytes"
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nothing(string) string { return "" }

// TestOfflineRun checks the table that an offline run prints, and that an offline run refuses flags.
func TestOfflineRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, nothing, &out))
	assert.Regexp(t, `^Offline: .*
Subscription \d+, 2026-10-01 to 2026-12-31

  status  currency  count  amount  refunded  balance
       D       840      3    0\.30         0     0\.30
       P       392      6      90         0       90
       P       840     82    8\.20         0     8\.20
       R       840      1    0\.10      0\.03     0\.07
$`, out.String())
	for _, args := range [][]string{{"-subscription", "4711"}, {"-from", "2026-01-01"}} {
		require.ErrorContains(t, run(t.Context(), args, nothing, &out), "set PAYVAULT_BASE_URL, ")
	}
}

// sandboxed returns a getenv function whose variables name srv as the sandbox.
func sandboxed(srv *payvaulttest.Server) func(string) string {
	return func(name string) string {
		return map[string]string{
			"PAYVAULT_BASE_URL":    srv.URL,
			"PAYVAULT_API_KEY":     srv.Merchant().APIKey,
			"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(srv.Merchant().MerchantID), 10),
		}[name]
	}
}

// TestSandboxRun checks that a run against a sandbox adds up only the transactions from -from to -to, without rounding.
func TestSandboxRun(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	day := func(d int) time.Time { return time.Date(2026, 11, d, 12, 0, 0, 0, time.UTC) }
	id := srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{
		{Time: day(1), Status: "P", AmtTran: payvault.MustParseAmount("0.10")},
		{Time: day(2), Status: "P", AmtTran: payvault.MustParseAmount("0.2"), AmtRefunded: payvault.MustParseAmount("0.005")},
		// an amount with more digits than a float64 has
		{Time: day(3), Status: "V", AmtTran: payvault.MustParseAmount("9007199254740993.01")},
		// a transaction after the last day
		{Time: day(4), Status: "P", AmtTran: payvault.MustParseAmount("77")},
	}}).ID
	var out bytes.Buffer
	args := []string{"-subscription", strconv.FormatInt(int64(id), 10), "-from", "2026-11-01", "-to", "2026-11-03"}
	require.NoError(t, run(t.Context(), args, sandboxed(srv), &out))
	assert.Contains(t, out.String(), "       P       840      2                 0.30     0.005                0.295\n")
	assert.Contains(t, out.String(), "       V       840      1  9007199254740993.01         0  9007199254740993.01\n")
}

// TestErrorsOfTheServiceEndTheWalk checks that ask returns an error and no sums if the service refuses the list of
// transactions.
func TestErrorsOfTheServiceEndTheWalk(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	q := question{
		subscription: seed(srv), from: payvault.Date{Year: 2026, Month: 1, Day: 1},
		to: payvault.Date{Year: 2026, Month: 12, Day: 31},
	}
	inject(t, srv, payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7})
	sums, err := q.ask(t.Context(), srv.Client())
	require.ErrorIs(t, err, payvault.ErrRejected)
	assert.Nil(t, sums)
}

// TestSumsAreExactOrFail checks that add keeps all decimal places, and returns an error if a sum would have to be
// rounded.
func TestSumsAreExactOrFail(t *testing.T) {
	t.Parallel()
	most := decimal.MustParse("9999999999999999.99")
	var sum total
	require.NoError(t, sum.add(most, decimal.Zero))
	require.NoError(t, sum.add(decimal.MustParse("0.01"), most))
	assert.Equal(t, "10000000000000000.00", sum.amount.String())
	assert.Equal(t, "0.01", sum.balance.String())
	require.Error(t, sum.add(decimal.MustParse("9999999999999999999"), decimal.Zero), "it would be rounded")
	require.Error(t, sum.add(decimal.Zero, decimal.MustParse("0.00000001")), "it would be rounded")

	var mixed total
	require.NoError(t, mixed.add(decimal.MustParse("0.25"), decimal.Zero))
	require.NoError(t, mixed.add(decimal.MustParse("3"), decimal.Zero))
	assert.Equal(t, "3.25", mixed.amount.String(), "the places of the sum count too")
}

// TestFlags checks that run returns an error for an unexpected argument, an invalid flag, -h, and a missing
// -subscription.
func TestFlags(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), []string{"4711"}, nothing, &bytes.Buffer{}), `unexpected argument "4711"`)
	require.ErrorContains(t, run(t.Context(), []string{"-to", "today"}, nothing, &bytes.Buffer{}), "not a date")
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, nothing, &bytes.Buffer{}), flag.ErrHelp)
	require.EqualError(t, run(t.Context(), []string{"-from", "2027-01-01"}, nothing, &bytes.Buffer{}),
		"-from is after -to")
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	require.EqualError(t, run(t.Context(), nil, sandboxed(srv), &bytes.Buffer{}), "-subscription is required")
}

// inject injects a fault into the emulator. It returns a function that removes the fault.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) func() {
	t.Helper()
	remove, err := srv.Inject(fault)
	require.NoError(t, err)
	return remove
}

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

// TestOfflineRunMendsTheApplication checks that an offline run saves the fields that validation reports, until the
// application passes.
func TestOfflineRunMendsTheApplication(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), environment(nil), &out))
	text := out.String()
	assert.Contains(t, text, " is INCOMPLETE.\n")
	assert.Contains(t, text, "\n  tax_id: This field is required\n")
	assert.Contains(t, text, "\n  fulfillment_name: This field is required when a third party fulfils orders\n")
	assert.Equal(t, 2, strings.Count(text, "fields do not pass:"), "the mended fields make others required")
	assert.Contains(t, text, " passes. The interface documents no operation that submits it: ")
	assert.True(t, strings.HasPrefix(text, "Offline: "))
	assert.NotContains(t, text, "123456789", "the tax ID")
}

// TestSandboxRun checks that the program boards a merchant with the key of a partner and without the key of a merchant.
func TestSandboxRun(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	getenv := environment(map[string]string{
		"PAYVAULT_BASE_URL":        srv.URL,
		"PAYVAULT_PARTNER_API_KEY": srv.Partner().APIKey,
		"PAYVAULT_VENDOR_ID":       strconv.FormatInt(srv.Partner().VendorID, 10),
		"PAYVAULT_CHANNEL_ID":      "7",
		"PAYVAULT_SALES_REP":       "42",
	})
	require.NoError(t, run(t.Context(), getenv, &bytes.Buffer{}))
	require.Len(t, srv.Applications.All(), 1)
	assert.Len(t, srv.Applications.All()[0].Data(), 32)

	partner, err := newPartner(getenv)
	require.NoError(t, err)
	_, err = partner.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{
		MerchantID: srv.Merchant().MerchantID, CardNumber: payvault.NewSecret("4111111111111111"),
		ExpDate: payvault.FormatExpDate(12, 2030),
	})
	require.NoError(t, err, "the partner's client can tokenize too")
}

// TestSandboxNeedsAllVariables checks that run returns an error with the name of a variable that is missing.
func TestSandboxNeedsAllVariables(t *testing.T) {
	t.Parallel()
	variables := map[string]string{
		"PAYVAULT_BASE_URL": "https://sandbox.example.com", "PAYVAULT_API_KEY": "key", "PAYVAULT_MERCHANT_ID": "1",
	}
	const both = "set PAYVAULT_BASE_URL and PAYVAULT_PARTNER_API_KEY"
	require.ErrorContains(t, run(t.Context(), environment(variables), &bytes.Buffer{}), both)
	require.ErrorContains(t, run(t.Context(), environment(map[string]string{"PAYVAULT_PARTNER_API_KEY": "key"}),
		&bytes.Buffer{}), both)
	variables["PAYVAULT_PARTNER_API_KEY"] = "key"
	require.EqualError(t, run(t.Context(), environment(variables), &bytes.Buffer{}),
		"PAYVAULT_VENDOR_ID is not a positive number")
	variables["PAYVAULT_VENDOR_ID"] = "7001"
	require.EqualError(t, run(t.Context(), environment(variables), &bytes.Buffer{}),
		"PAYVAULT_CHANNEL_ID is not a positive number")
	variables["PAYVAULT_CHANNEL_ID"] = "7"
	require.EqualError(t, run(t.Context(), environment(variables), &bytes.Buffer{}),
		"PAYVAULT_SALES_REP is not a positive number")
}

// boardWith runs board with a part of the merchant's file: the fields for whose keys the function keep returns true.
func boardWith(t *testing.T, keep func(key string) bool) error {
	t.Helper()
	all, err := readRecord(merchantFile)
	require.NoError(t, err)
	var onFile record
	for _, f := range all {
		if keep(f.Key) {
			onFile = append(onFile, f)
		}
	}
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	b := &boarding{partner: srv.PartnerClient(), onFile: onFile, out: &bytes.Buffer{}}
	return b.board(t.Context(), &payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42})
}

// TestWhatIsNotOnFileIsNamed checks that the error has the keys of required fields that the merchant's file does not
// have.
func TestWhatIsNotOnFileIsNamed(t *testing.T) {
	t.Parallel()
	require.EqualError(t, boardWith(t, func(key string) bool { return key != "tax_id" }), "nothing on file of: tax_id")
	require.ErrorContains(t, boardWith(t, func(string) bool { return false }), "nothing on file of: legal_name")
	require.ErrorContains(t, boardWith(t, func(key string) bool { return key != "bank_routing" }), "bank_routing")
}

// TestRecordHasToBeApplicationData checks that readRecord returns an error if the merchant's file is not JSON, and that
// pick returns an error if a value in the file has a wrong type.
func TestRecordHasToBeApplicationData(t *testing.T) {
	t.Parallel()
	_, err := readRecord([]byte("{"))
	require.ErrorContains(t, err, "the merchant's record: ")
	_, _, err = record{{Key: "ownership", Value: []byte(`"nobody"`)}}.pick([]string{"ownership"})
	require.ErrorContains(t, err, "the merchant's record: ")
}

// TestFieldsOf checks that fieldsOf returns the key of the top-level field for each path, and both keys of the bank
// account.
func TestFieldsOf(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"bank_account_number", "bank_routing", "ownership", "tax_id"}, fieldsOf(map[string][]string{
		"ownership.owners[0].dob": nil, "ownership.owners": nil, "tax_id": nil, "bank_routing": nil,
	}))
}

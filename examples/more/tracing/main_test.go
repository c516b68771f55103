package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names returns the names of the printed spans, in the order in which they ended.
func names(t *testing.T, out *bytes.Buffer) []string {
	t.Helper()
	var list []string
	for decoder := json.NewDecoder(out); decoder.More(); {
		var span struct {
			Name        string `json:"Name"`
			SpanContext struct {
				TraceID string `json:"TraceID"`
			} `json:"SpanContext"`
		}
		require.NoError(t, decoder.Decode(&span))
		assert.NotEmpty(t, span.SpanContext.TraceID)
		list = append(list, span.Name)
	}
	return list
}

// TestOfflineRun checks that an offline run prints the spans of both calls and of all their attempts.
func TestOfflineRun(t *testing.T) {
	t.Parallel()
	var out, show bytes.Buffer
	require.NoError(t, run(t.Context(), func(string) string { return "" }, &out, &show))
	assert.True(t, strings.HasPrefix(show.String(), "Offline: "))
	text := out.String()
	assert.Equal(t, []string{
		"GET /platform/vault/customer", "GET /platform/vault/customer", "customers.list",
		"POST /platform/invoice/{invoice_id}/send", "invoices.send", "my own work",
	}, names(t, &out))
	assert.Contains(t, text, `"payvault.delivery"`)
}

// TestSandboxRun checks that a run against a sandbox fails unless all variables are set, and that it prints the spans
// of its call, even if the call fails.
func TestSandboxRun(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	variables := map[string]string{"PAYVAULT_BASE_URL": srv.URL}
	getenv := func(name string) string { return variables[name] }
	var out bytes.Buffer
	require.ErrorContains(t, run(t.Context(), getenv, &out, io.Discard), "or none of them")

	variables["PAYVAULT_API_KEY"] = srv.Merchant().APIKey
	variables["PAYVAULT_MERCHANT_ID"] = strconv.FormatInt(int64(srv.Merchant().MerchantID), 10)
	require.NoError(t, run(t.Context(), getenv, &out, io.Discard))
	assert.Equal(t, []string{"GET /platform/vault/customer", "customers.list", "my own work"}, names(t, &out))

	variables["PAYVAULT_API_KEY"] = "wrong"
	require.Error(t, run(t.Context(), getenv, &out, io.Discard))
	assert.Contains(t, out.String(), `"Value": "401"`, "spans of failures are exported too")
}

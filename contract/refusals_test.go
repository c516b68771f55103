package contract

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// TestRefusals sends the emulator what the SDK never sends, and holds its refusals against the document.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
		method string // of the operations that can get it; all if empty
	}{
		{"no key", func(r *http.Request) { r.Header.Del("Authorization") }, 401, ""},
		{"user part", func(r *http.Request) { r.SetBasicAuth("user", "merchant-api-key") }, 401, ""},
		{"accept header", func(r *http.Request) { r.Header.Set("Accept", "text/html") }, 406, ""},
		{"unknown parameter", func(r *http.Request) { r.URL.RawQuery = "unknown=1" }, 400, ""},
		{"negative count", func(r *http.Request) { r.URL.RawQuery = "count=-1" }, 400, "GET"},
		{"comma", func(r *http.Request) { r.URL.RawQuery = "filter=a,EQUALS,b" }, 400, "GET"},
		{"not JSON", func(*http.Request) {}, 0, "POST"}, // 400, 404, 415: whatever the operation finds first
	}
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	c := loadContract(t)
	for _, row := range operationRows(t) {
		for _, tt := range tests {
			if tt.method != "" && tt.method != row.method {
				continue
			}
			t.Run(row.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				status, header, body := sendRaw(t, srv, row, tt.change)
				if tt.status != 0 {
					assert.Equal(t, tt.status, status)
				}
				assert.GreaterOrEqual(t, status, 400)
				m, err := c.find(newRequest(t, row.method, fixturePath(row), "", nil), nil)
				require.NoError(t, err)
				report(t, "the answer", c.checkResponse(m, status, header, body))
			})
		}
	}
}

// sendRaw sends a changed request of an operation; a body is never right.
func sendRaw(t *testing.T, srv *payvaulttest.Server, row operationRow, change func(*http.Request)) (int, http.Header, []byte) {
	t.Helper()
	var sent []byte
	if row.method == http.MethodPost {
		sent = []byte(`{"a":`)
	}
	r, err := http.NewRequestWithContext(t.Context(), row.method, srv.URL+fixturePath(row), bytes.NewReader(sent))
	require.NoError(t, err)
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Accept", jsonType)
	account := srv.Merchant()
	if forPartners(row.name) {
		account = srv.Partner()
	}
	r.SetBasicAuth("", account.APIKey)
	change(r)
	resp, err := srv.HTTPClient().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, body
}

package contract

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// TestEmulatorParameters asks the emulator about every name in its source: it may take the query parameters of the
// document, and no others.
func TestEmulatorParameters(t *testing.T) {
	t.Parallel()
	documented := queryParameters(loadContract(t))
	isName := regexp.MustCompile(`^[A-Za-z]\w*$`)
	names := emulatorSource(t).literals
	for _, parameters := range documented {
		for _, name := range parameters {
			names[name] = true
		}
	}
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	for _, row := range operationRows(t) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var taken []string
			for name := range names {
				if isName.MatchString(name) && takes(t, srv, row, name) {
					taken = append(taken, name)
				}
			}
			failList(t, "the emulator takes a parameter that is not in the document", without(taken, documented[row.name]))
			failList(t, "the emulator does not take a parameter of the document", without(documented[row.name], taken))
		})
	}
}

// takes tells whether the emulator takes a query parameter: it says so if it does not.
func takes(t *testing.T, srv *payvaulttest.Server, row operationRow, name string) bool {
	t.Helper()
	target := srv.URL + fixturePath(row) + "?" + url.Values{name: {"1"}}.Encode()
	r, err := http.NewRequestWithContext(t.Context(), row.method, target, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", jsonType)
	account := srv.Merchant()
	if forPartners(row.name) {
		account = srv.Partner()
	}
	r.SetBasicAuth("", account.APIKey)
	resp, err := srv.HTTPClient().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return !strings.Contains(string(text), "is not a query parameter of this operation")
}

package sqlpayvault_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/sqlpayvault"
)

// slow is a transport that accepts every submission after some time.
type slow struct {
	requestID string
	after     time.Duration
}

func (s slow) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GotConn(httptrace.GotConnInfo{})
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	<-time.After(s.after)
	body := `{"code":0,"message":"Success","data":{"request_id":"` + s.requestID + `"}}`
	return &http.Response{
		StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// BenchmarkSubmitAll sends batches of 100 cards to a service that answers after 5 ms or at once. Up to 32 batches are
// in flight. The benchmark compares three cases: no journal, a journal in SQLite, and a journal in Postgres.
func BenchmarkSubmitAll(b *testing.B) {
	for _, after := range []time.Duration{5 * time.Millisecond, 0} {
		b.Run("service="+after.String(), func(b *testing.B) { benchmarkSubmitAll(b, after) })
	}
}

func benchmarkSubmitAll(b *testing.B, after time.Duration) {
	b.Helper()
	transport := payvault.WithHTTPClient(&http.Client{Transport: slow{"AUSREQUEST8003", after}})
	client, err := payvault.NewClient("https://service.test", "key", transport)
	require.NoError(b, err)
	run := func(b *testing.B, options payvault.SubmitAllOptions) {
		b.Helper()
		options.Concurrency = 32
		b.ResetTimer()
		for batch, err := range client.AccountUpdater.SubmitAll(b.Context(), stream(100*b.N), &options) {
			require.NoError(b, err)
			require.NoError(b, batch.Err)
		}
		b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "cards/s")
	}
	b.Run("journal=none", func(b *testing.B) { run(b, payvault.SubmitAllOptions{}) })
	b.Run("journal=SQLite", func(b *testing.B) {
		run(b, payvault.SubmitAllOptions{Journal: opened(b, filepath.Join(b.TempDir(), "journal")), Job: job})
	})
	if dsn := os.Getenv("PAYVAULT_TEST_POSTGRES"); dsn != "" {
		for _, connections := range []int{2, 8} {
			b.Run("journal=Postgres/connections="+strconv.Itoa(connections), func(b *testing.B) {
				db := direct(b, newDatabase(b, dsn))
				db.SetMaxOpenConns(connections)
				db.SetMaxIdleConns(connections)
				j, err := sqlpayvault.New(b.Context(), db)
				require.NoError(b, err)
				run(b, payvault.SubmitAllOptions{Journal: j, Job: job})
				require.NoError(b, j.Close())
			})
		}
	}
}

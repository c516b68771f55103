package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nothing(string) string { return "" }

func TestOfflineRun(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	require.NoError(t, run(t.Context(), nil, nothing, &out, &progress))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1001)
	assert.Equal(t, columns(), rows[0])
	assert.Equal(t, []string{"CUSTOMER0000", "Jane", "Doe, the 0.", "", "jane.0@example.com", "", "", ""}, rows[1])
	assert.Equal(t, "CUSTOMER0999", rows[1000][0])
	assert.Contains(t, progress.String(), "500 of 1000 customers\n")
	assert.Equal(t, 10, bytes.Count(progress.Bytes(), []byte("\n")))
}

func TestSandboxRunWritesAFile(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	require.NoError(t, seed(t.Context(), srv.Client(), 3))
	path := filepath.Join(t.TempDir(), "customers.csv")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-o", path}, func(name string) string {
		return map[string]string{
			"PAYVAULT_BASE_URL":    srv.URL,
			"PAYVAULT_API_KEY":     srv.Merchant().APIKey,
			"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(srv.Merchant().MerchantID), 10),
		}[name]
	}, &out, io.Discard))
	assert.Empty(t, out.String())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 4, bytes.Count(text, []byte("\n")))
	assertOnly(t, path)
}

// assertOnly checks that a file is the only one in its directory.
func assertOnly(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, filepath.Base(path), entries[0].Name())
}

func TestFailedExportLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	require.NoError(t, seed(t.Context(), srv.Client(), 60)) // two pages
	path := filepath.Join(t.TempDir(), "customers.csv")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))

	ctx, cancel := context.WithCancel(t.Context())
	interrupt := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	err := replaceFile(path, func(file io.Writer) error { return export(ctx, srv.Client(), file, interrupt) })
	require.ErrorIs(t, err, context.Canceled)
	srv.Inject(payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7})
	err = replaceFile(path, func(file io.Writer) error { return export(t.Context(), srv.Client(), file, io.Discard) })
	require.ErrorIs(t, err, payvault.ErrRejected)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(text))
	assertOnly(t, path)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFullDisk(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	full := writerFunc(func([]byte) (int, error) { return 0, io.ErrShortWrite })
	require.ErrorIs(t, export(t.Context(), srv.Client(), full, io.Discard), io.ErrShortWrite)
	require.ErrorIs(t, run(t.Context(), []string{"-o", filepath.Join(t.TempDir(), "no", "x.csv")}, nothing, io.Discard, io.Discard), os.ErrNotExist)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, nothing, io.Discard, io.Discard), flag.ErrHelp)
}

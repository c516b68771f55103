package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestMain runs the program itself if EXPORT_PROGRAM is set, so that TestTerminatedExport can start the program and
// terminate it.
func TestMain(m *testing.M) {
	if os.Getenv("EXPORT_PROGRAM") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func nothing(string) string { return "" }

// TestOfflineRun checks the rows and the progress of an offline export of 1,000 customers.
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
	assert.Equal(t, 11, bytes.Count(progress.Bytes(), []byte("\n")))
	assert.True(t, bytes.HasPrefix(progress.Bytes(), []byte("Offline: ")))
}

// TestOfflineWritesNoFile checks that a run without environment variables refuses -o and does not change the file,
// because the file may have real customers.
func TestOfflineWritesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "customers.csv")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{"-o", path}, nothing, io.Discard, io.Discard),
		"set PAYVAULT_BASE_URL, ")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(text))
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

// TestSandboxRunWritesAFile checks that a run with -o writes all customers to the file, and nothing to standard output.
func TestSandboxRunWritesAFile(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	require.NoError(t, seed(t.Context(), srv.Client(), 3))
	path := filepath.Join(t.TempDir(), "customers.csv")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-o", path}, sandboxed(srv), &out, io.Discard))
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

// TestFailedExportLeavesTheOldFile checks that the old file stays unchanged if the export is interrupted or the service
// refuses a request.
func TestFailedExportLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	require.NoError(t, seed(t.Context(), srv.Client(), 60)) // these customers need two pages
	path := filepath.Join(t.TempDir(), "customers.csv")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))

	ctx, cancel := context.WithCancel(t.Context())
	interrupt := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	err := replaceFile(path, func(file io.Writer) error { return export(ctx, srv.Client(), file, interrupt) })
	require.ErrorIs(t, err, context.Canceled)
	inject(t, srv, payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7})
	err = replaceFile(path, func(file io.Writer) error { return export(t.Context(), srv.Client(), file, io.Discard) })
	require.ErrorIs(t, err, payvault.ErrRejected)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(text))
	assertOnly(t, path)
}

// TestLinkStaysALink checks that replaceFile with a symbolic link replaces the file that the link points to, and does
// not change the link.
func TestLinkStaysALink(t *testing.T) {
	t.Parallel()
	path, link := filepath.Join(t.TempDir(), "customers.csv"), filepath.Join(t.TempDir(), "link.csv")
	write := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	require.NoError(t, os.Symlink(path, link))
	require.ErrorIs(t, replaceFile(link, write), os.ErrNotExist, "it leads nowhere")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, replaceFile(link, write))
	for _, name := range []string{path, link} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, "new", string(text))
		assertOnly(t, name)
	}
	leadsTo, err := os.Readlink(link)
	require.NoError(t, err)
	assert.Equal(t, path, leadsTo)
	require.ErrorContains(t, replaceFile(filepath.Dir(path), write), "is not a regular file")
}

// TestCellsAreNoFormulas checks that row puts an apostrophe in front of each cell that a spreadsheet would read as a
// formula.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	customer := &payvault.Customer{
		ID: "=1+1", FirstName: "+1", LastName: "-1", FirmName: "@SUM(A1)", Email: "\tx", Phone: "\rx", ReferenceID: "1=1",
	}
	assert.Equal(t, []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx", "1=1", ""}, row(customer))
}

// TestTerminatedExport checks that the program removes its temporary file if it gets the signal SIGTERM.
func TestTerminatedExport(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	}))
	t.Cleanup(service.Close)
	t.Cleanup(func() { close(answer) })
	path := filepath.Join(t.TempDir(), "customers.csv")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	program := exec.CommandContext(t.Context(), os.Args[0], "-o", path) //nolint:gosec // the test binary itself
	program.Env = append(os.Environ(), "EXPORT_PROGRAM=1",
		"PAYVAULT_BASE_URL="+service.URL, "PAYVAULT_API_KEY=key", "PAYVAULT_MERCHANT_ID=1")
	require.NoError(t, program.Start())
	<-asked
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	require.ErrorContains(t, program.Wait(), "exit status 1", "not ended by the signal")
	assertOnly(t, path)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestFullDisk checks that export returns an error of its writer, and that run returns an error if it cannot create the
// file.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	full := writerFunc(func([]byte) (int, error) { return 0, io.ErrShortWrite })
	require.ErrorIs(t, export(t.Context(), srv.Client(), full, io.Discard), io.ErrShortWrite)
	nowhere := filepath.Join(t.TempDir(), "no", "x.csv")
	require.ErrorIs(t, run(t.Context(), []string{"-o", nowhere}, sandboxed(srv), io.Discard, io.Discard), os.ErrNotExist)
}

// TestFlags checks that the flag -h makes run return flag.ErrHelp.
func TestFlags(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, nothing, io.Discard, io.Discard), flag.ErrHelp)
}

// inject injects a fault into the emulator. It returns a function that removes the fault.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) func() {
	t.Helper()
	remove, err := srv.Inject(fault)
	require.NoError(t, err)
	return remove
}

package main

import (
	"bytes"
	"flag"
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

// TestOfflineRun checks that a run without environment variables answers a retrieval dispute of an emulator with the
// example PDF.
func TestOfflineRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, nothing, &out))
	assert.Regexp(t, `^Offline: .*\nDispute \d+ is answered\.\nSent receipt\.pdf, \d+ bytes\.\n$`, out.String())
}

// TestOfflineRunOfAFirstTimeDispute checks that sendOffline answers a first-time dispute if -type is given.
func TestOfflineRunOfAFirstTimeDispute(t *testing.T) {
	t.Parallel()
	a, err := parseAnswer([]string{"-id", "4711", "-type", "CE", "-evidence", "receipt", "-amount", "12.50"})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, a.sendOffline(t.Context(), &out))
	assert.Contains(t, out.String(), "Dispute 4711 is answered.\n")
}

// TestOfflineTakesNoFlags checks that a run without environment variables refuses flags. Otherwise the user could think
// that a real dispute was answered.
func TestOfflineTakesNoFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-id", "4"}, {"-id=0"}, {"-file", "mine.pdf"}, {"-message", "Mine."}} {
		var out bytes.Buffer
		require.ErrorContains(t, run(t.Context(), args, nothing, &out), "set PAYVAULT_BASE_URL, ")
		assert.Empty(t, out.String())
	}
}

// sandboxed returns the environment variables with which the program uses srv as its sandbox.
func sandboxed(srv *payvaulttest.Server) func(string) string {
	return func(name string) string {
		return map[string]string{
			"PAYVAULT_BASE_URL":    srv.URL,
			"PAYVAULT_API_KEY":     srv.Merchant().APIKey,
			"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(srv.Merchant().MerchantID), 10),
		}[name]
	}
}

// TestSandboxRun checks that the program answers a dispute with the user's file, and that the service refuses a second
// answer.
func TestSandboxRun(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	dispute := srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval})
	path := filepath.Join(t.TempDir(), "mine.pdf")
	require.NoError(t, os.WriteFile(path, receipt, 0o600))
	args := []string{"-id", strconv.FormatInt(int64(dispute.ID), 10), "-file", path, "-message", "Here it is."}
	require.NoError(t, run(t.Context(), args, sandboxed(srv), &bytes.Buffer{}))

	dispute, _ = srv.Disputes.Get(dispute.ID)
	require.NotNil(t, dispute.Response)
	assert.Equal(t, "Here it is.", dispute.Response.Message)
	assert.Equal(t, "mine.pdf", dispute.Response.FileName)
	assert.Equal(t, int64(len(receipt)), dispute.Response.FileSize)

	require.ErrorContains(t, run(t.Context(), args, sandboxed(srv), &bytes.Buffer{}), "the service refused the answer: ",
		"it is answered already")
}

// TestFailuresSayWhatToDo checks that the error says what to do if an answer to a dispute fails.
func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "evidence.txt")
	require.NoError(t, os.WriteFile(text, []byte("not a PDF"), 0o600))
	tests := map[string]struct {
		fault   payvaulttest.FaultKind
		args    []string
		want    string
		matches error
	}{
		"not a PDF": {"", []string{"-file", text}, "nothing was sent, correct it: file: ", payvault.ErrInvalidRequest},
		"no file":   {"", []string{"-file", text + "x"}, "no such file", os.ErrNotExist},
		"turned off": {
			payvaulttest.RateLimit, nil, "the dispute is not answered, try again later: ",
			payvault.ErrRateLimited,
		},
		"lost": {
			payvaulttest.DropAfterCommit, nil, "ask the operator of the service before answering again: ",
			payvault.ErrOutcomeUnknown,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := parseAnswer(test.args)
			require.NoError(t, err)
			offline, err := newOffline(&a)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, offline.close()) })
			if test.fault != "" {
				inject(t, offline.server, payvaulttest.Fault{Kind: test.fault})
			}
			client := offline.server.Client(payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
			err = a.send(t.Context(), client, &bytes.Buffer{})
			require.ErrorContains(t, err, test.want)
			require.ErrorIs(t, err, test.matches)
		})
	}
}

// TestFlags checks that run returns an error for an unexpected argument, an invalid flag and each missing flag.
func TestFlags(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), []string{"receipt.pdf"}, nothing, &bytes.Buffer{}),
		`unexpected argument "receipt.pdf"`)
	require.ErrorContains(t, run(t.Context(), []string{"-amount", "twelve"}, nothing, &bytes.Buffer{}),
		"not a decimal number")
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	for want, args := range map[string][]string{
		"-id is required":                    {"-file", "receipt.pdf"},
		"-file is required without -type":    {"-id", "7102"},
		"-message is required without -type": {"-id", "7102", "-file", "receipt.pdf", "-message", ""},
	} {
		require.EqualError(t, run(t.Context(), args, sandboxed(srv), &bytes.Buffer{}), want)
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, nothing, &bytes.Buffer{}), flag.ErrHelp)
}

// inject injects a fault into the emulator. It returns a function that removes the fault.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) func() {
	t.Helper()
	remove, err := srv.Inject(fault)
	require.NoError(t, err)
	return remove
}

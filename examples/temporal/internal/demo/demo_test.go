package demo_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
	"example.com/payvault/temporalpayvault"
)

func newEnvironment() *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestWorkflowEnvironment()
}

// newActivities returns activities with a new journal, and the emulator that they call. The activities read cards from
// files.
func newActivities(t *testing.T) (*temporalpayvault.Activities, *payvaulttest.Server) {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	journal, err := sqlpayvault.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlpayvault.WithoutLease())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, journal.Close()) })
	return &temporalpayvault.Activities{Client: srv.Client(), Cards: demo.File{}, Journal: journal}, srv
}

// newJob returns a job that submits a file of n cards.
func newJob(t *testing.T, n int) temporalpayvault.Job {
	t.Helper()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, n))
	snapshot, bad, err := demo.Check(t.Context(), name)
	require.NoError(t, err)
	assert.Empty(t, bad)
	return temporalpayvault.Job{Source: name, Snapshot: snapshot}
}

// write writes text to a CSV file and returns the path of the file.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// TestSubmit checks that the workflow SubmitCards sends all cards of a file, with the card source and the journal of
// the worker. When it runs again, it must send nothing.
func TestSubmit(t *testing.T) {
	t.Parallel()
	a, srv := newActivities(t)
	job := newJob(t, 2050)
	for _, known := range []int{0, 21} {
		env := newEnvironment()
		temporalpayvault.Register(env, a)
		env.ExecuteWorkflow(temporalpayvault.SubmitCards, job)
		var s temporalpayvault.Summary
		require.NoError(t, env.GetWorkflowError())
		require.NoError(t, env.GetWorkflowResult(&s))
		assert.Equal(t, temporalpayvault.Summary{Cards: 2050, Batches: 21, Accepted: 21, FromJournal: known}, s)
		assert.Equal(t, 21, srv.Commits(payvault.OpAccountUpdaterSubmit))
	}
}

// TestSubmit_unreadable checks that a job is completed without a pause if its file cannot be read at first.
func TestSubmit_unreadable(t *testing.T) {
	t.Parallel()
	a, _ := newActivities(t)
	job := newJob(t, 250)
	require.NoError(t, os.Rename(job.Source, job.Source+".away"))
	env := newEnvironment()
	temporalpayvault.Register(env, a)
	env.RegisterDelayedCallback(func() { assert.NoError(t, os.Rename(job.Source+".away", job.Source)) }, 10*time.Second)
	env.ExecuteWorkflow(temporalpayvault.SubmitCards, job)
	var s temporalpayvault.Summary
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&s))
	assert.Equal(t, 3, s.Accepted)
}

// TestFile_unreadable checks the error of a directory, which can be opened but not read, and of a missing file. The
// error must be an ApplicationError that contains the path and permits a retry. The history of a workflow contains the
// text of such an error.
func TestFile_unreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "none.csv")} {
		_, snapshotErr := demo.File{}.Snapshot(t.Context(), name)
		_, cardsErr := demo.File{}.Cards(t.Context(), name, 0, 100)
		for _, err := range []error{snapshotErr, cardsErr} {
			app, ok := errors.AsType[*temporal.ApplicationError](err)
			require.True(t, ok, "%v", err)
			assert.Contains(t, app.Message(), name)
			assert.False(t, app.NonRetryable(), "another worker may be able to read the file")
		}
	}
}

// TestExport checks that the workflow ExportLists writes the pages of a list to the Folder. If the list is shorter at a
// second export, this export must remove the files of the pages that no longer exist.
func TestExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []int{32, 12} {
		srv := payvaulttest.NewServer()
		t.Cleanup(srv.Close)
		id := srv.Subscriptions.Seed(payvaulttest.Subscription{
			ID: 7, MerchantID: srv.Merchant().MerchantID, Transactions: make([]payvaulttest.Transaction, n),
		}).ID
		env := newEnvironment()
		temporalpayvault.Register(env, &temporalpayvault.Activities{Client: srv.Client(), Sink: demo.Folder{Dir: dir}})
		env.ExecuteWorkflow(temporalpayvault.ExportLists, temporalpayvault.ExportJob{
			Name: "night", Subscriptions: []payvault.SubscriptionID{id}, List: temporalpayvault.ExportOptions{Count: 10},
		})
		require.NoError(t, env.GetWorkflowError())
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	assert.Equal(t, []string{"night-7-000000.json", "night-7-000001.json"}, names)
}

// TestCheck checks that Check skips a header row, a byte order mark and empty lines. If a card cannot be sent, Check
// must report its line number and none of its data.
func TestCheck(t *testing.T) {
	t.Parallel()
	name := write(t, "\ufeffcard_number,exp_date,card_id\n4111111111111111,1230,a\n\n4111111111111112,1230\n"+
		"411111111111,1330,b\n4111-1111,1230,c\n4111111111111113,1230,\xe9\n")
	s, bad, err := demo.Check(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, 5, s.Cards)
	require.Len(t, bad, 3)
	for i, want := range []string{"line 5: ", "line 6: ", "line 7: "} {
		assert.True(t, strings.HasPrefix(bad[i], want), bad[i])
	}
	assert.Contains(t, bad[0], "exp_date")
	assert.Contains(t, bad[1], "card_number is not 12 to 19 digits")
	assert.Contains(t, bad[2], "card_id is not valid UTF-8")
	assert.NotContains(t, strings.Join(bad, ""), "4111")
	cards, err := demo.File{}.Cards(t.Context(), name, 1, 3)
	require.NoError(t, err)
	require.Len(t, cards, 2)
	assert.Equal(t, []string{"1230", "1330"}, []string{cards[0].ExpDate, cards[1].ExpDate})
}

// TestCheck_wrongFile checks that Check refuses a file without a valid card, and that its error has the reason.
func TestCheck_wrongFile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"semicolons": {"4111111111111111;1230;a\n4111111111111112;1230;b\n", "line 1: "},
		"columns":    {"a,1230,4111111111111111\n", "no card that can be sent"},
		"empty":      {"", "no card that can be sent"},
		"PDF":        {"%PDF-1.7\n\x00\"\x01\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := demo.Check(t.Context(), write(t, test.text))
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "41111111")
		})
	}
	_, _, err := demo.Check(t.Context(), filepath.Join(t.TempDir(), "none.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestWriteReport checks that the report has the line numbers of the file, even if the file has a header and empty
// lines.
func TestWriteReport(t *testing.T) {
	t.Parallel()
	text := "number,expiry,id\n" + strings.Repeat("4111111111111111,1230,a\n\n", 250)
	var out bytes.Buffer
	lines, err := demo.WriteReport(&out, write(t, text), &temporalpayvault.Summary{
		InvalidCards:   []temporalpayvault.InvalidCard{{Card: 1, Reason: "bad"}},
		RefusedBatches: []temporalpayvault.RefusedBatch{{Batch: 0, Reason: "declined"}},
		UnknownBatches: []int{1}, NotDone: []temporalpayvault.Range{{From: 2, To: 3}},
	})
	require.NoError(t, err)
	assert.Equal(t, 4, lines)
	for _, want := range []string{
		"first_line,last_line,status,reason\n", "\n4,4,left out,bad\n", "\n2,200,refused,declined\n", "\n202,400,unknown,",
		"\n402,500,perhaps not sent,",
	} {
		assert.Contains(t, out.String(), want)
	}
}

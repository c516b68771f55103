package demo_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// The export, as the worker and the starter set it up.
func TestExport(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	id := srv.Subscriptions.Seed(payvaulttest.Subscription{
		MerchantID: srv.Merchant().MerchantID, Transactions: make([]payvaulttest.Transaction, 12),
	}).ID
	env := newEnvironment()
	var out strings.Builder
	temporalpayvault.Register(env, &temporalpayvault.Activities{
		Client: srv.Client(), Subscriptions: demo.Subscriptions{}, Sink: demo.Print{W: &out},
	})
	env.ExecuteWorkflow(temporalpayvault.ExportLists, temporalpayvault.ExportJob{
		Name: "night", Subscriptions: fmt.Sprint(id), List: payvault.ListOptions{Count: 10},
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, fmt.Sprintf("night: subscription %d, page 0, transactions 0 to 9\n"+
		"night: subscription %d, page 1, transactions 10 to 11\n"+
		"night: subscription %d has 2 pages\n", id, id, id), out.String())
}

// The submission, as the worker and the starter set it up. Started again, it sends nothing.
func TestSubmit(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	journal, err := sqlpayvault.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlpayvault.WithoutLease())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, journal.Close()) })
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 2050))
	for _, earlier := range []int{0, 21} {
		env := newEnvironment()
		temporalpayvault.Register(env, &temporalpayvault.Activities{
			Client: srv.Client(), Cards: demo.File{}, Journal: journal,
		})
		env.ExecuteWorkflow(temporalpayvault.SubmitCards, temporalpayvault.Job{Source: name, Name: "night"})
		var s temporalpayvault.Summary
		require.NoError(t, env.GetWorkflowError())
		require.NoError(t, env.GetWorkflowResult(&s))
		assert.Equal(t, temporalpayvault.Summary{Cards: 2050, Batches: 21, Accepted: 21, Earlier: earlier}, s)
		assert.Equal(t, 21, srv.Commits(payvault.OpAccountUpdaterSubmit))
	}
}

func newEnvironment() *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestWorkflowEnvironment()
}

func TestFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 250))
	s, err := demo.File{}.Snapshot(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, 250, s.Cards)
	cards, err := demo.File{}.Cards(t.Context(), name, 200, 250)
	require.NoError(t, err)
	require.Len(t, cards, 50)
	assert.Equal(t, "card-200", cards[0].CardID)
	assert.Equal(t, "card-249", cards[49].CardID)

	require.NoError(t, os.WriteFile(name, []byte("4111111111111111,1230,a,b\n\n"), 0o600))
	other, err := demo.File{}.Snapshot(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, 1, other.Cards)
	assert.NotEqual(t, s.Checksum, other.Checksum)
}

// What has to be mended is said, and not tried again for ever; nothing of a card is.
func TestFile_toMend(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, os.WriteFile(name, []byte("4111111111111111,1230,a\n\n4111111111111112,1230\n"), 0o600))
	for ref, says := range map[string]string{name: "line 3 has no three fields", name + "x": "no such file"} {
		_, err := demo.File{}.Snapshot(t.Context(), ref)
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok, "%v", err)
		assert.True(t, app.NonRetryable())
		assert.Contains(t, app.Message(), says)
		assert.NotContains(t, err.Error(), "4111")
	}
}

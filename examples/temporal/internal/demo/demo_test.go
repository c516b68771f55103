package demo_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/payvaulttest"
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
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	var out strings.Builder
	temporalpayvault.Register(env, &temporalpayvault.Activities{
		Client: srv.Client(), Subscriptions: demo.Subscriptions{}, Sink: demo.Print{W: &out},
	})
	env.ExecuteWorkflow(temporalpayvault.ExportLists, temporalpayvault.ExportJob{
		Name: "night", Subscriptions: fmt.Sprint(id), List: payvault.ListOptions{Count: 10},
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, fmt.Sprintf("night: subscription %d, page 0, transactions 0 to 9\n"+
		"night: subscription %d, page 1, transactions 10 to 11\n", id, id), out.String())
}

func TestDeck(t *testing.T) {
	t.Parallel()
	s, err := demo.Deck{}.Snapshot(t.Context(), "250")
	require.NoError(t, err)
	assert.Equal(t, 250, s.Cards)
	cards, err := demo.Deck{}.Cards(t.Context(), "250", 200, 250)
	require.NoError(t, err)
	require.Len(t, cards, 50)
	assert.Equal(t, "card-200", cards[0].CardID)
}

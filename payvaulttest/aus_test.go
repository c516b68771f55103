package payvaulttest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestAccountUpdater checks the answer to a submission and the stored record, whose card numbers are masked.
func TestAccountUpdater(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	data := a.post(t, "/platform/aus/add", `{"data":[{"card_number":"4111111111111111","exp_date":"1229","card_id":"MINE"},
		{"card_number":"5454545454545454","exp_date":"0130"}]}`).ok(t)
	requests := a.srv.AccountUpdaterRequests.All()
	require.Len(t, requests, 1)
	assert.Equal(t, map[string]any{"request_id": requests[0].RequestID}, data)
	requests[0].RequestID = ""
	assert.Equal(t, payvaulttest.AccountUpdaterRequest{
		MerchantID: merchantID,
		Cards:      []payvaulttest.UpdaterCard{{"4111xxxxxx111111", "1229", "MINE"}, {"5454xxxxxx545454", "0130", ""}},
	}, requests[0])
	a.post(t, "/platform/aus/add", `{"data":[]}`).ok(t)
	assert.Equal(t, 2, a.srv.Commits(payvault.OpAccountUpdaterSubmit))
}

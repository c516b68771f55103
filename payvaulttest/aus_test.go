package payvaulttest_test

import (
	"net/http"
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

// TestDeliveriesOfTheAccountUpdater checks that a submission triggers both events of the account updater.
func TestDeliveriesOfTheAccountUpdater(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	user := newReceiver(t)
	a.srv.Webhooks.Seed(payvaulttest.Webhook{ID: "WH1", NotificationURL: user.url})
	a.post(t, "/platform/webhook/WH1/event/account_updater_request_created", "").ok(t)
	a.post(t, "/platform/webhook/WH1/event/account_updater_request_completed", "").ok(t)

	id, _ := a.post(t, "/platform/aus/add",
		`{"data":[{"card_number":"4111111111111111","exp_date":"1229"}]}`).ok(t)["request_id"].(string)
	for _, event := range []string{"created", "completed"} {
		assert.JSONEq(t, `{"event":"account_updater_request_`+event+`","webhook_id":"WH1","merchant_id":100001,
			"occurred_at":"2026-01-15T12:00:00-05:00","data":{"request_id":"`+id+`"}}`, user.next(t, a.srv))
	}
	assert.Equal(t, []payvaulttest.Delivery{
		{WebhookID: "WH1", Event: payvault.EventAccountUpdaterRequestCreated, Status: http.StatusAccepted},
		{WebhookID: "WH1", Event: payvault.EventAccountUpdaterRequestCompleted, Status: http.StatusAccepted},
	}, a.srv.Deliveries())
}

package payvaulttest_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// A receiver is an HTTP server that receives notifications, collects their bodies, and answers with 202.
type receiver struct {
	url    string
	bodies chan string
}

func newReceiver(t *testing.T) receiver {
	t.Helper()
	r := receiver{bodies: make(chan string, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		assert.NoError(t, err)
		assert.Equal(t, http.MethodPost, req.Method)
		assert.Equal(t, "application/json", req.Header.Get("Content-Type"))
		r.bodies <- string(body)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

// next waits until all deliveries have ended, and returns the body of the oldest notification that it has not returned
// yet.
func (r receiver) next(t *testing.T, srv *payvaulttest.Server) string {
	t.Helper()
	require.NoError(t, srv.WaitDeliveries(t.Context()))
	require.NotEmpty(t, r.bodies)
	return <-r.bodies
}

// TestAddEvent checks that a webhook lists an event only once, even if two requests add this event. A webhook without a
// notification URL gets no notifications.
func TestAddEvent(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.srv.Webhooks.Seed(payvaulttest.Webhook{ID: "WH1"})
	for range 2 {
		data := a.post(t, "/platform/webhook/WH1/event/transaction_status_updated", "").ok(t)
		assert.Equal(t, map[string]any{"message": "Event transaction_status_updated was added"}, data)
	}
	webhook, _ := a.srv.Webhooks.Get("WH1")
	assert.Equal(t, []payvault.Event{"transaction_status_updated"}, webhook.Events)
	assert.Equal(t, 2, a.srv.Commits(payvault.OpWebhooksAddEvent))
	assert.Zero(t, a.srv.TriggerEvent(merchantID, payvault.EventTransactionStatusUpdated, nil))
}

// TestRedeliver checks that Redeliver delivers a notification again with the same body, also if the delivery was a
// repeat itself. Redeliver must panic if there is no such delivery.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	user := newReceiver(t)
	a.srv.Webhooks.Seed(payvaulttest.Webhook{ID: "WH1", NotificationURL: user.url, Events: []payvault.Event{"e"}})
	a.srv.TriggerEvent(merchantID, "e", map[string]int{"n": 1})
	first := user.next(t, a.srv)
	for i := range 2 {
		a.srv.Redeliver(i)
		assert.Equal(t, first, user.next(t, a.srv))
	}
	accepted := payvaulttest.Delivery{WebhookID: "WH1", Event: "e", Status: http.StatusAccepted}
	assert.Equal(t, []payvaulttest.Delivery{accepted, accepted, accepted}, a.srv.Deliveries())
	assert.Panics(t, func() { a.srv.Redeliver(3) })
}

// TestTransactionStatusUpdated checks that an event is delivered only to the webhooks of its merchant that have this
// event. If two webhooks have it, each delivery has the ID of its own webhook.
func TestTransactionStatusUpdated(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	user := newReceiver(t)
	a.srv.Webhooks.Seed(payvaulttest.Webhook{
		ID: "WH1", NotificationURL: user.url,
		Events: []payvault.Event{payvault.EventTransactionStatusUpdated},
	})
	a.srv.Webhooks.Seed(payvaulttest.Webhook{
		ID: "WH2", NotificationURL: user.url, MerchantID: secondID,
		Events: []payvault.Event{payvault.EventTransactionStatusUpdated},
	})
	a.srv.Webhooks.Seed(payvaulttest.Webhook{
		ID: "WH3", NotificationURL: user.url,
		Events: []payvault.Event{payvault.EventAccountUpdaterRequestCreated},
	})
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, Transactions: []payvaulttest.Transaction{{PGID: "PG1"}}})

	require.NoError(t, a.srv.SetTransactionStatus(77, "PG1", "S"))
	assert.Contains(t, user.next(t, a.srv), `"tran_status":"S"`)
	sub, _ := a.srv.Subscriptions.Get(77)
	assert.Equal(t, "S", sub.Transactions[0].Status)
	require.Error(t, a.srv.SetTransactionStatus(77, "PG2", "S"))
	require.Error(t, a.srv.SetTransactionStatus(78, "PG1", "S"))

	assert.Equal(t, 1, a.srv.TriggerEvent(secondID, payvault.EventTransactionStatusUpdated,
		map[string]string{"pg_id": "X"}))
	assert.Contains(t, user.next(t, a.srv), `"data":{"pg_id":"X"}`)
	assert.Zero(t, a.srv.TriggerEvent(partnerID, payvault.EventTransactionStatusUpdated, nil))
	assert.Len(t, a.srv.Deliveries(), 2)

	a.srv.Webhooks.Seed(payvaulttest.Webhook{
		ID: "WH4", NotificationURL: user.url,
		Events: []payvault.Event{payvault.EventTransactionStatusUpdated},
	})
	assert.Equal(t, 2, a.srv.TriggerEvent(merchantID, payvault.EventTransactionStatusUpdated, nil))
	require.NoError(t, a.srv.WaitDeliveries(t.Context()))
	both := a.srv.Deliveries()[2:]
	assert.ElementsMatch(t, []payvault.WebhookID{"WH1", "WH4"}, []payvault.WebhookID{both[0].WebhookID, both[1].WebhookID})
}

// TestDeliveriesThatFail checks that a delivery is tried only once, goes only to loopback, and does not follow a
// redirect. Neither the log record nor the page of Inspect may show the path of the webhook's URL or the data of the
// event.
func TestDeliveriesThatFail(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := newAPI(t, payvaulttest.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	page := payvaulttest.Inspect(a.srv)
	redirect := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound))
	t.Cleanup(redirect.Close)
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	broken := httptest.NewServer(http.HandlerFunc(abort))
	t.Cleanup(broken.Close)
	const remote = `0 error="the notification URL is not on loopback"`
	for url, want := range map[string]string{
		newReceiver(t).url + "/secret":            "202",
		redirect.URL + "/secret":                  "302",
		"http://user:secret@192.0.2.1/?secret":    remote,
		"http://[2001:db8::1]:8080/secret":        remote,
		"http://127.0.0.1:1/hook?t=secret#secret": `0 error="connection refused"`,
		broken.URL + "/secret":                    `0 error="no usable answer"`,
	} {
		a.srv.Webhooks.Seed(payvaulttest.Webhook{ID: "WH1", NotificationURL: url, Events: []payvault.Event{"e"}})
		log.Reset()
		assert.Equal(t, 1, a.srv.TriggerEvent(merchantID, "e", "secret"))
		require.NoError(t, a.srv.WaitDeliveries(t.Context()))
		assert.Contains(t, log.String(), "msg=delivery webhook_id=WH1 event=e status="+want+"\n")
		assert.Equal(t, 1, strings.Count(log.String(), "\n"), "one record for one delivery")
		assert.NotContains(t, log.String(), "secret")
	}
	assert.Len(t, a.srv.Deliveries(), 6)
	assert.NotContains(t, inspected{a, page}.ask(t, http.MethodGet, "/state", ""), "secret")
	assert.Panics(t, func() { a.srv.TriggerEvent(merchantID, "e", make(chan int)) }, "no JSON")
}

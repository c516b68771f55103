package payvault_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const addEventPath = "/platform/webhook/WEBHOOK9001/event/transaction_status_updated"

func TestWebhooksAddEvent(t *testing.T) {
	t.Parallel()
	confirmed := &payvault.Confirmation{Message: "Example text: transaction_status_updated was added"}
	tests := map[string]struct {
		answer string
		want   *payvault.Confirmation
	}{
		"full":     {"webhooks/add_event.response.json", confirmed},
		"tolerant": {"webhooks/add_event.response.tolerant.json", confirmed},
		"no text":  {`{"code":0,"message":"Success","data":{}}`, &payvault.Confirmation{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, addEventPath+fixture(t, "webhooks/add_event.query"), "", test.answer)
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))

			got, err := client.Webhooks.AddEvent(t.Context(), "WEBHOOK9001", payvault.EventTransactionStatusUpdated)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestWebhooksAddEvent_events(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	client := srv.client()
	for event, name := range map[payvault.Event]string{
		payvault.EventAccountUpdaterRequestCreated:   "account_updater_request_created",
		payvault.EventAccountUpdaterRequestCompleted: "account_updater_request_completed",
		"of_a_later_version":                         "of_a_later_version",
	} {
		srv.expect(http.MethodPost, "/platform/webhook/WEBHOOK9001/event/"+name, "", "webhooks/add_event.response.json")
		_, err := client.Webhooks.AddEvent(t.Context(), "WEBHOOK9001", event)
		require.NoError(t, err)
	}
}

func TestWebhooksAddEvent_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, addEventPath, "", "webhooks/add_event.error.json")

	got, err := srv.client().Webhooks.AddEvent(t.Context(), "WEBHOOK9001", payvault.EventTransactionStatusUpdated)
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpWebhooksAddEvent, Code: "5", Message: "Example refusal of webhooks.add_event",
		Detail: "Example detail: transaction_status_updated was not added",
	})
	assert.Nil(t, got)
}

func TestWebhooksAddEvent_invalid(t *testing.T) {
	t.Parallel()
	client := newService(t).client()
	for _, text := range []string{"", ".", ".."} {
		_, err := client.Webhooks.AddEvent(t.Context(), payvault.WebhookID(text), "event")
		assertInvalid(t, err, payvault.OpWebhooksAddEvent, fields{"webhook_id": {badSegment}})

		_, err = client.Webhooks.AddEvent(t.Context(), "WEBHOOK9001", payvault.Event(text))
		assertInvalid(t, err, payvault.OpWebhooksAddEvent, fields{"event": {badSegment}})

		got, err := client.Webhooks.AddEvent(t.Context(), payvault.WebhookID(text), payvault.Event(text))
		assertInvalid(t, err, payvault.OpWebhooksAddEvent, fields{"webhook_id": {badSegment}, "event": {badSegment}})
		assert.Nil(t, got)
	}
}

func TestWebhooksAddEvent_hostileSegments(t *testing.T) {
	t.Parallel()
	for text, escaped := range hostileSegments() {
		t.Run(escaped, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, "/platform/webhook/"+escaped+"/event/"+escaped, "", "webhooks/add_event.response.json")

			_, err := srv.client().Webhooks.AddEvent(t.Context(), payvault.WebhookID(text), payvault.Event(text))
			require.NoError(t, err)
		})
	}
}

func TestWebhooksAddEvent_forMerchant(t *testing.T) {
	t.Parallel()
	got, err := newService(t).client().ForMerchant(actingFor).Webhooks.AddEvent(t.Context(), "WEBHOOK9001", "event")
	assertNoMerchant(t, err, payvault.OpWebhooksAddEvent)
	assert.Nil(t, got)
}

func TestConfirmation_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, payvault.Confirmation{Message: "Example text: transaction_status_updated was added"}, fixtureData(t, "webhooks/add_event.response.json"))
}

func TestNotificationHandler(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	raw := "{\"event\": \"transaction_status_updated\"}\r\n\x00\xff not quite JSON"
	tests := map[string]struct {
		method string
		body   io.Reader
		fails  error
		want   int
		handed bool // over to the function
	}{
		"POST":             {http.MethodPost, strings.NewReader(raw), nil, http.StatusNoContent, true},
		"empty body":       {http.MethodPost, http.NoBody, nil, http.StatusNoContent, true},
		"largest body":     {http.MethodPost, strings.NewReader(strings.Repeat("x", most)), nil, http.StatusNoContent, true},
		"function fails":   {http.MethodPost, strings.NewReader(raw), errors.New("secret detail"), http.StatusInternalServerError, true},
		"oversized body":   {http.MethodPost, strings.NewReader(strings.Repeat("x", most+1)), nil, http.StatusRequestEntityTooLarge, false},
		"unreadable body":  {http.MethodPost, iotest.ErrReader(errors.New("secret detail")), nil, http.StatusBadRequest, false},
		"body ends early":  {http.MethodPost, iotest.DataErrReader(io.MultiReader(strings.NewReader(raw), iotest.ErrReader(io.ErrUnexpectedEOF))), nil, http.StatusBadRequest, false},
		"GET":              {http.MethodGet, http.NoBody, nil, http.StatusMethodNotAllowed, false},
		"PUT":              {http.MethodPut, strings.NewReader(raw), nil, http.StatusMethodNotAllowed, false},
		"lower-case post":  {"post", strings.NewReader(raw), nil, http.StatusMethodNotAllowed, false},
		"HEAD of the same": {http.MethodHead, http.NoBody, nil, http.StatusMethodNotAllowed, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handed := false
			handler := payvault.NotificationHandler(func(context.Context, *payvault.Notification) error {
				handed = true
				return test.fails
			})
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, "/notify", test.body))

			assert.Equal(t, test.want, w.Code)
			assert.Equal(t, test.handed, handed)
			assert.NotContains(t, w.Body.String(), "secret")
			if test.want == http.StatusMethodNotAllowed {
				assert.Equal(t, "POST", w.Header().Get("Allow"))
			}
		})
	}
}

func TestNotificationHandler_untouched(t *testing.T) {
	t.Parallel()
	type key struct{}
	const raw = "{\"event\": \"transaction_status_updated\"}\r\n\x00\xff not quite JSON"
	request := httptest.NewRequestWithContext(context.WithValue(t.Context(), key{}, "of the request"), http.MethodPost, "/notify", strings.NewReader(raw))
	request.Header = http.Header{"X-Signature": {"one", "two"}, "Content-Type": {"text/plain"}}
	var got *payvault.Notification
	handler := payvault.NotificationHandler(func(ctx context.Context, n *payvault.Notification) error {
		assert.Equal(t, "of the request", ctx.Value(key{}))
		got = n
		return nil
	})

	handler.ServeHTTP(httptest.NewRecorder(), request)
	assert.Equal(t, &payvault.Notification{
		Header: http.Header{"X-Signature": {"one", "two"}, "Content-Type": {"text/plain"}}, Body: []byte(raw),
	}, got)
}

func TestNotificationHandler_overHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(payvault.NotificationHandler(func(_ context.Context, n *payvault.Notification) error {
		assert.Equal(t, `{"id":1}`, string(n.Body))
		return nil
	}))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"id":1}`))
	require.NoError(t, err)

	response, err := server.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNoContent, response.StatusCode)
}

func TestNotificationHandler_nil(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { payvault.NotificationHandler(nil) })
}

package payvaulttest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"example.com/payvault"
)

// Webhook is a webhook with its events. Its fields are named as on the wire. A webhook without a notification URL gets
// no notifications.
type Webhook struct {
	ID              payvault.WebhookID  `json:"webhook_id"`
	MerchantID      payvault.MerchantID `json:"merchant_id"`
	NotificationURL string              `json:"notification_url"`
	Events          []payvault.Event    `json:"events"`
}

type webhooks struct {
	*state
	*Store[payvault.WebhookID, Webhook]

	deliveries *dispatcher
}

func newWebhooks(s *state, deliveries *dispatcher) *Store[payvault.WebhookID, Webhook] {
	v := &webhooks{state: s, deliveries: deliveries}
	v.Store = newStore(s, "webhook", v)
	s.occur = v.notify
	s.actions[payvault.OpWebhooksAddEvent] = v.addEvent
	return v.Store
}

func (*webhooks) key(w *Webhook) (payvault.WebhookID, *payvault.MerchantID) {
	return w.ID, &w.MerchantID
}

func (v *webhooks) prepare(w *Webhook) { freshText(v.Store, &w.ID) }

func (*webhooks) permits(w *Webhook) error {
	u, err := url.Parse(w.NotificationURL)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	return cmp.Or(
		fits(w.NotificationURL == "" || isURL, "notification_url must be an http or https URL"),
		fits(!slices.Contains(w.Events, misspelt), misspelt+" is spelt transaction_status_updated"),
	)
}

func (*webhooks) detach(w *Webhook) { w.Events = slices.Clone(w.Events) }

// misspelt is a wrong spelling of the event transaction_status_updated. The documentation of the service has both
// spellings, and says to use transaction_status_updated.
const misspelt = "transactions_status_updated"

// addEvent performs POST /platform/webhook/{webhook_id}/event/{event}.
func (v *webhooks) addEvent(c *call) (any, error) {
	event := payvault.Event(c.path("event"))
	if event == misspelt {
		return nil, refuse(http.StatusBadRequest, "the event is spelt %s", payvault.EventTransactionStatusUpdated)
	}
	webhook, err := v.find(c, payvault.WebhookID(c.path("webhook_id")))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(webhook.Events, event) {
		webhook.Events = append(webhook.Events, event)
	}
	return confirm("Event %s was added", event), nil
}

// notify posts an event to those webhooks of the merchant that have the event and a notification URL, and returns their
// number. The service does not document the shape of a notification, so the emulator has a shape of its own.
func (v *webhooks) notify(merchant payvault.MerchantID, event payvault.Event, data any) int {
	hooks := v.all(func(w *Webhook) bool {
		return w.MerchantID == merchant && w.NotificationURL != "" && slices.Contains(w.Events, event)
	})
	for _, webhook := range hooks {
		body := encode(map[string]any{
			"event": event, "webhook_id": webhook.ID, "merchant_id": merchant, "occurred_at": v.now(), "data": data,
		})
		v.deliveries.post(webhook.NotificationURL, body, Delivery{WebhookID: webhook.ID, Event: event})
	}
	return len(hooks)
}

package payvaulttest

import (
	"net/http"
	"slices"

	"example.com/payvault"
)

// Webhook is a webhook with its events, its fields named as on the wire. Without a notification URL nothing is
// delivered.
type Webhook struct {
	ID              payvault.WebhookID  `json:"webhook_id"`
	MerchantID      payvault.MerchantID `json:"merchant_id"`
	NotificationURL string              `json:"notification_url"`
	Events          []payvault.Event    `json:"events"`
}

func (w *Webhook) head() (payvault.WebhookID, *payvault.MerchantID) { return w.ID, &w.MerchantID }

func (w *Webhook) prepare(v *service) { freshText(v.Webhooks, &w.ID) }

func (w *Webhook) detach(*service) { w.Events = slices.Clone(w.Events) }

// The prose of the interface has this spelling, too, and says that the other is the one to use.
const misspelt = "transactions_status_updated"

// addEvent performs POST /platform/webhook/{webhook_id}/event/{event}.
func (v *service) addEvent(c *call) (any, error) {
	event := payvault.Event(c.path("event"))
	if event == misspelt {
		return nil, refuse(http.StatusBadRequest, "the event is spelt %s", payvault.EventTransactionStatusUpdated)
	}
	webhook, err := v.Webhooks.find(c, payvault.WebhookID(c.path("webhook_id")))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(webhook.Events, event) {
		webhook.Events = append(webhook.Events, event)
	}
	return confirm("Event %s was added", event), nil
}

// occur hands an event to every webhook of the merchant that has it. The shape of the notification is an own choice.
func (v *service) occur(merchant payvault.MerchantID, event payvault.Event, data any) int {
	webhooks := v.Webhooks.all(func(w *Webhook) bool {
		return w.MerchantID == merchant && w.NotificationURL != "" && slices.Contains(w.Events, event)
	})
	for _, webhook := range webhooks {
		body := encode(map[string]any{
			"event": event, "webhook_id": webhook.ID, "merchant_id": merchant, "occurred_at": v.now(), "data": data,
		})
		v.deliveries.post(webhook.NotificationURL, body, Delivery{WebhookID: webhook.ID, Event: event})
	}
	return len(webhooks)
}

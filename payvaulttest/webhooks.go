package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/payvault"
)

// The events that the interface names.
const (
	EventTransactionStatusUpdated       = "transaction_status_updated"
	EventAccountUpdaterRequestCreated   = "account_updater_request_created"
	EventAccountUpdaterRequestCompleted = "account_updater_request_completed"
)

// Webhook is a webhook with its events (interface §2.7). The interface has no operation that adds one: see
// [Server.SeedWebhook].
type Webhook struct {
	ID              payvault.WebhookID  `json:"webhook_id"`
	MerchantID      payvault.MerchantID `json:"merchant_id"`
	NotificationURL string              `json:"notification_url"`
	Events          []string            `json:"events"`
}

// SeedWebhook adds a webhook and returns it as it was stored. What is left out is filled in: an ID
// and the merchant of [Server.Merchant]; without a notification URL nothing is delivered. It
// replaces a webhook with the same ID.
// It panics if [WithSeed] would refuse the webhook.
func (s *Server) SeedWebhook(webhook Webhook) Webhook {
	mustFit("webhook", webhook.checkSeed(s.service.accounts.has))
	webhook = webhook.clone()
	webhook.MerchantID = cmp.Or(webhook.MerchantID, s.seedMerchant())
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	if webhook.ID == "" {
		webhook.ID = freshText(s.service.ids, "webhook", s.service.webhooks)
	}
	s.service.webhooks.put(webhook.ID, &webhook)
	return webhook.clone()
}

// Webhook returns a webhook as it stands.
func (s *Server) Webhook(id payvault.WebhookID) (Webhook, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	webhook, ok := s.service.webhooks.get(id)
	if !ok {
		return Webhook{}, false
	}
	return webhook.clone(), true
}

// Webhooks returns every webhook, in the order in which they were seeded.
func (s *Server) Webhooks() []Webhook {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return views(s.service.webhooks.rows, (*Webhook).clone)
}

func (w *Webhook) clone() Webhook {
	view := *w
	view.Events = slices.Clone(w.Events)
	return view
}

// addEvent performs POST /platform/webhook/{webhook_id}/event/{event}.
func (v *service) addEvent(c *call) (any, error) {
	event := c.params["event"]
	if !isEventName(event) {
		return nil, refuse(http.StatusBadRequest, "the event is not the name of an event")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	webhook, ok := v.webhooks.get(payvault.WebhookID(c.params["webhook_id"]))
	if !ok || webhook.MerchantID != c.account.MerchantID {
		return nil, refuse(http.StatusNotFound, "there is no webhook with this webhook_id")
	}
	if !slices.Contains(webhook.Events, event) {
		webhook.Events = append(webhook.Events, event)
	}
	return success(confirmation{fmt.Sprintf("Event %s was added", event)}), nil
}

// isEventName accepts lower-case names, since the full list of events is not shown, but not the
// spelling that the interface says is not to be used.
func isEventName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == "" && s != "transactions_status_updated"
}

func isNoEventName(s string) bool { return !isEventName(s) }

// TriggerEvent lets an event occur for a merchant and returns how many webhooks it goes to. Data is
// the JSON value that the deliveries carry as data. The deliveries are made in the background:
// [Server.WaitDeliveries] waits for them.
func (s *Server) TriggerEvent(merchant payvault.MerchantID, event string, data any) int {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return s.service.occur(merchant, event, data)
}

// occur hands an event to every webhook of the merchant that has it. The caller holds the lock.
func (v *service) occur(merchant payvault.MerchantID, event string, data any) int {
	notified := 0
	for _, webhook := range v.webhooks.all() {
		if webhook.MerchantID != merchant || webhook.NotificationURL == "" || !slices.Contains(webhook.Events, event) {
			continue
		}
		v.events.post(webhook.NotificationURL, notification{
			Event: event, WebhookID: webhook.ID, MerchantID: merchant, OccurredAt: v.now(), Data: data,
		})
		notified++
	}
	return notified
}

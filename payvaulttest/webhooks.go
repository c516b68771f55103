package payvaulttest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/notify"
)

// The events that the interface names.
const (
	EventTransactionStatusUpdated       = "transaction_status_updated"
	EventAccountUpdaterRequestCreated   = "account_updater_request_created"
	EventAccountUpdaterRequestCompleted = "account_updater_request_completed"
)

// Webhook is a webhook with its events, its fields named as on the wire. Without a notification URL nothing is
// delivered.
type Webhook struct {
	ID              payvault.WebhookID  `json:"webhook_id"`
	MerchantID      payvault.MerchantID `json:"merchant_id"`
	NotificationURL string              `json:"notification_url"`
	Events          []string            `json:"events"`
}

func (w *Webhook) clone() Webhook {
	view := *w
	view.Events = slices.Clone(view.Events)
	return view
}

func (v *service) prepareWebhook(w *Webhook) error {
	w.ID = freshText(v.ids, "webhook", v.Webhooks, w.ID)
	u, err := url.Parse(w.NotificationURL)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	isNoEvent := func(name string) bool { return !isEventName(name) }
	return cmp.Or(
		v.seedMerchant(&w.MerchantID),
		fits(w.NotificationURL == "" || isURL, "notification_url must be an http or https URL"),
		fits(!slices.ContainsFunc(w.Events, isNoEvent), "events must hold names that can be added"),
	)
}

// addEvent performs POST /platform/webhook/{webhook_id}/event/{event}.
func (v *service) addEvent(c *call) (any, error) {
	event := c.path("event")
	if !isEventName(event) {
		return nil, refuse(http.StatusBadRequest, "the event is not the name of an event")
	}
	webhook := v.Webhooks.rows[payvault.WebhookID(c.path("webhook_id"))]
	if webhook == nil || webhook.MerchantID != c.account.MerchantID {
		return nil, notFound("webhook", "webhook_id")
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

// TriggerEvent lets an event occur for a merchant and returns how many webhooks it goes to. Data is
// the JSON value that the deliveries carry as data. The deliveries are made in the background:
// [Server.WaitDeliveries] waits for them.
func (s *Server) TriggerEvent(merchant payvault.MerchantID, event string, data any) int {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return s.service.occur(merchant, event, data)
}

// occur hands an event to every webhook of the merchant that has it.
func (v *service) occur(merchant payvault.MerchantID, event string, data any) int {
	webhooks := v.Webhooks.all(func(w *Webhook) bool {
		return w.MerchantID == merchant && w.NotificationURL != "" && slices.Contains(w.Events, event)
	})
	for _, webhook := range webhooks {
		body, err := encode(notification{
			Event: event, WebhookID: webhook.ID, MerchantID: merchant, OccurredAt: v.now(), Data: data,
		})
		if err != nil {
			err = fmt.Errorf("encode a notification: %w", err)
		}
		v.events.Post(webhook.NotificationURL, body, notify.Delivery{WebhookID: webhook.ID, Event: event, Err: err})
	}
	return len(webhooks)
}

// A notification is the body of a delivery. Its shape is the emulator's own choice.
type notification struct {
	Event      string              `json:"event"`
	WebhookID  payvault.WebhookID  `json:"webhook_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	OccurredAt time.Time           `json:"occurred_at"`
	Data       any                 `json:"data"`
}

// Delivery is one attempt to notify a webhook. There are no retries.
type Delivery struct {
	WebhookID payvault.WebhookID // the webhook that has the event
	Event     string             // its name
	Status    int                // of the answer; 0 if there was none
	Err       error              // why there was no answer
}

// Deliveries returns the deliveries that are finished, in the order in which they ended.
func (s *Server) Deliveries() []Delivery {
	var list []Delivery
	for _, delivery := range s.service.events.History() {
		list = append(list, Delivery(delivery))
	}
	return list
}

// WaitDeliveries waits until every delivery that was due when it was called is finished, whatever
// becomes due meanwhile. It returns early with an error when the context ends or the server is closed.
func (s *Server) WaitDeliveries(ctx context.Context) error {
	if err := s.service.events.Wait(ctx); err != nil {
		return fmt.Errorf("payvaulttest: %w", err)
	}
	return nil
}

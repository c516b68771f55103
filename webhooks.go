package payvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// WebhooksService attaches event kinds to webhooks.
type WebhooksService struct{ caller *caller }

// Event is the name of an event kind. The service does not document the full list.
type Event string

// The events that the service documents.
const (
	EventTransactionStatusUpdated       Event = "transaction_status_updated"
	EventAccountUpdaterRequestCreated   Event = "account_updater_request_created"
	EventAccountUpdaterRequestCompleted Event = "account_updater_request_completed"
)

// AddEvent attaches an event kind to a webhook. The service then calls the notification_url of the webhook when such an
// event occurs. An ID or event that is empty, "." or ".." fails before anything is sent. The service decides which
// other event names are valid. AddEvent does not take a merchant_id: with a client of [Client.ForMerchant] it fails
// with [ErrMerchantNotSupported].
//
// Not replayable. POST /platform/webhook/{webhook_id}/event/{event}.
func (s *WebhooksService) AddEvent(
	ctx context.Context, id WebhookID, event Event, opts ...CallOption,
) (*Confirmation, error) {
	return doConfirm(ctx, s.caller, call{
		op: OpWebhooksAddEvent.info(), path: inPath(string(id), string(event)),
	}, opts)
}

// Notification is a call of a notification_url. The service documents neither the shape of the body nor a signature, so
// Header and Body are unchanged. They may contain private data, so the JSON, XML and YAML of a Notification do not
// contain them. To store a notification, store its two fields.
type Notification struct {
	Header http.Header `json:"-" xml:"-" yaml:"-"` // all headers, unchanged
	Body   []byte      `json:"-" xml:"-" yaml:"-"` // the whole body, unchanged
}

// Format writes the size of the body under every verb. It writes neither the header nor the body.
func (n Notification) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{Body:%d bytes}", len(n.Body))
}

// LogValue logs the size of the body.
func (n Notification) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("body_bytes", len(n.Body)))
}

// maxNotification limits the body of a notification.
const maxNotification = 1 << 20

var errReadBefore = errors.New("the body of the request was read before, by a middleware for example, " +
	"or Content-Length is that of another body")

// ReadNotification reads the notification in a request, for a handler of your own. [NotificationHandler] is a complete
// handler. If ReadNotification returns an error, answer with a status from 400 on: a 2xx tells the service that the
// notification has arrived. For a body larger than 1 MiB the error wraps an [*http.MaxBytesError].
//
// ReadNotification also returns an error if the body was closed, or has fewer bytes than r.ContentLength. Usually a
// middleware has read it before, for example by [io.ReadAll] or ParseForm. A middleware that replaces the body has to
// set ContentLength too, to -1 if the length is unknown. If the length is unknown, ReadNotification does not notice
// that bytes were read before.
//
// Do not trust a notification: the service documents no signature, so anyone who knows the URL can send one. Look up
// the record in question before you act on a notification. The URL is a secret: make it long and random, and keep it
// out of logs. A notification may come twice, so acting on it a second time has to be harmless.
func ReadNotification(r *http.Request) (*Notification, error) {
	sent := r.Body
	if sent == nil { // as in a request of http.NewRequest without a body
		sent = http.NoBody
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, sent, maxNotification))
	if errors.Is(err, http.ErrBodyReadAfterClose) || err == nil && int64(len(body)) < r.ContentLength {
		err = errReadBefore
	}
	if err != nil {
		return nil, fmt.Errorf("payvault: ReadNotification: %w", err)
	}
	return &Notification{Header: r.Header, Body: body}, nil
}

// NotificationHandler returns the handler of a notification_url. The handler reads each POST request with
// [ReadNotification] and calls f. A notification may be forged, and may come twice: see ReadNotification.
//
// If f returns nil, the handler answers 204, so that the service knows that the notification has arrived. If f returns
// an error, or if the body was read before, the handler answers 500. If the body is too large, it answers 413. With 500
// and 413 it logs the error at level Error, with the context of the request. The sender does not see the error. If the
// body cannot be read for another reason, the handler answers 400. To other methods it answers 405. With 400 and 405 it
// logs nothing. If logger is nil, the handler logs to [slog.Default]. NotificationHandler panics if f is nil.
func NotificationHandler(f func(context.Context, *Notification) error, logger *slog.Logger) http.Handler {
	if f == nil {
		panic("payvault: NotificationHandler: the function is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST only", http.StatusMethodNotAllowed)
			return
		}
		n, err := ReadNotification(r)
		_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
		if err != nil && !isTooLarge && !errors.Is(err, errReadBefore) {
			http.Error(w, "body not readable", http.StatusBadRequest)
			return
		}
		if err == nil {
			err = f(r.Context(), n)
		}
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		cmp.Or(logger, slog.Default()).ErrorContext(r.Context(), "payvault notification", slog.Any("error", err))
		if isTooLarge {
			http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "not processed", http.StatusInternalServerError)
	})
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"example.com/payvault"
)

// receiver prints and counts the notifications that it receives.
type receiver struct {
	mu       sync.Mutex
	received int
	out      io.Writer
}

func newReceiver(out io.Writer) *receiver { return &receiver{out: out} }

func (r *receiver) handler() http.Handler {
	return payvault.NotificationHandler(r.receive, slog.Default())
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

// receive is called for each notification. If it returns nil, the service is told that the notification has arrived. So
// a real program first stores the notification, and returns the error if storing fails.
//
// The service does not document signatures, retries or the content of a notification. So anybody who knows the URL can
// send a notification, a notification may come twice, and two notifications with equal bodies may be about two events.
// Do not trust a notification: use it only as a hint to look up the record. Acting on the record a second time must be
// harmless.
func (r *receiver) receive(_ context.Context, n *payvault.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received++
	fmt.Fprintln(r.out, "Received:", eventOf(n))
	return nil
}

// eventOf returns the event of a notification in the form that the emulator sends. The service does not document the
// form.
func eventOf(n *payvault.Notification) string {
	var body struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(n.Body, &body) != nil || body.Event == "" {
		return fmt.Sprintf("%d bytes of an unknown shape", len(n.Body))
	}
	return fmt.Sprintf("%q", body.Event)
}

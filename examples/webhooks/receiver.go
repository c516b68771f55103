package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"example.com/payvault"
)

// receiver prints and counts the notifications that arrive.
type receiver struct {
	mu       sync.Mutex
	received int
	out      io.Writer
}

func newReceiver(out io.Writer) *receiver { return &receiver{out: out} }

func (r *receiver) handler() http.Handler { return payvault.NotificationHandler(r.receive) }

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

// receive is called for each notification. If it returns nil, the service knows that the notification has arrived. So a
// real program first stores the notification, and returns the error if that fails.
//
// The interface documents neither signatures nor retries nor the shape of a notification. Anybody who knows the URL can
// call it, a notification may come twice, and two notifications with equal bodies may be about two events. So take it
// for a hint to look up the record, not for the truth. Make sure that acting on the record a second time is harmless.
func (r *receiver) receive(_ context.Context, n *payvault.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received++
	fmt.Fprintln(r.out, "Received:", eventOf(n))
	return nil
}

// eventOf reads the event in the form of the emulator. The service does not document its form.
func eventOf(n *payvault.Notification) string {
	var body struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(n.Body, &body) != nil || body.Event == "" {
		return fmt.Sprintf("%d bytes of an unknown shape", len(n.Body))
	}
	return fmt.Sprintf("%q", body.Event)
}

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

// receiver tells of the notifications that arrive.
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

// receive is called for each notification. When it returns nil the service knows that the notification has arrived, so
// a program that acts on it stores it first, and returns the error if that fails.
//
// The interface shows neither signatures nor retries nor the shape: anybody who knows the URL can call it, one
// notification may come twice, and two with equal bodies may be about two events. So take it for a hint to look the
// record up, not for the truth, and let acting on what is found there be harmless the second time.
func (r *receiver) receive(_ context.Context, n *payvault.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received++
	fmt.Fprintln(r.out, "Received:", eventOf(n))
	return nil
}

// eventOf reads the event as the emulator sends it. The shape that the service sends is not documented.
func eventOf(n *payvault.Notification) string {
	var body struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(n.Body, &body) != nil || body.Event == "" {
		return fmt.Sprintf("%d bytes of an unknown shape", len(n.Body))
	}
	return fmt.Sprintf("%q", body.Event)
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"example.com/payvault"
)

// receiver keeps the notifications that arrive.
type receiver struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool
	out  io.Writer
}

func newReceiver(out io.Writer) *receiver {
	return &receiver{seen: map[[sha256.Size]byte]bool{}, out: out}
}

func (r *receiver) handler() http.Handler { return payvault.NotificationHandler(r.receive) }

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// receive is called for each notification. When it returns nil the service knows that the notification has arrived, so a
// program that acts on it stores it first, and returns the error if that fails.
//
// The interface shows no signatures: anybody who knows the URL can call it. Take a notification for a hint to look the
// record up, not for the truth. It shows no retries either, so the same one may come twice.
func (r *receiver) receive(_ context.Context, n *payvault.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := sha256.Sum256(n.Body)
	if r.seen[digest] {
		fmt.Fprintln(r.out, "Received again:", eventOf(n))
		return nil
	}
	r.seen[digest] = true
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

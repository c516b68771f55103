// Webhooks receives the notifications of a webhook. Before it ends, it waits for notifications that are being received.
//
// The program runs offline unless PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Offline
// the emulator sends a few notifications, and the program ends by itself. For a sandbox the program listens on
// PAYVAULT_LISTEN, by default 127.0.0.1:8080, until ctrl-C. It adds events to the webhook PAYVAULT_WEBHOOK_ID, whose
// notification_url has to lead to this program.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "webhooks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	if client == nil {
		if err := sandbox.Offline(out, false); err != nil {
			return err
		}
		return offline(ctx, out)
	}
	webhook := payvault.WebhookID(getenv("PAYVAULT_WEBHOOK_ID"))
	if webhook == "" {
		return errors.New("set PAYVAULT_WEBHOOK_ID")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(getenv("PAYVAULT_LISTEN"), "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	return serve(ctx, listener, newReceiver(out), func(ctx context.Context) error {
		if err := attach(ctx, client, webhook); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
}

// attach adds to a webhook all events that the service documents. The service does not document what happens if an
// event is added twice.
func attach(ctx context.Context, client *payvault.Client, webhook payvault.WebhookID) error {
	for _, event := range []payvault.Event{
		payvault.EventTransactionStatusUpdated, payvault.EventAccountUpdaterRequestCreated,
		payvault.EventAccountUpdaterRequestCompleted,
	} {
		if _, err := client.Webhooks.AddEvent(ctx, webhook, event); err != nil {
			return err
		}
	}
	return nil
}

// Worker runs the workflows and activities of package temporalpayvault, against a payvault-emulator. Start as many as
// you like, and stop or kill them as you like.
//
//	temporal server start-dev
//	go run ./cmd/payvault-emulator -addr 127.0.0.1:8700
//	go run -C examples/temporal ./worker
//	go run -C examples/temporal ./starter
//
// TEMPORAL_ADDRESS, PAYVAULT_BASE_URL and PAYVAULT_API_KEY name other servers, and PAYVAULT_CODEC_KEY, 32 bytes that
// both programs have to have, encrypts what is in histories.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/worker"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

func main() {
	err := run(context.Background())
	if errors.Is(err, demo.ErrNoServer) {
		demo.Help(os.Stdout, err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := demo.Dial(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := payvault.NewClient(
		cmp.Or(os.Getenv("PAYVAULT_BASE_URL"), "http://127.0.0.1:8700"),
		cmp.Or(os.Getenv("PAYVAULT_API_KEY"), "merchant-api-key"))
	if err != nil {
		return err
	}
	w := worker.New(server, demo.Queue, worker.Options{
		WorkerStopTimeout: time.Minute, // longer than a request takes, so that a deploy leaves no batch unknown
	})
	temporalpayvault.Register(w, &temporalpayvault.Activities{
		Client: client, Cards: demo.Deck{}, Subscriptions: demo.Subscriptions{}, Sink: demo.Print{W: os.Stdout},
	})
	return w.Run(worker.InterruptCh())
}

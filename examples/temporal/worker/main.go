// Worker runs the workflows and activities of package temporalpayvault, against a payvault-emulator. Start any number
// of workers, and stop or kill them at any time.
//
//	go install github.com/temporalio/cli/cmd/temporal@v1.5.1
//	temporal server start-dev
//	go run ./cmd/payvault-emulator -addr 127.0.0.1:8700
//	go run -C examples/temporal ./worker
//	go run -C examples/temporal ./starter
//
// TEMPORAL_ADDRESS names another Temporal server, for the worker and the starter. PAYVAULT_BASE_URL and
// PAYVAULT_API_KEY name another payment service, for the worker. PAYVAULT_CODEC_KEY is a key of 32 bytes that encrypts
// the payloads in the histories of workflows; set the same key for the worker and the starter. All workers share a
// journal, PAYVAULT_JOURNAL, and a folder for exports, PAYVAULT_EXPORT. By default both are in the temporary directory.
// For workers on several machines, keep the journal in Postgres with sqlpayvault.New, and the folder on shared storage.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/worker"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/sqlpayvault"
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
	file := cmp.Or(os.Getenv("PAYVAULT_JOURNAL"), filepath.Join(os.TempDir(), "payvault-journal.db"))
	journal, err := sqlpayvault.Open(ctx, file, sqlpayvault.WithoutLease())
	if err != nil {
		return err
	}
	defer journal.Close() //nolint:errcheck // it has no leases to give up
	w := worker.New(server, demo.Queue, worker.Options{
		WorkerStopTimeout: 70 * time.Second, // longer than a request may take, so that stopping a worker cuts off no request
	})
	folder := cmp.Or(os.Getenv("PAYVAULT_EXPORT"), filepath.Join(os.TempDir(), "payvault-export"))
	if err := os.MkdirAll(folder, 0o700); err != nil { //nolint:gosec // the user chooses the folder
		return err
	}
	temporalpayvault.Register(w, &temporalpayvault.Activities{
		Client: client, Cards: demo.File{}, Journal: journal, Sink: demo.Folder{Dir: folder},
	})
	return w.Run(worker.InterruptCh())
}

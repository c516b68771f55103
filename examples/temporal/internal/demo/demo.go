// Package demo has the code that the worker and the starter share.
package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"example.com/payvault"
	"example.com/payvault/temporalpayvault"
)

// Queue is the task queue that the worker and the starter use.
const Queue = "payvault"

// ErrNoServer is the error of [Dial] if it cannot connect to a Temporal server.
var ErrNoServer = errors.New("no server of Temporal")

// Dial connects to the Temporal server at TEMPORAL_ADDRESS. If PAYVAULT_CODEC_KEY is set, payloads are encrypted with
// this key, which must have 32 bytes.
func Dial(ctx context.Context) (client.Client, error) {
	data, failure := temporalpayvault.NewConverters(nil)
	if key := os.Getenv("PAYVAULT_CODEC_KEY"); key != "" {
		codec, err := temporalpayvault.NewCodec("1", map[string][]byte{"1": []byte(key)})
		if err != nil {
			return nil, err
		}
		data, failure = temporalpayvault.NewConverters(codec)
	}
	address := cmp.Or(os.Getenv("TEMPORAL_ADDRESS"), client.DefaultHostPort)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := client.DialContext(ctx, client.Options{
		HostPort: address, DataConverter: data, FailureConverter: failure, Logger: log.NewStructuredLogger(quiet),
	})
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoServer, address, err)
	}
	return c, nil
}

// Help prints err, and the commands that start the servers that the worker and the starter need.
func Help(w io.Writer, err error) {
	fmt.Fprintf(w, "%v\n\nStart the development server, the emulator, and then this:\n"+
		"\n  temporal server start-dev\n  go run ./cmd/payvault-emulator -addr 127.0.0.1:8700\n"+
		"\nThe development server comes with the CLI of Temporal. Other versions than v1.5.1 may not build:\n"+
		"\n  go install github.com/temporalio/cli/cmd/temporal@v1.5.1\n", err)
}

// Folder is a sink for exports. It writes each page of records to a file of its own. All workers need access to the
// same folder.
type Folder struct{ Dir string }

// WriteCustomers writes a page of customers to its file.
func (f Folder) WriteCustomers(_ context.Context, at temporalpayvault.Position, customers []payvault.Customer) error {
	return f.write(at, customers)
}

// WriteTransactions writes a page of transactions to its file.
func (f Folder) WriteTransactions(
	_ context.Context, at temporalpayvault.Position, transactions []payvault.Transaction,
) error {
	return f.write(at, transactions)
}

// EndList removes the files of all pages after the end of the list. An earlier export with the same name may have
// written them.
func (f Folder) EndList(_ context.Context, at temporalpayvault.Position) error {
	for ; ; at.Page++ {
		err := os.Remove(f.name(at))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f Folder) name(at temporalpayvault.Position) string {
	return filepath.Join(f.Dir, fmt.Sprintf("%s-%d-%06d.json", at.Export, at.Subscription, at.Page))
}

// write writes a page to a temporary file and renames it. So the file of a page is always complete, and a page that is
// written twice has one file.
func (f Folder) write(at temporalpayvault.Position, page any) error {
	text, err := json.Marshal(page)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(f.Dir, "part-")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Close()); err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return os.Rename(part.Name(), f.name(at))
}

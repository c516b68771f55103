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

// Queue is the task queue of both programs.
const Queue = "payvault"

// ErrNoServer is the error of [Dial] when there is no server.
var ErrNoServer = errors.New("no server of Temporal")

// Dial connects to the server in TEMPORAL_ADDRESS. It encrypts if PAYVAULT_CODEC_KEY has a key of 32 bytes.
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

// Help prints how to start the servers that the programs need.
func Help(w io.Writer, err error) {
	fmt.Fprintf(w, "%v\n\nStart the development server, the emulator, and then this:\n"+
		"\n  temporal server start-dev\n  go run ./cmd/payvault-emulator -addr 127.0.0.1:8700\n"+
		"\nThe first comes with the CLI, of which others than v1.5.1 may not build:\n"+
		"\n  go install github.com/temporalio/cli/cmd/temporal@v1.5.1\n", err)
}

// Folder is a sink that writes each page into a file of its own. All workers need access to the same folder.
type Folder struct{ Dir string }

// WriteCustomers writes a page.
func (f Folder) WriteCustomers(_ context.Context, at temporalpayvault.Position, customers []payvault.Customer) error {
	return f.write(at, customers)
}

// WriteTransactions writes a page.
func (f Folder) WriteTransactions(
	_ context.Context, at temporalpayvault.Position, transactions []payvault.Transaction,
) error {
	return f.write(at, transactions)
}

// EndList removes the pages beyond the end of the list. An earlier export of the same name may have written them.
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

// write replaces a page. So a page that is given twice exists once, and never only in part.
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

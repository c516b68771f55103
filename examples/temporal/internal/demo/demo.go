// Package demo is what the worker and the starter share.
package demo

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/temporalpayvault"
)

// Queue is the task queue of both programs.
const Queue = "payvault"

// ErrNoServer is the error of [Dial] when there is no server.
var ErrNoServer = errors.New("no server of Temporal")

// Dial connects to the server that TEMPORAL_ADDRESS names, with encryption if PAYVAULT_CODEC_KEY has a key of 32 bytes.
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

// Help says how to start what the programs need.
func Help(w io.Writer, err error) {
	fmt.Fprintf(w, "%v\n\nStart the development server, the emulator, and then this:\n"+
		"\n  temporal server start-dev\n  go run ./cmd/payvault-emulator -addr 127.0.0.1:8700\n"+
		"\nThe first comes with the CLI, of which others than v1.5.1 may not build:\n"+
		"\n  go install github.com/temporalio/cli/cmd/temporal@v1.5.1\n", err)
}

// File is a source of cards in files: a reference is the name of one, whose lines have number, expiry and ID of a card.
// Empty lines are left out. Its errors say what has to be mended, and nothing of a card.
type File struct{}

// Snapshot counts the lines, and hashes them. It reads all of them, so that nothing is sent of a file with a bad one. A
// job asks for it once for each activity: keep what it has found, if files are large, while size and time are the same.
func (File) Snapshot(_ context.Context, ref string) (s temporalpayvault.Snapshot, err error) {
	hash := sha256.New()
	for line, err := range lines(ref) {
		if err != nil {
			return s, err
		}
		s.Cards++
		_, _ = fmt.Fprintln(hash, line)
	}
	s.Checksum = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// Cards reads some of them. It reads those before them too; a table would be asked for a range of keys.
func (File) Cards(_ context.Context, ref string, start, end int) (cards []payvault.AccountUpdaterCard, err error) {
	n := 0
	for line, err := range lines(ref) {
		if err != nil {
			return nil, err
		}
		if n++; n <= start {
			continue
		}
		fields := strings.SplitN(line, ",", 3)
		cards = append(cards, payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(fields[0]), ExpDate: fields[1], CardID: fields[2],
		})
		if n == end {
			break
		}
	}
	return cards, nil
}

func lines(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		file, err := os.Open(name) //nolint:gosec // whoever starts jobs names files
		if err != nil {
			yield("", toMend(err.Error()))
			return
		}
		defer file.Close() //nolint:errcheck // it is only read
		scanner := bufio.NewScanner(file)
		for n := 1; scanner.Scan(); n++ {
			line := scanner.Text()
			if line == "" {
				continue
			}
			if strings.Count(line, ",") < 2 {
				yield("", toMend(fmt.Sprint("line ", n, " has no three fields")))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield("", err)
		}
	}
}

// toMend is an error that somebody has to see: it is not tried again, and its text goes into the history.
func toMend(text string) error { return temporal.NewNonRetryableApplicationError(text, "File", nil) }

// MakeUp writes a file of made-up cards.
func MakeUp(name string, n int) error {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "41111111%08d,1230,card-%d\n", i, i)
	}
	return os.WriteFile(name, []byte(text.String()), 0o600)
}

// Print is a sink that counts.
type Print struct{ W io.Writer }

// WriteCustomers prints where a page begins.
func (p Print) WriteCustomers(
	_ context.Context, at temporalpayvault.Position, customers []payvault.Customer,
) error {
	_, err := fmt.Fprintf(p.W, "%s: page %d, customers %s\n", at.Export, at.Page, from(at.Offset, len(customers)))
	return err
}

// WriteTransactions prints where a page begins.
func (p Print) WriteTransactions(
	_ context.Context, at temporalpayvault.Position, transactions []payvault.Transaction,
) error {
	_, err := fmt.Fprintf(p.W, "%s: subscription %d, page %d, transactions %s\n",
		at.Export, at.Subscription, at.Page, from(at.Offset, len(transactions)))
	return err
}

// EndList prints how many pages a list has.
func (p Print) EndList(_ context.Context, at temporalpayvault.Position) error {
	_, err := fmt.Fprintf(p.W, "%s: subscription %d has %d pages\n", at.Export, at.Subscription, at.Page)
	return err
}

func from(offset, n int) string { return fmt.Sprint(offset, " to ", offset+n-1) }

// Subscriptions is a source of subscriptions: a reference is a list such as "5001,5002".
type Subscriptions struct{}

// Count counts them.
func (Subscriptions) Count(_ context.Context, ref string) (int, error) {
	return strings.Count(ref, ",") + 1, nil
}

// Subscriptions returns some of them.
func (Subscriptions) Subscriptions(
	_ context.Context, ref string, start, end int,
) (ids []payvault.SubscriptionID, err error) {
	for _, text := range strings.Split(ref, ",")[start:end] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		ids = append(ids, payvault.SubscriptionID(id))
	}
	return ids, nil
}

// Package demo is what the worker and the starter share.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
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
		"\n  temporal server start-dev\n  go run ./cmd/payvault-emulator -addr 127.0.0.1:8700\n", err)
}

// Deck makes cards up: a reference such as "10000" stands for so many.
type Deck struct{}

// Snapshot describes the cards. Those of a file would have its hash for a checksum.
func (Deck) Snapshot(_ context.Context, ref string) (temporalpayvault.Snapshot, error) {
	n, err := strconv.Atoi(ref)
	return temporalpayvault.Snapshot{Cards: n, Checksum: "made up"}, err
}

// Cards returns some of them.
func (Deck) Cards(_ context.Context, _ string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	cards := make([]payvault.AccountUpdaterCard, 0, end-start)
	for i := start; i < end; i++ {
		cards = append(cards, payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(fmt.Sprintf("41111111%08d", i)), ExpDate: "1230", CardID: fmt.Sprint("card-", i),
		})
	}
	return cards, nil
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

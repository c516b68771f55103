// Quickstart uses every part of the service and prints the results.
//
// It runs offline, against the emulator, unless PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a
// sandbox. Some operations then need the ID of a record, and the service documents no operation that creates such a
// record. They are skipped unless the variable in target.go has the ID.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/payvault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	t, err := newTarget(getenv, out)
	if err != nil {
		return err
	}
	defer t.close()
	q := &quickstart{target: t, out: out}
	var refused error
	for _, step := range []func(context.Context) error{
		q.tokenize, q.customers, q.payees, q.board, q.answerDispute, q.subscription, q.sendInvoice, q.updateCards, q.addEvent,
	} {
		err := step(ctx)
		if errors.Is(err, payvault.ErrRejected) { // some features may not be enabled in a sandbox
			refused = errors.Join(refused, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return refused
}

// quickstart has one method per part of the service.
type quickstart struct {
	*target

	out io.Writer
}

// did prints the result of an operation.
func (q *quickstart) did(op payvault.Operation, format string, args ...any) {
	fmt.Fprintf(q.out, "%-26s  %s\n", op, fmt.Sprintf(format, args...))
}

// missing prints the variables that an operation needs in a sandbox.
func (q *quickstart) missing(op payvault.Operation, variables string) error {
	q.did(op, "left out: set %s", variables)
	return nil
}

// Quickstart calls every part of the service and prints the results.
//
// The program runs offline, against the emulator, unless PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID
// name a sandbox. In a sandbox some calls need more variables, such as the ID of an existing invoice, because the
// service documents no operation that creates an invoice. The comments in target.go name these variables. A call is
// skipped if one of its variables is not set.
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

// quickstart has one method for each part of the service.
type quickstart struct {
	*target

	out io.Writer
}

// did prints the result of an operation.
func (q *quickstart) did(op payvault.Operation, format string, args ...any) {
	fmt.Fprintf(q.out, "%-26s  %s\n", op, fmt.Sprintf(format, args...))
}

// missing prints that an operation was left out, and the variables that it needs in a sandbox.
func (q *quickstart) missing(op payvault.Operation, variables string) error {
	q.did(op, "left out: set %s", variables)
	return nil
}

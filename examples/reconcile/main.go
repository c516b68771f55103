// Reconcile adds up the transactions of a subscription from a first day to a last day, separately for each status and
// currency. The sums are exact decimal numbers.
//
//	reconcile -subscription 4711 -from 2026-10-01 -to 2026-12-31
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without these variables, the program
// runs offline, against an emulator, and refuses flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "reconcile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	q, err := parseQuestion(args)
	if err != nil {
		return err
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	if client == nil {
		if err := sandbox.Offline(out, q.given); err != nil {
			return err
		}
		srv := payvaulttest.NewServer()
		defer srv.Close()
		client, q.subscription = srv.Client(), seed(srv)
	}
	if q.subscription < 1 {
		return errors.New("-subscription is required")
	}
	sum, err := q.ask(ctx, client)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Subscription %d, %s to %s\n\n", q.subscription, q.from, q.to)
	return sum.print(out)
}

// question has the values of the program's flags.
type question struct {
	given        bool // at least one flag was given
	subscription payvault.SubscriptionID
	from, to     payvault.Date
}

func parseQuestion(args []string) (question, error) {
	q := question{from: payvault.Date{Year: 2026, Month: 10, Day: 1}, to: payvault.Date{Year: 2026, Month: 12, Day: 31}}
	flags := flag.NewFlagSet("reconcile", flag.ContinueOnError)
	flags.Int64Var((*int64)(&q.subscription), "subscription", 0, "ID of the subscription")
	flags.Func("from", "first day (default "+q.from.String()+")", dayFlag(&q.from))
	flags.Func("to", "last day (default "+q.to.String()+")", dayFlag(&q.to))
	if err := flags.Parse(args); err != nil {
		return q, err
	}
	q.given = flags.NFlag() > 0
	if flags.NArg() > 0 {
		return q, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if q.from.String() > q.to.String() {
		return q, errors.New("-from is after -to")
	}
	return q, nil
}

func dayFlag(day *payvault.Date) func(string) error {
	return func(text string) (err error) {
		*day, err = payvault.ParseDate(text)
		return err
	}
}

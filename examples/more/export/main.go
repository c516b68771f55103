// Export writes all customers to a CSV file. It requests the next pages while it writes a page. It prints its progress
// to standard error: as a bar on a terminal, and as plain lines otherwise. If the customers themselves go to a
// terminal, it prints no progress.
//
//	export -o customers.csv
//	export >customers.csv
//
// A cell that starts with =, +, -, @, a tab or a carriage return gets an apostrophe in front, because a spreadsheet
// would read it as a formula. A telephone number may be such a cell. A program that reads the file has to remove these
// apostrophes.
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without these variables, the program
// runs offline, against an emulator, and refuses -o.
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
	"example.com/payvault/examples/more/internal/progress"
	"example.com/payvault/payvaulttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "export:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out, show io.Writer) error {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	path := flags.String("o", "", "file to write; standard output without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	if client == nil {
		if err := sandbox.Offline(show, *path != ""); err != nil {
			return err
		}
		srv := payvaulttest.NewServer()
		defer srv.Close()
		client = srv.Client()
		if err := seed(ctx, client, 1000); err != nil {
			return err
		}
	}
	if *path == "" {
		if progress.IsTerminal(out) {
			show = io.Discard // the rows themselves appear on the terminal
		}
		return export(ctx, client, out, show)
	}
	return replaceFile(*path, func(file io.Writer) error { return export(ctx, client, file, show) })
}

// seed creates n customers in the emulator.
func seed(ctx context.Context, client *payvault.Client, n int) error {
	for i := range n {
		_, err := client.Customers.Create(ctx, &payvault.CustomerCreateRequest{
			ID: fmt.Sprintf("CUSTOMER%04d", i), FirstName: "Jane", LastName: fmt.Sprintf("Doe, the %d.", i),
			Email: fmt.Sprintf("jane.%d@example.com", i),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Export writes all customers to a CSV file, with pages fetched ahead, and shows its progress on standard error: a bar on a
// terminal, plain lines otherwise.
//
//	export -o customers.csv
//	export >customers.csv
//
// It runs offline, against the emulator, unless PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a
// sandbox.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "export:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out, progress io.Writer) error {
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
		srv := payvaulttest.NewServer()
		defer srv.Close()
		client = srv.Client()
		if err := seed(ctx, client, 1000); err != nil {
			return err
		}
	}
	if *path == "" {
		return export(ctx, client, out, progress)
	}
	return replaceFile(*path, func(file io.Writer) error { return export(ctx, client, file, progress) })
}

// seed stores customers in the emulator.
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

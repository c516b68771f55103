// Boarding shows how a partner boards a merchant. The program saves the fields that the merchant has already filled in.
// Then it validates the application, reads which fields do not pass, and saves these with values from the partner's
// file about the merchant. It repeats this until the application passes, or gives up after four rounds.
//
// The program runs offline, against the emulator, unless PAYVAULT_BASE_URL and PAYVAULT_PARTNER_API_KEY name a sandbox.
// A sandbox also needs PAYVAULT_VENDOR_ID, PAYVAULT_CHANNEL_ID and PAYVAULT_SALES_REP. It does not need a merchant's
// API key or a merchant ID.
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
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "boarding:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	merchant, err := readRecord(merchantFile)
	if err != nil {
		return err
	}
	b := &boarding{onFile: merchant, out: out}
	if getenv("PAYVAULT_BASE_URL") == "" && getenv("PAYVAULT_PARTNER_API_KEY") == "" {
		if err := sandbox.Offline(out, false); err != nil {
			return err
		}
		srv := payvaulttest.NewServer()
		defer srv.Close()
		b.partner = srv.PartnerClient()
		return b.board(ctx, &payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42})
	}
	if b.partner, err = newPartner(getenv); err != nil {
		return err
	}
	request, err := createRequest(getenv)
	if err != nil {
		return err
	}
	return b.board(ctx, request)
}

// newPartner returns a client with the partner's key and vendor ID.
func newPartner(getenv func(string) string) (*payvault.Client, error) {
	baseURL, key := getenv("PAYVAULT_BASE_URL"), getenv("PAYVAULT_PARTNER_API_KEY")
	if baseURL == "" || key == "" {
		return nil, errors.New("set PAYVAULT_BASE_URL and PAYVAULT_PARTNER_API_KEY, both or neither")
	}
	vendor, err := sandbox.Integer(getenv, "PAYVAULT_VENDOR_ID")
	if err != nil {
		return nil, err
	}
	return payvault.NewClient(baseURL, key, payvault.WithVendorID(vendor))
}

// createRequest returns a request with the channel ID and the sales rep that the operator of the service has assigned
// to the partner.
func createRequest(getenv func(string) string) (*payvault.ApplicationCreateRequest, error) {
	channel, err := sandbox.Integer(getenv, "PAYVAULT_CHANNEL_ID")
	if err != nil {
		return nil, err
	}
	salesRep, err := sandbox.Integer(getenv, "PAYVAULT_SALES_REP")
	if err != nil {
		return nil, err
	}
	return &payvault.ApplicationCreateRequest{ChannelID: channel, SalesRep: salesRep}, nil
}

package payvaulttest_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func Example() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	srv.SeedInvoice(payvaulttest.Invoice{ID: "INV-1"})

	err := srv.Client().Invoices.Send(context.Background(), "INV-1", &payvault.InvoiceSendRequest{
		EmailAddress: []string{"customer@example.com"},
	})

	invoice, _ := srv.Invoice("INV-1")
	fmt.Println(err, invoice.State, invoice.Emails)
	// Output: <nil> outstanding [customer@example.com]
}

// An answer that is lost after the invoice was sent: code that would simply try again would be told
// that the invoice is sent already, and might report a failure.
func ExampleServer_Inject() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	srv.SeedInvoice(payvaulttest.Invoice{ID: "INV-1"})
	srv.Inject(payvaulttest.Fault{
		Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1,
	})

	err := srv.Client().Invoices.Send(context.Background(), "INV-1", nil)

	fmt.Println("outcome unknown:", errors.Is(err, payvault.ErrOutcomeUnknown))
	fmt.Println("sent:", srv.Commits(payvault.OpInvoicesSend))
	// Output:
	// outcome unknown: true
	// sent: 1
}

func ExampleServer_Requests() {
	srv := payvaulttest.NewServer(payvaulttest.WithBasePath("/sandbox"))
	defer srv.Close()

	_, _ = srv.Client().Tokens.Tokenize(context.Background(), &payvault.TokenizeRequest{
		CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229",
	})

	request := srv.Requests()[0]
	fmt.Println(request)
	fmt.Println(len(request.Body()) > 0, srv.Cards()[0].MaskedNumber)
	// Output:
	// Request{tokens.tokenize POST /sandbox/pg/tokenize, 75 bytes}
	// true 4111xxxxxx111111
}

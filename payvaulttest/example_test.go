package payvaulttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func Example() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})

	err := srv.Client().Invoices.Send(context.Background(), "INV-1", &payvault.InvoiceSendRequest{
		EmailAddress: []string{"customer@example.com"},
	})

	invoice, _ := srv.Invoices.Get("INV-1")
	fmt.Println(err, invoice.State, invoice.Emails)
	// Output: <nil> outstanding [customer@example.com]
}

// The answer is lost after the invoice was sent. The service would refuse a retry, because the invoice is sent already.
// The refusal would look as if the invoice was not sent. So the client does not retry, and reports an unknown outcome.
func ExampleServer_Inject() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})
	_, err := srv.Inject(payvaulttest.Fault{
		Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1,
	})
	if err != nil {
		log.Fatal(err)
	}

	err = srv.Client().Invoices.Send(context.Background(), "INV-1", nil)

	fmt.Println("outcome unknown:", errors.Is(err, payvault.ErrOutcomeUnknown))
	fmt.Println("sent:", srv.Commits(payvault.OpInvoicesSend))
	// Output:
	// outcome unknown: true
	// sent: 1
}

// The documentation of the service mentions an operation that returns an application, but does not describe it. Handle
// adds such an operation to the emulator.
func ExampleServer_Handle() {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	srv.Handle("GET", "/platform/application/{appId}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"code":0,"message":"Success","data":{"app_id":4004,"app_status":"INCOMPLETE"}}`)
	})

	var out struct {
		Data payvault.Application `json:"data"`
	}
	err := srv.PartnerClient().Call(context.Background(), payvault.Request{
		Name: "applications.get", Method: "GET", Path: []string{"platform", "application", "4004"},
	}, &out)

	fmt.Println(err, out.Data.ID, out.Data.Status)
	fmt.Println(srv.Commits("GET /platform/application/{appId}"))
	// Output:
	// <nil> 4004 INCOMPLETE
	// 1
}

// A fake of client.Invoices.Send can return this error. It is the error of a lost answer.
func ExampleNewError() {
	err := payvaulttest.NewError(payvault.OpInvoicesSend, payvaulttest.ErrorUnknown)

	fmt.Println(err)
	fmt.Println(errors.Is(err, payvault.ErrOutcomeUnknown), payvault.SafeToRetry(err))
	// Output:
	// payvault: invoices.send: no complete answer: EOF (outcome unknown)
	// true false
}

func ExampleServer_Requests() {
	srv := payvaulttest.NewServer(payvaulttest.WithBasePath("/sandbox"))
	defer srv.Close()

	_, _ = srv.Client().Tokens.Tokenize(context.Background(), &payvault.TokenizeRequest{
		CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229",
	})

	request := srv.Requests()[0]
	fmt.Println(request.Operation, request.Method, request.Path)
	fmt.Println(len(request.Body()) > 0, srv.Cards.All()[0].CardNumber)
	// Output:
	// tokens.tokenize POST /sandbox/pg/tokenize
	// true 4111xxxxxx111111
}

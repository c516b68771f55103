package payvault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// These are the examples of docs/unknown.md. In each of them the service performs an operation, and its answer is lost.

// loseAnswer starts an emulator that performs the next request and loses its answer.
func loseAnswer() (*payvaulttest.Server, *payvault.Client) {
	srv, client := emulator()
	inject(srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 1})
	return srv, client
}

// matches returns the names of the sentinels of these examples that the error matches.
func matches(err error) string {
	var names []string
	for _, sentinel := range []error{
		payvault.ErrOutcomeUnknown, payvault.ErrRejected, payvault.ErrNotFound, payvault.ErrConflict,
	} {
		if errors.Is(err, sentinel) {
			names = append(names, sentinel.Error())
		}
	}
	return strings.Join(names, ", ")
}

// WithReplay makes the client repeat the request. The card is then stored twice, under two IDs.
func ExampleTokensService_Tokenize_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	card := &payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}
	_, err := client.Tokens.Tokenize(context.Background(), card, payvault.WithReplay())
	fmt.Println(err, "stored:", srv.Commits(payvault.OpTokensTokenize))
	// Output: <nil> stored: 2
}

// The list of customers shows whether the customer was stored, because the caller chose its ID.
func ExampleCustomersService_Create_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	ctx := context.Background()
	_, err := client.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: "JANE1", FirmName: "Acme"})
	fmt.Println(matches(err))
	for customer, err := range client.Customers.All(ctx, &payvault.ListOptions{OrderOn: "customer_id"}) {
		if err != nil {
			fmt.Println("look again later:", err)
			return
		}
		if customer.ID == "JANE1" {
			fmt.Println("stored")
			return
		}
	}
	fmt.Println("not stored, as far as the list shows")
	// Output:
	// outcome unknown
	// stored
}

// SaveData saves the same data in the same place, so the client repeats it by itself.
func ExampleApplicationsService_SaveData_unknown() {
	srv, _ := loseAnswer()
	defer srv.Close()
	application := srv.Applications.Seed(payvaulttest.Application{})
	data := payvault.ApplicationData{LegalName: "Springfield Bakery LLC"}
	saved, err := srv.PartnerClient().Applications.SaveData(context.Background(), application.ID, data)
	fmt.Println(err, "fields:", len(saved), "performed:", srv.Commits(payvault.OpApplicationsSaveData))
	// Output: <nil> fields: 1 performed: 2
}

// In the emulator a second call makes a second payee.
func ExamplePayeesService_Create_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	payee := &payvault.PayeeCreateRequest{Name: "Acme Supplies"}
	_, err := client.Payees.Create(context.Background(), payee)
	fmt.Println(matches(err))
	_, err = client.Payees.Create(context.Background(), payee)
	fmt.Println(err, "stored:", len(srv.Payees.All()))
	// Output:
	// outcome unknown
	// <nil> stored: 2
}

// WithReplay makes the client repeat the request, which finds no payee. This refusal does not say who deleted the
// payee, so the outcome stays unknown.
func ExamplePayeesService_Delete_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	payee := srv.Payees.Seed(payvaulttest.Payee{Name: "Acme Supplies"})
	fmt.Println(matches(client.Payees.Delete(context.Background(), payee.ID, payvault.WithReplay())))
	// Output: outcome unknown, rejected, not found
}

// In the emulator a second call makes a second application. The ID of the first one is lost.
func ExampleApplicationsService_Create_unknown() {
	srv, _ := loseAnswer()
	defer srv.Close()
	client := srv.PartnerClient()
	application := &payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42}
	_, err := client.Applications.Create(context.Background(), application)
	fmt.Println(matches(err))
	_, err = client.Applications.Create(context.Background(), application)
	fmt.Println(err, "created:", len(srv.Applications.All()))
	// Output:
	// outcome unknown
	// <nil> created: 2
}

// The emulator accepts one answer to a dispute. The second call is refused, and its error alone does not say why.
func ExampleDisputesService_Respond_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	dispute := srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeFirstTime})
	answer := &payvault.DisputeRespondRequest{Type: payvault.DisputeOther, Message: "The receipt is signed."}
	fmt.Println(matches(client.Disputes.Respond(context.Background(), dispute.ID, answer)))
	fmt.Println(matches(client.Disputes.Respond(context.Background(), dispute.ID, answer)))
	// Output:
	// outcome unknown
	// rejected, conflict
}

// WithReplay makes the client repeat the request, which is refused with status 409. The first request may have canceled
// the subscription, and so may somebody else, so the outcome stays unknown. Look for ErrOutcomeUnknown before
// ErrConflict.
func ExampleSubscriptionsService_Cancel_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "JANE1"})
	request := &payvault.SubscriptionCancelRequest{CustomerID: "JANE1"}
	_, err := client.Subscriptions.Cancel(context.Background(), subscription.ID, request, payvault.WithReplay())
	fmt.Println(matches(err))
	// Output: outcome unknown, rejected, conflict
}

// The emulator sends an invoice only once. The real service may send its messages again.
func ExampleInvoicesService_Send_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	invoice := srv.Invoices.Seed(payvaulttest.Invoice{})
	fmt.Println(matches(client.Invoices.Send(context.Background(), invoice.ID, nil, payvault.WithReplay())))
	// Output: outcome unknown, rejected, conflict
}

// In the emulator a second call submits the cards again.
func ExampleAccountUpdaterService_Submit_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	cards := []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "0127"}}
	_, err := client.AccountUpdater.Submit(context.Background(), cards)
	fmt.Println(matches(err))
	_, err = client.AccountUpdater.Submit(context.Background(), cards)
	fmt.Println(err, "submitted:", srv.Commits(payvault.OpAccountUpdaterSubmit))
	// Output:
	// outcome unknown
	// <nil> submitted: 2
}

// In the emulator, adding an event twice has the same result as adding it once.
func ExampleWebhooksService_AddEvent_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	webhook := srv.Webhooks.Seed(payvaulttest.Webhook{})
	_, err := client.Webhooks.AddEvent(
		context.Background(), webhook.ID, payvault.EventTransactionStatusUpdated, payvault.WithReplay())
	stored, _ := srv.Webhooks.Get(webhook.ID)
	fmt.Println(err, stored.Events)
	// Output: <nil> [transaction_status_updated]
}

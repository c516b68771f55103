package payvault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// These are the examples of docs/unknown.md. In each example the service performs an operation, and the answer is lost.

// loseAnswer starts an emulator that performs the first request and closes the connection without an answer.
func loseAnswer() (*payvaulttest.Server, *payvault.Client) {
	srv, client := emulator()
	inject(srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 1})
	return srv, client
}

// matches returns the texts of the listed sentinels that err matches.
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

// WithReplay makes the client repeat the request after the lost answer. The card is then stored twice, under two IDs.
func ExampleTokensService_Tokenize_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	card := &payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}
	_, err := client.Tokens.Tokenize(context.Background(), card, payvault.WithReplay())
	fmt.Println(err, "stored:", srv.Commits(payvault.OpTokensTokenize))
	// Output: <nil> stored: 2
}

// The caller chose the ID of the customer. So the list of customers shows whether the customer was stored.
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

// Saving the same data twice has the same effect as saving it once. So the client itself repeats SaveData after the
// lost answer.
func ExampleApplicationsService_SaveData_unknown() {
	srv, _ := loseAnswer()
	defer srv.Close()
	application := srv.Applications.Seed(payvaulttest.Application{})
	data := payvault.ApplicationData{LegalName: "Springfield Bakery LLC"}
	saved, err := srv.PartnerClient().Applications.SaveData(context.Background(), application.ID, &data)
	fmt.Println(err, "fields:", len(saved), "performed:", srv.Commits(payvault.OpApplicationsSaveData))
	// Output: <nil> fields: 1 performed: 2
}

// The program calls again after the lost answer, and the emulator stores a second payee.
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

// WithReplay makes the client repeat the request. The second request is refused, because the payee does not exist any
// more. The refusal does not say who deleted the payee, so the outcome stays unknown.
func ExamplePayeesService_Delete_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	payee := srv.Payees.Seed(payvaulttest.Payee{Name: "Acme Supplies"})
	fmt.Println(matches(client.Payees.Delete(context.Background(), payee.ID, payvault.WithReplay())))
	// Output: outcome unknown, rejected, not found
}

// The program calls again after the lost answer, and the emulator creates a second application. The ID of the first
// application is lost.
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

// The emulator accepts only one answer to a dispute, so it refuses the second call. The error of the second call does
// not say that the first call succeeded.
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

// WithReplay makes the client repeat the request. The second request is refused with status 409. Either the first
// request or somebody else has canceled the subscription, so the outcome stays unknown. Check for ErrOutcomeUnknown
// before ErrConflict.
func ExampleSubscriptionsService_Cancel_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "JANE1"})
	request := &payvault.SubscriptionCancelRequest{CustomerID: "JANE1"}
	_, err := client.Subscriptions.Cancel(context.Background(), subscription.ID, request, payvault.WithReplay())
	fmt.Println(matches(err))
	// Output: outcome unknown, rejected, conflict
}

// WithReplay makes the client repeat the request. The emulator sends an invoice only once, so it refuses the second
// request. The real service may send the messages of the invoice again.
func ExampleInvoicesService_Send_unknown() {
	srv, client := loseAnswer()
	defer srv.Close()
	invoice := srv.Invoices.Seed(payvaulttest.Invoice{})
	fmt.Println(matches(client.Invoices.Send(context.Background(), invoice.ID, nil, payvault.WithReplay())))
	// Output: outcome unknown, rejected, conflict
}

// The program calls again after the lost answer, and the emulator submits the cards a second time.
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

// WithReplay makes the client repeat the request. In the emulator, adding an event twice has the same result as adding
// it once.
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

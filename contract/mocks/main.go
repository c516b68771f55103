// Command mocks makes every call of the SDK against a mock of the document, such as prism, and fails if one of the
// answers cannot be read.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"example.com/payvault"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:4010", "base address of the mock")
	rounds := flag.Int("rounds", 1, "how often each call is made")
	flag.Parse()
	failed, err := run(context.Background(), *url, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// run makes the calls and returns how many answers could not be read.
func run(ctx context.Context, url string, rounds int) (int, error) {
	client, err := payvault.NewClient(url, "merchant-api-key", payvault.WithMerchantID(100001),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
	if err != nil {
		return 0, err
	}
	failed := 0
	for range rounds {
		for _, call := range calls(client) {
			op, err := call(ctx)
			if err == nil {
				continue
			}
			failed++
			fmt.Fprintf(os.Stderr, "%s: %v\n", op, err)
		}
	}
	_, _ = fmt.Fprintf(os.Stdout, "%d answers were read, %d were not\n", rounds*len(calls(client))-failed, failed)
	return failed, nil
}

type call func(context.Context) (payvault.Operation, error)

func calls(c *payvault.Client) []call {
	card, date := payvault.NewSecret("4111111111111111"), payvault.ExpDate(12, 30)
	return []call{
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{CardNumber: card, ExpDate: date})
			return payvault.OpTokensTokenize, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: "jane02", FirmName: "Acme"})
			return payvault.OpCustomersCreate, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Customers.List(ctx, &payvault.ListOptions{OrderOn: "customer_id"})
			return payvault.OpCustomersList, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: "Acme Supplies"})
			return payvault.OpPayeesCreate, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			return payvault.OpPayeesDelete, c.Payees.Delete(ctx, 4001)
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: 11, SalesRep: 22})
			return payvault.OpApplicationsCreate, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Applications.SaveData(ctx, 3001, payvault.ApplicationData{LegalName: "Acme LLC"})
			return payvault.OpApplicationsSaveData, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Applications.Validate(ctx, 3001)
			return payvault.OpApplicationsValidate, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			return payvault.OpDisputesRespond, c.Disputes.Respond(ctx, 7102, &payvault.DisputeResponse{
				Message: "The signed receipt is attached.", Evidence: payvault.FileFromBytes("receipt.pdf", []byte("%PDF-1.7")),
			})
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Subscriptions.Transactions(ctx, 5001, nil)
			return payvault.OpSubscriptionsTransactions, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Subscriptions.Cancel(ctx, 5001, &payvault.SubscriptionCancelRequest{CustomerID: "CUST5001"})
			return payvault.OpSubscriptionsCancel, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			return payvault.OpInvoicesSend,
				c.Invoices.Send(ctx, "INV6001", &payvault.InvoiceSendRequest{PhoneNumber: []int64{14155550100}})
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.AccountUpdater.Submit(ctx, []payvault.AccountUpdaterCard{{CardNumber: card, ExpDate: date}})
			return payvault.OpAccountUpdaterSubmit, err
		},
		func(ctx context.Context) (payvault.Operation, error) {
			_, err := c.Webhooks.AddEvent(ctx, "WH8001", payvault.EventTransactionStatusUpdated)
			return payvault.OpWebhooksAddEvent, err
		},
	}
}

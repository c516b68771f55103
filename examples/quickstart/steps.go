package main

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"example.com/payvault"
)

func (q *quickstart) tokenize(ctx context.Context) error {
	card, err := q.merchant.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
		CardholderName: "Jane Doe",
		CardNumber:     payvault.NewSecret("4111111111111111"),
		ExpDate:        payvault.FormatExpDate(12, 2030),
		CVV2:           payvault.NewSecret("123"),
		EchoFields:     payvault.Pairs{{Name: "order", Value: "17"}},
	})
	if err != nil {
		return err
	}
	q.did(payvault.OpTokensTokenize, "card %s saved as %s", card.CardNumber, card.CardID)

	account, err := q.merchant.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
		CardholderName: "Jane Doe",
		TRNumber:       payvault.NewSecret("123456780"),
		DDANumber:      payvault.NewSecret("000123456789"),
		TypeID:         "S",
	})
	if err != nil {
		return err
	}
	q.did(payvault.OpTokensTokenize, "ACH account saved as %s", account.CardID)
	return nil
}

func (q *quickstart) customers(ctx context.Context) error {
	email := "jane." + strconv.FormatInt(time.Now().UnixNano(), 36) + "@example.com"
	customer, err := q.merchant.Customers.Create(ctx, &payvault.CustomerCreateRequest{
		AutoGenerateCustomerID: true,
		FirstName:              "Jane",
		LastName:               "Doe",
		Email:                  email,
		ShippingAddresses: []payvault.ShippingAddress{
			{
				FirstName: "Jane", LastName: "Doe", Addr1: "1 Main Street", City: "Springfield", State: "IL", Zip: "62701",
				Primary: new(true),
			},
		},
		BillingCards: []payvault.BillingCardRequest{
			{
				CardNumber: payvault.NewSecret("5454545454545454"), ExpDate: payvault.FormatExpDate(6, 2031),
				CVV2: payvault.NewSecret("456"), Zip: "62701", Primary: new(true),
			},
		},
	})
	if err != nil {
		return err
	}
	q.did(payvault.OpCustomersCreate, "%s %s is customer %s, card %s", customer.FirstName, customer.LastName,
		customer.ID, customer.PrimaryCardNumber)

	// The documentation of the service names only one condition of filters, BETWEEN_DATES. The emulator also accepts
	// EQUALS, but a sandbox may refuse it. Condition is a string type, so a program can use any condition that the service
	// accepts.
	newest := &payvault.ListOptions{OrderOn: "customer_id", OrderBy: payvault.Descending, Count: 25}
	if !q.isSandbox {
		newest.Filters = []payvault.Filter{payvault.Where("customer_email", "EQUALS", email)}
	}
	for customer, err := range q.merchant.Customers.All(ctx, newest) {
		if err != nil {
			return err
		}
		q.did(payvault.OpCustomersList, "found customer %s", customer.ID)
		break // one is enough: a sandbox may have many customers
	}
	return nil
}

func (q *quickstart) payees(ctx context.Context) error {
	payee, err := q.merchant.Payees.Create(ctx, &payvault.PayeeCreateRequest{
		Name:  "Acme Supplies",
		Email: []string{"billing@example.com"},
		Account: payvault.PayeeAccount{
			TypeID: "S", TRNumber: payvault.NewSecret("123456780"),
			DDANumber: payvault.NewSecret("000987654321"), AccountholderName: "Acme Supplies",
		},
	})
	if err != nil {
		return err
	}
	q.did(payvault.OpPayeesCreate, "%s is payee %d, account %v", payee.Name, payee.ID, payee.Account.DDANumber)

	if err := q.merchant.Payees.Delete(ctx, payee.ID); err != nil {
		return err
	}
	q.did(payvault.OpPayeesDelete, "payee %d is gone", payee.ID)
	return nil
}

// board creates an application and saves its data in two halves. After each half it prints the result of the
// validation.
func (q *quickstart) board(ctx context.Context) error {
	if q.partner == nil || q.channel == 0 || q.salesRep == 0 {
		return q.missing(payvault.OpApplicationsCreate,
			"PAYVAULT_PARTNER_API_KEY, PAYVAULT_VENDOR_ID, PAYVAULT_CHANNEL_ID and PAYVAULT_SALES_REP")
	}
	created, err := q.partner.Applications.Create(ctx,
		&payvault.ApplicationCreateRequest{ChannelID: q.channel, SalesRep: q.salesRep})
	if err != nil {
		return err
	}
	id := created.App.ID
	q.did(payvault.OpApplicationsCreate, "application %d is %s", id, created.App.Status)

	for _, data := range []payvault.ApplicationData{businessData(), ownerAndBankData()} {
		fields, err := q.partner.Applications.SaveData(ctx, id, &data)
		if err != nil {
			return err
		}
		q.did(payvault.OpApplicationsSaveData, "%d fields are saved", len(fields))
		validation, err := q.partner.Applications.Validate(ctx, id)
		if err != nil {
			return err
		}
		if validation.OK() {
			q.did(payvault.OpApplicationsValidate, "application %d passes", id)
			continue
		}
		q.did(payvault.OpApplicationsValidate, "%d fields do not pass yet, among them bank_routing: %v",
			len(validation.Problems), validation.Problems["bank_routing"])
	}
	return nil
}

//go:embed receipt.pdf
var receipt []byte

func (q *quickstart) answerDispute(ctx context.Context) error {
	if q.dispute == 0 {
		return q.missing(payvault.OpDisputesRespond, "PAYVAULT_DISPUTE_ID")
	}
	err := q.merchant.Disputes.Respond(ctx, q.dispute, &payvault.DisputeRespondRequest{
		Message:  "The signed receipt is attached.",
		Evidence: payvault.FileFromBytes("receipt.pdf", receipt),
	})
	if err != nil {
		return err
	}
	q.did(payvault.OpDisputesRespond, "dispute %d answered with a PDF of %d bytes", q.dispute, len(receipt))
	return nil
}

func (q *quickstart) subscription(ctx context.Context) error {
	if q.target.subscription == 0 || q.subscriber == "" {
		return q.missing(payvault.OpSubscriptionsCancel, "PAYVAULT_SUBSCRIPTION_ID and PAYVAULT_CUSTOMER_ID")
	}
	id := q.target.subscription
	newestFirst := &payvault.ListOptions{OrderOn: "tran_time", OrderBy: payvault.Descending}
	for transaction, err := range q.merchant.Subscriptions.AllTransactions(ctx, id, newestFirst) {
		if err != nil {
			return err
		}
		q.did(payvault.OpSubscriptionsTransactions, "%s on %s", transaction.AmtTran, transaction.Time.Format(time.DateOnly))
	}
	confirmation, err := q.merchant.Subscriptions.Cancel(ctx, id,
		&payvault.SubscriptionCancelRequest{CustomerID: q.subscriber})
	if err != nil {
		return err
	}
	q.did(payvault.OpSubscriptionsCancel, "%s", confirmation.Message)
	return nil
}

func (q *quickstart) sendInvoice(ctx context.Context) error {
	if q.invoice == "" {
		return q.missing(payvault.OpInvoicesSend, "PAYVAULT_INVOICE_ID")
	}
	err := q.merchant.Invoices.Send(ctx, q.invoice,
		&payvault.InvoiceSendRequest{EmailAddress: []string{"jane@example.com"}})
	if err != nil {
		return err
	}
	q.did(payvault.OpInvoicesSend, "invoice %s sent to jane@example.com", q.invoice)
	return nil
}

func (q *quickstart) updateCards(ctx context.Context) error {
	request, err := q.merchant.AccountUpdater.Submit(ctx, []payvault.AccountUpdaterCard{
		{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: payvault.FormatExpDate(1, 2027), CardID: "my-card-1"},
		{CardNumber: payvault.NewSecret("5454545454545454"), ExpDate: payvault.FormatExpDate(2, 2027), CardID: "my-card-2"},
	})
	if err != nil {
		return err
	}
	q.did(payvault.OpAccountUpdaterSubmit, "2 cards submitted as request %s", request.RequestID)
	return nil
}

func (q *quickstart) addEvent(ctx context.Context) error {
	if q.webhook == "" {
		return q.missing(payvault.OpWebhooksAddEvent, "PAYVAULT_WEBHOOK_ID")
	}
	confirmation, err := q.merchant.Webhooks.AddEvent(ctx, q.webhook, payvault.EventTransactionStatusUpdated)
	if err != nil {
		return err
	}
	q.did(payvault.OpWebhooksAddEvent, "%s", confirmation.Message)
	return nil
}

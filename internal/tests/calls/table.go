package calls

import (
	"context"
	"iter"
	"slices"

	"example.com/payvault"
)

type (
	ctx    = context.Context
	client = payvault.Client
	opt    = payvault.CallOption
)

// What local checks say.
const (
	Required   = "is required"
	ThirdNamed = "names another merchant than ForMerchant"
	BadSegment = `must not be empty, "." or ".."`
	BadExpDate = "is not of the form MMYY"
	BadDate    = "not a date of the form YYYY-MM-DD"
	assigned   = "is assigned by the service and cannot be sent"
)

// ActingFor is the merchant_id of the requests in testdata; ThirdParty is another one.
const (
	ActingFor  payvault.MerchantID = 212346
	ThirdParty payvault.MerchantID = 999999
)

// entries are all operations, in the order of the table of the SDK.
func entries() []func() Operation {
	return []func() Operation{
		tokens, createCustomer, listCustomers, createPayee, deletePayee, createApplication, saveData,
		validate, respond, transactions, cancel, sendInvoice, submitCards, addEvent,
	}
}

func tokens() Operation {
	return Operation{
		OperationInfo: op(payvault.OpTokensTokenize), GoName: "Tokens.Tokenize",
		Stated: "POST /pg/tokenize card_id body-string",
		Full:   fullTokenize(), Minimal: &payvault.TokenizeRequest{MerchantID: 212345},
		Refused:  &payvault.TokenizeRequest{MerchantID: ThirdParty, ExpDate: "2029-12"},
		Problems: map[string][]string{"merchant_id": {ThirdNamed}, "exp_date": {BadExpDate}},
		Want:     tokenized(), Tolerant: tokenized(),
		do: of(func(ctx ctx, c *client, _ IDs, r *payvault.TokenizeRequest, o ...opt) (*payvault.TokenizeResponse, error) {
			return c.Tokens.Tokenize(ctx, r, o...)
		}),
		ways: []Call{
			{Name: "without a CardID", Operation: Operation{do: of(tokenizeWith(func(IDs) string { return "" }))}},
			{
				Name: "with a CardID", Repeats: true,
				Operation: Operation{do: of(tokenizeWith(func(ids IDs) string { return ids.Card }))},
			},
		},
	}
}

type tokenizing = func(ctx, *client, IDs, *payvault.TokenizeRequest, ...opt) (*payvault.TokenizeResponse, error)

// tokenizeWith sets the CardID of the request.
func tokenizeWith(card func(IDs) string) tokenizing {
	return func(ctx ctx, c *client, ids IDs, r *payvault.TokenizeRequest, o ...opt) (*payvault.TokenizeResponse, error) {
		request := *r
		request.CardID = card(ids)
		return c.Tokens.Tokenize(ctx, &request, o...)
	}
}

func createCustomer() Operation {
	const noID, noName = "is required, or auto_generate_customer_id",
		"is required with customer_last_name, or customer_firm_name"
	tolerant := storedCustomer()
	tolerant.NodeID, tolerant.ShippingAddresses[1].ID = 0, 0
	tolerant.BillingCards[0].CardType, tolerant.BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	return Operation{
		OperationInfo: op(payvault.OpCustomersCreate), GoName: "Customers.Create",
		Stated: "POST /platform/vault/customer no body",
		Full:   fullCustomer(), Minimal: minimalCustomer(),
		Refused: &payvault.CustomerCreateRequest{
			MerchantID:        ThirdParty,
			ShippingAddresses: []payvault.ShippingAddress{{MerchantID: ActingFor}, {ID: 2012, MerchantID: ThirdParty}},
			BillingCards: []payvault.BillingCardRequest{
				{ExpDate: "0130"}, {ExpDate: "1330", MerchantID: ThirdParty}, {ExpDate: "130"},
			},
		},
		Problems: map[string][]string{
			"customer_id": {noID}, "customer_first_name": {noName}, "merchant_id": {ThirdNamed},
			"shipping_addresses[1].shipping_id": {assigned}, "shipping_addresses[1].merchant_id": {ThirdNamed},
			"billing_cards[1].exp_date": {BadExpDate}, "billing_cards[1].merchant_id": {ThirdNamed},
			"billing_cards[2].exp_date": {BadExpDate},
		},
		Want: storedCustomer(), Tolerant: tolerant,
		do: of(func(ctx ctx, c *client, _ IDs, r *payvault.CustomerCreateRequest, o ...opt) (*payvault.Customer, error) {
			return c.Customers.Create(ctx, r, o...)
		}),
	}
}

func listCustomers() Operation {
	tolerant := listedCustomers()
	tolerant.Items[0].NodeID = 0
	tolerant.Items[0].BillingCards[0].CardType, tolerant.Items[0].BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	refused, problems := badListOptions()
	return Operation{
		OperationInfo: op(payvault.OpCustomersList), GoName: "Customers.List",
		Stated: "GET /platform/vault/customer yes query",
		Full:   fullListOptions(), Refused: refused, Problems: problems, Want: listedCustomers(), Tolerant: tolerant,
		do: of(func(ctx ctx, c *client, _ IDs, r *payvault.ListOptions, o ...opt) (*payvault.Page[payvault.Customer], error) {
			return c.Customers.List(ctx, r, o...)
		}),
		ways: []Call{{Name: "by Customers.All", Operation: Operation{GoName: "Customers.All", do: of(
			func(ctx ctx, c *client, _ IDs, r *payvault.ListOptions, o ...opt) (*payvault.Customer, error) {
				return first(c.Customers.All(ctx, r, o...))
			})}}},
	}
}

func createPayee() Operation {
	tolerant := storedPayee()
	tolerant.Account.TypeID = "UNKNOWN_ACCOUNT_TYPE"
	tolerant.Account.VerifiedDate = instant("2026-01-15T21:30:42+07:00")
	return Operation{
		OperationInfo: op(payvault.OpPayeesCreate), GoName: "Payees.Create",
		Stated: "POST /platform/vault/payee no body",
		Full:   fullPayee(), Minimal: &payvault.PayeeCreateRequest{Name: "Minimal Payee"},
		Refused: &payvault.PayeeCreateRequest{Account: storedPayee().Account, MerchantID: ThirdParty},
		Problems: map[string][]string{
			"payee_name": {Required}, "payee_account.verified_date": {assigned}, "merchant_id": {ThirdNamed},
		},
		Want: storedPayee(), Tolerant: tolerant,
		do: of(func(ctx ctx, c *client, _ IDs, r *payvault.PayeeCreateRequest, o ...opt) (*payvault.Payee, error) {
			return c.Payees.Create(ctx, r, o...)
		}),
	}
}

func deletePayee() Operation {
	return Operation{
		OperationInfo: op(payvault.OpPayeesDelete), GoName: "Payees.Delete",
		Stated: "DELETE /platform/vault/payee/{payee_id} no query", Once: true,
		Problems: map[string][]string{"payee_id": {Required}}, Want: done{}, Tolerant: done{},
		do: of(func(ctx ctx, c *client, ids IDs, _ none, o ...opt) (done, error) {
			return done{}, c.Payees.Delete(ctx, ids.Payee, o...)
		}),
	}
}

func createApplication() Operation {
	tolerant := createdApplication()
	tolerant.App.Status, tolerant.App.SubmitTimestamp = "UNKNOWN_STATUS", payvault.Timestamp{}
	tolerant.App.DBTimestamp = instant("2026-01-15T21:30:42+07:00")
	tolerant.App.CreditTimestamp = instant("2026-01-17T23:32:44+07:00")
	return Operation{
		OperationInfo: op(payvault.OpApplicationsCreate), GoName: "Applications.Create",
		Stated: "POST /platform/application/add no -",
		Full:   fullApplication(), Minimal: &payvault.ApplicationCreateRequest{ChannelID: 4001, SalesRep: 4002},
		Refused:  &payvault.ApplicationCreateRequest{TerminationNode: 4003},
		Problems: map[string][]string{"channel_id": {Required}, "sales_rep": {Required}},
		Want:     createdApplication(), Tolerant: tolerant,
		do: of(func(ctx ctx, c *client, _ IDs, r *payvault.ApplicationCreateRequest,
			o ...opt,
		) (*payvault.ApplicationCreated, error) {
			return c.Applications.Create(ctx, r, o...)
		}),
	}
}

func saveData() Operation {
	noDay := day(2015, 2, 29)
	return Operation{
		OperationInfo: op(payvault.OpApplicationsSaveData), GoName: "Applications.SaveData",
		Stated: "POST /platform/application/{appId}/data yes -",
		Full:   fullData(), Minimal: payvault.ApplicationData{LegalName: "Minimal Legal Name"},
		Refused: payvault.ApplicationData{
			BankRouting: secret("123456780"), BusinessEstablished: noDay,
			Ownership: payvault.Ownership{Owners: []payvault.Owner{{}, {DOB: noDay}}},
			Extra:     []payvault.ApplicationField{{Key: "ownership", Value: "x"}, {Value: "x"}},
		},
		Problems: map[string][]string{
			"appId": {Required}, "bank_routing": {"and bank_account_number are required together"},
			"business_established": {BadDate}, "ownership.owners[1].dob": {BadDate},
			"ownership": {"is set twice"}, "data": {"has a field without a key"},
		},
		Want: savedFields(), Tolerant: tolerantFields(),
		do: of(func(ctx ctx, c *client, ids IDs, r payvault.ApplicationData, o ...opt) ([]payvault.SavedField, error) {
			return c.Applications.SaveData(ctx, ids.Application, r, o...)
		}),
	}
}

func validate() Operation {
	return Operation{
		OperationInfo: op(payvault.OpApplicationsValidate), Stated: "GET /platform/application/{appId}/validate yes -",
		GoName:   "Applications.Validate",
		Problems: map[string][]string{"appId": {Required}}, Want: &payvault.Validation{}, Tolerant: &payvault.Validation{},
		do: of(func(ctx ctx, c *client, ids IDs, _ none, o ...opt) (*payvault.Validation, error) {
			return c.Applications.Validate(ctx, ids.Application, o...)
		}),
	}
}

func respond() Operation {
	return Operation{
		OperationInfo: op(payvault.OpDisputesRespond), GoName: "Disputes.Respond",
		Stated: "POST /platform/dispute/{rec_id}/respond no -", Once: true,
		Full: fullResponse(), Minimal: minimalResponse(),
		Refused: &payvault.DisputeResponse{
			Message: string(slices.Repeat([]byte("x"), payvault.MaxDisputeMessage+1)), BatchDate: day(2026, 13, 1),
			Evidence: payvault.FileFromBytes("a.pdf", []byte("PK")),
		},
		Problems: map[string][]string{
			"rec_id": {Required}, "message": {"has more than 5,000 characters"}, "batch_date": {BadDate},
			"file": {"is not a PDF"},
		},
		Want: done{}, Tolerant: done{},
		do: of(func(ctx ctx, c *client, ids IDs, r *payvault.DisputeResponse, o ...opt) (done, error) {
			return done{}, c.Disputes.Respond(ctx, ids.Dispute, r, o...)
		}),
	}
}

func transactions() Operation {
	refused, problems := badListOptions()
	problems["subscription_id"] = []string{Required}
	return Operation{
		OperationInfo: op(payvault.OpSubscriptionsTransactions), GoName: "Subscriptions.Transactions",
		Stated: "GET /platform/subscription/transactions/{subscription_id} yes query",
		Full:   fullListOptions(), Refused: refused, Problems: problems,
		Want: listedTransactions(), Tolerant: tolerantTransactions(),
		do: of(func(ctx ctx, c *client, ids IDs, r *payvault.ListOptions, o ...opt) (*payvault.Page[payvault.Transaction],
			error,
		) {
			return c.Subscriptions.Transactions(ctx, ids.Subscription, r, o...)
		}),
		ways: []Call{{
			Name: "by Subscriptions.AllTransactions",
			Operation: Operation{GoName: "Subscriptions.AllTransactions", do: of(
				func(ctx ctx, c *client, ids IDs, r *payvault.ListOptions, o ...opt) (*payvault.Transaction, error) {
					return first(c.Subscriptions.AllTransactions(ctx, ids.Subscription, r, o...))
				})},
		}},
	}
}

func cancel() Operation {
	confirmed := &payvault.Confirmation{Message: "Example text: the subscription was canceled"}
	return Operation{
		OperationInfo: op(payvault.OpSubscriptionsCancel), GoName: "Subscriptions.Cancel",
		Stated: "POST /platform/subscription/{subscription_id}/cancel no body", Once: true,
		Full: fullCancel(), Minimal: &payvault.SubscriptionCancelRequest{CustomerID: "CUST6101"},
		Refused: &payvault.SubscriptionCancelRequest{MerchantID: ThirdParty},
		Problems: map[string][]string{
			"subscription_id": {Required}, "customer_id": {Required}, "merchant_id": {ThirdNamed},
		},
		Want: confirmed, Tolerant: confirmed,
		do: of(func(ctx ctx, c *client, ids IDs, r *payvault.SubscriptionCancelRequest, o ...opt) (*payvault.Confirmation,
			error,
		) {
			return c.Subscriptions.Cancel(ctx, ids.Subscription, r, o...)
		}),
	}
}

func sendInvoice() Operation {
	return Operation{
		OperationInfo: op(payvault.OpInvoicesSend), GoName: "Invoices.Send",
		Stated: "POST /platform/invoice/{invoice_id}/send no -", Once: true,
		Full: fullSend(), Minimal: &payvault.InvoiceSendRequest{},
		Refused: &payvault.InvoiceSendRequest{PhoneNumber: []int64{0, 12125550171, -1}},
		Problems: map[string][]string{
			"invoice_id": {BadSegment}, "phone_number[0]": {"is not positive"}, "phone_number[2]": {"is not positive"},
		},
		Want: done{}, Tolerant: done{},
		do: of(func(ctx ctx, c *client, ids IDs, r *payvault.InvoiceSendRequest, o ...opt) (done, error) {
			return done{}, c.Invoices.Send(ctx, ids.Invoice, r, o...)
		}),
	}
}

func submitCards() Operation {
	created := &payvault.AccountUpdaterRequest{RequestID: "AUSREQUEST8003"}
	return Operation{
		OperationInfo: op(payvault.OpAccountUpdaterSubmit), GoName: "AccountUpdater.Submit",
		Stated: "POST /platform/aus/add no -",
		Full:   fullCards(), Minimal: minimalCards(),
		Refused: []payvault.AccountUpdaterCard{
			{}, fullCards()[0], {CardNumber: secret("1"), ExpDate: "1329"}, {ExpDate: "0130"},
		},
		Problems: map[string][]string{
			"data[0].card_number": {Required}, "data[0].exp_date": {Required},
			"data[2].exp_date": {BadExpDate}, "data[3].card_number": {Required},
		},
		Want: created, Tolerant: created,
		do: of(func(ctx ctx, c *client, _ IDs, r []payvault.AccountUpdaterCard, o ...opt) (*payvault.AccountUpdaterRequest,
			error,
		) {
			return c.AccountUpdater.Submit(ctx, r, o...)
		}),
		ways: []Call{{
			Name: "by AccountUpdater.SubmitAll",
			Operation: Operation{GoName: "AccountUpdater.SubmitAll", do: of(
				func(ctx ctx, c *client, _ IDs, r []payvault.AccountUpdaterCard, o ...opt) (*payvault.AccountUpdaterRequest,
					error,
				) {
					return submitAll(c.AccountUpdater.SubmitAll(ctx, slices.Values(r), nil, o...))
				})},
		}},
	}
}

// submitAll is what becomes of the only batch.
func submitAll(batches iter.Seq[*payvault.AccountUpdaterBatch]) (*payvault.AccountUpdaterRequest, error) {
	for batch := range batches {
		if batch.Err == nil {
			return &payvault.AccountUpdaterRequest{RequestID: batch.RequestID}, nil
		}
		return nil, batch.Err
	}
	return nil, nil //nolint:nilnil // no card, no batch
}

func addEvent() Operation {
	added := &payvault.Confirmation{Message: "Example text: transaction_status_updated was added"}
	return Operation{
		OperationInfo: op(payvault.OpWebhooksAddEvent), Stated: "POST /platform/webhook/{webhook_id}/event/{event} no -",
		GoName:   "Webhooks.AddEvent",
		Problems: map[string][]string{"webhook_id": {BadSegment}, "event": {BadSegment}}, Want: added, Tolerant: added,
		do: of(func(ctx ctx, c *client, ids IDs, _ none, o ...opt) (*payvault.Confirmation, error) {
			return c.Webhooks.AddEvent(ctx, ids.Webhook, ids.Event, o...)
		}),
	}
}

// badListOptions have every problem that list options can have.
func badListOptions() (*payvault.ListOptions, map[string][]string) {
	const (
		incomplete = "needs a field, a conditional and a value"
		comma      = "contains a comma, which separates the parts of a filter"
		notRange   = "BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last"
	)
	january, march := day(2026, 1, 1), day(2026, 3, 1)
	options := &payvault.ListOptions{
		OrderBy: "ASC", Count: -1, Page: -1, Prefetch: -1, MerchantID: ThirdParty,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", january, march),
			payvault.Where("", "EQUALS", "P"),
			payvault.Where("tran_status", "EQUALS", "P,Q"),
			payvault.BetweenDates("tran_date", march, january),
		},
	}
	return options, map[string][]string{
		"order_by": {"is neither asc nor desc"}, "count": {"is negative"}, "page": {"is negative"},
		"Prefetch":    {"is negative"},
		"merchant_id": {ThirdNamed}, "filter[1]": {incomplete}, "filter[2]": {comma}, "filter[3]": {notRange},
	}
}

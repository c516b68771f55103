package calls

import (
	"strings"
	"time"

	"example.com/payvault"
)

// These are messages of checks that the SDK makes before it sends a request.
const (
	Required   = "is required"
	ThirdNamed = "names another merchant than ForMerchant"
	BadSegment = `must not be empty, "." or ".."`
	BadExpDate = "is not of the form MMYY"
	BadDate    = "not a date of the form YYYY-MM-DD"
	NoID       = "is required, or auto_generate_customer_id"
	NoName     = "is required with customer_last_name, or customer_firm_name"
	assigned   = "is assigned by the service and cannot be sent"
)

// ActingFor is the merchant that tests pass to ForMerchant. ThirdParty is another merchant.
const (
	ActingFor  payvault.MerchantID = 212346
	ThirdParty payvault.MerchantID = 999999
)

type fields = map[string][]string

// Table returns all operations in the order of payvault.Operations. Each call of Table makes new values, so a test may
// change them.
func Table() []Operation {
	badCustomers, ofCustomers := badListOptions()
	badTransactions, ofTransactions := badListOptions()
	ofTransactions["subscription_id"] = []string{Required}
	return []Operation{
		{
			OperationInfo: info(payvault.OpTokensTokenize), GoName: "Tokens.Tokenize",
			Stated:      "POST /pg/tokenize card_id body-string",
			Full:        new(request[payvault.TokenizeRequest]("tokens/tokenize")),
			Minimal:     &payvault.TokenizeRequest{MerchantID: 212345},
			MinimalJSON: `{"merchant_id":"212345"}`,
			Refused:     &payvault.TokenizeRequest{MerchantID: ThirdParty, ExpDate: "2029-12"},
			Problems:    fields{"merchant_id": {ThirdNamed}, "exp_date": {BadExpDate}},
			Want:        answered[payvault.TokenizeResponse]("tokens/tokenize"),
			ways: []Call{
				{Name: "without a CardID", Operation: Operation{change: tokenizeWith(func(IDs) string { return "" })}},
				{
					Name: "with a CardID", Repeats: true,
					Operation: Operation{change: tokenizeWith(func(ids IDs) string { return ids.Card })},
				},
			},
		}, {
			OperationInfo: info(payvault.OpCustomersCreate), GoName: "Customers.Create",
			Stated:      "POST /platform/vault/customer no body",
			Full:        new(request[payvault.CustomerCreateRequest]("customers/create")),
			Minimal:     &payvault.CustomerCreateRequest{ID: "CUST2999", FirmName: "Minimal Firm"},
			MinimalJSON: `{"customer_id":"CUST2999","customer_firm_name":"Minimal Firm"}`,
			Refused: &payvault.CustomerCreateRequest{
				MerchantID:        ThirdParty,
				ShippingAddresses: []payvault.ShippingAddress{{MerchantID: ActingFor}, {ID: 2012, MerchantID: ThirdParty}},
				BillingCards: []payvault.BillingCardRequest{
					{ExpDate: "0130"}, {ExpDate: "1330", MerchantID: ThirdParty}, {ExpDate: "130", MerchantID: -4},
				},
			},
			Problems: fields{
				"customer_id": {NoID}, "customer_first_name": {NoName}, "merchant_id": {ThirdNamed},
				"shipping_addresses[1].shipping_id": {assigned}, "shipping_addresses[1].merchant_id": {ThirdNamed},
				"billing_cards[1].exp_date": {BadExpDate}, "billing_cards[1].merchant_id": {ThirdNamed},
				"billing_cards[2].exp_date": {BadExpDate}, "billing_cards[2].merchant_id": {"is negative"},
			},
			Want: answered[payvault.Customer]("customers/create", "data"), NeededID: "customer_id",
		}, {
			OperationInfo: info(payvault.OpCustomersList), GoName: "Customers.List",
			Stated: "GET /platform/vault/customer yes query",
			Full:   fullListOptions(), Refused: badCustomers, Problems: ofCustomers,
			Want: answered[payvault.Page[payvault.Customer]]("customers/list"), NeededID: "customer_id",
			ways: []Call{
				{Name: "by Customers.All", Operation: Operation{GoName: "Customers.All"}},
				{Name: "by Customers.Pages", Operation: Operation{GoName: "Customers.Pages"}},
			},
		}, {
			OperationInfo: info(payvault.OpPayeesCreate), GoName: "Payees.Create",
			Stated:      "POST /platform/vault/payee no body",
			Full:        new(request[payvault.PayeeCreateRequest]("payees/create")),
			Minimal:     &payvault.PayeeCreateRequest{Name: "Minimal Payee"},
			MinimalJSON: `{"payee_name":"Minimal Payee"}`,
			Refused: &payvault.PayeeCreateRequest{
				Account: payvault.PayeeAccount{VerifiedDate: payvault.Timestamp{Time: time.Unix(1, 0)}}, MerchantID: ThirdParty,
			},
			Problems: fields{
				"payee_name": {Required}, "payee_account.verified_date": {assigned}, "merchant_id": {ThirdNamed},
			},
			Want: answered[payvault.Payee]("payees/create", "data"), NeededID: "payee_id",
		}, {
			OperationInfo: info(payvault.OpPayeesDelete), GoName: "Payees.Delete",
			Stated: "DELETE /platform/vault/payee/{payee_id} no query", Once: true,
			Problems: fields{"payee_id": {Required}}, Want: none,
		}, {
			OperationInfo: info(payvault.OpApplicationsCreate), GoName: "Applications.Create",
			Stated:      "POST /platform/application/add no -",
			Full:        new(request[payvault.ApplicationCreateRequest]("applications/create")),
			Minimal:     &payvault.ApplicationCreateRequest{ChannelID: 4001, SalesRep: 4002},
			MinimalJSON: `{"channel_id":4001,"sales_rep":4002}`,
			Refused:     &payvault.ApplicationCreateRequest{TerminationNode: 4003},
			Problems:    fields{"channel_id": {Required}, "sales_rep": {Required}},
			Want:        answered[payvault.ApplicationCreated]("applications/create", "data"), NeededID: "app_id",
		}, {
			OperationInfo: info(payvault.OpApplicationsSaveData), GoName: "Applications.SaveData",
			Stated:      "POST /platform/application/{appId}/data yes -",
			Full:        read[payvault.ApplicationData]("applications/save_data.request.json", "data"),
			Minimal:     payvault.ApplicationData{LegalName: "Minimal Legal Name"},
			MinimalJSON: `{"data":[{"key":"legal_name","value":"Minimal Legal Name"}]}`,
			Refused: payvault.ApplicationData{
				BankRouting: secret("123456780"), BusinessEstablished: day(2015, 2, 29),
				Ownership: payvault.Ownership{Owners: []payvault.Owner{{}, {DOB: day(2015, 2, 29)}}},
				Extra:     []payvault.ApplicationField{{Key: "ownership", Value: "x"}, {Value: "x"}},
			},
			Problems: fields{
				"appId": {Required}, "bank_routing": {"and bank_account_number are required together"},
				"business_established": {BadDate}, "ownership.owners[1].dob": {BadDate},
				"ownership": {"has a field of its own and cannot be in Extra"}, "data": {"has a field without a key"},
			},
			Want: func() any {
				return read[[]payvault.SavedField]("applications/save_data.response.json", "data", "fields")
			},
		}, {
			OperationInfo: info(payvault.OpApplicationsValidate), GoName: "Applications.Validate",
			Stated:   "GET /platform/application/{appId}/validate yes -",
			Problems: fields{"appId": {Required}}, Want: func() any { return &payvault.Validation{} },
		}, {
			OperationInfo: info(payvault.OpDisputesRespond), GoName: "Disputes.Respond",
			Stated: "POST /platform/dispute/{rec_id}/respond no -", Once: true,
			Full:        withEvidence(request[payvault.DisputeRespondRequest]("disputes/respond")),
			Minimal:     withEvidence(payvault.DisputeRespondRequest{Message: "Example answer to a retrieval dispute"}),
			MinimalJSON: `{"message":"Example answer to a retrieval dispute"}`,
			Refused: &payvault.DisputeRespondRequest{
				Message: strings.Repeat("x", payvault.MaxDisputeMessage+1), BatchDate: day(2026, 13, 1),
				Evidence: payvault.FileFromBytes("a.pdf", []byte("PK")),
			},
			Problems: fields{
				"rec_id": {Required}, "message": {"has more than 5,000 characters"}, "batch_date": {BadDate},
				"file": {"is not a PDF"},
			},
			Want: none,
		}, {
			OperationInfo: info(payvault.OpSubscriptionsTransactions), GoName: "Subscriptions.Transactions",
			Stated: "GET /platform/subscription/transactions/{subscription_id} yes query",
			Full:   fullListOptions(), Refused: badTransactions, Problems: ofTransactions,
			Want: answered[payvault.Page[payvault.Transaction]]("subscriptions/transactions"),
			ways: []Call{
				{Name: "by Subscriptions.AllTransactions", Operation: Operation{GoName: "Subscriptions.AllTransactions"}},
				{Name: "by Subscriptions.TransactionPages", Operation: Operation{GoName: "Subscriptions.TransactionPages"}},
			},
		}, {
			OperationInfo: info(payvault.OpSubscriptionsCancel), GoName: "Subscriptions.Cancel",
			Stated: "POST /platform/subscription/{subscription_id}/cancel no body", Once: true,
			Full:        new(request[payvault.SubscriptionCancelRequest]("subscriptions/cancel")),
			Minimal:     &payvault.SubscriptionCancelRequest{CustomerID: "CUST6101"},
			MinimalJSON: `{"customer_id":"CUST6101"}`,
			Refused:     &payvault.SubscriptionCancelRequest{MerchantID: ThirdParty},
			Problems:    fields{"subscription_id": {Required}, "customer_id": {Required}, "merchant_id": {ThirdNamed}},
			Want:        answered[payvault.Confirmation]("subscriptions/cancel", "data"),
		}, {
			OperationInfo: info(payvault.OpInvoicesSend), GoName: "Invoices.Send",
			Stated: "POST /platform/invoice/{invoice_id}/send no -", Once: true,
			Full:        new(request[payvault.InvoiceSendRequest]("invoices/send")),
			Minimal:     &payvault.InvoiceSendRequest{},
			MinimalJSON: `{}`,
			Refused:     &payvault.InvoiceSendRequest{PhoneNumber: []int64{0, 12125550171, -1}},
			Problems: fields{
				"invoice_id": {BadSegment}, "phone_number[0]": {"is not positive"}, "phone_number[2]": {"is not positive"},
			},
			Want: none,
		}, {
			OperationInfo: info(payvault.OpAccountUpdaterSubmit), GoName: "AccountUpdater.Submit",
			Stated:      "POST /platform/aus/add no -",
			Full:        read[[]payvault.AccountUpdaterCard]("account_updater/submit.request.json", "data"),
			Minimal:     []payvault.AccountUpdaterCard{{CardNumber: secret("4111111111111111"), ExpDate: "1229"}},
			MinimalJSON: `{"data":[{"card_number":"4111111111111111","exp_date":"1229"}]}`,
			Refused: []payvault.AccountUpdaterCard{
				{},
				{CardNumber: secret("1"), ExpDate: "1229"},
				{CardNumber: secret("411111111111"), ExpDate: "1329"},
				{ExpDate: "0130"},
			},
			Problems: fields{
				"data[0].card_number": {Required}, "data[0].exp_date": {Required},
				"data[1].card_number": {"is not 12 to 19 digits"}, "data[2].exp_date": {BadExpDate},
				"data[3].card_number": {Required},
			},
			Want: answered[payvault.AccountUpdaterSubmission]("account_updater/submit", "data"), NeededID: "request_id",
			ways: []Call{{
				Name: "by AccountUpdater.SubmitAll",
				Operation: Operation{
					GoName: "AccountUpdater.SubmitAll", Problems: fields{"data": {"has no card that can be sent"}},
					change: func(_ IDs, request any) any {
						cards, _ := request.([]payvault.AccountUpdaterCard)
						return payvault.Cards(cards...)
					},
				},
			}},
		}, {
			OperationInfo: info(payvault.OpWebhooksAddEvent), GoName: "Webhooks.AddEvent",
			Stated:   "POST /platform/webhook/{webhook_id}/event/{event} no -",
			Problems: fields{"webhook_id": {BadSegment}, "event": {BadSegment}},
			Want:     answered[payvault.Confirmation]("webhooks/add_event", "data"),
		},
	}
}

// tokenizeWith returns a function that copies a request and sets the CardID of the copy.
func tokenizeWith(card func(IDs) string) func(IDs, any) any {
	return func(ids IDs, request any) any {
		r, ok := request.(*payvault.TokenizeRequest)
		if ok {
			r = new(*r)
			r.CardID = card(ids)
		}
		return r
	}
}

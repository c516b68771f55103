package contract

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// Names that the emulator does not know.
const (
	unknownID       = 999_999
	unknownText     = "unknown"
	unknownMerchant = payvault.MerchantID(999_999)
	ownMerchant     = payvault.MerchantID(100_001)
)

func tokenize(req *payvault.TokenizeRequest) call {
	return func(ctx context.Context, e *env) (any, error) { return e.client.Tokens.Tokenize(ctx, req) }
}

func newCard() *payvault.TokenizeRequest {
	return &payvault.TokenizeRequest{
		CardNumber: payvault.NewSecret("4111111111111111"),
		ExpDate:    payvault.FormatExpDate(12, 2030),
	}
}

// savedCard tokenizes a card and returns its ID.
func savedCard(ctx context.Context, e *env) (string, error) {
	card, err := e.merchant.Tokens.Tokenize(ctx, newCard())
	if err != nil {
		return "", err
	}
	return card.CardID, nil
}

func tokenizeFull(t *testing.T) call {
	t.Helper()
	return func(ctx context.Context, e *env) (any, error) {
		id, err := savedCard(ctx, e)
		if err != nil {
			return nil, err
		}
		req := filled[payvault.TokenizeRequest](t, requestFiller(map[string]any{"card_id": id}))
		return e.client.Tokens.Tokenize(ctx, req)
	}
}

func createCustomer(req *payvault.CustomerCreateRequest) call {
	return func(ctx context.Context, e *env) (any, error) { return e.client.Customers.Create(ctx, req) }
}

func newCustomer() *payvault.CustomerCreateRequest {
	return &payvault.CustomerCreateRequest{AutoGenerateCustomerID: true, FirmName: "Acme LLC"}
}

func createCustomerFull(t *testing.T) call {
	t.Helper()
	return func(ctx context.Context, e *env) (any, error) {
		id, err := savedCard(ctx, e)
		if err != nil {
			return nil, err
		}
		req := filled[payvault.CustomerCreateRequest](t, requestFiller(map[string]any{"card_id": id}))
		return e.client.Customers.Create(ctx, req)
	}
}

// createCustomerTwice takes a customer ID that is taken.
func createCustomerTwice(ctx context.Context, e *env) (any, error) {
	req := &payvault.CustomerCreateRequest{ID: "jane01", FirmName: "Acme LLC"}
	if _, err := e.client.Customers.Create(ctx, req); err != nil {
		return nil, err
	}
	return e.client.Customers.Create(ctx, req)
}

func listCustomers(opt *payvault.ListOptions) call {
	return func(ctx context.Context, e *env) (any, error) { return e.client.Customers.List(ctx, opt) }
}

// listCustomersFull saves two customers and asks for the second page.
func listCustomersFull(t *testing.T) call {
	t.Helper()
	return func(ctx context.Context, e *env) (any, error) {
		for _, id := range []string{"jane01", "jane02"} {
			req := filled[payvault.CustomerCreateRequest](t, filler{
				values: map[string]any{"customer_id": id},
				skip:   map[string]bool{"shipping_id": true, "card_id": true},
			})
			if _, err := e.client.Customers.Create(ctx, req); err != nil {
				return nil, err
			}
		}
		return e.client.Customers.List(ctx,
			allOptions(t, "customer_id", payvault.Where("customer_email", "EQUALS", "jane@example.com")))
	}
}

// allOptions sets every option of a list; the page has one record, the second one.
func allOptions(t *testing.T, orderOn string, filters ...payvault.Filter) *payvault.ListOptions {
	t.Helper()
	opt := &payvault.ListOptions{
		OrderOn: orderOn, OrderBy: payvault.Descending, Filters: filters,
		Count: 1, Page: 1, MerchantID: ownMerchant, Prefetch: 1,
	}
	for i := range reflect.TypeFor[payvault.ListOptions]().NumField() {
		require.False(t, reflect.ValueOf(*opt).Field(i).IsZero(), "set the new option %s here",
			reflect.TypeFor[payvault.ListOptions]().Field(i).Name)
	}
	return opt
}

func createPayee(req *payvault.PayeeCreateRequest) call {
	return func(ctx context.Context, e *env) (any, error) { return e.client.Payees.Create(ctx, req) }
}

func newPayee() *payvault.PayeeCreateRequest {
	return &payvault.PayeeCreateRequest{Name: "Acme Supplies"}
}

func createPayeeFull(t *testing.T) call {
	t.Helper()
	return createPayee(filled[payvault.PayeeCreateRequest](t, requestFiller(nil)))
}

// deletePayee deletes a payee that exists, for the merchant if one is given.
func deletePayee(merchant payvault.MerchantID) call {
	return func(ctx context.Context, e *env) (any, error) {
		payee, err := e.merchant.Payees.Create(ctx, newPayee())
		if err != nil {
			return nil, err
		}
		client := e.client
		if merchant != 0 {
			client = client.ForMerchant(merchant)
		}
		return nil, client.Payees.Delete(ctx, payee.ID)
	}
}

func deleteUnknownPayee(ctx context.Context, e *env) (any, error) {
	return nil, e.client.Payees.Delete(ctx, unknownID)
}

func createApplication(req *payvault.ApplicationCreateRequest) call {
	return func(ctx context.Context, e *env) (any, error) { return e.client.Applications.Create(ctx, req) }
}

func newApplication() *payvault.ApplicationCreateRequest {
	return &payvault.ApplicationCreateRequest{ChannelID: 11, SalesRep: 22}
}

func createApplicationFull(t *testing.T) call {
	t.Helper()
	return createApplication(filled[payvault.ApplicationCreateRequest](t, requestFiller(nil)))
}

// saveData creates an application and saves data in it.
func saveData(data payvault.ApplicationData) call {
	return func(ctx context.Context, e *env) (any, error) {
		created, err := e.partner.Applications.Create(ctx, newApplication())
		if err != nil {
			return nil, err
		}
		return e.client.Applications.SaveData(ctx, created.App.ID, data)
	}
}

// allData has all keys, and two that are not documented. Its one person owns the business, and is nothing else: a flag
// that goes under the name of another is seen.
func allData(t *testing.T) payvault.ApplicationData {
	t.Helper()
	return dataOf(t, payvault.BusinessLLC, payvault.PersonType{Owner: true})
}

func dataOf(t *testing.T, business payvault.BusinessType, person payvault.PersonType) payvault.ApplicationData {
	t.Helper()
	return *filled[payvault.ApplicationData](t, requestFiller(map[string]any{
		"business_type": business, "personType": &person,
		"business_services_auth_time": []payvault.AuthTime{
			payvault.AuthTime1, payvault.AuthTime30, payvault.AuthTime30Plus, payvault.AuthTime90Plus,
		},
		"Extra": []payvault.ApplicationField{
			{Key: "some_text", Value: "text"}, {Key: "some_object", Value: map[string]any{"a": "b"}},
		},
	}))
}

// validateAfter creates an application, saves data in it, if there is any, and validates it.
func validateAfter(data *payvault.ApplicationData) call {
	return func(ctx context.Context, e *env) (any, error) {
		created, err := e.partner.Applications.Create(ctx, newApplication())
		if err != nil {
			return nil, err
		}
		if data != nil {
			if _, err := e.partner.Applications.SaveData(ctx, created.App.ID, *data); err != nil {
				return nil, err
			}
		}
		return e.client.Applications.Validate(ctx, created.App.ID)
	}
}

func validateUnknown(ctx context.Context, e *env) (any, error) {
	return e.client.Applications.Validate(ctx, unknownID)
}

func saveUnknown(ctx context.Context, e *env) (any, error) {
	return e.client.Applications.SaveData(ctx, unknownID, payvault.ApplicationData{LegalName: "Acme LLC"})
}

// respond answers a dispute of a kind as often as it is told.
func respond(kind payvaulttest.DisputeKind, times int, req *payvault.DisputeRespondRequest) call {
	return func(ctx context.Context, e *env) (any, error) {
		id := e.srv.Disputes.Seed(payvaulttest.Dispute{Kind: kind}).ID
		for range times - 1 {
			if err := e.client.Disputes.Respond(ctx, id, req); err != nil {
				return nil, err
			}
		}
		return nil, e.client.Disputes.Respond(ctx, id, req)
	}
}

func respondToUnknown(ctx context.Context, e *env) (any, error) {
	return nil, e.client.Disputes.Respond(ctx, unknownID, givenUp())
}

func givenUp() *payvault.DisputeRespondRequest {
	return &payvault.DisputeRespondRequest{Type: payvault.DisputeNoLongerDisputed}
}

func respondFull(t *testing.T) call {
	t.Helper()
	return respond(payvaulttest.DisputeFirstTime, 1, filled[payvault.DisputeRespondRequest](t, requestFiller(nil)))
}

// seedSubscription adds a subscription with two transactions.
func seedSubscription(e *env) payvaulttest.Subscription {
	at := time.Date(2026, 1, 31, 12, 5, 1, 0, time.FixedZone("", -8*60*60))
	transaction := payvaulttest.Transaction{
		Time: at, AuthCode: "123456", RMsg: "Approved", CardNumber: "4111111111111111", PurchaseID: "order-17",
		CardholderFirstName: "Jane", CardholderLastName: "Doe", AmtTran: payvault.MustParseAmount("25.50"),
		DisputeFlag: true, AmtRefunded: payvault.MustParseAmount("1.25"), FundedCurrency: "978",
		BatchNumber: 12, MerchRefNum: "ref-1", BatchID: 700012, BatchDate: "2026-01-31", SettleDate: "2026-02-01",
		AmtFunded: payvault.MustParseAmount("24.25"),
	}
	earlier := transaction
	earlier.Time = at.AddDate(0, 0, -1)
	return e.srv.Subscriptions.Seed(payvaulttest.Subscription{
		CustomerID: "jane01", Transactions: []payvaulttest.Transaction{earlier, transaction},
	})
}

func transactions(opt *payvault.ListOptions) call {
	return func(ctx context.Context, e *env) (any, error) {
		return e.client.Subscriptions.Transactions(ctx, seedSubscription(e).ID, opt)
	}
}

func transactionsFull(t *testing.T) call {
	t.Helper()
	from, to := payvault.Date{Year: 2026, Month: 1, Day: 1}, payvault.Date{Year: 2026, Month: 1, Day: 31}
	return transactions(allOptions(t, "tran_time", payvault.BetweenDates("tran_date", from, to),
		payvault.Where("tran_status", "EQUALS", string(payvault.TransactionStatusP))))
}

// transactionsOfNew asks for the transactions of a subscription that has none yet.
func transactionsOfNew(ctx context.Context, e *env) (any, error) {
	return e.client.Subscriptions.Transactions(ctx, e.srv.Subscriptions.Seed(payvaulttest.Subscription{}).ID, nil)
}

// transactionsOfPlain asks for transactions that were seeded without anything, and with an amount alone.
func transactionsOfPlain(ctx context.Context, e *env) (any, error) {
	transactions := []payvaulttest.Transaction{{}, {AmtTran: payvault.MustParseAmount("5")}}
	sub := e.srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: transactions})
	return e.client.Subscriptions.Transactions(ctx, sub.ID, nil)
}

func transactionsOfUnknown(ctx context.Context, e *env) (any, error) {
	return e.client.Subscriptions.Transactions(ctx, unknownID, nil)
}

// cancel cancels a subscription as often as it is told.
func cancel(times int, req *payvault.SubscriptionCancelRequest) call {
	return func(ctx context.Context, e *env) (any, error) {
		id := seedSubscription(e).ID
		for range times - 1 {
			if _, err := e.client.Subscriptions.Cancel(ctx, id, req); err != nil {
				return nil, err
			}
		}
		return e.client.Subscriptions.Cancel(ctx, id, req)
	}
}

// cancelPlain cancels a subscription that was seeded without anything.
func cancelPlain(ctx context.Context, e *env) (any, error) {
	sub := e.srv.Subscriptions.Seed(payvaulttest.Subscription{})
	return e.client.Subscriptions.Cancel(ctx, sub.ID, &payvault.SubscriptionCancelRequest{CustomerID: sub.CustomerID})
}

func newCancel() *payvault.SubscriptionCancelRequest {
	return &payvault.SubscriptionCancelRequest{CustomerID: "jane01"}
}

func cancelFull(t *testing.T) call {
	t.Helper()
	return cancel(1, filled[payvault.SubscriptionCancelRequest](t, requestFiller(nil)))
}

func cancelUnknown(ctx context.Context, e *env) (any, error) {
	return e.client.Subscriptions.Cancel(ctx, unknownID, newCancel())
}

// send sends an invoice as often as it is told.
func send(times int, req *payvault.InvoiceSendRequest) call {
	return func(ctx context.Context, e *env) (any, error) {
		id := e.srv.Invoices.Seed(payvaulttest.Invoice{}).ID
		for range times - 1 {
			if err := e.client.Invoices.Send(ctx, id, req); err != nil {
				return nil, err
			}
		}
		return nil, e.client.Invoices.Send(ctx, id, req)
	}
}

func sendFull(t *testing.T) call {
	t.Helper()
	return send(1, filled[payvault.InvoiceSendRequest](t, requestFiller(nil)))
}

func sendUnknown(ctx context.Context, e *env) (any, error) {
	return nil, e.client.Invoices.Send(ctx, unknownText, nil)
}

func submit(cards ...payvault.AccountUpdaterCard) call {
	return func(ctx context.Context, e *env) (any, error) { return e.client.AccountUpdater.Submit(ctx, cards) }
}

// submitRefused is refused by the service: the client lets no card through that the emulator would refuse.
func submitRefused(ctx context.Context, e *env) (any, error) {
	_, err := e.srv.Inject(payvaulttest.Fault{
		Operation: payvault.OpAccountUpdaterSubmit, Kind: payvaulttest.OtherCode, Status: 400, Code: 400,
	})
	if err != nil {
		return nil, err
	}
	return submit(newUpdate(payvault.NewSecret("4111111111111111")))(ctx, e)
}

func newUpdate(number payvault.Secret) payvault.AccountUpdaterCard {
	return payvault.AccountUpdaterCard{CardNumber: number, ExpDate: payvault.FormatExpDate(12, 2030)}
}

// submitFull submits as many cards as a request takes.
func submitFull(t *testing.T) call {
	t.Helper()
	cards := make([]payvault.AccountUpdaterCard, payvault.MaxAccountUpdaterCards)
	for i := range cards {
		cards[i] = *filled[payvault.AccountUpdaterCard](t, requestFiller(nil))
	}
	return submit(cards...)
}

func addEvent(event payvault.Event) call {
	return func(ctx context.Context, e *env) (any, error) {
		return e.client.Webhooks.AddEvent(ctx, e.srv.Webhooks.Seed(payvaulttest.Webhook{}).ID, event)
	}
}

func addEventToUnknown(ctx context.Context, e *env) (any, error) {
	return e.client.Webhooks.AddEvent(ctx, unknownText, payvault.EventTransactionStatusUpdated)
}

package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/payvaulttest"
)

// An operationCalls is an operation with as little and as much as it takes, and with what the service turns down.
type operationCalls struct {
	op                      payvault.Operation
	minimal, full, rejected call
	rejection               int // status of the rejection
}

func allCalls(t *testing.T) []operationCalls {
	t.Helper()
	badOrder := &payvault.ListOptions{OrderOn: unknownText}
	data := allData(t)
	return []operationCalls{
		{
			payvault.OpTokensTokenize, tokenize(newCard()), tokenizeFull(t),
			tokenize(&payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111")}), 400,
		},
		{
			payvault.OpCustomersCreate, createCustomer(newCustomer()), createCustomerFull(t),
			createCustomer(&payvault.CustomerCreateRequest{
				ID: "jane01", FirmName: "Acme",
				BillingCards: []payvault.BillingCardRequest{{CardNumber: payvault.NewSecret("4111")}},
			}), 400,
		},
		{payvault.OpCustomersList, listCustomers(nil), listCustomersFull(t), listCustomers(badOrder), 400},
		{payvault.OpPayeesCreate, createPayee(newPayee()), createPayeeFull(t), asSecond(createPayee(newPayee())), 403},
		{payvault.OpPayeesDelete, deletePayee(0), deletePayee(ownMerchant), deleteUnknownPayee, 404},
		{
			payvault.OpApplicationsCreate, createApplication(newApplication()), createApplicationFull(t),
			asMerchant(createApplication(newApplication())), 403,
		},
		{
			payvault.OpApplicationsSaveData, saveData(payvault.ApplicationData{LegalName: "Acme LLC"}), saveData(data),
			saveData(payvault.ApplicationData{BusinessType: "none"}), 400,
		},
		{payvault.OpApplicationsValidate, validateAfter(nil), validateAfter(&data), validateUnknown, 404},
		{
			payvault.OpDisputesRespond, respond(payvaulttest.DisputeFirstTime, 1, givenUp()), respondFull(t),
			respond(payvaulttest.DisputeRetrieval, 1, givenUp()), 400,
		},
		{payvault.OpSubscriptionsTransactions, transactions(nil), transactionsFull(t), transactions(badOrder), 400},
		{
			payvault.OpSubscriptionsCancel, cancel(1, newCancel()), cancelFull(t),
			cancel(1, &payvault.SubscriptionCancelRequest{CustomerID: "another"}), 400,
		},
		{payvault.OpInvoicesSend, send(1, nil), sendFull(t), send(2, nil), 409},
		{
			payvault.OpAccountUpdaterSubmit, submit(newUpdate(payvault.NewSecret("4111111111111111"))), submitFull(t),
			submitRefused, 400,
		},
		{
			payvault.OpWebhooksAddEvent, addEvent(payvault.EventTransactionStatusUpdated), addEvent("some_other_event"),
			addEvent("transactions_status_updated"), 400,
		},
	}
}

// A scenario is one call with the answer that it is to get; the calls before it count as traffic, too.
type scenario struct {
	name   string
	op     payvault.Operation
	call   call
	status int
	code   string
}

// everyScenario gives each operation its successes and the failures that every operation can have, then adds those
// that belong to one operation.
func everyScenario(t *testing.T) []scenario {
	t.Helper()
	var all []scenario
	for _, o := range allCalls(t) {
		success := "0"
		if o.op == payvault.OpTokensTokenize {
			success = "000"
		}
		minimalCode := success
		if o.op == payvault.OpApplicationsValidate {
			minimalCode = "2" // an application without data is incomplete
		}
		otherCode := payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Message: "Declined"}
		unavailable := payvaulttest.Fault{Kind: payvaulttest.OtherCode, Status: 503, Code: 99, Message: "Try later"}
		all = append(all, []scenario{
			{"minimal", o.op, o.minimal, 200, minimalCode},
			{"full", o.op, o.full, 200, success},
			{"rejected", o.op, o.rejected, o.rejection, platformCode(o.rejection)},
			{"unknown key", o.op, asStranger(o.minimal), 401, "401"},
			{"rate limit", o.op, failing(o, payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "1"}), 429, "429"},
			{"other code", o.op, failing(o, otherCode), 200, strings.Repeat("0", len(success)-1) + "7"},
			{"unavailable", o.op, failing(o, unavailable), 503, strings.Repeat("0", max(0, len(success)-2)) + "99"},
		}...)
	}
	for _, o := range calls.Table() { // those that have none of their own
		if !slices.ContainsFunc(all, func(s scenario) bool { return s.op == o.Op }) {
			all = append(all, scenario{"of the table", o.Op, tabled(o, o.Minimal), 200, "0"})
			if o.Lists() {
				all = append(all, scenario{"of the table, full", o.Op, tabled(o, listOptions(t, o.Op)), 200, "0"})
			}
		}
	}
	return append(all, ownScenarios(t)...)
}

// tabled makes a call of the table for records that the emulator has.
func tabled(o calls.Operation, request any) call {
	return func(ctx context.Context, e *env) (any, error) {
		return o.Do(ctx, e.client, calls.Seeded(e.srv), request)
	}
}

// listOptions sets every option of a list whose records have a column.
func listOptions(t *testing.T, op payvault.Operation) *payvault.ListOptions {
	t.Helper()
	page := loadContract(t).operations()[string(op)].Responses.Value("200").Value.Content[jsonType].Schema.Value
	for name, column := range page.Properties["data"].Value.Items.Value.Properties {
		if column.Value.Type.Is("string") {
			return allOptions(t, name, payvault.Where(name, "EQUALS", "Acme"))
		}
	}
	require.Fail(t, "no column", op)
	return nil
}

func platformCode(status int) string { return strconv.Itoa(status) }

// failing runs the minimal call of an operation into a fault.
func failing(o operationCalls, fault payvaulttest.Fault) call {
	fault.Operation = o.op
	return func(ctx context.Context, e *env) (any, error) {
		if _, err := e.srv.Inject(fault); err != nil {
			return nil, err
		}
		return o.minimal(ctx, e)
	}
}

// asStranger makes a call with a key that the service does not know.
func asStranger(c call) call {
	return func(ctx context.Context, e *env) (any, error) {
		e.client = e.clientFor(payvaulttest.Account{MerchantID: ownMerchant, APIKey: unknownText})
		return c(ctx, e)
	}
}

// asMerchant makes a call as a merchant, for what only partners may do.
func asMerchant(c call) call {
	return func(ctx context.Context, e *env) (any, error) {
		e.client = e.merchant
		return c(ctx, e)
	}
}

// asSecond makes a call as a merchant without any feature.
func asSecond(c call) call {
	return func(ctx context.Context, e *env) (any, error) {
		e.client = e.second
		return c(ctx, e)
	}
}

// actingFor makes a call as a partner, for another merchant.
func actingFor(merchant payvault.MerchantID, c call) call {
	return func(ctx context.Context, e *env) (any, error) {
		e.client = e.partner.ForMerchant(merchant)
		return c(ctx, e)
	}
}

func ownScenarios(t *testing.T) []scenario {
	t.Helper()
	ach := &payvault.TokenizeRequest{
		TRNumber:  payvault.NewSecret("011000015"),
		DDANumber: payvault.NewSecret("0001234567"), TypeID: payvault.ACHAccountTypeS, CardholderName: "Jane Doe",
	}
	swipe := &payvault.TokenizeRequest{CardSwipe: payvault.NewSecret("%B4111111111111111^DOE/JANE^30121010000000000000?")}
	unknownCard := newCard()
	unknownCard.CardID = unknownText
	withUnknownCard := newCustomer()
	withUnknownCard.BillingCards = []payvault.BillingCardRequest{{CardID: unknownText}}
	withAccount := newCustomer()
	withAccount.BillingCards = []payvault.BillingCardRequest{{
		TRNumber:  payvault.NewSecret("011000015"),
		DDANumber: payvault.NewSecret("0001234567"), TypeID: payvault.ACHAccountTypeS,
	}}
	controlled := dataOf(t, payvault.BusinessCorporationPublic, payvault.PersonType{Control: true, User: true})
	retrieval := &payvault.DisputeRespondRequest{Message: "The signed receipt is attached.", Evidence: receipt()}
	return []scenario{
		{"ACH account", payvault.OpTokensTokenize, tokenize(ach), 200, "000"},
		{"swipe", payvault.OpTokensTokenize, tokenize(swipe), 200, "000"},
		{
			"wallet", payvault.OpTokensTokenize,
			tokenize(&payvault.TokenizeRequest{PayloadWalletOnePay: payvault.NewSecret("cGF5")}), 200, "000",
		},
		{"for another merchant", payvault.OpTokensTokenize, actingFor(ownMerchant, tokenize(newCard())), 200, "000"},
		{"forbidden merchant", payvault.OpTokensTokenize, actingFor(unknownMerchant, tokenize(newCard())), 403, "403"},
		{
			"wallet not enabled", payvault.OpTokensTokenize,
			asSecond(tokenize(&payvault.TokenizeRequest{PayloadWalletTwoPay: payvault.NewSecret("cGF5")})), 403, "403",
		},
		{"unknown card", payvault.OpTokensTokenize, tokenize(unknownCard), 404, "404"},

		{"ACH account", payvault.OpCustomersCreate, createCustomer(withAccount), 200, "0"},
		{
			"forbidden merchant", payvault.OpCustomersCreate, actingFor(unknownMerchant, createCustomer(newCustomer())),
			403, "403",
		},
		{"unknown card", payvault.OpCustomersCreate, createCustomer(withUnknownCard), 404, "404"},
		{"taken ID", payvault.OpCustomersCreate, createCustomerTwice, 409, "409"},
		{"forbidden merchant", payvault.OpCustomersList, actingFor(unknownMerchant, listCustomers(nil)), 403, "403"},

		{"not enabled", payvault.OpPayeesCreate, asSecond(createPayee(newPayee())), 403, "403"},
		{"forbidden merchant", payvault.OpPayeesCreate, actingFor(unknownMerchant, createPayee(newPayee())), 403, "403"},
		{"not enabled", payvault.OpPayeesDelete, asSecond(deletePayee(0)), 403, "403"},
		{"forbidden merchant", payvault.OpPayeesDelete, actingFor(unknownMerchant, deleteUnknownPayee), 403, "403"},

		{"not a partner", payvault.OpApplicationsCreate, asMerchant(createApplication(newApplication())), 403, "403"},
		{"not a partner", payvault.OpApplicationsSaveData, asMerchant(saveUnknown), 403, "403"},
		{"unknown application", payvault.OpApplicationsSaveData, saveUnknown, 404, "404"},
		{
			"an option is disabled", payvault.OpApplicationsSaveData,
			saveData(payvault.ApplicationData{BusinessType: "sole-prop", TradingStatus: "np"}), 200, "0",
		},
		{"not a partner", payvault.OpApplicationsValidate, asMerchant(validateUnknown), 403, "403"},
		{"one who controls", payvault.OpApplicationsValidate, validateAfter(&controlled), 200, "0"},
		{
			"incomplete", payvault.OpApplicationsValidate, validateAfter(&payvault.ApplicationData{LegalName: "Acme LLC"}),
			200, "2",
		},

		{"retrieval", payvault.OpDisputesRespond, respond(payvaulttest.DisputeRetrieval, 1, retrieval), 200, "0"},
		{"unknown dispute", payvault.OpDisputesRespond, respondToUnknown, 404, "404"},
		{"answered twice", payvault.OpDisputesRespond, respond(payvaulttest.DisputeFirstTime, 2, givenUp()), 409, "409"},
		{"other kind", payvault.OpDisputesRespond, respond(payvaulttest.DisputeOther, 1, givenUp()), 409, "409"},

		// The minimal calls of invoices and webhooks seed them without anything, too.
		{"plain seed", payvault.OpDisputesRespond, respond("", 1, givenUp()), 200, "0"},
		{"plain seed", payvault.OpSubscriptionsTransactions, transactionsOfPlain, 200, "0"},
		{"plain seed", payvault.OpSubscriptionsCancel, cancelPlain, 200, "0"},
		{"none yet", payvault.OpSubscriptionsTransactions, transactionsOfNew, 200, "0"},
		{
			"forbidden merchant", payvault.OpSubscriptionsTransactions, actingFor(unknownMerchant, transactions(nil)),
			403, "403",
		},
		{"unknown subscription", payvault.OpSubscriptionsTransactions, transactionsOfUnknown, 404, "404"},
		{
			"forbidden merchant", payvault.OpSubscriptionsCancel, actingFor(unknownMerchant, cancel(1, newCancel())),
			403, "403",
		},
		{"unknown subscription", payvault.OpSubscriptionsCancel, cancelUnknown, 404, "404"},
		{"canceled twice", payvault.OpSubscriptionsCancel, cancel(2, newCancel()), 409, "409"},

		{"unknown invoice", payvault.OpInvoicesSend, sendUnknown, 404, "404"},
		{"sent twice", payvault.OpInvoicesSend, send(2, nil), 409, "409"},
		{"unknown webhook", payvault.OpWebhooksAddEvent, addEventToUnknown, 404, "404"},
	}
}

// TestTraffic runs the SDK against the emulator and holds every message between them against the document. When all
// scenarios have run, every parameter and every property of the document must have been on the wire.
func TestTraffic(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	seen := newCoverage(c)
	scenarios := everyScenario(t)
	var ran atomic.Int64
	t.Cleanup(func() {
		if int(ran.Load()) == len(scenarios) { // not with -run on some of them
			seen.assertComplete(t)
		}
	})
	for _, s := range scenarios {
		t.Run(fmt.Sprintf("%s/%s", s.op, s.name), func(t *testing.T) {
			t.Parallel()
			defer ran.Add(1)
			e := newEnv(t)
			e.client = e.merchant
			if forPartners(string(s.op)) {
				e.client = e.partner
			}
			result, err := s.call(t.Context(), e)
			exchanges := e.wire.all()
			require.NotEmpty(t, exchanges, "nothing was sent: %v", err)
			for _, x := range exchanges {
				checkExchange(t, c, seen, x)
			}
			arrived := e.srv.Requests()
			assert.Equal(t, s.op, arrived[len(arrived)-1].Operation, "the operation as the emulator sees it")
			last := exchanges[len(exchanges)-1]
			s.checkAnswer(t, c, last, err)
			if err == nil {
				checkRead(t, last.received, result)
				checkEcho(t, last)
				checkMerchant(t, e, last)
			}
		})
	}
	assertAllOperations(t, c, scenarios)
}

// forPartners reports whether only partners have an operation.
func forPartners(operation string) bool { return strings.HasPrefix(operation, "applications.") }

// checkExchange holds one request and its answer against the document.
func checkExchange(t *testing.T, c *contract, seen *coverage, x exchange) {
	t.Helper()
	m, err := c.find(x.request, x.sent)
	if err != nil {
		t.Errorf("%s %s is not in the document", x.request.Method, x.request.URL.Path)
		return
	}
	report(t, "the request of "+m.Route.Operation.OperationID, c.checkRequest(m))
	report(t, "the answer "+strconv.Itoa(x.status)+" of "+m.Route.Operation.OperationID,
		c.checkResponse(m, x.status, x.header, x.received))
	seen.mark(m, x.received)
}

// checkAnswer makes sure that the scenario went as it is meant.
func (s scenario) checkAnswer(t *testing.T, c *contract, x exchange, err error) {
	t.Helper()
	if m, lost := c.find(x.request, x.sent); lost == nil {
		assert.Equal(t, string(s.op), m.Route.Operation.OperationID)
	}
	assert.Equal(t, s.status, x.status, "HTTP status (error: %v)", err)
	assert.Equal(t, s.code, codeOf(x.received), "code")
	if s.status == http.StatusOK && (s.code == "0" || s.code == "000" || s.code == "2") {
		assert.NoError(t, err)
		return
	}
	failed, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok, "no *payvault.Error: %v", err)
	assert.Equal(t, s.op, failed.Op)
	assert.Equal(t, s.code, failed.Code)
	delivery := payvault.DeliveryAnswered
	if s.status >= http.StatusInternalServerError { // a gateway may give it, so it decides nothing
		delivery = payvault.DeliveryUnknown
	}
	assert.Equal(t, delivery, failed.Delivery)
}

// codeOf is the code or rcode of an answer.
func codeOf(body []byte) string {
	var answer struct {
		Code  json.Number `json:"code"`
		RCode string      `json:"rcode"`
	}
	_ = json.Unmarshal(body, &answer)
	return answer.Code.String() + answer.RCode
}

// assertAllOperations fails for an operation of the document without a scenario.
func assertAllOperations(t *testing.T, c *contract, scenarios []scenario) {
	t.Helper()
	for name := range c.operations() {
		covered := false
		for _, s := range scenarios {
			covered = covered || string(s.op) == name
		}
		assert.True(t, covered, "no scenario calls %s", name)
	}
}

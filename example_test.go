package payvault_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// This example stores a card, and then a customer who pays with it.
func Example() {
	srv := payvaulttest.NewServer() // the emulator; for the sandbox, pass its URL and your key to NewClient
	defer srv.Close()
	ctx := context.Background()

	merchant := srv.Merchant()
	client, err := payvault.NewClient(srv.URL, merchant.APIKey, payvault.WithMerchantID(merchant.MerchantID))
	if err != nil {
		log.Fatal(err)
	}
	card, err := client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
		CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: payvault.FormatExpDate(12, 2030),
	})
	if err != nil {
		log.Fatal(err)
	}
	customer, err := client.Customers.Create(ctx, &payvault.CustomerCreateRequest{
		ID: "JANE1", FirmName: "Acme", BillingCards: []payvault.BillingCardRequest{{CardID: card.CardID}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(customer.ID, customer.PrimaryCardNumber)
	// Output: JANE1 4111xxxxxx111111
}

// emulator starts an emulator of the service. It returns the emulator, and a client with the key of the emulator's
// merchant.
func emulator(opts ...payvault.Option) (*payvaulttest.Server, *payvault.Client) {
	srv := payvaulttest.NewServer()
	return srv, srv.Client(opts...)
}

// inject makes the emulator answer the next requests with a fault.
func inject(srv *payvaulttest.Server, fault payvaulttest.Fault) {
	if _, err := srv.Inject(fault); err != nil {
		panic(err)
	}
}

// This example distinguishes three cases after a failure: the operation was not performed, it may have been performed,
// or the service refused it.
func Example_afterFailure() {
	srv, client := emulator()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "JANE1"})

	cancel := func() {
		request := &payvault.SubscriptionCancelRequest{CustomerID: "JANE1"}
		_, err := client.Subscriptions.Cancel(context.Background(), subscription.ID, request)
		switch {
		case err == nil:
			fmt.Println("canceled")
		case payvault.SafeToRetry(err):
			fmt.Println("not performed: try again later")
		case errors.Is(err, payvault.ErrOutcomeUnknown):
			fmt.Println("perhaps performed: look before trying again")
		default:
			fmt.Println("refused:", errors.Is(err, payvault.ErrRejected))
		}
	}
	for _, fault := range []payvaulttest.Fault{
		{Kind: payvaulttest.RateLimit, RetryAfter: "3600", Times: 1}, // the client does not wait for so long
		{Kind: payvaulttest.DropAfterCommit, Times: 1},               // the subscription is canceled, and the answer is lost
	} {
		inject(srv, fault)
		cancel()
	}
	cancel() // again, without looking at the subscription: the service refuses
	fmt.Println("performed:", srv.Commits(payvault.OpSubscriptionsCancel))
	// Output:
	// not performed: try again later
	// perhaps performed: look before trying again
	// refused: true
	// performed: 1
}

// The client waits and retries after status 429, up to RetryPolicy.MaxRetryAfter. If the service asks for a longer
// wait, the call fails at once, and Error.RetryAfter has the wait.
func Example_rateLimit() {
	srv, client := emulator()
	defer srv.Close()
	inject(srv, payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "3600", Times: 1})

	_, err := client.Customers.List(context.Background(), nil)
	if e, ok := errors.AsType[*payvault.Error](err); ok && errors.Is(err, payvault.ErrRateLimited) {
		fmt.Println("again in", e.RetryAfter, "safe:", payvault.SafeToRetry(err))
	}
	// Output: again in 1h0m0s safe: true
}

func ExampleNewClient() {
	client, err := payvault.NewClient("https://sandbox.example.com", "my-api-key",
		payvault.WithMerchantID(212345), payvault.WithTimeout(20*time.Second), payvault.WithUserAgent("acme-billing/2.1"))
	fmt.Println(client != nil, err)

	_, err = payvault.NewClient("http://sandbox.example.com", "my-api-key")
	fmt.Println(err)
	// Output:
	// true <nil>
	// payvault: client.new: invalid request: base_url is plain http to a host that is not loopback; see WithInsecureHTTP
}

func ExampleClient_ForMerchant() {
	srv, _ := emulator()
	defer srv.Close()
	ctx := context.Background()

	merchant := srv.PartnerClient().ForMerchant(srv.Merchant().MerchantID)
	customer, err := merchant.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: "JANE1", FirmName: "Acme"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(customer.ID, customer.NodeID == srv.Merchant().MerchantID)

	// Invoices cannot be sent for another merchant. No request is sent.
	err = merchant.Invoices.Send(ctx, "17", nil)
	fmt.Println(errors.Is(err, payvault.ErrMerchantNotSupported))
	// Output:
	// JANE1 true
	// true
}

func ExampleTokensService_Tokenize() {
	srv, client := emulator()
	defer srv.Close()
	card, err := client.Tokens.Tokenize(context.Background(), &payvault.TokenizeRequest{
		CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: payvault.FormatExpDate(12, 2030),
		EchoFields: payvault.Pairs{{Name: "order", Value: "17"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(card.CardNumber, card.EchoFields)
	// Output: 4111xxxxxx111111 [{"order":"17"}]
}

func ExampleCustomersService_Create() {
	srv, client := emulator()
	defer srv.Close()
	customer, err := client.Customers.Create(context.Background(), &payvault.CustomerCreateRequest{
		ID: "JANE1", FirstName: "Jane", LastName: "Doe",
		BillingCards: []payvault.BillingCardRequest{
			{CardNumber: payvault.NewSecret("5454545454545454"), ExpDate: payvault.FormatExpDate(6, 2031), Primary: new(true)},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(customer.ID, customer.PrimaryCardNumber)
	// Output: JANE1 5454xxxxxx545454
}

func ExampleCustomersService_List() {
	srv, client := emulator()
	defer srv.Close()
	srv.Customers.Seed(payvaulttest.Customer{ID: "JANE1", FirmName: "Acme"})
	srv.Customers.Seed(payvaulttest.Customer{ID: "JOHN2", FirmName: "Bolt"})

	options := &payvault.ListOptions{OrderOn: "customer_id", OrderBy: payvault.Descending, Count: 1}
	page, err := client.Customers.List(context.Background(), options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Items[0].ID, page.TotalRecords, page.TotalPages)
	// Output: JOHN2 2 2
}

func ExampleCustomersService_All() {
	srv, client := emulator()
	defer srv.Close()
	for _, id := range []string{"B2", "A1", "C3"} {
		srv.Customers.Seed(payvaulttest.Customer{ID: id, FirmName: "Acme"})
	}

	// Each page has two records, and two pages are requested at a time. The records come in order.
	options := &payvault.ListOptions{OrderOn: "customer_id", OrderBy: payvault.Ascending, Count: 2, Prefetch: 2}
	for customer, err := range client.Customers.All(context.Background(), options) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(customer.ID)
	}
	// Output:
	// A1
	// B2
	// C3
}

func ExampleCustomersService_Pages() {
	srv, client := emulator()
	defer srv.Close()
	for _, id := range []string{"B2", "A1", "C3"} {
		srv.Customers.Seed(payvaulttest.Customer{ID: id, FirmName: "Acme"})
	}

	// To continue after an earlier run, set Page to the next page.
	options := &payvault.ListOptions{OrderOn: "customer_id", Count: 2, Page: 0}
	for page, err := range client.Customers.Pages(context.Background(), options) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("page", page.Number, "has", len(page.Items), "customers")
	}
	// Output:
	// page 0 has 2 customers
	// page 1 has 1 customers
}

func ExamplePayeesService_Create() {
	srv, client := emulator()
	defer srv.Close()
	payee, err := client.Payees.Create(context.Background(), &payvault.PayeeCreateRequest{
		Name: "Acme Supplies",
		Account: payvault.PayeeAccount{
			TypeID: "S", TRNumber: payvault.NewSecret("123456780"),
			DDANumber: payvault.NewSecret("000987654321"),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(payee.Name, payee.Account.DDANumber)
	// Output: Acme Supplies [REDACTED]
}

func ExamplePayeesService_Delete() {
	srv, client := emulator()
	defer srv.Close()
	payee := srv.Payees.Seed(payvaulttest.Payee{Name: "Acme Supplies"})

	ctx := context.Background()
	fmt.Println(client.Payees.Delete(ctx, payee.ID))
	fmt.Println(errors.Is(client.Payees.Delete(ctx, payee.ID), payvault.ErrNotFound))
	// Output:
	// <nil>
	// true
}

func ExampleApplicationsService_Create() {
	srv, _ := emulator()
	defer srv.Close()
	client := srv.PartnerClient() // only a partner can board merchants

	request := &payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42}
	created, err := client.Applications.Create(context.Background(), request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created.App.ID > 0, created.App.Status == payvault.ApplicationIncomplete)
	// Output: true true
}

func ExampleApplicationsService_SaveData() {
	srv, _ := emulator()
	defer srv.Close()
	client := srv.PartnerClient()
	application := srv.Applications.Seed(payvaulttest.Application{})

	saved, err := client.Applications.SaveData(context.Background(), application.ID, &payvault.ApplicationData{
		LegalName: "Springfield Bakery LLC", LimitedPartnership: new(false),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, field := range saved {
		fmt.Println(field.Key, field.Type, field.Settings.Required)
	}
	// Output:
	// legal_name text true
	// limited_partnership toggle true
}

func ExampleApplicationsService_Validate() {
	srv, _ := emulator()
	defer srv.Close()
	client := srv.PartnerClient()
	application := srv.Applications.Seed(payvaulttest.Application{})

	ctx := context.Background()
	data := payvault.ApplicationData{LegalName: "Springfield Bakery LLC", BusinessType: payvault.BusinessLLC}
	if _, err := client.Applications.SaveData(ctx, application.ID, &data); err != nil {
		log.Fatal(err)
	}
	validation, err := client.Applications.Validate(ctx, application.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(validation.OK(), len(validation.Problems["legal_name"]), len(validation.Problems["tax_id"]))
	// Output: false 0 1
}

func ExampleDisputesService_Respond() {
	srv, client := emulator()
	defer srv.Close()
	dispute := srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeFirstTime})

	evidence, err := payvault.OpenFile("testdata/disputes/evidence.pdf")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = evidence.Close() }()
	err = client.Disputes.Respond(context.Background(), dispute.ID, &payvault.DisputeRespondRequest{
		Type: payvault.DisputeOther, Message: "The signed receipt is attached.", Evidence: evidence,
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleSubscriptionsService_Transactions() {
	srv, client := emulator()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{
		{Time: time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC), AmtTran: payvault.MustParseAmount("19.90")},
	}})

	page, err := client.Subscriptions.Transactions(context.Background(), subscription.ID, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.TotalRecords, page.Items[0].AmtTran)
	// Output: 1 19.90
}

func ExampleSubscriptionsService_AllTransactions() {
	srv, client := emulator()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{
		{Time: time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC), AmtTran: payvault.MustParseAmount("19.90")},
		{Time: time.Date(2026, 2, 15, 9, 30, 0, 0, time.UTC), AmtTran: payvault.MustParseAmount("5.10")},
	}})

	from := payvault.Date{Year: 2026, Month: time.January, Day: 1}
	to := payvault.Date{Year: 2026, Month: time.January, Day: 31}
	january := &payvault.ListOptions{Filters: []payvault.Filter{payvault.BetweenDates("tran_date", from, to)}}
	for transaction, err := range client.Subscriptions.AllTransactions(context.Background(), subscription.ID, january) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(transaction.AmtTran, transaction.Time.Format(time.DateOnly))
	}
	// Output: 19.90 2026-01-15
}

func ExampleSubscriptionsService_TransactionPages() {
	srv, client := emulator()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{
		{AmtTran: payvault.MustParseAmount("19.90")}, {AmtTran: payvault.MustParseAmount("5.10")},
	}})

	for page, err := range client.Subscriptions.TransactionPages(context.Background(), subscription.ID, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("page", page.Number, "has", len(page.Items), "transactions")
	}
	// Output: page 0 has 2 transactions
}

func ExampleSubscriptionsService_Cancel() {
	srv, client := emulator()
	defer srv.Close()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "JANE1"})

	request := &payvault.SubscriptionCancelRequest{CustomerID: "JANE1"}
	confirmation, err := client.Subscriptions.Cancel(context.Background(), subscription.ID, request)
	if err != nil {
		log.Fatal(err)
	}
	canceled, _ := srv.Subscriptions.Get(subscription.ID)
	fmt.Println(confirmation.Message != "", canceled.State)
	// Output: true canceled
}

func ExampleInvoicesService_Send() {
	srv, client := emulator()
	defer srv.Close()
	invoice := srv.Invoices.Seed(payvaulttest.Invoice{})

	request := &payvault.InvoiceSendRequest{EmailAddress: []string{"jane@example.com"}}
	err := client.Invoices.Send(context.Background(), invoice.ID, request)
	sent, _ := srv.Invoices.Get(invoice.ID)
	fmt.Println(err, sent.State)
	// Output: <nil> outstanding
}

func ExampleAccountUpdaterService_Submit() {
	srv, client := emulator()
	defer srv.Close()
	accepted, err := client.AccountUpdater.Submit(context.Background(), []payvault.AccountUpdaterCard{
		{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: payvault.FormatExpDate(1, 2027), CardID: "mine-1"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(accepted.RequestID != "") // a webhook reports when the request is completed
	// Output: true
}

func ExampleAccountUpdaterService_SubmitAll() {
	srv, client := emulator()
	defer srv.Close()
	cards := slices.Repeat([]payvault.AccountUpdaterCard{
		{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: payvault.FormatExpDate(1, 2027)},
	}, 250)
	options := &payvault.SubmitAllOptions{Concurrency: 8}
	for batch, err := range client.AccountUpdater.SubmitAll(context.Background(), payvault.Cards(cards...), options) {
		if err != nil {
			log.Fatal(err) // a *payvault.StopError: the rest was not sent
		}
		fmt.Println(batch.Index, batch.Start, batch.End, batch.Status, batch.Err)
	}
	// Output:
	// 0 0 100 accepted <nil>
	// 1 100 200 accepted <nil>
	// 2 200 250 accepted <nil>
}

// memory is a journal for this example only. A journal that must survive a crash writes to disk before Begin and End
// return, as sqlpayvault does.
type memory struct{ known sync.Map }

func (m *memory) Begin(_ context.Context, _ string, batch int) (payvault.BatchState, error) {
	before, known := m.known.LoadOrStore(batch, payvault.BatchState{Begun: true})
	if !known {
		return payvault.BatchState{}, nil
	}
	return before.(payvault.BatchState), nil
}

func (m *memory) End(_ context.Context, _ string, batch int, outcome payvault.BatchOutcome) error {
	if outcome.Status == payvault.BatchNotSent {
		m.known.Delete(batch)
		return nil
	}
	m.known.Store(batch, payvault.BatchState{Begun: true, Outcome: &outcome})
	return nil
}

// With a journal, a later run continues where an earlier run stopped or crashed. In this example the file of cards
// breaks off in the first run, and one answer is lost. The second run has the complete file and sends no batch twice. A
// real program would use the journal of sqlpayvault.Open(ctx, "cards.journal"), which is on disk.
func ExampleAccountUpdaterService_SubmitAll_journal() {
	srv, client := emulator()
	defer srv.Close()
	inject(srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 1})

	options := &payvault.SubmitAllOptions{Journal: &memory{}, Job: "cards of November"}
	run := func(file io.Reader) (accepted, unknown int, failed error) {
		cards := func(yield func(payvault.AccountUpdaterCard, error) bool) {
			rows := csv.NewReader(file)
			for row, err := rows.Read(); err != io.EOF; row, err = rows.Read() {
				if err != nil {
					yield(payvault.AccountUpdaterCard{}, err)
					return
				}
				line, _ := rows.FieldPos(0)
				card := payvault.AccountUpdaterCard{
					CardNumber: payvault.NewSecret(row[0]), ExpDate: row[1], Ref: fmt.Sprint("line ", line),
				}
				if !yield(card, nil) {
					return
				}
			}
		}
		for batch, err := range client.AccountUpdater.SubmitAll(context.Background(), cards, options) {
			switch {
			case err != nil: // SubmitAll has stopped; the next run sends the rest
				return accepted, unknown, err
			case batch.Status == payvault.BatchAccepted:
				accepted++
			case batch.Status == payvault.BatchUnknown: // look it up by hand: no run sends the batch again
				unknown++
			default: // refused, or not sent in this run
				failed = fmt.Errorf("%s to %s: %w", batch.Refs[0], batch.Refs[len(batch.Refs)-1], batch.Err)
			}
		}
		return accepted, unknown, failed
	}
	file := strings.Repeat("4111111111111111,0127\n", 250)
	_, _, err := run(strings.NewReader(file[:len(file)-6]))
	fmt.Println(err)
	fmt.Println(run(strings.NewReader(file)))
	fmt.Println("submissions:", srv.Commits(payvault.OpAccountUpdaterSubmit))
	// Output:
	// payvault: account_updater.submit: stream: record on line 250: wrong number of fields
	// 2 1 <nil>
	// submissions: 3
}

// The service refuses a batch of 100 cards because of one card, and the example sends the other 99 cards again. The
// service does not document how a refusal names a card. The emulator writes data[i].
func ExampleAccountUpdaterBatch_Position() {
	srv, client := emulator()
	defer srv.Close()
	inject(srv, payvaulttest.Fault{
		Kind: payvaulttest.Respond, Status: http.StatusBadRequest, Times: 1,
		Body: `{"code":400,"message":"Invalid request","data":{"data[42].card_number":["is of no known network"]}}`,
	})
	card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "0127"}
	cards := slices.Repeat([]payvault.AccountUpdaterCard{card}, 100)
	for i := range cards {
		cards[i].Ref = fmt.Sprint("line ", i+1)
	}
	places := regexp.MustCompile(`data\[(\d{1,2})\]`)

	ctx := context.Background()
	for batch, err := range client.AccountUpdater.SubmitAll(ctx, payvault.Cards(cards...), nil) {
		if err != nil {
			log.Fatal(err)
		}
		if batch.Status != payvault.BatchRefused {
			continue
		}
		good := slices.Clone(cards[batch.Start:batch.End])
		// Fields names all refused cards. An error that comes from a journal has no Fields, and its text names at most 20
		// fields.
		refusal := batch.Err.Error()
		if e, ok := errors.AsType[*payvault.Error](batch.Err); ok && len(e.Fields) > 0 {
			refusal = strings.Join(slices.Collect(maps.Keys(e.Fields)), " ")
		}
		for _, place := range places.FindAllStringSubmatch(refusal, -1) {
			i, _ := strconv.Atoi(place[1])
			if position := batch.Position(i); position < batch.End {
				fmt.Println("refused:", batch.Refs[position-batch.Start])
				good[position-batch.Start] = payvault.AccountUpdaterCard{}
			}
		}
		// DeleteFunc removes the refused cards, which are empty now, and the cards of batch.Invalid. Check returns an error
		// for both.
		good = slices.DeleteFunc(good, func(c payvault.AccountUpdaterCard) bool { return c.Check() != nil })
		if len(good)+len(batch.Invalid) == batch.End-batch.Start {
			log.Fatal(batch.Err) // the refusal names no card
		}
		_, err = client.AccountUpdater.Submit(ctx, good)
		fmt.Println("sent again:", len(good), err)
	}
	// Output:
	// refused: line 43
	// sent again: 99 <nil>
}

func ExampleWebhooksService_AddEvent() {
	srv, client := emulator()
	defer srv.Close()
	webhook := srv.Webhooks.Seed(payvaulttest.Webhook{})

	confirmation, err := client.Webhooks.AddEvent(context.Background(), webhook.ID, payvault.EventTransactionStatusUpdated)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(confirmation.Message)
	// Output: Event transaction_status_updated was added
}

func ExampleNotificationHandler() {
	handler := payvault.NotificationHandler(func(_ context.Context, n *payvault.Notification) error {
		fmt.Println(len(n.Body) > 0)
		return nil
	}, slog.Default())
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/notifications", strings.NewReader(`{}`))
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output:
	// true
	// 204
}

// This client uses a proxy and keeps at most 20 connections open.
func ExampleNewTransport() {
	proxy, err := url.Parse("http://proxy.example.com:3128")
	if err != nil {
		log.Fatal(err)
	}
	transport := payvault.NewTransport()
	transport.Proxy = http.ProxyURL(proxy)
	transport.MaxConnsPerHost = 20
	client, err := payvault.NewClient("https://sandbox.example.com", "key",
		payvault.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client)
	// Output: [base_url=https://sandbox.example.com]
}

func ExampleWithLogger() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug, // the level of attempts, and of calls that succeed
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" { // time and duration differ from run to run
				return slog.Attr{}
			}
			return a
		},
	}))
	srv, client := emulator(payvault.WithLogger(logger))
	defer srv.Close()
	inject(srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 503, Times: 1})

	if _, err := client.Customers.List(context.Background(), nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=DEBUG msg="payvault attempt" operation=customers.list status=503 code="" attempts=1 delivery=unknown
	// level=DEBUG msg="payvault attempt" operation=customers.list status=200 code="" attempts=2 delivery=answered
	// level=DEBUG msg="payvault call" operation=customers.list status=200 code=0 attempts=2 delivery=answered
}

func ExampleOpenFile() {
	evidence, err := payvault.OpenFile("testdata/disputes/evidence.pdf")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = evidence.Close() }() // the client never closes the file

	// The client streams the file on each attempt. FileFromBytes returns a file whose content is in memory.
	fmt.Println(evidence)
	fmt.Println(payvault.FileFromBytes("letter.pdf", []byte("%PDF-1.7 ...")))
	// Output:
	// {Name:"evidence.pdf" Size:554}
	// {Name:"letter.pdf" Size:12}
}

func ExampleWithReplay() {
	srv, client := emulator()
	defer srv.Close()
	invoice := srv.Invoices.Seed(payvaulttest.Invoice{})

	// The first answer is a 503. The client does not repeat the sending of an invoice by itself, because the invoice could
	// be sent twice. WithReplay states that the caller accepts a second sending.
	inject(srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 503, Times: 1})
	var answer payvault.Response
	options := []payvault.CallOption{payvault.WithReplay(), payvault.WithResponse(&answer)}
	err := client.Invoices.Send(context.Background(), invoice.ID, nil, options...)
	fmt.Println(err, answer.StatusCode, answer.Attempts)
	// Output: <nil> 200 2
}

func ExampleError() {
	client, err := payvault.NewClient("https://sandbox.example.com", "my-api-key", payvault.WithMerchantID(212345))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Customers.Create(context.Background(), &payvault.CustomerCreateRequest{
		FirmName:     "Acme",
		BillingCards: []payvault.BillingCardRequest{{CardID: "0123456789ABCDEF", ExpDate: "13/30"}},
	})
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		fmt.Println(e.Op, e.Delivery, errors.Is(err, payvault.ErrInvalidRequest))
		fmt.Println("billing_cards[0].exp_date", e.Fields["billing_cards[0].exp_date"])
		fmt.Println("customer_id", e.Fields["customer_id"])
	}
	// Output:
	// customers.create not sent true
	// billing_cards[0].exp_date [is not of the form MMYY]
	// customer_id [is required, or auto_generate_customer_id]
}

func ExampleClient_Call() {
	srv, client := emulator()
	defer srv.Close()
	// Call sends a request by method and path, for operations that this package has no method for. Logs and errors contain
	// the Name of the request.
	var out struct{ TotalRecords int }
	request := payvault.Request{
		Name: "customers.count", Method: "GET", Path: []string{"platform", "vault", "customer"}, Replay: true,
	}
	err := client.Call(context.Background(), request, &out)
	fmt.Println(out.TotalRecords, err)
	// Output: 0 <nil>
}

// MarshalWire writes a request with its secrets, for example to keep it in a queue. Protect the result like card data.
// json.Marshal writes [REDACTED] for the secrets.
func ExampleMarshalWire() {
	request := &payvault.TokenizeRequest{MerchantID: 212345, CardNumber: payvault.NewSecret("4111111111111111")}
	logged, err := json.Marshal(request)
	if err != nil {
		log.Fatal(err)
	}
	queued, err := payvault.MarshalWire(request)
	if err != nil {
		log.Fatal(err)
	}
	var taken payvault.TokenizeRequest
	if err := json.Unmarshal(queued, &taken); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(logged))
	fmt.Println(string(queued))
	fmt.Println(taken.CardNumber, taken.CardNumber.Reveal())
	// Output:
	// {"merchant_id":"212345","card_number":"[REDACTED]"}
	// {"merchant_id":"212345","card_number":"4111111111111111"}
	// [REDACTED] 4111111111111111
}

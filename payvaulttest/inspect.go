package payvaulttest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/inspect"
)

// Inspect returns the handler of a web page about a server. The page shows how to connect to the server, the requests
// that arrive from now on, the records with masked card numbers, and the faults. Buttons on the page inject faults.
// Beside each button, the page shows the Go code that injects the same fault in a test. The page shows the bodies of
// requests only while a viewer asks for them. The handler answers only requests from loopback. The README of
// cmd/payvault-emulator describes the page and its JSON API.
//
// To look at the server of a test, serve the page with [net/http/httptest.NewServer]. Print the URL of the page to
// os.Stderr, because go test shows t.Log of a running test only with -v. Let the test wait with <-t.Context().Done() or
// select {}. Run only this test, with the flags -run and -timeout 0 of go test. In a debugger, stop only the goroutine
// of the test: if the debugger stops the whole process, the page stops too.
//
// Close the emulator before the server of the page, as the example does: [Server.Close] ends the event streams of the
// page. In the other order, closing the server of the page takes some seconds if a browser shows the page. If another
// program reads the events, closing waits until that program disconnects.
func Inspect(s *Server) http.Handler { return inspect.Handler(inspector{s}, s.handler.feed) }

// An inspector gives the page of [Inspect] access to a server.
type inspector struct{ *Server }

// Operations implements [inspect.Emulator].
func (i inspector) Operations() []string { return i.handler.allOperations() }

// Arm implements [inspect.Emulator].
func (i inspector) Arm(text []byte) (inspect.Armed, error) {
	var in struct {
		Fault
		Delay string `json:"delay"`
	}
	if err := json.Unmarshal(text, &in, json.RejectUnknownMembers(true)); err != nil {
		return inspect.Armed{}, fmt.Errorf(`%w; a fault is a JSON object such as {"kind":"delay","delay":"2s"}`, err)
	}
	if in.Delay != "" {
		delay, err := time.ParseDuration(in.Delay)
		if err != nil {
			return inspect.Armed{}, errors.New(`the delay is no duration, such as "2s"`)
		}
		in.Fault.Delay = delay
	}
	if err := in.check(i.handler.allOperations()); err != nil {
		return inspect.Armed{}, err
	}
	return i.handler.faults.add(in.Fault).inspected(), nil
}

// Presets implements [inspect.Emulator].
func (i inspector) Presets(operation payvault.Operation, times, skip int) ([]inspect.Preset, error) {
	var list []inspect.Preset
	for _, preset := range []struct {
		label string
		fault Fault
	}{
		{"Lose the answer of what is performed", Fault{Kind: DropAfterCommit, Times: times}},
		{"429 with Retry-After: 1", Fault{Kind: RateLimit, Times: times, RetryAfter: "1"}},
		{"503", Fault{Kind: Respond, Times: times, Status: http.StatusServiceUnavailable}},
		{"Hang until the client gives up", Fault{Kind: Hang, Times: times}},
		{"Cut the answer of what is performed", Fault{Kind: CutBody, Times: times, AfterCommit: true}},
		{"Permit 5 requests a second until disarmed", Fault{Kind: PermitRate, Rate: 5, RetryAfter: "1"}},
	} {
		fault := preset.fault
		fault.Operation, fault.Skip = operation, skip
		if err := fault.check(i.handler.allOperations()); err != nil {
			return nil, err
		}
		list = append(list, inspect.Preset{Label: preset.label, Fault: fault, Go: inspect.GoLine(fault)})
	}
	return list, nil
}

// Armed implements [inspect.Emulator].
func (i inspector) Armed() []inspect.Armed {
	i.handler.faults.mu.Lock()
	defer i.handler.faults.mu.Unlock()
	list := []inspect.Armed{}
	for _, armed := range i.handler.faults.list {
		list = append(list, armed.inspected())
	}
	return list
}

func (f *armedFault) inspected() inspect.Armed {
	armed := inspect.Armed{
		ID: f.id, Operation: string(f.Operation), Kind: string(f.Kind), Status: f.Status, Performed: f.AfterCommit,
		Rate: f.Rate, RetryAfter: f.RetryAfter, Code: f.Code, Size: f.Size, Skip: f.Skip,
		Struck: f.Struck, Left: f.Left, Go: inspect.GoLine(f.Fault),
	}
	if f.Delay > 0 {
		armed.Delay = f.Delay.String()
	}
	return armed
}

// Disarm implements [inspect.Emulator].
func (i inspector) Disarm(id int64) bool { return i.handler.faults.remove(id) }

// Connection implements [inspect.Emulator].
func (i inspector) Connection() inspect.Connection {
	key := i.Merchant().APIKey
	c := inspect.Connection{
		URL:  i.URL,
		Curl: inspect.Command{Method: http.MethodGet, URL: i.URL + "/platform/vault/customer", Key: key}.String(),
		Go: fmt.Sprintf("client, err := payvault.NewClient(\n\t%q,\n\t%q,\n)\n"+
			"page, err := client.Customers.List(ctx, nil)", i.URL, key),
	}
	if i.cfg.tls {
		c.Go = "page, err := srv.Client().Customers.List(ctx, nil)"
	}
	for _, account := range i.Accounts() {
		shown := inspect.Account{
			MerchantID: int64(account.MerchantID), APIKey: account.APIKey, Partner: account.Partner, VendorID: account.VendorID,
		}
		for _, id := range account.ActsFor {
			shown.ActsFor = append(shown.ActsFor, int64(id))
		}
		c.Accounts = append(c.Accounts, shown)
	}
	return c
}

// Reset implements [inspect.Emulator]. It removes requests, deliveries, faults and the counts of commits, and restores
// the records and API keys with which the server started. Identifiers start again, as in a new server. The
// operations of [Server.Handle] stay.
func (i inspector) Reset() {
	i.ClearFaults()
	i.handler.requests.clear()
	i.deliveries.forget()
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	for _, empty := range i.state.empty {
		empty()
	}
	i.state.ids.restart()
	clear(i.state.commits)
	clear(i.state.retired)
	if err := i.plant(); err != nil {
		panic(err) // cannot happen: the same seeds were added at the start
	}
}

// Tables implements [inspect.Emulator]. The only free texts in the tables are IDs, event names and the hosts of
// webhooks.
func (i inspector) Tables() []inspect.Table {
	return []inspect.Table{
		table("tokens", i.Cards, "card_id merchant kind number exp_date card_type updates", func(c Card) []any {
			return []any{c.ID, c.MerchantID, c.Kind, c.CardNumber, c.ExpDate, c.CardType, c.Updates}
		}),
		table("customers", i.Customers, "customer_id merchant rec_id primary_card cards addresses", func(c Customer) []any {
			return []any{
				c.ID, c.NodeID, c.RecID, c.PrimaryCardNumber, len(c.BillingCards), len(c.ShippingAddresses),
			}
		}),
		table("payees", i.Payees, "payee_id merchant account emails", func(p Payee) []any {
			return []any{p.ID, p.MerchantID, p.HasAccount, len(p.Email)}
		}),
		table("applications", i.Applications, "app_id partner status fields missing", func(a Application) []any {
			missing := slices.Sorted(maps.Keys(validate(i.state.document, &a)))
			return []any{a.ID, a.Partner, a.Status, len(a.Data()), strings.Join(missing, " ")}
		}),
		table("disputes", i.Disputes, "rec_id merchant kind answered", func(d Dispute) []any {
			return []any{d.ID, d.MerchantID, d.Kind, d.Response != nil}
		}),
		table("subscriptions", i.Subscriptions, "subscription_id merchant customer state transactions",
			func(s Subscription) []any {
				return []any{s.ID, s.MerchantID, s.CustomerID, s.State, len(s.Transactions)}
			}),
		table("invoices", i.Invoices, "invoice_id merchant state emails phones sms", func(v Invoice) []any {
			return []any{v.ID, v.MerchantID, v.State, len(v.Emails), len(v.Phones), len(v.SMS)}
		}),
		table("updater requests", i.AccountUpdaterRequests, "request_id merchant cards", func(r AccountUpdaterRequest) []any {
			return []any{r.RequestID, r.MerchantID, len(r.Cards)}
		}),
		table("webhooks", i.Webhooks, "webhook_id merchant host events", func(w Webhook) []any {
			u, _ := url.Parse(w.NotificationURL) // cannot fail: the URL was checked before
			var events []string
			for _, event := range w.Events {
				events = append(events, string(event))
			}
			return []any{w.ID, w.MerchantID, u.Host, strings.Join(events, " ")}
		}),
	}
}

func table[K comparable, V any](name string, records *Store[K, V], columns string, row func(V) []any) inspect.Table {
	newest, total := records.last(100)
	t := inspect.Table{Name: name, Total: total, Columns: strings.Fields(columns), Rows: [][]any{}}
	for _, record := range slices.Backward(newest) {
		t.Rows = append(t.Rows, row(record))
	}
	return t
}

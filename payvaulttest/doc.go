// Package payvaulttest emulates the whole service for tests. It is a real HTTP server on loopback, with the state, the
// rules and the limits that the service interface documents, and with failures on demand.
//
//	srv := payvaulttest.NewServer()
//	defer srv.Close()
//	client := srv.Client() // a *payvault.Client of the default merchant, which retries quickly
//	page, err := client.Customers.List(ctx, nil)
//	if err != nil {
//		return err
//	}
//	fmt.Println(page.TotalRecords, srv.Commits(payvault.OpCustomersList)) // 0 1
//
// Each server has its own state, so tests can run in parallel, each with a server of its own. The OpenAPI document by
// which requests are checked is read once per process. Servers are safe for concurrent use and need no testing package.
// cmd/payvault-emulator is the same server as a program, for tests in any language.
//
// # Records
//
// A server has a [Store] per resource, such as Server.Invoices, with Seed, Get and All. Invoices, subscriptions with
// their transactions, disputes and webhooks come from Seed, or from [WithSeed], because the interface documents no
// operation that creates them. [Server.Commits] counts how often an operation was really performed, and
// [Server.Requests] returns the requests.
//
// The event transaction_status_updated occurs only when a test calls [Server.SetTransactionStatus] or
// [Server.TriggerEvent]: no request changes the status of a transaction. The account updater's events
// occur with its requests.
//
// [Server.Handle] adds an operation that the interface names and does not document.
//
// # Failures
//
// [Server.Inject] makes requests fail in the ways of networks and services. The failure that matters most to money is
// the lost answer:
//
//	lost := payvaulttest.Fault{Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1}
//	if _, err := srv.Inject(lost); err != nil {
//		return err
//	}
//
// A fault applies to a request as soon as it arrives, before authentication and whether or not the request is valid. If
// a fault answers a request without AfterCommit, the request is recorded but not performed. [Inspect] serves a page
// with the newest requests, the records and the faults. The page also injects faults at a click.
//
// # Secrets
//
// The emulator keeps no card number, security code, track, wallet payload or bank account of cards, customers and
// payees: cards are kept masked. The bodies of requests stay available in [Request] and in [Application.Data], but only
// through methods: no fmt verb and no slog handler prints them, and the records of [WithLogger] have neither path,
// query, header nor body. The merchant_id in these records is the merchant of the key, not the merchant for whom a
// partner acts. The page of [Inspect] shows bodies only while somebody has asked for them.
//
// # The emulator's own choices
//
// api/openapi.yaml defines the shape of requests. Where the interface is silent, the emulator had to choose, and the
// real service may do otherwise. Do not build on these choices. docs/emulator.md lists those that a test meets.
package payvaulttest

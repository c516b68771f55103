// Package payvaulttest emulates the whole service for tests: a real HTTP server on loopback, with the
// state, the rules and the limits that the service interface shows, and with failures on demand.
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
// Each server has its own state, so tests can run in parallel, each with a server of its own: the
// OpenAPI document that requests are checked by is read once per process. Servers are safe for concurrent
// use and need no testing package: cmd/payvault-emulator is the same server as a program, for tests in any
// language.
//
// # Records
//
// A server has a [Store] per resource, such as Server.Invoices, with Seed, Get and All. Invoices,
// subscriptions with their transactions, disputes and webhooks come from Seed, or from [WithSeed], since the
// interface shows no operation that creates them. [Server.Commits] counts how often an operation
// was really performed, and [Server.Requests] shows what arrived.
//
// The event transaction_status_updated occurs only when a test calls [Server.SetTransactionStatus] or
// [Server.TriggerEvent]: no request changes the status of a transaction. The account updater's events
// occur with its requests.
//
// An operation that the interface names and does not show is taught with [Server.Handle].
//
// # Failures
//
// [Server.Inject] makes requests fail the ways networks and services fail. The one that matters most to money is
// the lost answer:
//
//	lost := payvaulttest.Fault{Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1}
//	if _, err := srv.Inject(lost); err != nil {
//		return err
//	}
//
// A fault takes a request as it arrives, before authentication and whether or not the request is
// valid. Requests that a fault answers without AfterCommit are recorded, but not performed. [Inspect] serves a page
// that shows requests as they come, records and faults, and that injects faults at a click.
//
// # Secrets
//
// The emulator keeps no card number, security code, track, wallet payload or bank account of cards,
// customers and payees: cards are kept masked. The bodies that arrived stay available in [Request] and in
// [Application.Data], but only on request: no fmt verb and no slog handler prints them, and the records of [WithLogger]
// have neither path, query, header nor body. Their merchant_id is that of the key, not that of the merchant for whom a
// partner acts. The page of [Inspect] shows bodies only while it is asked to.
//
// # The emulator's own choices
//
// The shape of requests is what api/openapi.yaml says. What the interface does not show, the emulator had to
// decide, and the real service may do otherwise. Do not build on it. docs/emulator.md lists what a test meets.
package payvaulttest

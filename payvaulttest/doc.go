// Package payvaulttest emulates the whole service for tests. It runs a real HTTP server, by default on loopback. The
// server has the state, the rules and the limits that the service documents, and failures on demand.
//
//	srv := payvaulttest.NewServer()
//	defer srv.Close()
//	client := srv.Client() // a *payvault.Client that retries quickly, for the default merchant
//	page, err := client.Customers.List(ctx, nil)
//	if err != nil {
//		return err
//	}
//	fmt.Println(page.TotalRecords, srv.Commits(payvault.OpCustomersList)) // 0 1
//
// Each server has its own state, so parallel tests can each use a server of their own. Requests are checked against
// api/openapi.yaml, which is read only once per process. Servers are safe for concurrent use, and also work outside of
// tests. cmd/payvault-emulator is the same server as a program, for tests in any language.
//
// # Records
//
// A server has a [Store] per resource, such as Server.Invoices, with Seed, Get and All. Invoices, subscriptions with
// their transactions, disputes and webhooks come from Seed, or from [WithSeed], because the service documents no
// operation that creates them. [Server.Commits] counts how often an operation was performed, and [Server.Requests]
// returns the requests.
//
// The event transaction_status_updated occurs only when a test calls [Server.SetTransactionStatus] or
// [Server.TriggerEvent]: no request changes the status of a transaction. The events of the account updater occur when
// the server accepts an account updater request.
//
// [Server.Handle] adds an operation. Use it for operations that the documentation of the service mentions but does not
// describe.
//
// # Failures
//
// [Server.Inject] makes requests fail as networks and services fail. For code that moves money, the most important
// failure is the lost answer:
//
//	lost := payvaulttest.Fault{Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1}
//	if _, err := srv.Inject(lost); err != nil {
//		return err
//	}
//
// A fault applies as soon as a request arrives, before authentication and whether or not the request is valid. If a
// fault without AfterCommit answers a request, the request is recorded but not performed. [Inspect] serves a page with
// the newest requests, the records and the faults. On the page, a click injects a fault.
//
// A fake of the client needs no server: [NewError] makes the common errors of the SDK.
//
// # Fake time
//
// In a bubble of [testing/synctest], a client waits for a retry in fake time, so the wait takes no real time. Start the
// server outside of the bubble. In the bubble, make a client whose connections end with each request, because an idle
// connection would stop the fake clock.
//
//	srv := payvaulttest.NewServer()
//	defer srv.Close()
//	busy := payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "20", Times: 1}
//	if _, err := srv.Inject(busy); err != nil {
//		return err
//	}
//	synctest.Test(t, func(t *testing.T) {
//		single := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
//		client := srv.Client(payvault.WithHTTPClient(single))
//		began := time.Now()
//		_, err := client.Customers.List(t.Context(), nil)
//		fmt.Println(time.Since(began) >= 20*time.Second, err) // true <nil>
//	})
//
// The fake clock also stands still during a request. So the fault [Delay] takes real time, and [Hang] never ends. From
// Go 1.27 on, they take fake time if the server answers in memory: in the bubble, pass httptest.NewTestServer(t,
// srv).Client() to [payvault.WithHTTPClient].
//
// # Secrets
//
// In its records of cards, customers and payees, the emulator keeps no security code, track, wallet payload or bank
// account, and it masks card numbers. A test can still read the bodies of requests with the methods of [Request] and
// [Part], and the saved values of an application with [Application.Data]. No fmt verb and no slog handler prints these
// bodies and values. The log records of [WithLogger] have no path, query, header or body. The merchant_id in a log
// record is the merchant of the API key, even if the request acts for another merchant. The page of [Inspect] shows
// bodies only while a viewer has asked for them.
//
// # The emulator's own choices
//
// api/openapi.yaml defines the shape of requests. Where the documentation does not say what the service does, the
// emulator makes its own choice, and the real service may behave differently. Do not rely on these choices.
// docs/emulator.md lists the choices that a test may notice.
package payvaulttest

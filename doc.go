// Package payvault is a client of a payment service: card and ACH tokenization, customer vault, payee vault, merchant
// application boarding, dispute responses, recurring billing, invoices, account updater and webhooks.
//
//	client, err := payvault.NewClient("https://sandbox.example.com", apiKey, payvault.WithMerchantID(212345))
//	if err != nil {
//		return err
//	}
//	token, err := client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
//		CardNumber: "4111111111111111",
//		ExpDate:    payvault.ExpDate(12, 2030),
//	})
//
// One [Client] holds a service per resource. It is safe for concurrent use; make one per API key and share it. No call
// changes what is passed to it, and a call that fails returns no result. Every call takes a context, which limits
// all its attempts together.
//
// # Retries and replay
//
// Whether an operation is repeated follows from what it does, never from its HTTP method:
//
//   - Every operation is repeated after a failure that provably sent nothing (no connection could be had, or the server
//     refused the HTTP/2 stream unprocessed), and after status 429, with which the service turns a request away unperformed.
//   - Only a replayable operation is repeated after a lost connection, a timeout of an attempt, or status 502, 503 or 504:
//     the lists, the transactions, [ApplicationsService.SaveData], [ApplicationsService.Validate], and
//     [TokensService.Tokenize] with a CardID. All others could move money, send a message or submit data twice.
//   - [WithReplay] lets the caller state that repeating one call is harmless.
//
// Waits grow exponentially with full jitter; a Retry-After header is honored up to a limit; see [RetryPolicy].
//
// # Errors
//
// Every error of a call is an [*Error]. To decide what to do with err:
//
//   - errors.Is(err, ErrInvalidRequest): the request failed a local check and was not sent; mend what Error.Fields names.
//   - errors.Is(err, ErrRejected): the service refused; Error.Code and Error.Message say why.
//   - SafeToRetry(err): calling again cannot perform the operation twice.
//   - errors.Is(err, ErrOutcomeUnknown): the request was sent and no usable answer came; look the outcome up before
//     calling again, unless SafeToRetry(err) holds.
//
// Success is a 2xx status and code 0, or rcode 000 for tokenize. A 2xx answer with another code is a rejection.
//
// # Secrets
//
// Card numbers, security codes, account numbers and the like have the type [Secret], which redacts itself under every fmt
// verb and in log/slog; errors and log records hold no bodies, queries, headers or path values.
// Redirects are not followed. The API key travels only in the Authorization header, only to the host of the base URL.
//
// # Logs, traces and metrics
//
// [WithLogger] logs one record for each attempt and each call, [WithObserver] tells the same to any other code, and
// package otelpayvault, a module of its own, makes OpenTelemetry spans and metrics of it. They get no IDs, queries, headers
// or bodies, but for what the service may repeat in the message of an error, which otelpayvault leaves out.
//
// What a JSON handler marshals by itself is the wire form, though: slices, maps and structs of your own. Log requests and
// results one by one, or give your types a LogValue method.
//
// # Lists
//
// [CustomersService.List] and [SubscriptionsService.Transactions] return one [Page], zero-based; All and AllTransactions walk
// over the records of all pages:
//
//	options := &payvault.ListOptions{
//		OrderOn:  "customer_id",
//		OrderBy:  payvault.Ascending,
//		Filters:  []payvault.Filter{payvault.Where("customer_email", "EQUALS", "jane@example.com")},
//		Prefetch: 8,
//	}
//	for customer, err := range client.Customers.All(ctx, options) {
//
// A walk is lazy, starts anew each time it is ranged over, and ends with its first error. Prefetch keeps pages in
// flight; the records come in order all the same. The interface shows one conditional, [CondBetweenDates], others that a service
// knows can be given as text. The largest Count is not shown.
//
// # Acting for another merchant
//
// [Client.ForMerchant] returns a client that sends the merchant_id of another merchant with every operation that takes one,
// and refuses all others: acting on the wrong merchant silently is the worst outcome.
//
// # Testing
//
// Package payvaulttest is an emulator of the whole service for tests without an account, with faults on demand.
//
// # Compatibility
//
// What the interface of the service does not show stays open in the types: enumerations are string types that take any
// value, and [Client.Call] reaches operations that are not typed. Unknown fields in answers are ignored. The two newest
// releases of Go are supported.
package payvault

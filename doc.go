// Package payvault is a client of a payment service: card and ACH tokenization, customer vault, payee vault, merchant
// application boarding, dispute responses, recurring billing, invoices, account updater and webhooks.
//
// # Quick start
//
// One [Client] holds a service per resource; each operation of the service is a method.
//
//	client, err := payvault.NewClient("https://sandbox.example.com", apiKey, payvault.WithMerchantID(212345))
//	if err != nil {
//		return err
//	}
//	token, err := client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
//		CardNumber: payvault.NewSecret("4111111111111111"),
//		ExpDate:    payvault.ExpDate(12, 2030),
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(token.CardID)
//
// Every call takes a context, which limits all its attempts together, and [CallOption] values last. A call that fails returns no
// result. No call changes what is passed to it. Nothing is read from the environment but the proxy variables of net/http, for https
// only; see [WithHTTPClient]. [WithResponse] gives status, header and raw body of an answer; [Client.Call] reaches operations that
// are not typed.
//
// # Concurrency
//
// A Client is safe for concurrent use; make one per API key and share it, so that its connections are shared too. Requests and
// options may be shared between calls, since they are only read. The [Response] of WithResponse belongs to one call at a time.
// Functions given to [WithKeySource], [WithObserver] and [NotificationHandler] are called concurrently. What iterators yield is
// yielded in the goroutine of the loop; no goroutine is left when a call, or a loop, has ended, but for that of a stream of cards
// that blocks, see [AccountUpdaterService.SubmitAll]. The methods of a [Journal] are called concurrently.
//
// # Retries and replay
//
// Whether an operation is repeated follows from what it does, never from its HTTP method. An operation is replayable if
// performing it twice changes nothing: it reads, or it saves the same data in the same place. The others are not, since a second
// performance could move money, send a message, or store or submit data once more. Delete, Cancel and AddEvent are among them
// because a repetition hides what happened: it may be refused since the first was performed, and look like a failure, or
// act on what somebody else has set up meanwhile.
//
//	operation                                    nothing was sent, or 429   lost, timed out, 502, 503, 504
//	Tokens.Tokenize without a CardID             repeated                   error, never repeated
//	Tokens.Tokenize with a CardID                repeated                   repeated
//	Customers.Create                             repeated                   error, never repeated
//	Customers.List, All                          repeated                   repeated
//	Payees.Create, Delete                        repeated                   error, never repeated
//	Applications.Create                          repeated                   error, never repeated
//	Applications.SaveData, Validate              repeated                   repeated
//	Disputes.Respond                             repeated                   error, never repeated
//	Subscriptions.Transactions, AllTransactions  repeated                   repeated
//	Subscriptions.Cancel                         repeated                   error, never repeated
//	Invoices.Send                                repeated                   error, never repeated
//	AccountUpdater.Submit, SubmitAll             repeated                   error, never repeated
//	Webhooks.AddEvent                            repeated                   error, never repeated
//	Client.Call                                  repeated                   repeated with Request.Replay
//
// Nothing was sent: no connection could be had. Lost is also an answer with a status below 400 whose connection ends before its
// body does. Connections speak HTTP/1.1; see [WithHTTPClient] for what a Transport of your own changes.
//
// That a status of 429 means that the request was not performed is an assumption of this package: the interface shows no statuses
// of failures (interface §7). Use [WithAttempts] with 1, and do not go by [SafeToRetry], if your service sees it otherwise.
//
// [WithReplay] lets the caller state that repeating one call is harmless. Then an attempt may be lost and the next one refused,
// with 404 or 409, because the first was performed: such an error has the status and the code of the refusal, and
// matches [ErrOutcomeUnknown].
//
// Not repeated, whatever the operation: any other status; an answer that came to its end but is malformed, cut off, without a code
// or a redirect; one that is too large; an untrusted certificate; a failing key source; a local check; the end of the context.
//
// There are four attempts at most, of up to a minute each, the key source's time included ([WithTimeout]; [WithAttempts] for one
// call). Waits grow exponentially with full jitter. A Retry-After header is honored up to 30 s: where the service asks for more, the
// call fails at once, with the time in Error.RetryAfter; see [RetryPolicy].
//
// The calls of a client share a budget of retries, of the size and with the costs of the standard mode of the AWS SDKs: 500, of which a
// retry takes 5, one after a timeout 10, and a success gives back what its last retry took, or 1. When a service is down, calls soon
// fail after their first attempt.
//
// The calls of one operation share a pace. It has no limit until a request is turned away with status 429. From then on each refusal
// lowers the rate, down to one request a second, and each answer raises it, until none is refused for a minute; and after a
// Retry-After of up to 30 s nothing is sent before its end. Calls wait for their turn; one whose context ends before is not sent and
// matches [ErrRateLimited], at once. Walks (All, AllTransactions, SubmitAll) wait out refusals as long as their context lasts, and end at
// one with a longer Retry-After, or at any if they have one attempt only. [Client.Call] has no pace. RetryPolicy.IgnoreOverload turns
// budget and pace off.
//
// # Errors
//
// Every error of a call is an [*Error]. Success is a 2xx status and code 0, or rcode 000 and a card_id for tokenize. A 2xx answer with
// another code, without one, cut off or not JSON is an error, but for code 2 of [ApplicationsService.Validate], which is its answer.
// To decide what to do with err, ask in this order:
//
//  1. errors.Is(err, [ErrInvalidRequest]) or [ErrMerchantNotSupported]: a local check failed and nothing was sent. Mend what
//     Error.Fields names.
//  2. [SafeToRetry](err): calling again does no harm. Nothing was sent, or the service turned the request away with 429, or the
//     operation is replayable by what it does and the failure may pass; WithReplay does not count here. Try again later, with
//     [ErrRateLimited] after Error.RetryAfter if it is set (24 hours at most), or once the cause is mended, such as an untrusted
//     certificate, a failing key source or a context that has ended.
//  3. errors.Is(err, [ErrOutcomeUnknown]): the request, of an operation that changes something, was sent and no usable answer came, or an attempt before the last one was
//     lost. It may have been performed: look the outcome up, in a list or with a person, before calling again. If you
//     do call again, remember that you had to: a refusal of the second call, such as [ErrNotFound] or [ErrConflict], may come from
//     the first having been performed. Within one call the package remembers it for you.
//  4. errors.Is(err, [ErrUnauthorized]) or [ErrForbidden]: mend the key or the rights of the account.
//  5. errors.Is(err, [ErrRejected]): the service refused; Error.Code, Error.Message and, with [ErrValidation], Error.Fields say why.
//  6. Anything else is a status without a code, in Error.StatusCode; [ErrNotFound] and [ErrConflict] match two of them.
//
// [context.Canceled] and [context.DeadlineExceeded] are matched besides if the context of the call ended it.
//
// Error.Delivery says what became of the request: [NotSent], it cannot have been performed; [Answered], the service decided;
// [Unknown], it may have been performed. [ErrUnavailable], [ErrMalformedResponse] and [ErrResponseTooLarge] say why an outcome is
// unknown.
//
// # Failures
//
// What happens under each failure, which the test TestMatrix proves for every operation and prints:
//
//	failure                                            replayable       all others
//	no connection, DNS failure, TLS handshake cut off  retried          retried
//	untrusted certificate                              error: not sent  error: not sent
//	idle connection dead, nothing written              retried          retried
//	connection closed while it is made or written to   retried          error: unknown or retried
//	connection lost or attempt timed out               retried          error: unknown, never repeated
//	429                                                retried          retried
//	429, Retry-After beyond the cap                    error: answered  error: answered
//	502, 503, 504                                      retried          error: unknown, never repeated
//	any other 5xx                                      error: unknown   error: unknown
//	401, 403, 404, 409; 200 with another code          error: answered  error: answered
//	200 empty, cut off, malformed or without a code    error: unknown   error: unknown
//	endless body, compressed bomb, redirect            error: unknown   error: unknown
//
// # Secrets
//
// Card numbers, security codes, account numbers and the like have the type [Secret], made by [NewSecret]. Whatever prints,
// logs or encodes one shows [REDACTED] in its place, wherever it is in your own values; json.Marshal of a request does so
// too. A request that has to wait takes its wire form from [MarshalWire], with all that this means for card data.
// Redirects are not followed. The API key travels only in the Authorization header, only to the host of the base URL.
//
// This package puts nothing of a request into an error: no body, query, header or path value. But an error has what the service says,
// as Error.Code, Message, Detail and Fields, and all of that stands in its text and so in log records. They are
// cleared of every run of 12 digits or more, whosever card number it may be and whatever stands between the digits but
// letters; a date with a time may go with them. And they are cleared of what the call is known to hold, wherever that
// has three characters or more: the secrets of the request, number, name and data of a swiped card, all API keys that
// were used and their tokens, the IDs in the path, the values in the query (not order_on, order_by, count, page and
// merchant_id), and the values given to [WithHeader]. Entities, percent-encoding and backslash escapes are seen
// through. A code of fewer than eight characters stays as it is. Anything else the service
// may repeat: names, e-mail addresses and the customer_id of a body, what an untyped body of [Client.Call] holds outside of
// Secrets, data of other people. Where that must not be logged, log operation, status, delivery and [CallResult.ErrorClass] only. The
// error of your key source and the cause of your context stand in an error as you made them.
//
// What is no Secret is printed and logged as any Go value is: names, addresses and masked numbers in requests and results.
// [Response], [Notification], [Request], [Filter] and [File], whose contents may be anything, show what they are only,
// under fmt and where they are logged by themselves.
//
// # Logs, traces and metrics
//
// [WithLogger] logs one record for each attempt, "payvault attempt" at Debug, and one for each call, "payvault call": at Debug if it
// succeeds, at Warn if it fails or something of the answer to a write could not be read, and at Error if its outcome is unknown. Their
// attributes:
//
//	operation     text        such as "invoices.send"
//	status        int         HTTP status; 0 if no response arrived
//	code          text        platform code or rcode; "" for an attempt, whose body is not decoded
//	attempts      int         how many there were; for an attempt its number, from 1
//	delivery      text        "not sent", "unknown" or "answered"
//	duration      duration    of a call with its waits
//	error_class   text        one word, see CallResult.ErrorClass; only with an error
//	error         text        of the error, on one line, with the service's message; only with an error
//	unread        text        JSON pointers to what could not be read of the answer to a write; only if there are any
//	waited        duration    of an attempt that was held back by the pace of its operation
//	budget_spent  bool        of an attempt that was not repeated since the budget of retries was spent
//
// [WithObserver] tells the same to any other code, and package otelpayvault, a module of its own, makes OpenTelemetry spans and
// metrics of it. None of them gets an ID, a query, a header or a body of the request. What the service says is in the attribute error,
// and observers have it in CallResult.Err and CallResult.Code, cleared as described above; otelpayvault leaves it out.
//
// # Paging
//
// [CustomersService.List] and [SubscriptionsService.Transactions] return one [Page], zero-based; All and AllTransactions walk
// over the records of all pages:
//
//	today := time.Now()
//	from, to := payvault.DateOf(today.AddDate(0, -1, 0)), payvault.DateOf(today)
//	options := &payvault.ListOptions{
//		OrderOn:  "tran_time",
//		OrderBy:  payvault.Ascending,
//		Filters:  []payvault.Filter{payvault.BetweenDates("tran_date", from, to)},
//		Prefetch: 8,
//	}
//	for transaction, err := range client.Subscriptions.AllTransactions(ctx, id, options) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(transaction.Time, transaction.AmtTran)
//	}
//
// A walk is lazy, starts anew each time it is ranged over, and ends with its first error. Prefetch keeps pages in
// flight; the records come in order all the same. The interface shows one conditional, [CondBetweenDates]; others that your
// service knows can be given to [Where] as text. The largest Count is not shown. Records that are added or removed meanwhile can move others from page
// to page: sort by a field that does not change.
//
// # Acting for another merchant
//
// [Client.ForMerchant] returns a client that sends the merchant_id of another merchant with every operation that takes one,
// and refuses all others: acting on the wrong merchant silently is the worst outcome.
//
// # Testing
//
// Package payvaulttest is an emulator of the whole service for tests without an account, with faults on demand:
//
//	srv := payvaulttest.NewServer()
//	defer srv.Close()
//	client := srv.Client()
//	page, err := client.Customers.List(ctx, nil)
//	if err != nil {
//		return err
//	}
//	fmt.Println(page.TotalRecords)
//
// Services are plain structs: for a fake of your own, declare an interface with the one method that your code calls.
//
// # Compatibility and versions
//
// What the interface of the service does not show stays open in the types: enumerations are string types that take any
// value, and unknown fields in answers are ignored.
//
// Versions follow semantic versioning. Before 1.0.0 a minor version may change the API and a patch version does not; from 1.0.0 on
// only a major version may, under a module path of its own. CHANGELOG.md names every visible change, and api/payvault.txt lists the API.
// A version that must not be used is retracted in go.mod, with the reason, and the go command reports it.
//
// Not part of the promise are: the text of errors and log messages, fields and methods that are added (write struct literals with field names),
// and what the emulator chooses where the interface shows nothing.
//
// The two newest releases of Go are supported, now 1.26 and 1.27. Support for an older one ends with a minor version.
package payvault

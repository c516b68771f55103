// Package payvault is a client of a payment service: card and ACH tokenization, customer vault, payee vault, merchant
// application boarding, dispute responses, recurring billing, invoices, account updater and webhooks.
//
// # Quick start
//
// A [Client] has a field for each resource, such as Tokens. Each documented operation of the service is a method of
// one of these fields.
//
//	client, err := payvault.NewClient("https://sandbox.example.com", apiKey, payvault.WithMerchantID(212345))
//	if err != nil {
//		return err
//	}
//	token, err := client.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
//		CardNumber: payvault.NewSecret("4111111111111111"),
//		ExpDate:    payvault.FormatExpDate(12, 2030),
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(token.CardID)
//
// Make one Client per API key and share it: it is safe for concurrent use. Functions that you give to a Client are
// called concurrently, and so are the methods of a [Journal]. Every call takes a context first and [CallOption] values
// last. The context limits all attempts of the call together. No call changes its arguments. A call that fails returns
// no result. Iterators yield in the goroutine of the loop.
//
// [Client.ForMerchant] returns a client that acts for another merchant. This client refuses operations that cannot act
// for another merchant. [Client.Call] performs operations that have no method of their own. [WithResponse] gives the
// status, the header and the raw body of an answer.
//
// # Errors
//
// Every error of a call is an [*Error] or wraps one, except the [StopError] of SubmitAll. An answer with a 2xx status
// is an error too if it is cut off, is not JSON, or does not have the code (the rcode, for Tokenize) that means
// success. The exception is [ApplicationsService.Validate]: its code 2 with messages about fields is a normal answer.
// Check an error in this order:
//
//   - errors.Is(err, [ErrInvalidRequest]) or [ErrMerchantNotSupported]: a local check failed and nothing was sent.
//     Correct the fields in Error.Fields, or use a client without ForMerchant.
//   - [SafeToRetry](err): calling again does no harm. Wait for Error.RetryAfter first, if it is set. If the cause is an
//     ended context, a certificate or a key source, remove the cause first.
//   - errors.Is(err, [ErrOutcomeUnknown]): the operation may have been performed. docs/unknown.md says where to look
//     before calling again, and for which operations nothing shows the outcome. A second call may fail with
//     [ErrNotFound] or [ErrConflict] because the first call succeeded.
//   - errors.Is(err, [ErrUnauthorized]) or [ErrForbidden]: the key or the rights of the account are wrong. Without
//     Error.Code, a firewall may have refused.
//   - errors.Is(err, [ErrRejected]): the service refused. Error.Code, Message and Fields say why.
//   - Any other error of a call that was sent is about its answer: it matches [ErrMalformedResponse] or
//     [ErrResponseTooLarge], or Error.StatusCode says what came.
//
// Error.Delivery says whether the request reached the service: [DeliveryNotSent], [DeliveryAnswered] or
// [DeliveryUnknown].
//
// # Retries
//
// An operation is replayable if performing it twice has the same effect as performing it once. The HTTP method does not
// matter. The comment of each method says whether it is replayable, and ends with its endpoint. An operation that is
// not replayable is repeated only after status 429, or if it cannot have been performed ([DeliveryNotSent]); see
// [SafeToRetry]. [WithReplay] makes one call replayable. After a failure, a call is repeated or returns an error:
//
//	failure                                    replayable               all others
//	no connection: nothing was sent            repeated                 repeated
//	no API key, untrusted certificate          error, DeliveryNotSent   error, DeliveryNotSent
//	status 429                                 repeated                 repeated
//	429 or 503, Retry-After beyond 30 s        error                    error (of a 503: of unknown outcome)
//	lost, timed out, status 502, 503, 504      repeated                 error of unknown outcome
//	status 408 on a connection used before     repeated                 error of unknown outcome
//	status 403 without a code that refuses     error, DeliveryUnknown   error of unknown outcome
//	any other status from 500 on               error, DeliveryUnknown   error of unknown outcome
//	2xx or 3xx that is no documented answer    error, DeliveryUnknown   error of unknown outcome
//	other 400 to 499, or a code that refuses   error, DeliveryAnswered  error, DeliveryAnswered
//
// By default a call makes at most four attempts. All calls of a client share a budget of retries. After a 429 all calls
// of the same operation slow down, except those of [Client.Call]. By default, iterators and SubmitAll wait after every
// 429, unless its Retry-After is beyond 15 minutes or the deadline of the context. See [RetryPolicy] for the settings,
// and docs/failures.md for every failure.
//
// # Secrets
//
// Card and account numbers, security codes and similar data have the type [Secret]. A Secret that is printed, logged or
// encoded appears as [REDACTED]. This package itself writes no value of a request into an error or a log record. Texts
// of the service in errors and log records may repeat such values. So card numbers, secrets of the request, API keys,
// IDs in the path and values of the query are redacted in these texts. docs/secrets.md lists the values that may
// remain.
//
// # More
//
// The directory docs of the repository has, among others, these pages: in-your-service.md (recipes), failures.md,
// answers.md (how the answers of the service are read), unknown.md, secrets.md, partners.md, paging.md (lists and
// filters), bulk.md ([AccountUpdaterService.SubmitAll]), logging.md ([WithLogger] and [WithObserver]), works-with.md
// (proxies, RoundTrippers and tools) and versions.md (changes between versions). Package payvaulttest is an emulator of
// the service for your tests, with faults on demand. The modules otelpayvault, sqlpayvault and temporalpayvault are for
// OpenTelemetry, for journals in a database, and for Temporal.
package payvault

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
//		ExpDate:    payvault.FormatExpDate(12, 2030),
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(token.CardID)
//
// Make one Client per API key and share it: it is safe for concurrent use. Functions given to it are called
// concurrently, and so are the methods of a [Journal]. Every call takes a context, which limits all its attempts
// together, and [CallOption] values last. No call changes what is passed to it; one that fails returns no result.
// Iterators yield in the goroutine of the loop.
//
// [Client.ForMerchant] acts for another merchant and refuses operations that cannot. [Client.Call] reaches operations
// that are not typed. [WithResponse] gives status, header and raw body of an answer.
//
// # Errors
//
// Every error of a call is an [*Error]. A 2xx answer whose code (rcode, of Tokenize) does not say success, or that is
// cut off or not JSON, is an error too, but for code 2 of [ApplicationsService.Validate] with messages about fields,
// which is its answer. Ask in this order:
//
//   - errors.Is(err, [ErrInvalidRequest]) or [ErrMerchantNotSupported]: a local check failed and nothing was sent.
//     Correct what Error.Fields names, or use a client without ForMerchant.
//   - [SafeToRetry](err): calling again does no harm. Try again after Error.RetryAfter if it is set, or once the cause
//     is removed (certificate, key source, a context that has ended), or later.
//   - errors.Is(err, [ErrOutcomeUnknown]): it may have been performed. docs/unknown.md says where to look before
//     calling again, and for which operations nothing shows the outcome. A refusal of the second call, such as
//     [ErrNotFound] or [ErrConflict], may come from the first one.
//   - errors.Is(err, [ErrUnauthorized]) or [ErrForbidden]: the key or the rights of the account are wrong.
//   - errors.Is(err, [ErrRejected]): the service refused; Error.Code, Message and Fields say why.
//   - Anything else is a status without a code, in Error.StatusCode.
//
// Error.Delivery says what became of the request: [DeliveryNotSent], [DeliveryAnswered] or [DeliveryUnknown].
//
// # Retries
//
// An operation is replayable if performing it twice changes nothing: all that only read, SaveData, and Tokenize with
// a CardID. [WithReplay] says so of one call. The HTTP method says nothing of it. After a failure:
//
//	failure                                    replayable               all others
//	no connection: nothing was sent            repeated                 repeated
//	no API key, untrusted certificate          error, DeliveryNotSent   error, DeliveryNotSent
//	status 429                                 repeated                 repeated
//	429 or 503, Retry-After beyond 30 s        error                    error (of a 503: of unknown outcome)
//	lost, timed out, status 502, 503, 504      repeated                 error of unknown outcome
//	any other status from 500 on               error, DeliveryUnknown   error of unknown outcome
//	2xx or 3xx that is no documented answer    error, DeliveryUnknown   error of unknown outcome
//	status 400 to 499, or a code that refuses  error, DeliveryAnswered  error, DeliveryAnswered
//
// There are four attempts at most, within a budget that the calls of a client share. Refusals with status 429 slow down
// all calls of the operation; iterators and SubmitAll wait out any number of them, for up to 15 minutes each. See
// [RetryPolicy], and docs/failures.md for every failure.
//
// # Secrets
//
// Card and account numbers, security codes and the like have the type [Secret]: whatever prints, logs or encodes one
// shows [REDACTED]. Nothing of a request is in an error or a log record, and what the service says is cleared of card
// numbers, secrets of the request, keys, IDs in the path and values of the query. docs/secrets.md says what it may
// still repeat.
//
// # More
//
// The repository has, in docs: failures.md; secrets.md; partners.md; paging.md, on lists and filters; bulk.md, on
// [AccountUpdaterService.SubmitAll]; logging.md, on [WithLogger] and [WithObserver]; versions.md, on what may change.
// Package payvaulttest is an emulator of the service for your tests, with faults on demand; otelpayvault,
// sqlpayvault and temporalpayvault are modules for OpenTelemetry, for journals in a database, and for Temporal.
package payvault

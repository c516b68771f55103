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
// together, and [CallOption] values last. No call changes its arguments. A call that fails returns no result. Iterators
// yield in the goroutine of the loop.
//
// [Client.ForMerchant] acts for another merchant, and refuses operations that cannot do so. [Client.Call] performs
// operations that have no typed method. [WithResponse] gives status, header and raw body of an answer.
//
// # Errors
//
// Every error of a call is an [*Error]. A 2xx answer is an error too if it is cut off, is not JSON, or has a code (an
// rcode, for Tokenize) that does not mean success. The exception is [ApplicationsService.Validate]: code 2 with
// messages about fields is its normal answer. Ask in this order:
//
//   - errors.Is(err, [ErrInvalidRequest]) or [ErrMerchantNotSupported]: a local check failed and nothing was sent.
//     Correct the fields in Error.Fields, or use a client without ForMerchant.
//   - [SafeToRetry](err): calling again does no harm. Wait for Error.RetryAfter if it is set. If the cause is a
//     certificate, a key source or a context that has ended, remove the cause first.
//   - errors.Is(err, [ErrOutcomeUnknown]): the operation may have been performed. docs/unknown.md says where to look
//     before calling again, and for which operations nothing shows the outcome. A second call may be refused, as with
//     [ErrNotFound] or [ErrConflict], because the first one succeeded.
//   - errors.Is(err, [ErrUnauthorized]) or [ErrForbidden]: the key or the rights of the account are wrong.
//   - errors.Is(err, [ErrRejected]): the service refused. Error.Code, Message and Fields say why.
//   - Any other error has a status without a code: see Error.StatusCode.
//
// Error.Delivery is the fate of the request: [DeliveryNotSent], [DeliveryAnswered] or [DeliveryUnknown].
//
// # Retries
//
// An operation is replayable if performing it twice does no more than performing it once. These are the operations that
// only read, SaveData, and Tokenize with a CardID. [WithReplay] makes one call replayable. The HTTP method does not
// matter. After a failure:
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
// A call makes four attempts at most. All calls of a client share a budget of retries. After a 429 all calls of the
// operation slow down. Iterators and SubmitAll wait after every 429, up to 15 minutes each time. See [RetryPolicy], and
// docs/failures.md for every failure.
//
// # Secrets
//
// Card and account numbers, security codes and similar data have the type [Secret]. A Secret that is printed, logged or
// encoded is [REDACTED]. No error and no log record holds a value of a request. Texts of the service are cleared of
// card numbers, secrets of the request, keys, IDs in the path and values of the query. docs/secrets.md lists the values
// that an error may still repeat.
//
// # More
//
// The repository has, in docs: failures.md; secrets.md; partners.md; paging.md, on lists and filters; bulk.md, on
// [AccountUpdaterService.SubmitAll]; logging.md, on [WithLogger] and [WithObserver]; versions.md, on changes between
// versions. Package payvaulttest is an emulator of the service for your tests, with faults on demand. The modules
// otelpayvault, sqlpayvault and temporalpayvault are for OpenTelemetry, for journals in a database, and for Temporal.
package payvault

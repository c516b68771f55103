// Package otelpayvault traces and measures the calls of a payvault client with OpenTelemetry. Pass the result of
// [Observer] to [payvault.WithObserver]. Without options, Observer uses the global providers of OpenTelemetry.
//
// # Spans
//
// Each call has an internal span that is named after its operation, such as "invoices.send". Each attempt of the call
// has a client span, which is a child of the span of the call. The client span is named after the method and the path
// template, such as "POST /platform/invoice/{invoice_id}/send". The table lists all attributes of the spans. This
// package defines the attributes with payvault in their names. The others follow the semantic conventions for HTTP,
// version 1.43.
//
//	attribute                   of                value
//	payvault.operation          calls, attempts   such as "invoices.send"; for Client.Call Request.Name or "client.call"
//	http.request.method         calls, attempts   such as "POST", "_OTHER" for an unknown method
//	url.template                calls, attempts   path below the base URL; none for Client.Call
//	server.address              calls, attempts   host of the base URL
//	server.port                 calls, attempts   port of the base URL
//	http.response.status_code   calls, attempts   none if no response arrived
//	error.type                  calls, attempts   see below; none without an error
//	payvault.delivery           calls, attempts   "not sent", "unknown" or "answered"
//	http.request.resend_count   attempts          1 for the second attempt, and so on
//	payvault.attempts           calls             number of attempts
//	payvault.code               calls             platform code or rcode; "" for none, "other" if long or unusual
//
// The error.type of an attempt is its HTTP status if that is 400 or above, as the conventions require, or else the
// result of CallResult.ErrorClass. The error.type of a call is "outcome_unknown" or "rate_limited" if ErrorClass
// returns that class. In all other cases it is chosen as for an attempt. A call without an error has no error.type,
// although Validate can succeed with status 400 or 422.
//
// The context of the HTTP requests of a call has the span of the call. So this span is the parent of the spans that a
// transport of [payvault.WithHTTPClient] makes. The span of an attempt is made when the attempt is over, with the times
// of the attempt. If the key source returns no valid key, the attempt makes no HTTP request. Such an attempt has no
// span and no record of http.client.request.duration.
//
// # Metrics
//
//   - http.client.request.duration, a histogram in seconds with the buckets of the semantic conventions: one record for
//     each attempt, with payvault.operation and the attributes above whose names begin with http, url, server or error,
//     except the resend count.
//   - payvault.client.operation.duration, a histogram in seconds: one record for each call, waits between attempts
//     included, with payvault.operation, payvault.delivery and error.type.
//   - payvault.client.operation.retries, a counter: attempts after the first one of a call, with payvault.operation.
//
// # What is not there
//
// Spans and metrics have no IDs, queries, headers or bodies. They have no messages of the service either, because these
// may repeat values of the request. They have url.template instead of url.full, and no http.request.method_original. Do
// not also wrap the transport with otelhttp: it would write the whole URL into its spans, and count
// http.client.request.duration a second time. No trace header is sent to the service.
package otelpayvault

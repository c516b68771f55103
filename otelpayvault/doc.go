// Package otelpayvault traces and measures the calls of a payvault client with OpenTelemetry. Pass the result of
// [Observer] to [payvault.WithObserver]. Without options it uses the global providers.
//
// # Spans
//
// Each call is an internal span that is named after its operation, such as "invoices.send". Each of its attempts is a
// client span below it, named by method and path template, such as "POST /platform/invoice/{invoice_id}/send". The
// attributes follow the semantic conventions for HTTP, version 1.43. Those with payvault in the name are the package's
// own:
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
//	payvault.code               calls             platform code or rcode; "" for none, "other" for a longer text
//
// error.type of an attempt is the status from 400 on, as the conventions require, else CallResult.ErrorClass. For a
// call it is "outcome_unknown" if a write may have been performed, and "rate_limited" after a 429, whatever the status.
//
// The span of a call is in the context of its HTTP requests, so the spans that a transport of [payvault.WithHTTPClient]
// makes are below it. The span of an attempt is made when the attempt is over, with the times of the attempt. If the
// key source gave no key, an attempt made no HTTP request. Then it has no span and no record of
// http.client.request.duration.
//
// # Metrics
//
//   - http.client.request.duration, a histogram in seconds with the buckets of the semantic conventions: one record for
//     each attempt, with payvault.operation and the attributes above whose names begin with http, url, server and
//     error, without the resend count.
//   - payvault.client.operation.duration, a histogram in seconds: one record for each call, waits between attempts
//     included, with payvault.operation, payvault.delivery and error.type.
//   - payvault.client.operation.retries, a counter: attempts after the first one of a call, with payvault.operation.
//
// # What is not there
//
// There are no IDs, queries, headers and bodies, and no texts of the service, which may repeat any of these. In place
// of url.full there is url.template, and there is no http.request.method_original. For the same reason do not wrap the
// transport with otelhttp besides this package: otelhttp writes the whole URL, and counts http.client.request.duration
// once more. No trace header is sent to the service.
package otelpayvault

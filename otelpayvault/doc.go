// Package otelpayvault traces and measures the calls of a payvault client with OpenTelemetry: give what [Observer] returns
// to [payvault.WithObserver]. Without options it uses the global providers.
//
// # Spans
//
// Each call is an internal span that is named by its operation, such as "invoices.send", and each of its attempts a
// client span below it, named by method and path template, such as "POST /platform/invoice/{invoice_id}/send", with the
// attributes of the semantic conventions for HTTP: http.request.method, url.template, server.address, server.port,
// http.response.status_code, http.request.resend_count and error.type. Of its own the package adds payvault.operation and
// payvault.delivery ("not sent", "unknown" or "answered"), and to the span of a call payvault.code and payvault.attempts.
//
// The span of a call is in the context of its HTTP requests, so what a transport of [payvault.WithHTTPClient] traces
// comes below it. An attempt is told when it is over; its span is made then, with the times that it had.
//
// # Metrics
//
//   - http.client.request.duration, in seconds, as the semantic conventions define it: one record for each attempt.
//   - payvault.client.operation.duration, in seconds: one record for each call, waits between attempts included.
//   - payvault.client.operation.retries: attempts after the first one of a call.
//
// # What is not there
//
// IDs, queries, headers, bodies, and texts of the service, which may repeat any of them: where the conventions want
// url.full there is url.template. For the same reason do not wrap the transport with otelhttp besides this package: it
// writes the whole URL, and counts http.client.request.duration once more. No trace header is sent to the service.
package otelpayvault

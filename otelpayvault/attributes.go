package otelpayvault

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"example.com/payvault"
)

// OpenTelemetry has no semantic convention for these attributes.
const (
	operationKey = attribute.Key("payvault.operation")
	codeKey      = attribute.Key("payvault.code")
	attemptsKey  = attribute.Key("payvault.attempts")
	deliveryKey  = attribute.Key("payvault.delivery")
)

// request returns the attributes that are known before anything is sent.
func request(call payvault.CallInfo) []attribute.KeyValue {
	host, port := server(call)
	attrs := []attribute.KeyValue{
		operationKey.String(string(call.Op)), semconv.HTTPRequestMethodKey.String(method(call)),
		semconv.ServerAddress(host), semconv.ServerPort(port),
	}
	return append(attrs, template(call)...)
}

// answer returns the attributes that the results of attempts and of calls have in common.
func answer(r payvault.CallResult) []attribute.KeyValue {
	return append(outcome(r), deliveryKey.String(r.Delivery.String()))
}

// outcome returns the status and the error type of a result. It leaves out the delivery, which the metric
// http.client.request.duration does not have.
func outcome(r payvault.CallResult) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if r.StatusCode != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(r.StatusCode))
	}
	return append(attrs, failure(r)...)
}

// failure returns the attribute error.type, or none for a success.
func failure(r payvault.CallResult) []attribute.KeyValue {
	if kind := errorType(r); kind != "" {
		return []attribute.KeyValue{semconv.ErrorTypeKey.String(kind)}
	}
	return nil
}

// errorType returns the value of error.type, or "" for a success. The value is the first of these that applies:
//   - the class of the error, if it is outcome_unknown or rate_limited
//   - the HTTP status if it is 400 or above, as the conventions require
//   - any other class of the error
//
// A call of Validate is a success even if the application does not pass. Such a call has no Err, has the Code 2, and
// may have status 400 or 422.
func errorType(r payvault.CallResult) string {
	class := r.ErrorClass()
	switch {
	case class == "outcome_unknown", class == "rate_limited":
		return class
	case r.StatusCode >= http.StatusBadRequest && (r.Err != nil || r.Code == ""):
		return strconv.Itoa(r.StatusCode)
	}
	return class
}

// code returns the attribute of the platform code. A code that is long or has unusual characters becomes "other",
// because the service chooses its text.
func code(r payvault.CallResult) attribute.KeyValue {
	const longest, allowed = 12, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if len(r.Code) > longest || strings.Trim(r.Code, allowed) != "" {
		return codeKey.String("other")
	}
	return codeKey.String(r.Code)
}

// sentNothing reports whether an attempt made no HTTP request, because the key source returned no valid API key.
func sentNothing(r payvault.CallResult) bool {
	return r.StatusCode == 0 && r.Delivery == payvault.DeliveryNotSent && r.ErrorClass() == "no_key"
}

// template returns the attribute url.template, or none for Client.Call.
func template(call payvault.CallInfo) []attribute.KeyValue {
	if call.Path == "" {
		return nil
	}
	return []attribute.KeyValue{semconv.URLTemplate(call.Path)}
}

// server returns the host and the port of the base URL.
func server(call payvault.CallInfo) (host string, port int) {
	host, text, err := net.SplitHostPort(call.Server)
	if err != nil {
		return call.Server, 0
	}
	port, _ = strconv.Atoi(text) // 0 if the port is a name
	return host, port
}

const otherMethod = "_OTHER"

// method returns the HTTP method. An unknown method of a Client.Call becomes _OTHER, as the conventions require.
func method(call payvault.CallInfo) string {
	known := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, semconv.HTTPRequestMethodQuery.Value.AsString(),
	}
	if slices.Contains(known, call.Method) {
		return call.Method
	}
	return otherMethod
}

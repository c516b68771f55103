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

// Attributes for which there is no semantic convention.
const (
	operationKey = attribute.Key("payvault.operation")
	codeKey      = attribute.Key("payvault.code")
	attemptsKey  = attribute.Key("payvault.attempts")
	deliveryKey  = attribute.Key("payvault.delivery")
)

// request is known before anything is sent.
func request(call payvault.CallInfo) []attribute.KeyValue {
	host, port := server(call)
	attrs := []attribute.KeyValue{
		operationKey.String(string(call.Op)), semconv.HTTPRequestMethodKey.String(method(call)),
		semconv.ServerAddress(host), semconv.ServerPort(port),
	}
	return append(attrs, template(call)...)
}

// answer is what an attempt and a call have in common.
func answer(r payvault.CallResult) []attribute.KeyValue {
	return append(outcome(r), deliveryKey.String(r.Delivery.String()))
}

// outcome is the part of the answer that is also an attribute of http.client.request.duration.
func outcome(r payvault.CallResult) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if r.StatusCode != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(r.StatusCode))
	}
	return append(attrs, failure(r)...)
}

func failure(r payvault.CallResult) []attribute.KeyValue {
	if kind := errorType(r); kind != "" {
		return []attribute.KeyValue{semconv.ErrorTypeKey.String(kind)}
	}
	return nil
}

// errorType is the class of an unknown outcome or of a refusal for the rate, else the status of an answer that refuses,
// as the conventions want it, and else the class of the error. An attempt that is answered has no class.
// Code 2 of Validate is its answer and no error if the status is 2xx, 400 or 422; there is no Err then, but a Code.
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

// code is one of the platform, or "other": it is text of the service, of any length, and could hold anything.
func code(r payvault.CallResult) attribute.KeyValue {
	const longest, allowed = 12, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if len(r.Code) > longest || strings.Trim(r.Code, allowed) != "" {
		return codeKey.String("other")
	}
	return codeKey.String(r.Code)
}

// sentNothing reports whether there was no key for an attempt: then there was no HTTP request either, not even a
// connection.
func sentNothing(r payvault.CallResult) bool {
	return r.StatusCode == 0 && r.Delivery == payvault.DeliveryNotSent && r.ErrorClass() == "no_key"
}

func template(call payvault.CallInfo) []attribute.KeyValue {
	if call.Path == "" {
		return nil
	}
	return []attribute.KeyValue{semconv.URLTemplate(call.Path)}
}

func server(call payvault.CallInfo) (host string, port int) {
	host, text, err := net.SplitHostPort(call.Server)
	if err != nil {
		return call.Server, 0
	}
	port, _ = strconv.Atoi(text) // 0 for a name
	return host, port
}

const otherMethod = "_OTHER"

// method replaces what is not a method of HTTP, as the conventions want it: a caller of Client.Call can give any text.
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

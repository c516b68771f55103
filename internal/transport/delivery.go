package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"sync/atomic"

	"example.com/payvault/internal/trust"
)

// This file decides whether the service may have performed the request of an attempt. The hooks of httptrace report the
// steps of net/http.

// Delivery says whether a request may have been performed.
type Delivery uint8

// Unknown is the zero value, so that a Delivery that was not set does not mean NotSent.
const (
	Unknown  Delivery = iota // the request may have been performed, and no response says whether it was
	NotSent                  // the request cannot have been performed: too little of it was written
	Answered                 // a response came that belongs to the request; a success has its whole body
)

// String returns the name of a delivery.
func (d Delivery) String() string {
	return [...]string{Unknown: "unknown", NotSent: "not sent", Answered: "answered"}[d]
}

// attemptTrace records which hooks net/http has called in one attempt. The caller's RoundTripper may call only some
// hooks, or none.
type attemptTrace struct {
	hooks httptrace.ClientTrace // see newTrace

	asked        atomic.Bool  // net/http has begun to look for a connection
	connections  atomic.Int32 // number of connections that the attempt got
	reused       atomic.Bool  // the last connection had been used before
	wroteHeaders atomic.Bool
}

// newTrace returns an attemptTrace whose hooks record in it what net/http does.
func newTrace() *attemptTrace {
	t := &attemptTrace{}
	t.hooks = httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			if isNowhere(info.Conn) {
				return
			}
			t.reused.Store(info.Reused)
			t.connections.Add(1)
		},
		WroteHeaders: func() {
			wroteNowhere := t.connections.Load() == 0
			if !wroteNowhere {
				t.wroteHeaders.Store(true)
			}
		},
	}
	return t
}

// isNowhere reports whether a connection has no remote address. httputil.DumpRequestOut writes a request to such a
// connection, and calls the hooks of the attempt if a RoundTripper logs the request with DumpRequestOut.
func isNowhere(conn net.Conn) bool { return conn != nil && conn.RemoteAddr() == nil }

// isNew reports whether the hooks prove that the last connection was new.
func (t *attemptTrace) isNew() bool { return t.connections.Load() > 0 && !t.reused.Load() }

// deliveryWithResponse returns Answered, but Unknown for status 408 on a connection that may have been used before.
// Servers end idle connections with this status. The server may have written the 408 before the request arrived. Then
// the 408 is no answer to the request.
func deliveryWithResponse(status int, trace *attemptTrace) Delivery {
	if status == http.StatusRequestTimeout && !trace.isNew() {
		return Unknown
	}
	return Answered
}

// mayHaveResent reports whether the RoundTripper may have sent the request on an earlier connection too. A standard
// RoundTripper (see inspect) does so only if Replay permits it (see setBody). Any other RoundTripper may always do so.
func (c *call) mayHaveResent(trace *attemptTrace) bool {
	return trace.connections.Load() > 1 && (c.Replay || !c.client.standard)
}

// deliveryWithoutResponse returns NotSent if the service cannot have performed the request, and otherwise Unknown.
// bodyMayBeRead is true if net/http may have read a part of the body.
func (c *call) deliveryWithoutResponse(err error, trace *attemptTrace, bodyMayBeRead bool) Delivery {
	if c.isProvenUnsent(err, trace, bodyMayBeRead) {
		return NotSent
	}
	return Unknown
}

// isProvenUnsent reports whether the service cannot have performed a request that failed with err. A service may
// perform a request as soon as it has the headers. So one of two facts has to be proven: the end of the headers was not
// sent, or nobody has tried to send the request.
func (c *call) isProvenUnsent(err error, trace *attemptTrace, bodyMayBeRead bool) bool {
	bodyIsUnread := c.Length > 0 && !bodyMayBeRead
	switch {
	case isUnprocessed(err, trace):
		return true
	case trace.wroteHeaders.Load():
		// On HTTP/1 net/http calls WroteHeaders before it flushes its buffer, and reads the body after the flush. HTTP/2
		// calls WroteHeaders after the flush, and reads the body if the flush did not fail. So if a write failed and the body
		// is unread, the flush failed, and the end of the headers was not sent.
		return bodyIsUnread && isWriteError(err)
	case c.client.onlyHTTP1:
		return true // the end of the headers was not even in the buffer

	// From here on the RoundTripper may use HTTP/2, which may have sent the headers although WroteHeaders was not called.
	case !trace.asked.Load():
		return false // a RoundTripper that calls no hooks may have sent the request
	case c.client.standard && trace.connections.Load() == 0:
		return true // an *http.Transport got no connection, which also proves it for a request without a body
	default:
		// Unless a context has ended, an unread body proves that the headers were not sent. A RoundTripper that calls
		// WroteHeaders would have called it by now. A RoundTripper that never calls it is assumed to read the body before it
		// sends the headers. When a context ends, HTTP/2 returns although it may still be writing the headers.
		return bodyIsUnread && !isContextError(err)
	}
}

// unprocessed has the texts of errors for a request that no server has processed. net/http has no types for them.
//   - "cannot retry err": a GOAWAY frame left out the HTTP/2 stream of the request, or the server refused the stream
//     (RFC 9113, sections 6.8 and 8.7). If the server reset a stream with another code, such as PROTOCOL_ERROR, it may
//     have processed the stream.
//   - "could not be established": the HTTP/2 connection closed before its first stream.
//   - "cannot rewind body": net/http wants to repeat a request whose body can be read only once. It wants this only if
//     it has opened no HTTP/2 stream for the request, for example because the connection had closed.
var unprocessed = regexp.MustCompile(`^http2: Transport: cannot retry err \[(` +
	`http2: Transport received Server's graceful shutdown GOAWAY|` +
	`stream error: stream ID \d+; REFUSED_STREAM; received from peer` +
	`)\] after Request\.Body was written; define Request\.GetBody to avoid this error$|` +
	`^http2: client conn could not be established$|` +
	`^net/http: cannot rewind body after connection loss$`)

// isUnprocessed reports whether err proves that the server has not processed the request. There are two proofs:
//   - the text of an error of net/http, which a RoundTripper may have wrapped;
//   - an alert about the client's certificate on a new connection: a server that refuses the certificate reads no
//     request.
//
// Both prove something only if the attempt got exactly one connection. If it got two, a RoundTripper may have sent the
// request on the first one. If the trace has none, a RoundTripper may have used connections without calling the hooks.
func isUnprocessed(err error, trace *attemptTrace) bool {
	if trace.connections.Load() != 1 {
		return false
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if unprocessed.MatchString(e.Error()) {
			return true
		}
	}
	return trace.isNew() && trust.IsAlert(err)
}

// isContextError reports whether the attempt failed because of its timeout, or because the caller's context has ended.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isWriteError reports whether a write to the connection failed.
func isWriteError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "write"
}

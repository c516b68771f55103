package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// fault is what goes wrong on the way of a request: on the network, or in what the service answers.
type fault struct {
	name string
	is   effect
	or   effect // it is a race: this may come as well
	get  effect // what it is to a GET, if that differs

	// One of the two makes it. Serve runs in the server, instead of the documented answer; network is that of the client.
	serve   http.HandlerFunc
	network func(c *cell) http.RoundTripper
	key     func(c *cell) (string, error) // or the key source

	status int    // of the error
	code   string // of the error
	raw    *string
	cause  func(error) bool
	wait   [2]time.Duration // the range of Error.RetryAfter

	performs bool // the operation may have been performed: the fault strikes before that, and after it
	bubble   bool // it takes time, and runs in a bubble of testing/synctest
	tls      bool // the service speaks HTTP/2
	warm     bool // there is an idle connection
	once     bool // it cannot stay
	// accepted reports whether the answer is a success of an operation all the same.
	accepted func(c *calls.Call) bool
}

// sizeLimit is WithMaxResponseBytes of all clients.
const sizeLimit = 16 << 10

const (
	htmlPage = "<html><head><title>Bad Gateway</title></head><body>nginx</body></html>"
	success  = `{"code":0,"rcode":"000","message":"Success","rmsg":"Success","card_id":"C1","data":{"customer_id":"C1",` +
		`"payee_id":1}}`
)

// body is an answer that comes as a complete response.
func body(name string, status int, text string, is effect) fault {
	return fault{
		name: name, is: is, status: status, raw: &text, performs: ruleFor(is).delivery == payvault.Unknown,
		serve: func(w http.ResponseWriter, _ *http.Request) { service.Say(w, status, text) },
	}
}

func coded(code string, f fault) fault {
	f.code = code
	return f
}

// wire is an answer that is written to the connection as it stands, after which the connection is closed.
func wire(name, text string, status int, is effect) fault {
	f := fault{name: name, is: is, status: status, performs: ruleFor(is).delivery == payvault.Unknown}
	f.serve = func(w http.ResponseWriter, _ *http.Request) {
		conn := hijack(w)
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
	return f
}

// causedBy reports whether an error wraps target, and causedByA whether it wraps one of type T.
func causedBy(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func causedByA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// lostFaults leave a request without an answer, or with the beginning of one.
func lostFaults() []fault {
	const ok = "HTTP/1.1 200 OK\r\n"
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	cut := func(f fault, raw string) fault {
		f.cause, f.raw = causedBy(io.ErrUnexpectedEOF), &raw
		return f
	}
	return []fault{
		{name: "connection lost after the request", is: lost, performs: true, serve: abort},
		{name: "timeout", is: lost, performs: true, bubble: true, cause: causedBy(context.DeadlineExceeded), serve: hang},
		{
			name: "slow drip", is: lost, performs: true, bubble: true, status: 200, serve: drip,
			cause: causedBy(context.DeadlineExceeded), raw: new(strings.Repeat(" ", int(patience/time.Second))),
		},
		wire("connection lost in the status line", "HTTP/1.1 20", 0, lost),
		wire("connection lost in the header", ok+"Content-Ty", 0, lost),
		cut(wire("connection lost before the body", ok+"Content-Length: 8\r\n\r\n", 200, lost), ""),
		cut(wire("connection lost in the body", ok+"Content-Length: 999\r\n\r\n"+success, 200, lost), success),
		cut(wire("chunked body without its end", ok+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 200, lost), "{}"),
		wire("307 cut off", cutOff(307), 307, cutRedirect), wire("404 cut off", cutOff(404), 404, refused),
		wire("429 cut off", cutOff(429), 429, turnedAway), wire("503 cut off", cutOff(503), 503, gatewayDown),
		wire("chunked body with a bad length", ok+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 200, lost),
		wire("gzip that is none", ok+"Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: 24\r\n\r\n"+
			success[:24], 200, lost),
		wire("not HTTP", "220 smtp.example.com ESMTP\r\n", 0, lost),
		wire("Content-Length that is no number", ok+"Content-Length: 99999999999999999999\r\n\r\n{}", 0, lost),
		wire("two Content-Lengths", ok+"Content-Length: 2\r\nContent-Length: 24\r\n\r\n{}", 0, lost),
		wire("status without a number", "HTTP/1.1 OK 200\r\n\r\n", 0, lost),
		wire("header without end", ok+"A: "+strings.Repeat("a", 16<<10), 0, lost),
		wire("status 100 and no more", "HTTP/1.1 100 Continue\r\n\r\n", 0, lost),
		wire("status 103 and no more", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0, lost),
		wire("status 101 without an Upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, malformed),
		{name: "status 101 on a connection that stays open", is: malformed, status: 101, performs: true, serve: upgrade},
	}
}

// cutOff is an answer that loses its connection within the body.
func cutOff(status int) string {
	return "HTTP/1.1 " + strconv.Itoa(status) + " Status\r\nContent-Length: 99\r\n\r\n{"
}

// hang answers nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drip answers one byte a second.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick.C:
			_, _ = io.WriteString(w, " ")
		case <-r.Context().Done():
			return
		}
	}
}

// hints are 1xx answers without end, which net/http puts an end to.
func hints(w http.ResponseWriter) {
	conn := hijack(w)
	defer func() { _ = conn.Close() }()
	hint := "HTTP/1.1 103 Early Hints\r\nLink: " + strings.Repeat("a", 64<<10) + "\r\n\r\n"
	for {
		if _, err := io.WriteString(conn, hint); err != nil {
			return
		}
	}
}

func upgrade(w http.ResponseWriter, _ *http.Request) {
	conn := hijack(w)
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	_, _ = conn.Read(make([]byte, 1)) // until the client closes it
	_ = conn.Close()
}

// statusFaults are answers whose status says it all: without JSON, cut off, with a rejection, with what would be a
// success.
func statusFaults() []fault {
	var all []fault
	for _, status := range []int{
		400, 401, 402, 403, 404, 405, 408, 409, 410, 422, 425, 429, 451, 499,
		500, 501, 502, 503, 504, 505, 509, 529, 599,
	} {
		is := refused
		switch {
		case status == 429:
			is = turnedAway
		case status >= 502 && status <= 504:
			is = gatewayDown
		case status >= 500:
			is = failed
		}
		name := strconv.Itoa(status)
		all = append(all,
			body(name+" HTML", status, htmlPage, is), body(name+" empty", status, "", is),
			body(name+" truncated JSON", status, `{"code":7,"rcode":"7"`, is),
			coded(ownSuccess, body(name+" with success", status, success, is)),
			coded("7", body(name+" with a code", status, `{"code":7,"rcode":"7","message":"No","rmsg":"No"}`, is)))
	}
	return all
}

// waits are answers with all sorts of Retry-After. The clients wait for 2 ms at most.
func waits() []fault {
	const longest = 24 * time.Hour // that an Error tells
	inAnHour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	var all []fault
	for _, wait := range []struct {
		name, retryAfter string
		from, to         time.Duration
	}{
		{"seconds", "2", 2 * time.Second, 2 * time.Second},
		{"a date", inAnHour, 50 * time.Minute, time.Hour},
		{"a date in the past", "Wed, 21 Oct 2015 07:28:00 GMT", 0, 0},
		{"absurdly long", "99999999999999999999", longest, longest},
		{"not a time", "-1 fortnight", 0, 0},
	} {
		for status, is := range map[int][2]effect{429: {turnedAway, heldOff}, 503: {gatewayDown, failed}} {
			f := coded("7", body(strconv.Itoa(status)+", Retry-After: "+wait.name, status, `{"code":7,"rcode":"7"}`, is[0]))
			if f.wait = [2]time.Duration{wait.from, wait.to}; wait.from > 0 {
				f.is = is[1]
			}
			f.serve = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", wait.retryAfter)
				service.Say(w, status, *f.raw)
			}
			all = append(all, f)
		}
	}
	return all
}

// notJSON are whole answers with status 2xx that hold no JSON object, or not only one.
func notJSON() []fault {
	all := []fault{
		body("201 HTML", 201, htmlPage, malformed), body("204", 204, "", malformed), body("202 empty", 202, "", malformed),
	}
	for _, text := range []string{
		"", htmlPage, " \r\n\t", "\x00\x00", strings.Repeat("[", 4000), `[{"code":0,"rcode":"000"}]`, `"ok"`, `0`, `true`,
		`null`,
		`{}`, success + `}`, success + success, success[:24], `{"code":0,"rcode":"000","data":{"mess`,
		`{"code":0,"rcode":"000","data":[{"a":"b"}`, `{`, `{"code":0,"rcode":"000",}`, `{'code':0}`,
		strings.Repeat(" ", sizeLimit), // of just the limit
	} {
		all = append(all, body("200 "+strconv.Quote(text[:min(len(text), 60)]), 200, text, malformed))
	}
	return append(all, body(`200 "[]"`, 200, `[]`, malformed))
}

// codes are JSON objects without the code of a success.
func codes() []fault {
	var all []fault
	for _, text := range []string{
		`{"message":"Success","rmsg":"Success","data":{}}`, `{"code":null,"rcode":null,"message":"Success"}`,
		`{"code":true,"rcode":true}`, `{"code":false,"rcode":false}`, `{"code":{},"rcode":{}}`,
		`{"code":[0],"rcode":["000"]}`,
		`{"code":"","rcode":""}`, `{"code":{"code":0},"rcode":{"rcode":"000"}}`, `{"data":{"code":0,"rcode":"000"}}`,
		`{"status":"success"}`,
	} {
		all = append(all, body("200 without a code "+text, 200, text, malformed))
	}
	for _, text := range []string{
		`{"code":7,"rcode":"7","message":"No","data":{"message":"Because"}}`, `{"code":"7","rcode":"7"}`,
		`{"code":7,"rcode":"7","data":{"customer_id":"C1","payee_id":1,"app":{"app_id":1},"request_id":"R1"},` +
			`"card_id":"CARD1"}`,
		`{"code":7,"code":0,"rcode":"7","rcode":"000"}`, `{"code":0,"code":7,"rcode":"000","rcode":"7"}`,
		`{"code":7,"CODE":0,"rcode":"7","RCODE":"000"}`, `{"code":7,"rcode":"7","data":"text","fields":[1,2]}`,
		`{"code":7,"message":"No"}`, `{"rcode":"7","rmsg":"No"}`, // in the shape of the other operations
	} {
		all = append(all, coded("7", body("200 with another code "+text, 200, text, rejected)))
	}
	for _, code := range []string{"-1", "1", "10", "0x0"} {
		text := `{"code":"` + code + `","rcode":"` + code + `"}`
		all = append(all, coded(code, body("200 with code "+code, 200, text, rejected)))
	}
	const swapped = `{"code":"000","rcode":"0"}`
	return append(all, coded(otherSuccess, body("200 with the success of the other operations", 200, swapped, malformed)))
}

// shapes are successes by their code whose other members are not of the documented shape. The text for people is not
// needed.
func shapes() []fault {
	undocumented := func(c *calls.Call) bool { return c.Result == "-" }
	confirms := func(c *calls.Call) bool { // it was performed, and Response.Unread names what cannot be read
		return undocumented(c) || c.Op == payvault.OpSubscriptionsCancel || c.Op == payvault.OpWebhooksAddEvent ||
			c.Op == payvault.OpApplicationsSaveData
	}
	lists := func(c *calls.Call) bool {
		return c.Op == payvault.OpCustomersList || c.Op == payvault.OpSubscriptionsTransactions
	}
	var all []fault
	for _, shape := range []struct {
		text     string
		accepted func(c *calls.Call) bool
	}{
		{`{"code":0,"data":"text","rcode":"000","card_id":{}}`, confirms},
		{`{"code":0,"data":17,"rcode":"000","card_id":[17]}`, confirms},
		{`{"code":0,"data":true,"rcode":"000","pg_id":[]}`, confirms},
		{`{"code":0,"data":{"message":{},"customer_id":[],"payee_id":"x","app":[],"fields":{},"request_id":{}},` +
			`"rcode":"000","echo_fields":[]}`, confirms},
		{`{"code":0,"data":[[]],"rcode":"000","card_number":{}}`, confirms},
		{`{"code":0,"rcode":"000"}`, undocumented},
		{`{"code":0,"rcode":"000","data":null}`, func(c *calls.Call) bool { return undocumented(c) || lists(c) }},
		{`{"code":0,"rcode":"000","data":{}}`, confirms},
		{`{"code":0,"rcode":"000","totalRecords":3,"data":null}`, undocumented},
	} {
		f := coded(ownSuccess, body("200 of another shape "+shape.text, 200, shape.text, malformed))
		f.accepted = shape.accepted
		all = append(all, f)
	}
	return all
}

// sizes are answers that are larger than the limit, or claim to be.
func sizes() []fault {
	padded := success + strings.Repeat(" ", sizeLimit)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write([]byte(success + strings.Repeat(" ", 1<<20)))
	_ = zip.Close()
	large := func(name string, raw string, serve http.HandlerFunc) fault {
		return fault{name: name, is: tooLarge, status: 200, performs: true, raw: &raw, serve: serve}
	}
	announced := func(length int) http.HandlerFunc {
		return wire("", "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(length)+"\r\n\r\n"+padded, 200, tooLarge).serve
	}
	var all []fault
	for status, is := range map[int]effect{404: refused, 500: failed, 503: gatewayDown} { // which say enough without it
		f := coded(ownSuccess, body(strconv.Itoa(status)+" oversized body", status, padded, is))
		f.raw = new(padded[:sizeLimit])
		all = append(all, f)
	}
	return append(all, []fault{
		large("200 oversized body, announced", "", announced(len(padded))),
		large("200 Content-Length of 4 EiB", "", announced(1<<62)),
		large("200 oversized body, not announced", padded[:sizeLimit], func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, padded)
		}),
		large("200 endless body", strings.Repeat(" ", sizeLimit), func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1024)); err != nil {
					return
				}
			}
		}),
		large("200 gzip bomb", padded[:sizeLimit], func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		}),
	}...)
}

// redirects point elsewhere, which must never hear of them.
func redirects(t *testing.T) []fault {
	t.Helper()
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(func() {
		elsewhere.Close()
		assert.Zero(t, visits.Load(), "requests that followed a redirect")
	})
	var all []fault
	for _, status := range []int{300, 304, 305, 399} {
		all = append(all, body(strconv.Itoa(status)+" without a Location", status, "", redirected))
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{elsewhere.URL + "/elsewhere", "https://[bad", "//"} {
			f := body(strconv.Itoa(status)+" to "+strings.ReplaceAll(location, elsewhere.URL, "another host"), status, success,
				redirected)
			f.code = ownSuccess
			f.serve = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				service.Say(w, status, success)
			}
			all = append(all, f)
		}
	}
	return all
}

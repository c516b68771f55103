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

// coded is one with a code, as the error has it.
func coded(code, name string, status int, text string, is effect) fault {
	f := body(name, status, text, is)
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

// cut is a wire whose body, as far as it comes, is raw.
func cut(name, header, text, raw string) fault {
	f := wire(name, "HTTP/1.1 200 OK\r\n"+header+"\r\n\r\n"+text, 200, lost)
	f.cause, f.raw = causedBy(io.ErrUnexpectedEOF), &raw
	return f
}

func causedBy(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// lostFaults leave a request without an answer, or with the beginning of one.
func lostFaults() []fault {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	late := causedBy(context.DeadlineExceeded)
	const cutOff = " Status\r\nContent-Length: 99\r\n\r\n{"
	return []fault{
		{name: "connection lost after the request", is: lost, performs: true, serve: abort},
		{name: "HTTP/2 stream reset", is: lost, tls: true, performs: true, serve: abort},
		{
			name: "timeout", is: lost, performs: true, bubble: true, cause: late,
			serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		},
		{
			name: "slow drip", is: lost, performs: true, bubble: true, status: 200, serve: drip, cause: late,
			raw: new(strings.Repeat(" ", int(patience/time.Second))),
		},
		wire("connection lost in the status line", "HTTP/1.1 20", 0, lost),
		wire("connection lost in the header", "HTTP/1.1 200 OK\r\nContent-Ty", 0, lost),
		wire("not HTTP", "220 smtp.example.com ESMTP\r\n", 0, lost),
		wire("status 103 and no more", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0, lost),
		wire("chunked body with a bad length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200, lost),
		wire("gzip that is none", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"+success, 200, lost),
		cut("connection lost before the body", "Content-Length: 8", "", ""),
		cut("connection lost in the body", "Content-Length: 999", success, success),
		cut("chunked body without its end", "Transfer-Encoding: chunked", "2\r\n{}\r\n", "{}"),
		wire("307 cut off", "HTTP/1.1 307"+cutOff, 307, cutRedirect),
		wire("404 cut off", "HTTP/1.1 404"+cutOff, 404, refused), wire("429 cut off", "HTTP/1.1 429"+cutOff, 429, turnedAway),
		wire("503 cut off", "HTTP/1.1 503"+cutOff, 503, gatewayDown),
		wire("status 101 without an Upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, malformed),
		{name: "status 101 on a connection that stays open", is: malformed, status: 101, performs: true, serve: upgrade},
	}
}

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
			coded(ownSuccess, name+" with success", status, success, is),
			coded("7", name+" with a code", status, `{"code":7,"rcode":"7","message":"No","rmsg":"No"}`, is))
	}
	return all
}

// waits are answers with a Retry-After. The clients wait for 2 ms at most.
func waits() []fault {
	const longest = 24 * time.Hour // that an Error tells
	var all []fault
	for _, wait := range []struct {
		retryAfter string
		from, to   time.Duration
	}{
		{"2", 2 * time.Second, 2 * time.Second},
		{"99999999999999999999", longest, longest},
		{"-1 fortnight", 0, 0},
		{time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 50 * time.Minute, time.Hour},
	} {
		for status, is := range map[int][2]effect{429: {turnedAway, heldOff}, 503: {gatewayDown, failed}} {
			name := strconv.Itoa(status) + ", Retry-After: " + wait.retryAfter
			f := coded("7", name, status, `{"code":7,"rcode":"7"}`, is[0])
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

// notSuccess are answers with status 2xx that hold no JSON object, not only one, or one without the code of a success.
func notSuccess() []fault {
	all := []fault{
		body("201 HTML", 201, htmlPage, malformed), body("204", 204, "", malformed), body("202 empty", 202, "", malformed),
		coded(otherSuccess, "200 with the success of others", 200, `{"code":"000","rcode":"0"}`, malformed),
	}
	for _, text := range []string{
		"", htmlPage, " \r\n\t", "\x00\x00", strings.Repeat("[", 4000), `[{"code":0,"rcode":"000"}]`, `"ok"`, `0`, `null`,
		`[]`, `{}`, success + `}`, success + success, success[:24], `{"code":0,"rcode":"000","data":{"mess`,
		`{`, `{"code":0,"rcode":"000",}`, `{'code':0}`, strings.Repeat(" ", sizeLimit), // of just the limit

		`{"message":"Success","rmsg":"Success","data":{}}`, `{"code":null,"rcode":null,"message":"Success"}`,
		`{"code":true,"rcode":true}`, `{"code":false,"rcode":false}`, `{"code":{},"rcode":{}}`,
		`{"code":[0],"rcode":["000"]}`, `{"code":"","rcode":""}`, `{"code":{"code":0},"rcode":{"rcode":"000"}}`,
		`{"data":{"code":0,"rcode":"000"}}`, `{"status":"success"}`,
	} {
		all = append(all, body("200 "+strconv.Quote(text[:min(len(text), 60)]), 200, text, malformed))
	}
	for _, text := range []string{
		`{"code":7,"rcode":"7","message":"No","data":{"message":"Because"}}`, `{"code":"7","rcode":"7"}`,
		`{"code":7,"rcode":"7","data":{"customer_id":"C1","app":{"app_id":1},"request_id":"R1"},"card_id":"C1"}`,
		`{"code":7,"code":0,"rcode":"7","rcode":"000"}`, `{"code":0,"code":7,"rcode":"000","rcode":"7"}`,
		`{"code":7,"CODE":0,"rcode":"7","RCODE":"000"}`, `{"code":7,"rcode":"7","data":"text","fields":[1,2]}`,
		`{"code":7,"message":"No"}`, `{"rcode":"7","rmsg":"No"}`, // in the shape of the other operations
	} {
		all = append(all, coded("7", "200 with another code "+text, 200, text, rejected))
	}
	for _, code := range []string{"0.0", "-0", "00", " 0", "0e5"} { // a code that looks like zero is no refusal
		text := `{"code":"` + code + `","rcode":"` + code + `"}`
		all = append(all, coded(code, "200 with code "+code, 200, text, malformed))
	}
	for _, code := range []string{"-1", "1", "10", "0x0"} {
		text := `{"code":"` + code + `","rcode":"` + code + `"}`
		all = append(all, coded(code, "200 with code "+code, 200, text, rejected))
	}
	return all
}

// shapes are successes by their code whose other members are not of the documented shape. The text for people is not
// needed.
func shapes() []fault {
	undocumented := func(c *calls.Call) bool { return c.Result == "-" }
	confirms := func(c *calls.Call) bool { // it was performed, and Response.Unread names what cannot be read
		_, confirms := c.Want().(*payvault.Confirmation)
		return undocumented(c) || confirms
	}
	fields := func(c *calls.Call) bool { return confirms(c) || c.Op == payvault.OpApplicationsSaveData }
	nothing := func(c *calls.Call) bool { return undocumented(c) || c.Lists() }
	var all []fault
	for text, accepted := range map[string]func(c *calls.Call) bool{
		`{"code":0,"data":"text","rcode":"000","card_id":{}}`: confirms,
		`{"code":0,"data":17,"rcode":"000","card_id":[17]}`:   confirms,
		`{"code":0,"data":true,"rcode":"000","pg_id":[]}`:     confirms,
		`{"code":0,"data":{"message":{},"customer_id":[],"payee_id":"x","app":[],"fields":{},"request_id":{}},` +
			`"rcode":"000","echo_fields":[]}`: fields,
		`{"code":0,"data":[[]],"rcode":"000","card_number":{}}`: confirms,
		`{"code":0,"rcode":"000","data":{}}`:                    confirms,
		`{"code":0,"rcode":"000"}`:                              undocumented,
		`{"code":0,"rcode":"000","totalRecords":3,"data":null}`: undocumented,
		`{"code":0,"rcode":"000","data":null}`:                  nothing,
	} {
		f := coded(ownSuccess, "200 of another shape "+text, 200, text, malformed)
		f.accepted = accepted
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
	announced := wire("200 oversized body, announced", "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"+padded, 200,
		tooLarge)
	announced.raw = new("")
	endless := body("200 endless body", 200, padded[:sizeLimit], tooLarge)
	endless.serve = func(w http.ResponseWriter, _ *http.Request) {
		for _, err := io.WriteString(w, padded); err == nil; {
			_, err = w.Write(bytes.Repeat([]byte(" "), 1024))
		}
	}
	bomb := body("200 gzip bomb", 200, padded[:sizeLimit], tooLarge)
	bomb.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped.Bytes())
	}
	all := []fault{announced, endless, bomb}
	for status, is := range map[int]effect{404: refused, 500: failed, 503: gatewayDown} { // which say enough without it
		f := coded(ownSuccess, strconv.Itoa(status)+" oversized body", status, padded, is)
		f.raw = new(padded[:sizeLimit])
		all = append(all, f)
	}
	return all
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
	all := []fault{body("300 without a Location", 300, "", redirected), body("304", 304, "", redirected)}
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, location := range map[string]string{"to another host": elsewhere.URL, "to nowhere": "https://[bad"} {
			f := coded(ownSuccess, strconv.Itoa(status)+" "+name, status, success, redirected)
			f.serve = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				service.Say(w, status, success)
			}
			all = append(all, f)
		}
	}
	return all
}

package faults

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// sizeLimit is the value of WithMaxResponseBytes for all clients of this package.
const sizeLimit = 16 << 10

const success = `{"code":0,"rcode":"000","card_id":"C1","data":{"customer_id":"C1","payee_id":1}}`

var errOwn = errors.New("the vault is sealed")

// faults returns all faults: those of the connection first, then those of the answer.
func faults() []*fault {
	return slices.Concat(connectionFaults(), lostFaults(), statusFaults(), waits(), notSuccess())
}

// connectionFaults returns the faults of the key source, of the dialer, and of writing a request.
func connectionFaults() []*fault {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	unresolved := &net.DNSError{Err: "no such host", Name: "gateway.invalid", IsNotFound: true}
	stranger := x509.HostnameError{Certificate: &x509.Certificate{}, Host: "service.test"}
	proxy := &tls.CertificateVerificationError{Err: errOwn}
	sealed := func(context.Context) (string, error) { return "", errOwn }
	late := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return service.APIKey, nil
	}
	return []*fault{
		{name: "key source fails", is: noKey, cause: errOwn, key: sealed},
		{name: "key source has the time of the attempt", is: noKey, cause: context.DeadlineExceeded, key: late},
		{name: "connection refused", is: unsent, cause: syscall.ECONNREFUSED, network: dialing(refused)},
		{name: "DNS failure", is: unsent, cause: unresolved, network: dialing(unresolved)},
		// http.Transport returns the error of a handshake, such as io.EOF, in the same way as the error of the dialer.
		{name: "TLS handshake cut off", is: unsent, cause: io.EOF, network: dialing(io.EOF)},
		{name: "dialer with an error of its own", is: unsent, cause: errOwn, network: dialing(errOwn)},
		{name: "certificate of a stranger", is: distrusted, network: dialing(stranger)},
		{name: "certificate of no CA", is: distrusted, network: dialing(x509.UnknownAuthorityError{})},
		{name: "certificate that has expired", is: distrusted, network: dialing(x509.CertificateInvalidError{})},
		{name: "certificate of the proxy", is: distrusted, cause: errOwn, network: dialing(proxy)},
		// In the next two cases writing the request fails. net/http does not report how many bytes it wrote, so the outcome
		// is unknown. An upload is known to be unsent, because net/http reads the file only after it has written the headers.
		{name: "reset before the request is written", is: lost, toUpload: unsent, network: writing(0)},
		{name: "reset half way through the headers", is: lost, toUpload: unsent, network: writing(2)},
		{name: "idle connection closed, nothing written", is: healed, warm: true, network: writing(0)},
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialing returns a function for fault.network. Dialing fails with err when the fault strikes.
func dialing(err error) func(*cell, dialer) dialer {
	return func(c *cell, dial dialer) dialer {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			if c.strikes() {
				return nil, err
			}
			return dial(ctx, network, addr)
		}
	}
}

// writing returns a function for fault.network. A write fails when the fault strikes. The failing write still writes
// half of its bytes if part is 2, and none if part is 0.
func writing(part int) func(*cell, dialer) dialer {
	return func(c *cell, dial dialer) dialer {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &struckConn{conn, c, part}, err
		}
	}
}

type struckConn struct {
	net.Conn

	cell *cell
	part int
}

func (c *struckConn) Write(p []byte) (n int, err error) {
	if !c.cell.strikes() {
		return c.Conn.Write(p)
	}
	if c.part > 0 {
		n, _ = c.Conn.Write(p[:len(p)/c.part])
	}
	return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

// answer returns a fault in which the service sends a complete answer. The error of the call must have this status and
// code.
func answer(name string, status int, code, text string, is effect) *fault {
	return &fault{
		name: name, is: is, status: status, code: code, performs: ruleFor(is).delivery == payvault.DeliveryUnknown,
		serve: func(w http.ResponseWriter, _ *http.Request) { service.Say(w, status, text) },
	}
}

// wire returns a fault in which the service writes only the given text to the connection, and closes it. The error of
// the call must have this status.
func wire(name, text string, status int, is effect) *fault {
	f := answer(name, status, "", "", is)
	f.serve = func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
	return f
}

// lostFaults returns the faults that leave a request without a complete HTTP answer.
func lostFaults() []*fault {
	const cutOff = " Status\r\nContent-Length: 99\r\n\r\n{"
	cut := wire("connection lost in the body", "HTTP/1.1 200"+cutOff, 200, lost)
	cut.cause = io.ErrUnexpectedEOF
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	return []*fault{
		{name: "timeout", is: lost, performs: true, cause: context.DeadlineExceeded, serve: hang},
		wire("connection lost after the request", "", 0, lost), wire("not HTTP", "220 ESMTP\r\n", 0, lost), cut,
		wire("307 cut off", "HTTP/1.1 307"+cutOff, 307, cutRedirect),
		wire("404 cut off", "HTTP/1.1 404"+cutOff, 404, refused), wire("429 cut off", "HTTP/1.1 429"+cutOff, 429, turnedAway),
		wire("503 cut off", "HTTP/1.1 503"+cutOff, 503, gatewayDown),
		wire("status 101 without an Upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, malformed),
	}
}

// statusFaults returns answers with statuses from 400 to 600. Each status comes with several bodies, which must not
// change its effect. Only for a 403 it matters whether the body has a code that refuses.
func statusFaults() []*fault {
	var all []*fault
	for _, status := range []int{
		400, 401, 402, 403, 404, 405, 408, 409, 422, 425, 429, 499, 500, 501, 502, 503, 504, 505, 529, 599, 600,
	} {
		coded := refused // the effect with a code
		switch {
		case status == 429:
			coded = turnedAway
		case status >= 502 && status <= 504:
			coded = gatewayDown
		case status >= 500:
			coded = failed
		}
		is := coded
		if status == 403 {
			is = blocked
		}
		name := strconv.Itoa(status)
		all = append(all,
			answer(name+" HTML", status, "", "<html>", is), answer(name+" empty", status, "", "", is),
			answer(name+" truncated JSON", status, "", `{"code":7,"rcode":"7"`, is),
			answer(name+" with success", status, zero, success, is),
			answer(name+" oversized", status, zero, success+strings.Repeat(" ", sizeLimit), is),
			answer(name+" with a code", status, "7", `{"code":7,"rcode":"7","message":"No","rmsg":"No"}`, coded))
	}
	return all
}

// waits returns answers with status 429 or 503 and a Retry-After. The clients of this package accept a Retry-After of
// at most one second.
func waits() []*fault {
	const longest = 24 * time.Hour // the largest value of Error.RetryAfter
	var all []*fault
	for retryAfter, wait := range map[string][2]time.Duration{
		"2": {2 * time.Second, 2 * time.Second}, "99999999999999999999": {longest, longest}, "-1 fortnight": {0, 0},
	} {
		for status, is := range map[int][2]effect{429: {turnedAway, heldOff}, 503: {gatewayDown, failed}} {
			f := answer(strconv.Itoa(status)+", Retry-After: "+retryAfter, status, "", "", is[0])
			if f.wait = wait; wait[0] > 0 {
				f.is = is[1]
			}
			f.serve = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", retryAfter)
				w.WriteHeader(status)
			}
			all = append(all, f)
		}
	}
	return all
}

// notSuccess returns answers with status 2xx or 3xx that must not count as a success.
func notSuccess() []*fault {
	all := []*fault{
		answer("302", 302, "", "", redirected), answer("304", 304, "", "", redirected),
		answer("307 with success", 307, zero, success, redirected),
		answer("201 HTML", 201, "", "<html>", malformed), answer("204", 204, "", "", malformed),
		answer("200 with the success of others", 200, zero, `{"code":"000","rcode":"0"}`, malformed),
		answer("200 too large", 200, "", success+strings.Repeat(" ", sizeLimit), tooLarge),
	}
	endless, bomb := answer("200 endless", 200, "", "", tooLarge), answer("200 compressed bomb", 200, "", "", tooLarge)
	endless.serve = func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; { // until the client closes the connection
			_, err = io.WriteString(w, success)
		}
	}
	bomb.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		_, _ = io.WriteString(zipped, success+strings.Repeat(" ", 100*sizeLimit))
		_ = zipped.Close()
	}
	all = append(all, endless, bomb)
	for _, text := range []string{
		"", "\x00\x00", strings.Repeat("[", 4000), `[{"code":0,"rcode":"000"}]`, `null`, `{}`, success + `}`, success[:24],
		strings.Repeat(" ", sizeLimit), // exactly as long as sizeLimit allows
		`{"message":"Success","rmsg":"Success","data":{}}`, `{"code":null,"rcode":null}`, `{"code":false,"rcode":false}`,
		`{"code":[0],"rcode":["000"]}`, `{"code":"","rcode":""}`, `{"data":{"code":0,"rcode":"000"}}`,
	} {
		all = append(all, answer("200 "+strconv.Quote(text[:min(len(text), 60)]), 200, "", text, malformed))
	}
	for _, text := range []string{
		`{"code":7,"rcode":"7","data":{"customer_id":"C1","app":{"app_id":1},"request_id":"R1"},"card_id":"C1"}`,
		`{"code":7,"code":0,"rcode":"7","rcode":"000"}`, `{"code":7,"CODE":0,"rcode":"7","RCODE":"000"}`,
		// for each operation, one of these texts has the code in the documented field
		`{"code":7,"message":"No"}`, `{"rcode":"7","rmsg":"No"}`,
	} {
		all = append(all, answer("200 with another code "+text, 200, "7", text, rejected))
	}
	for code, is := range map[string]effect{ // zero in another decimal form, such as "00", counts as malformed
		"0.0": malformed, "-0": malformed, "00": malformed, " 0": malformed, "0e5": malformed,
		"-1": rejected, "1": rejected, "10": rejected, "0x0": rejected,
	} {
		all = append(all, answer("200 with code "+code, 200, code, `{"code":"`+code+`","rcode":"`+code+`"}`, is))
	}
	return all
}

package payvault_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// kinds names the sentinels that an error matches, in the order of errors.go.
func kinds(err error) []string {
	var names []string
	for _, kind := range []struct {
		name     string
		sentinel error
	}{
		{"ErrInvalidRequest", payvault.ErrInvalidRequest},
		{"ErrMerchantNotSupported", payvault.ErrMerchantNotSupported},
		{"ErrUnauthorized", payvault.ErrUnauthorized},
		{"ErrForbidden", payvault.ErrForbidden},
		{"ErrNotFound", payvault.ErrNotFound},
		{"ErrConflict", payvault.ErrConflict},
		{"ErrRateLimited", payvault.ErrRateLimited},
		{"ErrRejected", payvault.ErrRejected},
		{"ErrValidation", payvault.ErrValidation},
		{"ErrUnavailable", payvault.ErrUnavailable},
		{"ErrMalformedResponse", payvault.ErrMalformedResponse},
		{"ErrResponseTooLarge", payvault.ErrResponseTooLarge},
		{"ErrOutcomeUnknown", payvault.ErrOutcomeUnknown},
	} {
		if errors.Is(err, kind.sentinel) {
			names = append(names, kind.name)
		}
	}
	return names
}

// outcome is what has to come of a call that gets a bad answer.
type outcome struct {
	status   int      // 0 if no answer counts as one
	code     string   // or one of the two below
	kinds    []string // all sentinels that the error matches
	delivery payvault.Delivery
	safe     repeats // for which operations SafeToRetry is true
	repeated repeats // which operations try again by themselves
	untried  bool    // not even once
	raw      *string // body that WithResponse holds; nil if how much of it arrives is left to the network
	cause    error   // besides the sentinels; nil if there is none to match
}

// Codes that depend on the operation: its own code of success, and that of the other kind of operations.
const (
	ownSuccess   = "own success"
	otherSuccess = "other success"
)

// codeForCase gives the code as the error has it.
func (o outcome) codeForCase(c opCase) string {
	isTokenize := c.op == payvault.OpTokensTokenize
	switch {
	case o.code != ownSuccess && o.code != otherSuccess:
		return o.code
	case (o.code == ownSuccess) == isTokenize:
		return "000"
	}
	return "0"
}

// kindsFor leaves out what is said of operations only that change something.
func (o outcome) kindsFor(c opCase) []string {
	if c.info().Replay != payvault.ReplayRead {
		return o.kinds
	}
	var kinds []string
	for _, kind := range o.kinds {
		if kind != "ErrOutcomeUnknown" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (o outcome) withCode(code string) outcome {
	o.code = code
	return o
}

// malformed is the outcome of a 2xx answer that cannot be used: the operation may have been performed.
func malformed(status int, raw string) outcome {
	return outcome{
		status: status, kinds: []string{"ErrMalformedResponse", "ErrOutcomeUnknown"},
		delivery: payvault.Unknown, safe: ifReplayable, repeated: never, raw: &raw,
	}
}

// lost is the outcome of a connection that ends before the answer does.
func lost(status int) outcome {
	return outcome{
		status: status, kinds: []string{"ErrOutcomeUnknown"},
		delivery: payvault.Unknown, safe: ifReplayable, repeated: ifReplayable,
	}
}

// tooLarge is the outcome of an answer beyond WithMaxResponseBytes: it would be as large again.
func tooLarge(raw string) outcome {
	return outcome{
		status: 200, kinds: []string{"ErrResponseTooLarge", "ErrOutcomeUnknown"},
		delivery: payvault.Unknown, safe: never, repeated: never, raw: &raw,
	}
}

// badAnswer is one way in which an answer can be bad, for any operation.
type badAnswer struct {
	name  string
	serve http.HandlerFunc
	want  outcome
	// accepted gives the reason why this very answer is a success of an operation, "" where it is none.
	accepted func(c opCase) string
}

// body is a bad answer that comes as a complete response.
func body(name string, status int, text string, want outcome) badAnswer {
	return badAnswer{name: name, want: want, serve: func(w http.ResponseWriter, _ *http.Request) { say(w, status, text) }}
}

// wire is a bad answer that is written to the connection as it stands, after which the connection is closed.
func wire(name, text string, want outcome) badAnswer {
	return badAnswer{name: name, want: want, serve: func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}}
}

// failureCap is WithMaxResponseBytes in these tests.
const failureCap = 4096

func badAnswers() []badAnswer {
	var all []badAnswer
	for _, group := range [][]badAnswer{notJSON(), badCodes(), badShapes(), badSizes(), badConnections(), badStatuses()} {
		all = append(all, group...)
	}
	return all
}

// notJSON are whole answers with status 2xx that hold no JSON, or not only JSON.
func notJSON() []badAnswer {
	const html = "<html><body>Bad Gateway</body></html>"
	answers := []badAnswer{
		body("HTML with status 200", 200, html, malformed(200, html)),
		body("HTML with status 201", 201, html, malformed(201, html)),
		body("empty body", 200, "", malformed(200, "")),
		body("status 204", 204, "", malformed(204, "")),
		body("status 202 with an empty body", 202, "", malformed(202, "")),
		body("white space", 200, " \r\n\t", malformed(200, " \r\n\t")),
		body("NUL bytes", 200, "\x00\x00", malformed(200, "\x00\x00")),
		body("arrays nested without end", 200, strings.Repeat("[", 4000), malformed(200, strings.Repeat("[", 4000))),
	}
	for _, text := range []string{`[]`, `[{"code":0,"rcode":"000"}]`, `"ok"`, `0`, `true`, `null`, `{}`} {
		answers = append(answers, body("the JSON value "+text, 200, text, malformed(200, text)))
	}
	for _, text := range []string{`{"code":0,"rcode":"000"}}`, `{"code":0,"rcode":"000"}{"code":0,"rcode":"000"}`} {
		answers = append(answers, body("JSON with more around it "+strconv.Quote(text), 200, text, malformed(200, text)))
	}
	for _, text := range []string{`{"code":0,"rcode":"000"`, `{"code":0,"rcode":"000","data":{"mess`, `{"code":0,"rcode":"000","data":[{"a":"b"}`, `{`} {
		answers = append(answers, body("JSON that is cut off "+text, 200, text, malformed(200, text)))
	}
	return answers
}

// badCodes are JSON objects without the code of a success.
func badCodes() []badAnswer {
	rejected := func(code, raw string) outcome {
		return outcome{
			status: 200, code: code, kinds: []string{"ErrRejected"}, delivery: payvault.Answered, safe: never, repeated: never, raw: &raw,
		}
	}
	var answers []badAnswer
	for _, text := range []string{
		`{"message":"Success","data":{}}`,
		`{"code":null,"rcode":null,"message":"Success"}`,
		`{"code":true,"rcode":true}`,
		`{"code":false,"rcode":false}`,
		`{"code":{},"rcode":{}}`,
		`{"code":[0],"rcode":["000"]}`,
		`{"code":"","rcode":""}`,
		`{"code":{"code":0},"rcode":{"rcode":"000"}}`,
		`{"data":{"code":0,"rcode":"000"}}`,
		`{"status":"success"}`,
	} {
		answers = append(answers, body("no result code "+text, 200, text, malformed(200, text)))
	}
	for _, text := range []string{
		`{"code":7,"rcode":"7","message":"No","data":{"message":"Because"}}`,
		`{"code":"7","rcode":"7"}`,
		`{"code":7,"rcode":"7","data":{"customer_id":"C1","payee_id":1,"app":{"app_id":1},"request_id":"R1"},"card_id":"CARD1"}`,
		`{"code":7,"code":0,"rcode":"7","rcode":"000"}`,
		`{"code":0,"code":7,"rcode":"000","rcode":"7"}`,
		`{"code":7,"CODE":0,"rcode":"7","RCODE":"000"}`,
		`{"code":7,"rcode":"7","data":"text","fields":[1,2]}`,
	} {
		answers = append(answers, body("code 7 "+text, 200, text, rejected("7", text)))
	}
	for _, code := range []string{"-1", "1", "10", "0x0"} {
		text := `{"code":"` + code + `","rcode":"` + code + `"}`
		answers = append(answers, body("code "+code, 200, text, rejected(code, text)))
	}
	const swapped = `{"code":"000","rcode":"0"}`
	answers = append(answers, body("the success of the other kind "+swapped, 200, swapped, malformed(200, swapped).withCode(otherSuccess)))
	const platform, tokenize = `{"code":905,"message":"No"}`, `{"rcode":"905","rmsg":"No"}`
	return append(answers,
		body("a rejection in the shape of the platform "+platform, 200, platform, rejected("905", platform)),
		body("a rejection in the shape of tokenize "+tokenize, 200, tokenize, rejected("905", tokenize)),
	)
}

// badShapes are successes by their code whose other members are not of the documented shape.
func badShapes() []badAnswer {
	var answers []badAnswer
	for _, text := range []string{
		`{"code":0,"data":"text","rcode":"000","card_id":{}}`,
		`{"code":0,"data":17,"rcode":"000","card_id":[17]}`,
		`{"code":0,"data":true,"rcode":"000","pg_id":[]}`,
		`{"code":0,"data":{"message":{},"customer_id":[],"payee_id":"x","app":[],"fields":{},"request_id":{}},"rcode":"000","echo_fields":[]}`,
		`{"code":0,"data":[[]],"rcode":"000","card_number":{}}`,
	} {
		answer := body("data of another shape "+text, 200, text, malformed(200, text).withCode(ownSuccess))
		answer.accepted = func(c opCase) string {
			switch c.op {
			case payvault.OpSubscriptionsCancel, payvault.OpWebhooksAddEvent, payvault.OpApplicationsSaveData:
				return "it was performed, and what cannot be read of the answer is named in Response.Unread"
			}
			return c.noData
		}
		answers = append(answers, answer)
	}
	for _, text := range []string{`{"code":0,"rcode":"000"}`, `{"code":0,"rcode":"000","data":null}`} {
		answer := body("no data "+text, 200, text, malformed(200, text).withCode(ownSuccess))
		answer.accepted = func(c opCase) string {
			if strings.Contains(text, "null") && (c.op == payvault.OpCustomersList || c.op == payvault.OpSubscriptionsTransactions) {
				return "a list without records"
			}
			return c.noData
		}
		answers = append(answers, answer)
	}
	const empty = `{"code":0,"rcode":"000","data":{}}`
	answer := body("data without an ID "+empty, 200, empty, malformed(200, empty).withCode(ownSuccess))
	answer.accepted = func(c opCase) string {
		switch c.op {
		case payvault.OpSubscriptionsCancel, payvault.OpWebhooksAddEvent, payvault.OpApplicationsSaveData:
			return "no part of it is one that the caller cannot do without"
		}
		return c.noData
	}
	const records = `{"code":0,"rcode":"000","totalRecords":3,"data":null}`
	claimed := body("records that are claimed and not there "+records, 200, records, malformed(200, records).withCode(ownSuccess))
	claimed.accepted = func(c opCase) string {
		if c.op == payvault.OpCustomersList || c.op == payvault.OpSubscriptionsTransactions {
			return ""
		}
		return c.noData
	}
	return append(answers, answer, claimed)
}

// badSizes are answers that are larger than the cap, or claim to be.
func badSizes() []badAnswer {
	valid := `{"code":0,"rcode":"000","data":{}}`
	padded := valid + strings.Repeat(" ", failureCap)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write([]byte(valid + strings.Repeat(" ", 1<<18)))
	_ = zip.Close()
	huge := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(1<<62) + "\r\n\r\n" + valid

	return []badAnswer{
		wire("oversized body, announced", "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(padded))+"\r\n\r\n"+padded, tooLarge("")),
		{name: "oversized body, not announced", want: tooLarge(padded[:failureCap]), serve: func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, padded)
		}},
		{name: "endless body", want: tooLarge(strings.Repeat(" ", failureCap)), serve: func(w http.ResponseWriter, _ *http.Request) {
			for range 8 << 10 { // 8 MiB stand for no end
				if _, err := io.WriteString(w, strings.Repeat(" ", 1024)); err != nil {
					return
				}
			}
		}},
		{name: "gzip bomb", want: tooLarge(padded[:failureCap]), serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		}},
		wire("Content-Length of 4 EiB", huge, tooLarge("")),
		body("body of exactly the cap that is no success", 200, strings.Repeat(" ", failureCap), malformed(200, strings.Repeat(" ", failureCap))),
		{
			name: "oversized body of status 500", serve: func(w http.ResponseWriter, _ *http.Request) { say(w, 500, padded) },
			want: outcome{
				status: 500, code: ownSuccess, kinds: []string{"ErrUnavailable", "ErrOutcomeUnknown"},
				delivery: payvault.Unknown, safe: ifReplayable, repeated: never, raw: new(padded[:failureCap]),
			},
		},
	}
}

// badConnections are answers that HTTP cannot read, and connections that end too early.
func badConnections() []badAnswer {
	const ok = "HTTP/1.1 200 OK\r\n"
	withCause := func(o outcome, cause error, raw string) outcome {
		o.cause, o.raw = cause, &raw
		return o
	}
	return []badAnswer{
		wire("connection dropped after the request was read", "", lost(0)),
		wire("connection dropped in the status line", "HTTP/1.1 20", lost(0)),
		wire("connection dropped in the header", ok+"Content-Ty", lost(0)),
		wire("connection dropped before the body", ok+"Content-Length: 8\r\n\r\n", withCause(lost(200), io.ErrUnexpectedEOF, "")),
		wire("truncated JSON under a larger Content-Length", ok+"Content-Length: 999\r\n\r\n"+`{"code":0,"rcode":"000"}`,
			withCause(lost(200), io.ErrUnexpectedEOF, `{"code":0,"rcode":"000"}`)),
		wire("chunked body without its end", ok+"Transfer-Encoding: chunked\r\n\r\n18\r\n"+`{"code":0,"rcode":"000"}`+"\r\n",
			withCause(lost(200), io.ErrUnexpectedEOF, `{"code":0,"rcode":"000"}`)),
		wire("chunked body with a bad length", ok+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", lost(200)),
		wire("gzip that is none", ok+"Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: 24\r\n\r\n"+`{"code":0,"rcode":"000"}`, lost(200)),
		wire("not HTTP", "220 smtp.example.com ESMTP\r\n", lost(0)),
		wire("Content-Length that is no number", ok+"Content-Length: 99999999999999999999\r\n\r\n{}", lost(0)),
		wire("two Content-Lengths", ok+"Content-Length: 2\r\nContent-Length: 24\r\n\r\n{}", lost(0)),
		wire("status without a number", "HTTP/1.1 OK 200\r\n\r\n", lost(0)),
		wire("header without end", ok+"A: "+strings.Repeat("a", 16<<10), lost(0)),
		wire("status 100 and no more", "HTTP/1.1 100 Continue\r\n\r\n", lost(0)),
		wire("status 103 and no more", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", lost(0)),
		{name: "status 101 on a connection that stays open", want: noRetry(malformed(101, "")), serve: func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
			_, _ = conn.Read(make([]byte, 1)) // until the client closes it
			_ = conn.Close()
		}},
		wire("status 101 without an Upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n", noRetry(malformed(101, ""))),
	}
}

func noRetry(o outcome) outcome {
	o.repeated = never
	return o
}

// badStatuses are the failures by status, each with no JSON, with a rejection, and with what would be a success.
func badStatuses() []badAnswer {
	sentinel := map[int]string{
		401: "ErrUnauthorized", 403: "ErrForbidden", 404: "ErrNotFound", 409: "ErrConflict", 429: "ErrRateLimited",
	}
	const html, rejection, success = "<html>No</html>", `{"code":7,"rcode":"7","message":"No","rmsg":"No"}`, `{"code":0,"rcode":"000","card_id":"C1","data":{"customer_id":"C1","payee_id":1}}`
	var answers []badAnswer
	for _, status := range []int{400, 401, 402, 403, 404, 405, 408, 409, 410, 422, 425, 429, 451, 499, 500, 501, 502, 503, 504, 509, 529, 599} {
		want := outcome{status: status, delivery: payvault.Answered}
		switch status {
		case 429:
			want.safe, want.repeated = always, always
		case 502, 503, 504:
			want.repeated = ifReplayable
		}
		if name := sentinel[status]; name != "" {
			want.kinds = []string{name}
		}
		unknown := want
		if status >= 500 {
			want.safe, unknown.safe = ifReplayable, ifReplayable
			unknown.delivery = payvault.Unknown
			unknown.kinds = []string{"ErrUnavailable", "ErrOutcomeUnknown"}
		}
		for _, text := range []string{html, "", success, `{"code":7,"rcode":"7"`} {
			o := unknown
			o.raw = &text
			if text == success {
				o.code = ownSuccess
			}
			answers = append(answers, body("status "+strconv.Itoa(status)+" with "+strconv.Quote(text), status, text, o))
		}
		want.code, want.raw = "7", new(rejection)
		want.kinds = append(slices.Clip(want.kinds), "ErrRejected")
		if status >= 500 { // gateways give codes too
			want.delivery, want.kinds = payvault.Unknown, unknown.kinds
		}
		answers = append(answers, body("status "+strconv.Itoa(status)+" with a rejection", status, rejection, want))
	}
	for _, status := range []int{300, 304, 305, 399} {
		o := malformed(status, "")
		o.safe = never
		answers = append(answers, body("status "+strconv.Itoa(status)+" without a Location", status, "", o))
	}
	return answers
}

// TestFailures runs every operation against every bad answer.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, answer := range badAnswers() {
		t.Run(answer.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					server := observe(t, func(_ int, w http.ResponseWriter, r *http.Request) { answer.serve(w, r) })
					client := tableClient(t, server.URL+basePath, impatient(2), payvault.WithMaxResponseBytes(failureCap))
					var raw payvault.Response
					result, err := c.call(t.Context(), client, payvault.WithResponse(&raw))
					if answer.accepted != nil && answer.accepted(c) != "" {
						require.NoError(t, err, answer.accepted(c))
						assert.Len(t, server.seen(), 1)
						return
					}
					assertFailure(t, c, answer.want, result, err, raw)
					assert.Len(t, server.seen(), raw.Attempts, "requests that the service saw")
				})
			}
		})
	}
}

// assertFailure checks everything that a failed call says.
func assertFailure(t *testing.T, c opCase, want outcome, result any, err error, raw payvault.Response) {
	t.Helper()
	require.Error(t, err, "never a success")
	assert.Nil(t, result)
	e, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok, "%T", err)
	assert.Equal(t, c.op, e.Op)
	assert.Equal(t, want.status, e.StatusCode)
	assert.Equal(t, want.codeForCase(c), e.Code)
	assert.Equal(t, want.delivery.String(), e.Delivery.String())
	assert.Equal(t, want.kindsFor(c), kinds(err))
	if strings.Contains(err.Error(), "cannot be read as") { // nor could it be the next time
		want.safe = never
	}
	assert.Equal(t, want.safe.forCase(c.replay), payvault.SafeToRetry(err), "SafeToRetry")
	attempts := 1
	switch {
	case want.repeated.forCase(c.replay):
		attempts = 2
	case want.untried:
		attempts = 0
	}
	assert.Equal(t, attempts, e.Attempts)
	if want.cause != nil {
		assert.ErrorIs(t, err, want.cause)
	}
	assert.NotContains(t, err.Error(), "\n")

	assert.Equal(t, want.status, raw.StatusCode)
	assert.Equal(t, attempts, raw.Attempts)
	if want.raw != nil {
		assert.Equal(t, *want.raw, string(raw.Body), "the raw body")
	}
	if want.status != 0 {
		assert.NotNil(t, raw.Header)
	}
}

// TestFailures_redirect: whatever the status, the server at the other end sees nothing.
func TestFailures_redirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"/stolen", "https://[bad", "//"} {
			t.Run(strconv.Itoa(status)+" "+location, func(t *testing.T) {
				t.Parallel()
				for _, c := range opCases() {
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						other := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) })
						target := location
						if target == "/stolen" {
							target = other.URL + "/stolen"
						}
						server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("Location", target)
							say(w, status, c.success)
						})
						var raw payvault.Response
						result, err := c.call(t.Context(), tableClient(t, server.URL+basePath), payvault.WithResponse(&raw))
						want := malformed(status, c.success).withCode(ownSuccess)
						want.safe = never // it would be redirected again
						assertFailure(t, c, want, result, err, raw)
						assert.Len(t, server.seen(), 1)
						assert.Empty(t, other.seen())
						assert.Equal(t, target, raw.Header.Get("Location"), "the raw answer is whole")
						assert.NotContains(t, err.Error(), "stolen")
					})
				}
			})
		}
	}
}

// TestFailures_droppedBeforeReading: the connection stands, so bytes of the request may have been written.
func TestFailures_droppedBeforeReading(t *testing.T) {
	t.Parallel()
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, connections := hangUp(t)
			var raw payvault.Response
			result, err := c.call(t.Context(), tableClient(t, "http://"+address, impatient(2)), payvault.WithResponse(&raw))
			assertFailure(t, c, lost(0), result, err, raw)
			assert.Equal(t, raw.Attempts, int(connections.Load()))
		})
	}
}

// hangUp starts a server that closes every connection at once, and counts them.
func hangUp(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	listener := listenAlone(t)
	connections = new(atomic.Int64)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String(), connections
}

var errShutdown = errors.New("the program shuts down")

func TestFailures_cancelledBefore(t *testing.T) {
	t.Parallel()
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) })
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errShutdown)
			var raw payvault.Response
			result, err := c.call(ctx, tableClient(t, server.URL), payvault.WithResponse(&raw))
			want := outcome{delivery: payvault.NotSent, safe: always, untried: true, cause: context.Canceled}
			assertFailure(t, c, want, result, err, raw)
			assert.ErrorIs(t, err, errShutdown)
			assert.Empty(t, server.seen())
		})
	}
}

func TestFailures_cancelledDuring(t *testing.T) {
	t.Parallel()
	moments := []struct {
		name  string
		start func(w http.ResponseWriter) // what the service does before it waits
		want  outcome
	}{
		{"before the answer", func(http.ResponseWriter) {}, lost(0)},
		{"within the body", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"code":0,"rcode":"000",`)
			_ = http.NewResponseController(w).Flush()
		}, lost(200)},
	}
	for _, moment := range moments {
		t.Run(moment.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						o := &observer{}
						pool := pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
							o.add(r)
							moment.start(w)
							<-r.Context().Done()
						})
						ctx, cancel := context.WithCancelCause(t.Context())
						go func() {
							synctest.Wait() // everything waits for the service
							cancel(errShutdown)
						}()
						client := tableClient(t, "http://127.0.0.1", payvault.WithHTTPClient(pool))
						var raw payvault.Response
						result, err := c.call(ctx, client, payvault.WithResponse(&raw))
						want := moment.want
						want.repeated, want.cause = never, context.Canceled
						assertFailure(t, c, want, result, err, raw)
						assert.ErrorIs(t, err, errShutdown)
						assert.Len(t, o.seen(), 1)
						if raw.StatusCode == 200 {
							assert.Equal(t, `{"code":0,"rcode":"000",`, string(raw.Body))
						}
					})
				})
			}
		})
	}
}

// TestFailures_slowDrip: an answer that comes byte by byte is ended by the caller's deadline, or by that of the attempt.
func TestFailures_slowDrip(t *testing.T) {
	t.Parallel()
	ends := []struct {
		name     string
		limit    func(ctx context.Context) (context.Context, context.CancelFunc)
		repeated repeats
		took     time.Duration // of a call that is not repeated
	}{
		{"caller's context", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 10500*time.Millisecond)
		}, never, 10500 * time.Millisecond},
		{"WithTimeout", context.WithCancel, ifReplayable, 20500 * time.Millisecond},
	}
	for _, end := range ends {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range opCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						o := &observer{}
						pool := pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
							o.add(r)
							drip(w, r)
						})
						client := tableClient(t, "http://127.0.0.1", payvault.WithHTTPClient(pool), impatient(2), payvault.WithTimeout(20500*time.Millisecond))
						ctx, cancel := end.limit(t.Context())
						defer cancel()
						start := time.Now()
						var raw payvault.Response
						result, err := c.call(ctx, client, payvault.WithResponse(&raw))
						want := lost(200)
						want.repeated, want.cause = end.repeated, context.DeadlineExceeded
						want.raw = new(strings.Repeat(" ", int(end.took/time.Second)))
						assertFailure(t, c, want, result, err, raw)
						assert.Equal(t, end.took*time.Duration(raw.Attempts), time.Since(start).Round(time.Millisecond))
						assert.Len(t, o.seen(), raw.Attempts)
					})
				})
			}
		})
	}
}

// drip writes a byte each second.
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

// TestFailures_interimWithoutEnd: net/http ends a service that sends nothing but 1xx.
func TestFailures_interimWithoutEnd(t *testing.T) {
	t.Parallel()
	server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }()
		for {
			if _, err := fmt.Fprintf(conn, "HTTP/1.1 103 Early Hints\r\nLink: %s\r\n\r\n", strings.Repeat("a", 64<<10)); err != nil {
				return
			}
		}
	})
	_, err := tableClient(t, server.URL).Webhooks.AddEvent(t.Context(), tableWebhook, tableEvent)
	assert.Equal(t, []string{"ErrOutcomeUnknown"}, kinds(err))
}

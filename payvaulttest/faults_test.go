package payvaulttest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// try sends an invoice. It returns the answer or the error of the transport.
func (a api) try(t *testing.T) (reply, error) {
	t.Helper()
	return a.tryRequest(t, a.request(t, http.MethodPost, sendPath, `{"email_address":["i@example.com"]}`))
}

func (a api) tryRequest(t *testing.T, r *http.Request) (reply, error) {
	t.Helper()
	resp, err := a.srv.HTTPClient().Do(r)
	if err != nil {
		return reply{}, err //nolint:wrapcheck // as it is
	}
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err //nolint:wrapcheck // as it is
}

func (a api) commits() int { return a.srv.Commits(payvault.OpInvoicesSend) }

func (a api) sent() bool {
	invoice, _ := a.srv.Invoices.Get("INV-1")
	return invoice.State == payvaulttest.InvoiceOutstanding
}

// TestDroppedConnections checks when each of these faults drops the connection: before the body, before the operation,
// or after it.
func TestDroppedConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind    payvaulttest.FaultKind
		commits int
		arrived int // the number of requests in the history
		body    bool
	}{
		{payvaulttest.ResetConnection, 0, 1, false},
		{payvaulttest.DropBeforeCommit, 0, 1, true},
		{payvaulttest.DropAfterCommit, 1, 1, true},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %t", test.kind, secure), func(t *testing.T) {
				t.Parallel()
				var opts []payvaulttest.Option
				if secure {
					opts = append(opts, payvaulttest.WithTLS())
				}
				a := newAPI(t, opts...)
				a.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})
				fault := payvaulttest.Fault{Kind: test.kind, Times: 1}
				inject(t, a.srv, fault)

				_, err := a.try(t)
				require.Error(t, err)
				assert.Equal(t, test.commits, a.commits())
				assert.Equal(t, test.commits == 1, a.sent())
				require.Len(t, a.srv.Requests(), test.arrived)
				if test.arrived > 0 {
					assert.Equal(t, test.body, len(a.srv.Requests()[0].Body()) > 0)
				}

				again, err := a.try(t)
				require.NoError(t, err, "the fault struck once")
				if test.commits == 0 {
					again.ok(t)
				} else {
					again.refused(t, http.StatusConflict)
				}
				assert.Equal(t, 1, a.commits())
			})
		}
	}
}

// TestResetIsAReset checks that ResetConnection resets the connection, and that DropBeforeCommit closes it.
func TestResetIsAReset(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.ResetConnection})
	_, err := a.try(t)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	a.srv.ClearFaults()
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.DropBeforeCommit})
	_, err = a.try(t)
	require.ErrorIs(t, err, io.EOF)
}

// TestClientThatGoesAwayWhileSending checks that a request whose body breaks off is not performed.
func TestClientThatGoesAwayWhileSending(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	u, err := url.Parse(a.srv.URL)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "POST /api/v1%s HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nAuthorization: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{}", sendPath, basic(":"+a.key))
	require.NoError(t, err)
	tcp, ok := conn.(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, tcp.CloseWrite())
	_, err = bufio.NewReader(conn).ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, conn.Close())
	assert.False(t, a.sent())
	require.Len(t, a.srv.Requests(), 1)
	assert.False(t, a.srv.Requests()[0].Complete)
}

// TestAnswers checks the answer of each fault, and that with AfterCommit the operation is performed before it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  payvaulttest.Fault
		status int
		header map[string]string
		body   string
	}{
		"HTML": {
			payvaulttest.Fault{
				Kind: payvaulttest.Respond, Status: 502, Body: "<html>", Header: http.Header{"content-type": {"text/html"}},
			},
			502,
			map[string]string{"Content-Type": "text/html"},
			"<html>",
		},
		"no header": {
			payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 500},
			500,
			map[string]string{"Content-Type": ""},
			"",
		},
		"no status": {payvaulttest.Fault{Kind: payvaulttest.Respond, Body: "x"}, 200, nil, "x"},
		"204":       {payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 204}, 204, nil, ""},
		"429": {
			payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "7"},
			429,
			map[string]string{"Retry-After": "7"},
			`{"code":429,"message":"Too many requests"}`,
		},
		"429 at a date": {
			payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "Wed, 21 Oct 2015 07:28:00 GMT"},
			429,
			map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"},
			`{"code":429,"message":"Too many requests"}`,
		},
		"429 whenever": {
			payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "-99999999999999999999"},
			429,
			map[string]string{"Retry-After": "-99999999999999999999"},
			`{"code":429,"message":"Too many requests"}`,
		},
		"429 at once": {
			payvaulttest.Fault{Kind: payvaulttest.RateLimit},
			429,
			map[string]string{"Retry-After": ""},
			`{"code":429,"message":"Too many requests"}`,
		},
		"redirect": {
			payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 307, Header: http.Header{"Location": {"/x"}}},
			307,
			map[string]string{"Location": "/x"},
			"",
		},
		"empty": {
			payvaulttest.Fault{Kind: payvaulttest.Respond},
			200,
			map[string]string{"Content-Length": "0"},
			"",
		},
		"empty 201": {payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 201}, 201, nil, ""},
		"other code": {
			payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Message: "declined"},
			200, nil,
			`{"code":7,"message":"declined"}`,
		},
		"malformed": {
			payvaulttest.Fault{Kind: payvaulttest.MalformedJSON},
			200, nil,
			`{"code":0,"rcode":"000","message":"Success","rmsg":"Success","data":{},}`,
		},
		"truncated": {
			payvaulttest.Fault{Kind: payvaulttest.TruncatedJSON},
			200,
			map[string]string{"Content-Length": "35"},
			`{"code":0,"rcode":"000","message":"`,
		},
		"truncated body": {payvaulttest.Fault{Kind: payvaulttest.TruncatedJSON, Body: `{"a":"b"}`}, 200, nil, `{"a"`},
		"slow": {
			payvaulttest.Fault{Kind: payvaulttest.SlowDrip, Delay: time.Microsecond},
			200, nil,
			`{"code":0,"rcode":"000","message":"Success","rmsg":"Success","data":{}}`,
		},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", name, after), func(t *testing.T) {
				t.Parallel()
				a := newInvoice(t)
				fault := test.fault
				fault.Operation, fault.AfterCommit, fault.Times = payvault.OpInvoicesSend, after, 1
				inject(t, a.srv, fault)
				a.srv.HTTPClient().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

				got, err := a.try(t)
				require.NoError(t, err)
				assert.Equal(t, test.status, got.status)
				for header, value := range test.header {
					if !after || header != "Content-Length" {
						assert.Equal(t, value, got.header.Get(header), header)
					}
				}
				if fault.Kind != payvaulttest.TruncatedJSON && fault.Kind != payvaulttest.SlowDrip || !after {
					assert.Equal(t, test.body, got.body)
				}
				assert.Equal(t, after, a.sent())
				assert.Equal(t, after, a.commits() == 1)
			})
		}
	}
}

// TestDamagedRealAnswers checks the faults that damage the real answer.
func TestDamagedRealAnswers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	fault := payvaulttest.Fault{Kind: payvaulttest.SlowDrip, AfterCommit: true, Delay: time.Microsecond, Times: 1}
	inject(t, a.srv, fault)
	answer := a.post(t, "/pg/tokenize", newCard)
	assert.Contains(t, answer.body, `"card_id"`, "the whole answer, slowly")
	answer.tokenized(t)

	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.TruncatedJSON, AfterCommit: true})
	short := a.post(t, "/pg/tokenize", newCard)
	assert.True(t, strings.HasPrefix(short.body, `{"rcode":"000"`))
	assert.False(t, json.Valid([]byte(short.body)))
	assert.Equal(t, 2, a.srv.Commits(payvault.OpTokensTokenize))
}

// TestCutBody checks that the connection breaks within the body.
func TestCutBody(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		a := newInvoice(t)
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.CutBody, AfterCommit: after})
		got, err := a.try(t)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, http.StatusOK, got.status)
		assert.NotEmpty(t, got.body)
		assert.Equal(t, after, a.sent())
	}
}

// TestTokenizeFaultsSpeakTokenize checks that faults answer Tokenize with an rcode.
func TestTokenizeFaultsSpeakTokenize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, test := range []struct {
		fault payvaulttest.Fault
		body  string
	}{
		{
			payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 51, Message: "declined"},
			`{"rcode":"051","rmsg":"declined"}`,
		},
		{payvaulttest.Fault{Kind: payvaulttest.RateLimit}, `{"rcode":"429","rmsg":"Too many requests"}`},
	} {
		test.fault.Times = 1
		inject(t, a.srv, test.fault)
		assert.JSONEq(t, test.body, a.post(t, "/pg/tokenize", newCard).body)
	}
	assert.Empty(t, a.srv.Cards.All())
}

// TestOversizedBody checks that the body has the given size and is valid JSON.
func TestOversizedBody(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	for _, size := range []int64{100, 64 << 10, 1<<20 + 1} {
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.OversizedBody, Size: size, Times: 1})
		got, err := a.try(t)
		require.NoError(t, err)
		assert.Len(t, got.body, int(size))
		assert.True(t, json.Valid([]byte(got.body)))
	}
}

// TestEndlessBody checks that the fault oversized body sends an endless body if it has no size.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.OversizedBody})
	resp, err := a.srv.HTTPClient().Do(a.request(t, http.MethodPost, sendPath, `{}`))
	require.NoError(t, err)
	n, err := io.CopyN(io.Discard, resp.Body, 8<<20)
	require.NoError(t, err)
	assert.Equal(t, int64(8<<20), n)
	require.NoError(t, resp.Body.Close())
	a.srv.Close()
}

// TestDelay checks that a delayed request is performed once.
func TestDelay(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		a := newInvoice(t)
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Delay, Delay: 20 * time.Millisecond, AfterCommit: after})
		began := time.Now()
		got, err := a.try(t)
		require.NoError(t, err)
		got.ok(t)
		assert.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
		assert.Equal(t, 1, a.commits())
	}
}

// TestClientThatGivesUp checks that a delay and a hang end when the client gives up. The operation is performed only
// with AfterCommit.
func TestClientThatGivesUp(t *testing.T) {
	t.Parallel()
	for kind, delay := range map[payvaulttest.FaultKind]time.Duration{
		payvaulttest.Delay: time.Hour, payvaulttest.Hang: 0,
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", kind, after), func(t *testing.T) {
				t.Parallel()
				a := newInvoice(t)
				inject(t, a.srv, payvaulttest.Fault{Kind: kind, Delay: delay, AfterCommit: after})
				ctx, cancel := context.WithCancel(t.Context())
				r := a.request(t, http.MethodPost, sendPath, `{}`).WithContext(ctx)
				done := make(chan error)
				go func() {
					_, err := a.tryRequest(t, r)
					done <- err
				}()
				waitFor(t, func() bool { return len(a.srv.Requests()) == 1 && (!after || a.sent()) })
				cancel()
				require.ErrorIs(t, <-done, context.Canceled)
				a.srv.Close() // Close waits until the request has ended
				assert.Equal(t, after, a.sent())
			})
		}
	}
}

// waitFor polls until the server has reached a state that it does not signal.
func waitFor(t *testing.T, reached func() bool) {
	t.Helper()
	require.Eventually(t, reached, 10*time.Second, time.Millisecond)
}

// TestCloseEndsEveryFault checks that Close ends requests that a fault keeps waiting, without performing them.
func TestCloseEndsEveryFault(t *testing.T) {
	t.Parallel()
	for _, fault := range []payvaulttest.Fault{
		{Kind: payvaulttest.Delay, Delay: time.Hour},
		{Kind: payvaulttest.Hang},
		{Kind: payvaulttest.SlowDrip, Delay: time.Hour},
		{Kind: payvaulttest.OversizedBody},
	} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			t.Parallel()
			a := newInvoice(t)
			inject(t, a.srv, fault)
			done := make(chan error)
			r := a.request(t, http.MethodPost, sendPath, `{}`)
			go func() {
				resp, err := a.srv.HTTPClient().Do(r)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					err = errors.Join(err, resp.Body.Close())
				}
				done <- err
			}()
			waitFor(t, func() bool { return len(a.srv.Requests()) == 1 })
			a.srv.Close()
			require.Error(t, <-done)
			assert.False(t, a.sent())
		})
	}
}

// slowHandler is a slow log handler. It counts the records that it has finished.
type slowHandler struct {
	slog.Handler
	done *atomic.Int64
}

func (h slowHandler) Handle(context.Context, slog.Record) error {
	<-time.After(50 * time.Millisecond)
	h.done.Add(1)
	return nil
}

// TestCloseWaitsForHandlers checks that Close waits for the handlers of HTTP/2, which outlive their connections.
func TestCloseWaitsForHandlers(t *testing.T) {
	t.Parallel()
	for _, fault := range []payvaulttest.Fault{
		{Kind: payvaulttest.Hang},
		{Kind: payvaulttest.SlowDrip, Delay: time.Hour},
		{Kind: payvaulttest.OversizedBody},
	} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			t.Parallel()
			var done atomic.Int64
			log := slog.New(slowHandler{slog.NewTextHandler(io.Discard, nil), &done})
			a := newAPI(t, payvaulttest.WithTLS(), payvaulttest.WithLogger(log))
			inject(t, a.srv, fault)
			r := a.request(t, http.MethodPost, sendPath, `{}`)
			lost := make(chan error)
			go func() {
				_, err := a.tryRequest(t, r)
				lost <- err
			}()
			waitFor(t, func() bool { return len(a.srv.Requests()) == 1 })
			a.srv.Close()
			assert.Equal(t, int64(1), done.Load(), "the handler has ended, its log record included")
			require.Error(t, <-lost)
		})
	}
}

// TestFaultsAreChosen checks which fault strikes a request: the oldest one for its operation that is not spent.
func TestFaultsAreChosen(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	status := func(code int, op payvault.Operation, times int) func() {
		return inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Status: code, Operation: op, Times: times})
	}
	list := func() int { return a.get(t, "/platform/vault/customer").status }

	status(501, payvault.OpPayeesCreate, 0)
	assert.Equal(t, 200, list(), "another operation")
	remove := status(502, payvault.OpCustomersList, 0)
	status(503, payvault.OpCustomersList, 2)
	assert.Equal(t, []int{502, 502}, []int{list(), list()}, "the first one strikes until it is removed")
	remove()
	remove()
	assert.Equal(t, []int{503, 503, 200}, []int{list(), list(), list()}, "then the second one, twice")
	status(504, "", 1)
	assert.Equal(t, 504, a.get(t, "/nowhere").status, "every request, unknown ones too")
	status(505, "", 0)
	a.srv.ClearFaults()
	assert.Equal(t, 200, list())
}

// TestFaultsSkip checks that a skipped request reaches later faults. A request that an earlier fault strikes is not
// counted as skipped.
func TestFaultsSkip(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	list := func() int { return a.get(t, "/platform/vault/customer").status }
	strike := func(status, skip, times int) payvaulttest.Fault {
		return payvaulttest.Fault{
			Kind: payvaulttest.Respond, Status: status, Operation: payvault.OpCustomersList, Skip: skip, Times: times,
		}
	}
	third := strike(501, 2, 1)
	inject(t, a.srv, third)
	assert.Equal(t, 404, a.get(t, "/nowhere").status, "another operation is not counted")
	assert.Equal(t, []int{200, 200, 501, 200}, []int{list(), list(), list(), list()})

	inject(t, a.srv, third)
	inject(t, a.srv, strike(502, 0, 1))
	inject(t, a.srv, strike(503, 1, 2))
	assert.Equal(t, []payvaulttest.ArmedFault{
		{Fault: third, Left: 1}, {Fault: strike(502, 0, 1), Left: 1}, {Fault: strike(503, 1, 2), Left: 2},
	}, a.srv.Faults())
	assert.Equal(t, []int{502, 200, 501, 503, 503, 200}, []int{list(), list(), list(), list(), list(), list()})

	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.PermitRate, Rate: 1e-9, Skip: 2})
	assert.Equal(t, []int{200, 200, 200, 429}, []int{list(), list(), list(), list()}, "two, and one that is permitted")
}

// TestFaultsStrikeBeforeAuthentication checks that a fault replaces the answer to a request with an unknown key, which
// is not performed.
func TestFaultsStrikeBeforeAuthentication(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	a.key = "unknown"
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Respond, AfterCommit: true})
	assert.Equal(t, http.StatusOK, a.post(t, sendPath, `{}`).status)
	assert.False(t, a.sent(), "the operation was refused, only its answer was replaced")
	assert.Zero(t, a.commits())
}

// TestFaultHeadersAreCopied checks that changing a header after Inject, or in Faults, does not change the fault.
func TestFaultHeadersAreCopied(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	header := http.Header{"X-Test": {"one"}}
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Header: header})
	header.Set("X-Test", "two")
	a.srv.Faults()[0].Header.Set("X-Test", "three")
	assert.Equal(t, "one", a.get(t, "/").header.Get("X-Test"))
}

// TestFaultsUnderLoad checks that exactly Times of many concurrent requests fail.
func TestFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 10, Operation: payvault.OpPayeesCreate})
	var requests sync.WaitGroup
	var lost sync.Map
	for i := range 100 {
		requests.Go(func() {
			resp, err := a.srv.HTTPClient().Do(a.request(t, http.MethodPost, payees, `{"payee_name":"P"}`))
			if err != nil {
				lost.Store(i, true)
				return
			}
			read(t, resp).ok(t)
		})
	}
	requests.Wait()
	failed := 0
	lost.Range(func(any, any) bool { failed++; return true })
	assert.Equal(t, 10, failed)
	assert.Equal(t, 100, a.srv.Commits(payvault.OpPayeesCreate))
	assert.Len(t, a.srv.Payees.All(), 100)
}

// TestFaultsThatCannotStrike checks that an invalid fault is an error and is not armed.
func TestFaultsThatCannotStrike(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, fault := range map[string]payvaulttest.Fault{
		"no kind":               {},
		"an unknown kind":       {Kind: "nonsense"},
		"an unknown operation":  {Kind: payvaulttest.Hang, Operation: "invoices.sent"},
		"a status of no answer": {Kind: payvaulttest.Respond, Status: 199},
		"a status above 599":    {Kind: payvaulttest.Respond, Status: 600},
		"a negative status":     {Kind: payvaulttest.Respond, Status: -1},
		"a body under a 204":    {Kind: payvaulttest.Respond, Status: 204, Body: "x"},
		"negative times":        {Kind: payvaulttest.Hang, Times: -1},
		"a negative skip":       {Kind: payvaulttest.Hang, Skip: -1},
		"a negative delay":      {Kind: payvaulttest.SlowDrip, Delay: -1},
		"no delay":              {Kind: payvaulttest.Delay},
		"a field unread":        {Kind: payvaulttest.Respond, Status: 503, RetryAfter: "1"},
		"a negative size":       {Kind: payvaulttest.OversizedBody, Size: -1},
		"a size without JSON":   {Kind: payvaulttest.OversizedBody, Size: 10},
		"the code of success":   {Kind: payvaulttest.OtherCode, Message: "declined"},
		"no rate":               {Kind: payvaulttest.PermitRate},
		"a rate after it":       {Kind: payvaulttest.PermitRate, Rate: 1, AfterCommit: true},
		"a reset after it":      {Kind: payvaulttest.ResetConnection, AfterCommit: true},
		"before and after it":   {Kind: payvaulttest.DropBeforeCommit, AfterCommit: true},
	} {
		_, err := a.srv.Inject(fault)
		require.Error(t, err, name)
	}
	assert.Empty(t, a.srv.Faults())
	assert.Equal(t, http.StatusOK, a.get(t, "/platform/vault/customer").status, "none of them is armed")
}

// TestRespondAddsNoContentType checks that Respond sends only the Content-Type of the fault.
func TestRespondAddsNoContentType(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]payvaulttest.Option{nil, {payvaulttest.WithTLS()}} {
		a := newAPI(t, opts...)
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Body: "<html>", Times: 1})
		assert.NotContains(t, a.get(t, "/").header, "Content-Type")
		inject(t, a.srv, payvaulttest.Fault{
			Kind: payvaulttest.Respond, Body: "<html>",
			Header: http.Header{"content-type": {"text/x"}},
		})
		assert.Equal(t, "text/x", a.get(t, "/").header.Get("Content-Type"))
	}
}

// TestClientThatGivesUpWhileSending checks that a waiting fault ends when the client leaves in the middle of a body
// that is refused.
func TestClientThatGivesUpWhileSending(t *testing.T) {
	t.Parallel()
	for kind, delay := range map[payvaulttest.FaultKind]time.Duration{
		payvaulttest.Delay: time.Hour, payvaulttest.Hang: 0, payvaulttest.SlowDrip: time.Hour,
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", kind, after), func(t *testing.T) {
				t.Parallel()
				ended := make(chan bool)
				log := slog.New(endHandler{slog.NewTextHandler(io.Discard, nil), ended})
				a := newAPI(t, payvaulttest.WithLogger(log))
				inject(t, a.srv, payvaulttest.Fault{Kind: kind, Delay: delay, AfterCommit: after})
				body, end := io.Pipe()
				r := a.request(t, http.MethodPost, payees, "x")
				r.Body, r.ContentLength = body, 4<<20
				done := make(chan error)
				go func() {
					_, err := a.tryRequest(t, r)
					done <- err
				}()
				_, err := end.Write(make([]byte, 2<<20)) // more than the server reads, less than was announced
				require.NoError(t, err)
				waitFor(t, func() bool { return len(a.srv.Requests()) == 1 })
				require.NoError(t, end.CloseWithError(context.Canceled))
				require.Error(t, <-done)
				<-ended
			})
		}
	}
}

// endHandler is a log handler that signals the end of a request.
type endHandler struct {
	slog.Handler
	ended chan bool
}

func (h endHandler) Handle(context.Context, slog.Record) error {
	h.ended <- true
	return nil
}

// TestDelayOfABodyThatIsTooLarge checks that a delay does not change the refusal of a large body.
func TestDelayOfABodyThatIsTooLarge(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Delay, Delay: time.Millisecond})
	a.post(t, payees, strings.Repeat("x", 4<<20)).refused(t, http.StatusRequestEntityTooLarge)
}

// TestCloseEndsEverythingAtOnce checks that Close ends everything that is under way: a body, a waiting fault, and a
// delivery.
func TestCloseEndsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]payvaulttest.Option{nil, {payvaulttest.WithTLS()}} {
		a := newAPI(t, opts...)
		silent, arrived := newSilentReceiver(t)
		a.srv.Webhooks.Seed(payvaulttest.Webhook{NotificationURL: silent, Events: []payvault.Event{"e"}})
		a.srv.TriggerEvent(merchantID, "e", nil)
		a.srv.TriggerEvent(merchantID, "e", nil)
		<-arrived
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Hang})
		body, end := io.Pipe()
		large, small := a.request(t, http.MethodPost, payees, "x"), a.request(t, http.MethodPost, payees, `{}`)
		large.Body, large.ContentLength = body, 4<<20
		lost := make(chan error)
		for _, r := range []*http.Request{large, small} {
			go func() {
				_, err := a.tryRequest(t, r)
				lost <- err
			}()
		}
		_, err := end.Write(make([]byte, 2<<20))
		require.NoError(t, err)
		waitFor(t, func() bool { return len(a.srv.Requests()) == 2 })
		a.srv.Close()
		require.NoError(t, end.Close())
		require.Error(t, <-lost)
		require.Error(t, <-lost)
	}
}

package payvaulttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// trySend makes one request to send the invoice of newInvoice. It returns the answer, or the error of the transport.
func (a api) trySend(t *testing.T) (reply, error) {
	t.Helper()
	return a.try(t, a.request(t, http.MethodPost, sendPath, `{"email_address":["i@example.com"]}`))
}

const http1, http2 = "HTTP/1", "HTTP/2"

// protocols returns the options of a server for each protocol.
func protocols() map[string][]payvaulttest.Option {
	return map[string][]payvaulttest.Option{http1: nil, http2: {payvaulttest.WithTLS()}}
}

func (a api) sent() bool {
	invoice, _ := a.srv.Invoices.Get("INV-1")
	return invoice.State == payvaulttest.InvoiceOutstanding
}

// TestLostConnections checks that a fault of the connection makes exactly one request fail, and that with HTTP/2 the
// connection stays open.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind    payvaulttest.FaultKind
		err     error // error of the client with HTTP/1
		commits int
		read    bool // the server has read the body
	}{
		{payvaulttest.ResetConnection, syscall.ECONNRESET, 0, false},
		{payvaulttest.DropBeforeCommit, io.EOF, 0, true},
		{payvaulttest.DropAfterCommit, io.EOF, 1, true},
	} {
		for protocol, opts := range protocols() {
			t.Run(fmt.Sprintf("%s, %s", test.kind, protocol), func(t *testing.T) {
				t.Parallel()
				a := newInvoice(t, opts...)
				a.get(t, customers)
				inject(t, a.srv, payvaulttest.Fault{Kind: test.kind, Times: 1, Operation: payvault.OpInvoicesSend})
				_, err := a.trySend(t)
				require.Error(t, err)
				if protocol == http1 {
					require.ErrorIs(t, err, test.err)
				}
				assert.Equal(t, test.commits, a.srv.Commits(payvault.OpInvoicesSend))
				assert.Equal(t, test.commits == 1, a.sent())

				again, err := a.trySend(t)
				require.NoError(t, err, "the fault struck once")
				assert.Equal(t, map[int]int{0: http.StatusOK, 1: http.StatusConflict}[test.commits], again.status)
				requests := a.srv.Requests()
				require.Len(t, requests, 3)
				assert.Equal(t, test.read, len(requests[1].Body()) > 0)
				assert.Equal(t, protocol == http2, requests[0].RemoteAddr == requests[2].RemoteAddr)
			})
		}
	}
}

// TestClientThatGoesAwayWhileSending checks that the server does not perform a request if the client disconnects before
// it has sent the whole body.
func TestClientThatGoesAwayWhileSending(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	r := a.request(t, http.MethodPost, sendPath, "{}")
	arrives := "{}" + strings.Repeat(" ", 64<<10) // more than the client buffers before it sends
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(arrives), iotest.ErrReader(errors.New("gone"))))
	r.ContentLength = int64(len(arrives)) + 1
	_, err := a.try(t, r)
	require.ErrorContains(t, err, "gone")
	waitFor(t, func() bool { return len(a.srv.Requests()) == 1 })
	a.srv.Close() // waits until the request has ended
	assert.False(t, a.sent())
	assert.False(t, a.srv.Requests()[0].Complete)
}

// TestAnswers checks that a fault changes the answer, and that the operation is performed only with AfterCommit or
// after a Delay. CutBody also ends the connection in the middle of the body.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const (
		tooMany = `{"code":429,"message":"Too many requests"}`
		success = `{"code":0,"rcode":"000","message":"Success","rmsg":"Success","data":{}}`
		padded  = `{"code":0,"rcode":"000","message":"Success","data":{"padding":"`

		performed = `{"code":0,"message":"Success"}` // the answer of the operation
	)
	html, location := http.Header{"content-type": {"text/html"}}, http.Header{"Location": {"/x"}}
	type fault = payvaulttest.Fault
	for _, test := range []struct {
		fault        fault
		status       int
		header, want string // name of a header of the answer, and its value
		body         string
		real         string // body of the answer with AfterCommit; empty if it is the same as body
	}{
		{
			fault{Kind: payvaulttest.Respond, Status: 599, Body: "<html>", Header: html},
			599, "Content-Type", "text/html", "<html>", "",
		},
		{fault{Kind: payvaulttest.Respond, Status: 200, Body: "<html>"}, 200, "Content-Type", "", "<html>", ""},
		{fault{Kind: payvaulttest.Respond, Status: 307, Header: location}, 307, "Location", "/x", "", ""},
		{fault{Kind: payvaulttest.Respond, Status: 204}, 204, "Content-Length", "", "", ""},
		{fault{Kind: payvaulttest.RateLimit, RetryAfter: "-9e9"}, 429, "Retry-After", "-9e9", tooMany, ""},
		{fault{Kind: payvaulttest.RateLimit}, 429, "Retry-After", "", tooMany, ""},
		{
			fault{Kind: payvaulttest.OtherCode, Status: 402, Code: 7, Message: "declined"},
			402, "Content-Type", "application/json", `{"code":7,"message":"declined"}`, "",
		},
		{fault{Kind: payvaulttest.MalformedJSON}, 200, "", "", success[:len(success)-1] + ",}", ""},
		{fault{Kind: payvaulttest.TruncatedJSON}, 200, "", "", success[:len(success)/2], `{"code":0,"mess`},
		{fault{Kind: payvaulttest.TruncatedJSON, Body: `{"a":"b"}`}, 200, "Content-Length", "4", `{"a"`, ""},
		{fault{Kind: payvaulttest.OversizedBody, Size: 100}, 200, "", "", padded + strings.Repeat("x", 34) + `"}}`, ""},
		{fault{Kind: payvaulttest.SlowDrip, Delay: time.Microsecond}, 200, "", "", success, performed},
		{fault{Kind: payvaulttest.Delay, Delay: time.Microsecond}, 200, "", "", performed, ""},
		{fault{Kind: payvaulttest.CutBody}, 200, "", "", success[:len(success)/2], `{"code":0,"mess`},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %d, after %t", test.fault.Kind, test.status, after), func(t *testing.T) {
				t.Parallel()
				a := newInvoice(t)
				a.srv.HTTPClient().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				fault, want := test.fault, test.body
				fault.AfterCommit = after
				if after && test.real != "" {
					want = test.real
				}
				inject(t, a.srv, fault)
				got, err := a.trySend(t)
				if fault.Kind == payvaulttest.CutBody {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				} else {
					require.NoError(t, err)
				}
				performs := after || fault.Kind == payvaulttest.Delay
				assert.Equal(t, test.status, got.status)
				assert.Equal(t, test.want, got.header.Get(test.header))
				assert.Equal(t, want, got.body)
				assert.Equal(t, performs, a.sent())
				assert.Equal(t, performs, a.srv.Commits(payvault.OpInvoicesSend) == 1)
			})
		}
	}
}

// TestOversizedBodyWithoutSize checks that the answer of OversizedBody is too large for a client if the fault has no
// Size.
func TestOversizedBodyWithoutSize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.OversizedBody})
	_, err := a.srv.Client().Customers.List(t.Context(), nil)
	require.ErrorIs(t, err, payvault.ErrResponseTooLarge)
}

// TestTokenizeFaultsSpeakTokenize checks that a fault answers a tokenize request with rcode and rmsg, even if the key
// is unknown. Such a request must not be performed, even with AfterCommit.
func TestTokenizeFaultsSpeakTokenize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.key = "unknown"
	inject(t, a.srv, payvaulttest.Fault{
		Kind: payvaulttest.OtherCode, Code: 51, Message: "declined", Times: 1, AfterCommit: true,
	})
	assert.JSONEq(t, `{"rcode":"051","rmsg":"declined"}`, a.post(t, "/pg/tokenize", newCard).body)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.RateLimit})
	assert.JSONEq(t, `{"rcode":"429","rmsg":"Too many requests"}`, a.get(t, "/pg/tokenize").body, "whatever the method")
	assert.Empty(t, a.srv.AllCommits())
}

// waitFor polls until reached returns true. It fails the test if reached is still false after ten seconds.
func waitFor(t *testing.T, reached func() bool) {
	t.Helper()
	require.Eventually(t, reached, 10*time.Second, time.Millisecond)
}

// A slowHandler is a log handler that needs 20 ms for each record, and counts the records that it has handled.
type slowHandler struct {
	slog.Handler
	done *atomic.Int64
}

func (h slowHandler) Handle(context.Context, slog.Record) error {
	<-time.After(20 * time.Millisecond)
	h.done.Add(1)
	return nil
}

// TestFaultsThatAreCutShort checks that a slow fault ends when the client cancels its request or the server is closed,
// and that Server.Close waits until the request is logged, although the Close of httptest.Server does not wait for
// HTTP/2 handlers.
func TestFaultsThatAreCutShort(t *testing.T) {
	t.Parallel()
	for _, fault := range []payvaulttest.Fault{
		{Kind: payvaulttest.Delay, Delay: time.Hour},
		{Kind: payvaulttest.Hang},
		{Kind: payvaulttest.Hang, AfterCommit: true},
		{Kind: payvaulttest.SlowDrip, Delay: time.Hour},
		{Kind: payvaulttest.OversizedBody},
	} {
		for _, closed := range []bool{false, true} {
			for protocol, opts := range protocols() {
				t.Run(fmt.Sprintf("%s, closed %t, %s", fault.Kind, closed, protocol), func(t *testing.T) {
					t.Parallel()
					var logged atomic.Int64
					log := payvaulttest.WithLogger(slog.New(slowHandler{slog.NewTextHandler(io.Discard, nil), &logged}))
					a := newInvoice(t, append(opts, log)...)
					inject(t, a.srv, fault)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					r := a.request(t, http.MethodPost, sendPath, `{}`).WithContext(ctx)
					lost := a.start(r)
					waitFor(t, func() bool { return len(a.srv.Requests()) == 1 && (!fault.AfterCommit || a.sent()) })
					if !closed {
						cancel()
						require.ErrorIs(t, <-lost, context.Canceled)
						waitFor(t, func() bool { return logged.Load() == 1 })
						a.srv.Close()
					} else {
						a.srv.Close()
						assert.Equal(t, int64(1), logged.Load())
						require.Error(t, <-lost)
					}
					assert.Equal(t, fault.AfterCommit, a.sent())
				})
			}
		}
	}
}

// TestCloseEndsEverythingAtOnce checks that Close ends a request whose body is still arriving, a request that a Hang
// fault keeps waiting, and a webhook delivery that gets no answer. The delivery that waits behind it is not made.
func TestCloseEndsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	for _, opts := range protocols() {
		a := newAPI(t, opts...)
		arrived, release := make(chan bool, 1), make(chan bool)
		silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			arrived <- true
			<-release
		}))
		t.Cleanup(silent.Close)
		t.Cleanup(func() { close(release) })
		a.srv.Webhooks.Seed(payvaulttest.Webhook{NotificationURL: silent.URL, Events: []payvault.Event{"e"}})
		a.srv.TriggerEvent(merchantID, "e", nil)
		a.srv.TriggerEvent(merchantID, "e", nil)
		<-arrived
		inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Hang})
		body, end := io.Pipe()
		large, small := a.request(t, http.MethodPost, payees, "x"), a.request(t, http.MethodPost, payees, `{}`)
		large.Body, large.ContentLength = body, 4<<20
		largeLost, smallLost := a.start(large), a.start(small)
		_, err := end.Write(make([]byte, 2<<20))
		require.NoError(t, err)
		waitFor(t, func() bool { return len(a.srv.Requests()) == 2 })
		a.srv.Close()
		require.NoError(t, end.Close())
		require.Error(t, <-largeLost)
		require.Error(t, <-smallLost)
		require.Len(t, a.srv.Deliveries(), 1, "of the one that was under way")
		require.ErrorIs(t, a.srv.Deliveries()[0].Err, context.Canceled)
		require.Error(t, a.srv.WaitDeliveries(t.Context()))
	}
}

// TestFaultsAreChosen checks that only the oldest fault that fits a request takes effect, and which requests count for
// Skip.
func TestFaultsAreChosen(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	list := func(times int) (statuses []int) {
		for range times {
			statuses = append(statuses, a.get(t, customers).status)
		}
		return statuses
	}
	strike := func(status, skip, times int) payvaulttest.Fault {
		return payvaulttest.Fault{
			Kind: payvaulttest.Respond, Status: status, Operation: payvault.OpCustomersList, Skip: skip, Times: times,
		}
	}
	other := payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 505, Operation: payvault.OpPayeesCreate}
	inject(t, a.srv, other)
	inject(t, a.srv, strike(501, 2, 1))
	assert.Equal(t, http.StatusNotFound, a.get(t, "/nowhere").status, "another operation is not counted")
	assert.Equal(t, []int{200, 200, 501, 200}, list(4))

	remove := inject(t, a.srv, strike(502, 0, 0))
	inject(t, a.srv, strike(503, 1, 2))
	assert.Equal(t, []int{502, 502}, list(2))
	assert.Equal(t, []payvaulttest.ArmedFault{
		{Fault: other, Left: -1},
		{Fault: strike(502, 0, 0), Struck: 2, Left: -1},
		{Fault: strike(503, 1, 2), Left: 2},
	}, a.srv.Faults())
	remove()
	remove()
	assert.Equal(t, []int{200, 503, 503, 200}, list(4))

	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.PermitRate, Rate: 1e-9, Skip: 2, RetryAfter: "9"})
	assert.Equal(t, []int{200, 200, 200, 429}, list(4), "two that pass, and one that is permitted")
	assert.Equal(t, "9", a.get(t, "/nowhere").header.Get("Retry-After"), "every request, unknown ones too")
	a.srv.ClearFaults()
	assert.Equal(t, []int{200}, list(1))
}

// TestFaultHeadersAreCopied checks that a test cannot change a fault through a header that it gave to Inject or got
// from Faults.
func TestFaultHeadersAreCopied(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	header := http.Header{"X-Test": {"one"}}
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.Respond, Header: header})
	header.Set("X-Test", "two")
	a.srv.Faults()[0].Header.Set("X-Test", "three")
	assert.Equal(t, "one", a.get(t, "/").header.Get("X-Test"))
}

// TestManyRequestsAtOnce sends 100 requests at once. It checks that all are performed, and that a fault with Times 10
// makes exactly ten fail.
func TestManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 10, Operation: payvault.OpPayeesCreate})
	var requests sync.WaitGroup
	var lost atomic.Int64
	for range 100 {
		requests.Go(func() {
			if _, err := a.try(t, a.request(t, http.MethodPost, payees, `{"payee_name":"P"}`)); err != nil {
				lost.Add(1)
			}
		})
	}
	requests.Wait()
	assert.Equal(t, int64(10), lost.Load())
	list := a.srv.Payees.All()
	require.Len(t, list, 100)
	for i := range list[1:] {
		assert.Less(t, list[i].ID, list[i+1].ID)
	}
	a.srv.AllCommits()[payvault.OpPayeesCreate] = 0
	assert.Equal(t, 100, a.srv.Commits(payvault.OpPayeesCreate), "the counts are a copy")
}

// TestFaultsThatCannotStrike checks that Inject returns an error for an invalid fault and does not add the fault.
func TestFaultsThatCannotStrike(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, fault := range map[string]payvaulttest.Fault{
		"no kind":               {},
		"an unknown operation":  {Kind: payvaulttest.Hang, Operation: "invoices.sent"},
		"a status of no answer": {Kind: payvaulttest.Respond, Status: 199},
		"a status above 599":    {Kind: payvaulttest.Respond, Status: 600},
		"a body under a 204":    {Kind: payvaulttest.Respond, Status: 204, Body: "x"},
		"a code under a 304":    {Kind: payvaulttest.OtherCode, Status: 304, Code: 7},
		"a drip under a 304":    {Kind: payvaulttest.SlowDrip, Status: 304},
		"a status of its own":   {Kind: payvaulttest.CutBody, Status: 503, AfterCommit: true},
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
}

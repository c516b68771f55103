// Package faults holds every operation against every fault, {once, for good} × {called as it is, WithReplay} × {before
// the operation is performed, after it}. The service counts how often it performs the operation. What has to come of a
// cell follows from what the operation is (package calls), what the fault does (the tables here), and what the client
// makes of it (ruleFor).
package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the service says if it is to perform something twice that goes once per record.
const (
	statusAgain = http.StatusConflict
	codeAgain   = "409"
)

// fault is what goes wrong on the way of a request: on the network, or in what the service answers.
type fault struct {
	name string
	is   effect
	or   effect // it is a race: this may come as well

	// One of the three makes it. Serve runs in the server, instead of the documented answer; network is that of the
	// client, and key its key source.
	serve   http.HandlerFunc
	network func(c *cell) http.RoundTripper
	key     func(context.Context) (string, error)

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

// faults are all, in the order in which they strike on the way of a request.
func faults(t *testing.T) []fault {
	t.Helper()
	return slices.Concat(keyFaults(), connectionFaults(t), handMade(), lostFaults(), statusFaults(), waits(), notSuccess(),
		shapes(), sizes(), redirects(t))
}

func TestFaults(t *testing.T) {
	t.Parallel()
	all := faults(t)
	for i := range all {
		t.Run(all[i].name, func(t *testing.T) {
			t.Parallel()
			f := &all[i]
			w := newWorld(t, f)
			for n, call := range calls.All() {
				cells := f.cells(&call)
				if testing.Short() { // one of them, in turn
					cells = cells[(i+n)%len(cells):][:1]
				}
				for _, c := range cells {
					w.run(t, c)
				}
			}
		})
	}
}

// cells are those of a fault with a call.
func (f *fault) cells(call *calls.Call) []*cell {
	var all []*cell
	for n := range 8 {
		c := &cell{fault: f, call: call, withReplay: n&1 != 0, stays: n&2 != 0, performs: n&4 != 0}
		if c.stays && f.once || c.performs && !f.performs || !c.performs && f.late() {
			continue
		}
		all = append(all, c)
	}
	return all
}

// late reports whether a fault is the answer to what was performed: before that would be the better case.
func (f *fault) late() bool {
	return f.performs && slices.Contains([]effect{malformed, tooLarge, redirected}, f.is)
}

// world is the service of the cells of a fault, which come one after the other.
type world struct {
	server *httptest.Server // none in a bubble
	cell   atomic.Pointer[cell]
}

func newWorld(t *testing.T, f *fault) *world {
	t.Helper()
	w := &world{}
	if f.bubble {
		return w
	}
	w.server = service.Unstarted(t, func(rw http.ResponseWriter, r *http.Request) { w.cell.Load().ServeHTTP(rw, r) })
	w.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(w.server.Close)
	if w.server.EnableHTTP2 = f.tls; f.tls {
		w.server.StartTLS()
	} else {
		w.server.Start()
	}
	return w
}

// patience is the timeout of an attempt; a drip does not end at the same time.
const patience = time.Minute + time.Second/2

// cell is one call under one fault.
type cell struct {
	fault                       *fault
	call                        *calls.Call
	withReplay, stays, performs bool

	pool   *http.Transport // of the cell alone; none in a bubble
	left   atomic.Int64    // how often it still strikes
	struck atomic.Int64
	done   atomic.Int64 // how often the operation was performed
	told   bytes.Buffer // what the log and observers were told
}

// String says which cell it is, for those who have to look after it.
func (c *cell) String() string {
	return fmt.Sprintf("%s × %s, WithReplay: %t, stays: %t, performs: %t", c.call.Name, c.fault.name, c.withReplay,
		c.stays, c.performs)
}

// run runs a cell, in a bubble if the fault takes time.
func (w *world) run(t *testing.T, c *cell) {
	t.Helper()
	w.cell.Store(c)
	if c.left.Store(1); c.stays {
		c.left.Store(1 << 30)
	}
	if c.fault.bubble {
		synctest.Test(t, func(t *testing.T) {
			c.check(t, service.Client(t, service.Nowhere, c.options(service.Pipe(t, c.ServeHTTP))...))
		})
		return
	}
	c.pool = w.server.Client().Transport.(*http.Transport).Clone()
	c.pool.DisableCompression = false
	hc := &http.Client{Transport: c.pool}
	if c.fault.network != nil {
		hc.Transport = c.fault.network(c)
	}
	client, err := payvault.NewClient(w.server.URL+service.BasePath, canaryKey, c.options(hc)...)
	require.NoError(t, err)
	if c.fault.warm {
		c.left.Store(0)
		require.NoError(t, client.Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"warm"}}, nil))
		c.left.Store(1)
	}
	c.check(t, client)
	c.pool.CloseIdleConnections()
}

func (c *cell) options(hc *http.Client) []payvault.Option {
	told := func(_ context.Context, call payvault.CallInfo, result payvault.CallResult) {
		result.Duration = 0 // whose digits may be anything
		_, _ = fmt.Fprintf(&c.told, "%+v %+v %+v\n", call, result, result.Err)
	}
	opts := []payvault.Option{
		payvault.WithRetryPolicy(payvault.RetryPolicy{
			MaxAttempts: attemptsAtMost, MinBackoff: 1, MaxBackoff: 2, MaxRetryAfter: 2 * time.Millisecond, IgnoreOverload: true,
		}),
		payvault.WithMaxResponseBytes(sizeLimit), payvault.WithTimeout(patience), payvault.WithHTTPClient(hc),
		payvault.WithLogger(slog.New(slog.NewMultiHandler(service.Handlers(&c.told)...))),
		payvault.WithObserver(payvault.Observer{Attempt: told, End: told}),
	}
	if c.fault.key != nil {
		opts = append(opts, payvault.WithKeySource(func(ctx context.Context) (string, error) {
			if c.strikes() {
				return c.fault.key(ctx)
			}
			return canaryKey, nil
		}))
	}
	return opts
}

// ServeHTTP performs the operation, unless the fault strikes.
func (c *cell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/warm"):
		service.Say(w, http.StatusOK, success)
	case c.fault.serve != nil && c.strikes():
		if n, again := c.performing(int(c.done.Load())); c.performs && !again {
			c.done.Store(int64(n))
		}
		c.fault.serve(w, r)
	case c.done.Load() > 0 && c.call.Once:
		service.Say(w, statusAgain, `{"code":409,"message":"it was done before"}`)
	default:
		c.done.Add(1)
		service.Say(w, http.StatusOK, c.call.Answer())
	}
}

// strikes reports whether the fault strikes now.
func (c *cell) strikes() bool {
	if c.left.Add(-1) < 0 {
		return false
	}
	c.struck.Add(1)
	return true
}

func (c *cell) make(t *testing.T, client *payvault.Client, opts ...payvault.CallOption) (any, error) {
	t.Helper()
	if c.withReplay {
		opts = append(opts, payvault.WithReplay())
	}
	return c.call.Do(t.Context(), client, canaryIDs(), canary.Planted(c.call.Full), opts...)
}

// check makes the call of a cell and holds what comes of it against the rules.
func (c *cell) check(t *testing.T, client *payvault.Client) {
	t.Helper()
	var response payvault.Response
	start := time.Now()
	result, err := c.make(t, client, payvault.WithResponse(&response))
	took := time.Since(start)
	if c.fault.accepted != nil && c.fault.accepted(c.call) {
		assert.NoError(t, err, "%s", c)
		assert.EqualValues(t, 1, c.struck.Load(), "%s", c)
		return
	}
	got, want := c.outcome(err, response), c.possible()
	if err != nil && strings.Contains(err.Error(), "cannot be read as") { // nor could it be the next time
		want[0].safe = false
	}
	if len(want) == 1 {
		assert.Equal(t, want[0], got, "%s: %v", c, err)
	} else {
		assert.Contains(t, want, got, "%s: %v", c, err)
	}
	assert.Equal(t, err == nil, result != nil, "%s", c)
	if c.stays {
		assert.GreaterOrEqual(t, c.struck.Load(), int64(got.attempts), "%s: it did not strike every attempt", c)
	} else {
		assert.EqualValues(t, 1, c.struck.Load(), "%s: how often the fault struck", c)
	}
	c.checkError(t, err, response)
	c.checkSilence(t, err, result, response)
	if c.fault.bubble {
		hung := map[bool]int{true: got.attempts, false: 1}[c.stays]
		assert.Equal(t, time.Duration(hung)*patience, took.Round(time.Millisecond), "%s", c)
	}
	if payvault.SafeToRetry(err) {
		c.checkAgain(t, client, got.performed)
	}
	if !c.call.Repeats && !c.withReplay {
		assert.LessOrEqual(t, c.done.Load(), int64(1), "%s: performed twice", c)
	}
}

// checkAgain holds SafeToRetry to its word: once the fault has passed, calling again succeeds, and unless the operation
// is replayable by what it does it is performed once in all.
func (c *cell) checkAgain(t *testing.T, client *payvault.Client, performed int) {
	t.Helper()
	c.left.Store(0)
	_, err := c.make(t, client)
	assert.NoError(t, err, "%s, called again", c)
	assert.EqualValues(t, performed+1, c.done.Load(), "%s, called again", c)
	if !c.call.Repeats {
		assert.Zero(t, performed, "%s: performed twice", c)
	}
}

// checkError checks what is special about the error of a fault.
func (c *cell) checkError(t *testing.T, err error, response payvault.Response) {
	t.Helper()
	e, ok := errors.AsType[*payvault.Error](err)
	if !ok {
		return
	}
	assert.Equal(t, c.call.Op, e.Op, "%s", c)
	assert.Equal(t, e.StatusCode, response.StatusCode, "%s", c)
	assert.Equal(t, e.Delivery == payvault.Unknown && c.call.Replay != payvault.ReplayRead,
		strings.HasSuffix(err.Error(), "(outcome unknown)"), "%s: %v", c, err)
	assert.NotContains(t, err.Error(), "\n", "%s", c)
	if e.StatusCode != c.fault.status || c.struck.Load() < int64(e.Attempts) {
		return // of another attempt
	}
	if c.fault.cause != nil {
		assert.True(t, c.fault.cause(err), "%s: the cause is not in %v", c, err)
	}
	if c.fault.raw != nil {
		assert.Equal(t, *c.fault.raw, string(response.Body), "%s", c)
	}
	assert.GreaterOrEqual(t, e.RetryAfter, c.fault.wait[0], "%s", c)
	assert.LessOrEqual(t, e.RetryAfter, c.fault.wait[1], "%s", c)
}

// outcome reads what came of a call.
func (c *cell) outcome(err error, response payvault.Response) outcome {
	got := outcome{ok: err == nil, performed: int(c.done.Load()), attempts: response.Attempts}
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		got.attempts, got.status, got.code, got.delivery = e.Attempts, e.StatusCode, e.Code, e.Delivery.String()
		got.safe = payvault.SafeToRetry(err)
		got.is = names(func(sentinel error) bool { return errors.Is(err, sentinel) })
	}
	return got
}

// What the requests hold: nothing of it may show up in an error, a log record or what observers are told.
const canaryKey = "canary-api-key-7Jx2Lq"

var hidden = canary.Forms(canary.Secret, canaryKey, canary.Raw) //nolint:gochecknoglobals // never changed

func canaryIDs() calls.IDs {
	return calls.IDs{
		Card: "canary-card-5Kq0x", Payee: 827364501, Application: 827364502, Dispute: 827364503, Subscription: 827364504,
		Invoice: "canary-invoice-5Kq0x", Webhook: "canary-webhook-5Kq0x", Event: "canary_event_5Kq0x",
	}
}

// checkSilence searches what the call has left: what can be seen of the error, of what the caller holds, in the log and
// by observers.
func (c *cell) checkSilence(t *testing.T, err error, result any, response payvault.Response) {
	t.Helper()
	assert.NotEmpty(t, c.told.String(), "%s", c)
	for _, text := range append(service.Renderings(err), c.told.String()) {
		found := canary.Find(text, append([]string{"827364", "-5Kq0x"}, hidden...))
		assert.Empty(t, found, "%s: %.2000s", c, text)
	}
	response.Duration = 0
	held := fmt.Sprintf("%+v %#v %+v %#v", response, result, canary.Planted(c.call.Full), &response)
	assert.Empty(t, canary.Find(held, hidden), "%s: %.2000s", c, held)
}

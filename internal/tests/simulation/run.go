package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/payvault"
)

// Result is what came of a scenario.
type Result struct {
	Failures []string
	Trace    Trace
	Struck   map[string]int // how often each fault struck
	Calls    int            // pages and batches are calls too
}

// Trace is what happened on both sides, in the order of time. It becomes text when it is printed, which few are.
type Trace []event

type event struct {
	at           time.Duration
	side, format string
	args         []any
}

// String gives a line to each event.
func (t Trace) String() string {
	var b strings.Builder
	for _, e := range t {
		fmt.Fprintf(&b, "%12v %-8s %s\n", e.at, e.side, fmt.Sprintf(e.format, e.args...))
	}
	return b.String()
}

// unit is a request of the caller: a call, or a batch of one.
type unit struct{ call, batch int }

// record is what the service knows of a unit.
type record struct {
	heads     int            // requests whose header arrived
	lives     [mostLives]int // the same, of each life of a job
	arrivals  int            // requests that arrived whole
	performed int
	attempt   string    // in which it was performed, if that sent copies
	again     bool      // it was performed in two attempts that sent copies
	turned    int       // away, with status 429
	forbidden int       // likewise, with 401 or 403
	notBefore time.Time // when the service has asked to be asked again
	issued    []string  // IDs
	mutated   bool      // an answer was
	stuck     bool      // it gives the same page again and again
	said      bool      // an answer said success
	lied      bool      // it said that it had refused what it had performed
}

// run is a scenario under way.
type run struct {
	Scenario

	world      *World
	start      time.Time
	dials      atomic.Int64
	open       atomic.Int64 // connections, as the client sees them
	serial     atomic.Int64 // of the IDs that were issued
	duplicated atomic.Bool  // an answer may belong to another request
	serving    sync.WaitGroup
	shared     *requests

	mu       sync.Mutex
	book     map[unit]*record
	far      []*conn
	held     map[payvault.Operation][2]time.Time // when the service refused it, and when it may be asked again
	wire     []*stream                           // from client to service, of all connections
	failures []string
	events   Trace
	struck   map[string]int
	calls    []*caller
}

// settle is how long connections may take to close: dials and handshakes end within it, and so do the callers' own
// deadlines.
const settle = 90 * time.Second

// longestScenario is far more than any takes.
const longestScenario = 24 * time.Hour

// Run plays a scenario, in a bubble of its own.
func (w *World) Run(t *testing.T, s Scenario) (result Result) {
	t.Helper()
	r := &run{
		Scenario: s, world: w, book: map[unit]*record{}, struck: map[string]int{}, shared: newRequests(),
		held: map[payvault.Operation][2]time.Time{},
	}
	defer func() {
		if p := recover(); p != nil { // package synctest panics if goroutines are left, or all of them wait for ever
			r.fail(-1, "%v", p)
		}
		result = Result{r.failures, r.events, r.struck, 0}
		for _, c := range r.calls {
			result.Calls += c.started
		}
	}()
	synctest.Test(t, func(t *testing.T) { r.play(t.Context()) })
	return result
}

func (r *run) play(ctx context.Context) {
	r.start = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tooLong := time.AfterFunc(longestScenario, func() {
		r.fail(-1, "it does not end")
		cancel()
		r.closeFar()
	})
	base := r.pool()
	client, err := r.client(base)
	if err != nil {
		r.fail(-1, "no client: %v", err)
		return
	}
	for i := range r.Calls {
		r.calls = append(r.calls, r.newCaller(i))
	}
	var lanes sync.WaitGroup
	for lane := range 3 {
		lanes.Go(func() {
			for _, c := range r.calls {
				for range max(1, c.plan.Times) {
					if c.plan.Lane == lane {
						c.make(ctx, client)
					}
				}
			}
		})
	}
	lanes.Wait()
	base.CloseIdleConnections()
	<-time.After(settle)
	base.CloseIdleConnections()
	synctest.Wait()
	tooLong.Stop()
	http2 := r.Wire == wireH2C || r.Wire == wireH2
	left := r.open.Load()
	r.closeFar()
	r.serving.Wait()
	if http2 { // net/http may keep one that it will not use again, after a GOAWAY, until the service closes it
		synctest.Wait()
		left = r.open.Load()
	}
	if left > 0 {
		r.fail(-1, "%d connections are left open", left)
	}
	for _, c := range r.calls {
		c.audit()
	}
	r.auditBudget()
}

func (r *run) client(base *http.Transport) (*payvault.Client, error) {
	address := "http://127.0.0.1" + basePath
	if r.Wire == wireHTTP1TLS || r.Wire == wireH2 {
		address = "https://service.test" + basePath
	}
	rt := r.caller(base)
	if slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Panic == "round tripper" }) {
		inner := rt
		rt = roundTripper(func(req *http.Request) (*http.Response, error) {
			callerOf(req.Context()).panicAt("round tripper")
			return inner.RoundTrip(req)
		})
	}
	return payvault.NewClient(address, "", payvault.WithHTTPClient(&http.Client{Transport: rt}),
		payvault.WithKeySource(func(ctx context.Context) (string, error) {
			return callerOf(ctx).key(ctx)
		}),
		payvault.WithMerchantID(1), payvault.WithDeveloperID("simulator"),
		payvault.WithTimeout(r.Client.Timeout), payvault.WithMaxResponseBytes(r.Client.MaxBytes),
		payvault.WithRetryPolicy(payvault.RetryPolicy{
			MaxAttempts: r.Client.Attempts, MinBackoff: time.Millisecond, MaxBackoff: r.Client.MaxBackoff,
			MaxRetryAfter: r.Client.MaxRetryAfter, MaxBulkRetryAfter: r.Client.MaxRetryAfter,
		}),
		payvault.WithLogger(slog.New(handler{})), payvault.WithObserver(observer()))
}

func (r *run) closeFar() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.far {
		c.reset()
	}
}

func (r *run) keep(near, far *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.far, r.wire = append(r.far, far), append(r.wire, near.out)
}

// written is how many bytes the client has written.
func (r *run) written() int {
	total := 0
	for _, s := range r.wire {
		s.mu.Lock()
		total += s.passed
		s.mu.Unlock()
	}
	return total
}

// note changes the record of a unit and returns a copy of it.
func (r *run) note(u unit, change func(*record)) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.book[u]
	if n == nil {
		n = &record{}
		r.book[u] = n
	}
	if change != nil {
		change(n)
	}
	return *n
}

func (r *run) strike(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.struck[fault]++
}

// trace keeps the arguments until the trace is printed: nothing may change them.
func (r *run) trace(side, format string, args ...any) {
	e := event{time.Since(r.start), side, format, args}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *run) fail(call int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if call >= 0 {
		name := strings.TrimSpace(string(r.Calls[call].Op) + " " + r.Calls[call].Form)
		text = fmt.Sprintf("call %d, %s: %s", call, name, text)
	}
	r.trace("FAILED", "%s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

var errInjected = errors.New("a panic of the caller's own code")

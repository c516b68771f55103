// Package faults tests every call of the SDK under every fault. A fault strikes once or on every attempt, and before or
// after the service performs the operation. The expected result follows from the operation (package calls), the fault
// (answers_test.go), and the rules for the client (ruleFor).
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The service answers with this status and code if an operation that is possible only once per record is repeated.
const (
	statusAgain = http.StatusConflict
	codeAgain   = "409"
)

// zero stands for the code of a success: 0 or, for Tokenize, 000.
const zero = "zero"

// fault is a failure of the key source, of the network, or of the service.
type fault struct {
	name     string
	is       effect
	toUpload effect // the effect on the call that uploads a file; "" if it does not differ

	// Exactly one of the next three fields is set. serve answers instead of the service, network changes the dialer, and
	// key replaces the key source.
	serve   http.HandlerFunc
	network func(c *cell, dial dialer) dialer
	key     func(context.Context) (string, error)

	status int              // the StatusCode that the error must have
	code   string           // the Code that the error must have
	cause  error            // an error that the error of the call must match
	wait   [2]time.Duration // the smallest and the largest permitted Error.RetryAfter

	performs bool // the fault may also strike after the service has performed the operation
	warm     bool // the fault needs an idle connection, so it cannot strike on every attempt
}

// TestFaults makes every call under every fault, and checks that each call has the expected result.
func TestFaults(t *testing.T) {
	t.Parallel()
	for i, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for n, call := range calls.All() {
				for m, c := range f.cells(&call) {
					if !testing.Short() || (i+n+m)%8 == 0 { // with -short, only one of eight cells runs
						synctest.Test(t, c.run)
					}
				}
			}
		})
	}
}

// cells returns the test cases for one call and this fault.
func (f *fault) cells(call *calls.Call) []*cell {
	var all []*cell
	for n := range 8 {
		c := &cell{fault: f, call: call, withReplay: n&1 != 0, stays: n&2 != 0, performs: n&4 != 0}
		if c.stays && f.warm || c.performs && !f.performs {
			continue
		}
		all = append(all, c)
	}
	return all
}

// cell is one test case: a call under a fault. If withReplay is true, the call has the option WithReplay. If stays is
// true, the fault strikes on every attempt. If performs is true, the fault strikes after the operation was performed.
type cell struct {
	fault                       *fault
	call                        *calls.Call
	withReplay, stays, performs bool

	last, end payvault.CallResult // results of the last attempt and of the call, as observers receive them

	left   atomic.Int64 // number of times that the fault will still strike
	struck atomic.Int64
	done   atomic.Int64 // number of times that the operation was performed
}

// String describes the cell in messages of failed assertions.
func (c *cell) String() string {
	return fmt.Sprintf("%s × %s, WithReplay: %t, stays: %t, performs: %t", c.call.Name, c.fault.name, c.withReplay,
		c.stays, c.performs)
}

// run makes the call of a cell and compares its result with the expected one.
func (c *cell) run(t *testing.T) {
	client := c.client(t)
	if c.fault.warm {
		warm := payvault.Request{Method: http.MethodGet, Path: []string{"warm"}}
		assert.NoError(t, client.Call(t.Context(), warm, nil), "%s", c)
	}
	if c.left.Store(1); c.stays {
		c.left.Store(1 << 30)
	}
	var response payvault.Response
	opts := []payvault.CallOption{payvault.WithResponse(&response), payvault.WithReplay()}
	if !c.withReplay {
		opts = opts[:1]
	}
	result, err := c.call.Do(t.Context(), client, calls.Documented(), c.call.Full, opts...)
	got, want := c.outcome(err), c.expected()
	got.attempts = response.Attempts
	if err != nil && strings.Contains(err.Error(), "cannot be read") { // a retry would get the same answer
		want.safe = false
	}
	assert.Equal(t, want, got, "%s: %v", c, err)
	assert.Equal(t, err == nil, result != nil, "%s", c)
	if err == nil || !c.stays {
		assert.EqualValues(t, 1, c.struck.Load(), "%s: how often the fault struck", c)
	} else {
		assert.GreaterOrEqual(t, c.struck.Load(), int64(got.attempts), "%s: it did not strike every attempt", c)
	}
	if err != nil {
		c.checkError(t, service.AsError(t, err), got.attempts)
		return
	}
	_, rcode := result.(*payvault.TokenizeResponse)
	assert.Equal(t, map[bool]string{true: "000", false: "0"}[rcode], c.end.Code, "%s", c)
}

// client returns a client of the service ServeHTTP. Its dialer or its key source fails if the fault says so.
func (c *cell) client(t *testing.T) *payvault.Client {
	t.Helper()
	hc := service.Pipe(t, c.ServeHTTP)
	if c.fault.network != nil {
		pool := hc.Transport.(*http.Transport)
		pool.DialContext = c.fault.network(c, pool.DialContext)
	}
	opts := []payvault.Option{
		payvault.WithRetryPolicy(payvault.RetryPolicy{
			MaxAttempts: attemptsAtMost, MinBackoff: 1, MaxBackoff: 2, MaxRetryAfter: time.Second,
			MaxBulkRetryAfter: time.Second,
		}),
		service.WithoutOverloadLimits(),
		payvault.WithMaxResponseBytes(sizeLimit), payvault.WithHTTPClient(hc),
		payvault.WithObserver(payvault.Observer{
			Attempt: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) { c.last = r },
			End:     func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) { c.end = r },
		}),
	}
	if c.fault.key != nil {
		opts = append(opts, payvault.WithKeySource(func(ctx context.Context) (string, error) {
			if c.strikes() {
				return c.fault.key(ctx)
			}
			return service.APIKey, nil
		}))
	}
	return service.Client(t, service.Nowhere, opts...)
}

// ServeHTTP is the service. Unless the fault strikes, the service performs the operation and answers with a success. It
// refuses to repeat an operation that is possible only once.
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

// strikes reports whether the fault strikes now, and counts how often it has struck.
func (c *cell) strikes() bool {
	if c.left.Add(-1) < 0 {
		return false
	}
	c.struck.Add(1)
	return true
}

// checkError checks the operation, the attempts, the cause and the RetryAfter of the error. It also checks that
// observers received the status, the code and the Delivery of the error.
func (c *cell) checkError(t *testing.T, e *payvault.Error, attempts int) {
	t.Helper()
	assert.Equal(t, []any{c.call.Op, attempts}, []any{e.Op, e.Attempts}, "%s", c)
	assert.Equal(t, []any{e.StatusCode, e.Code, e.Delivery}, []any{c.end.StatusCode, c.end.Code, c.end.Delivery}, "%s", c)
	// the observer's Attempt runs before the body is decoded; a code in the body may change the Delivery of a 2xx or a 403
	if c.stays && e.StatusCode/100 != 2 && (e.StatusCode != http.StatusForbidden || e.Code == "") {
		assert.Equal(t, e.Delivery, c.last.Delivery, "%s: of the attempt", c)
	}
	if e.StatusCode != c.fault.status || c.struck.Load() < int64(e.Attempts) {
		return // the error comes from an attempt that the fault did not strike
	}
	if c.fault.cause != nil {
		assert.ErrorIs(t, e, c.fault.cause, "%s", c)
	}
	assert.GreaterOrEqual(t, e.RetryAfter, c.fault.wait[0], "%s", c)
	assert.LessOrEqual(t, e.RetryAfter, c.fault.wait[1], "%s", c)
}

// outcome returns the actual result of the call, without the number of attempts.
func (c *cell) outcome(err error) outcome {
	got := outcome{performed: int(c.done.Load())}
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		got.status, got.code, got.delivery = e.StatusCode, e.Code, e.Delivery.String()
		if c.fault.code == zero && strings.Trim(e.Code, "0") == "" {
			got.code = zero
		}
		got.safe = payvault.SafeToRetry(err)
		got.is = names(func(sentinel error) bool { return errors.Is(err, sentinel) })
	}
	return got
}

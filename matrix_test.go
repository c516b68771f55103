package payvault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// The fault matrix: every operation × every fault × {default, WithReplay} × {the fault strikes once, the fault stays}. The
// emulator counts how often an operation is performed. What has to come of a cell follows from three tables: what the
// operation is (matrixOperations), what the fault does (matrixFaults), and what the client makes of it (ruleFor).

// attemptsAtMost is the MaxAttempts of all clients of the matrix.
const attemptsAtMost = 3

// effect is what a fault is to the request that it strikes.
type effect string

const (
	effectHealed      effect = "net/http gets over it" // within one attempt of the client
	effectUnsent      effect = "no connection"
	effectDistrusted  effect = "no trust"        // no connection, and a second attempt would have none either
	effectLost        effect = "no answer"       // sent, at least in part
	effectTurnedAway  effect = "429"             // not performed
	effectHeldOff     effect = "429 for long"    // not performed, and the service asks to wait for longer than the cap
	effectGatewayDown effect = "502, 503 or 504" // the service behind it may have performed the operation
	effectFailed      effect = "another 5xx"     // the service failed
	effectGatewayCode effect = "502, 503 or 504 with a code"
	effectFailedCode  effect = "another 5xx with a code"
	effectRefused     effect = "4xx"                      // the service decided
	effectRejected    effect = "2xx with another code"    // the service decided
	effectMalformed   effect = "2xx that is none"         // performed or not
	effectUnreadable  effect = "2xx that cannot be read"  // performed or not, and it would be the same again
	effectTooLarge    effect = "2xx above the size limit" // performed or not
	effectRedirected  effect = "3xx"                      // not followed
)

// matrixWhen tells for which operations something holds.
type matrixWhen int

const (
	whenNever  matrixWhen = iota
	whenReplay            // for replayable operations; what the client repeats by itself, also for those called WithReplay
	whenAlways
)

func (w matrixWhen) holds(replay bool) bool { return w == whenAlways || w == whenReplay && replay }

// matrixRule is what the client has to make of an effect.
type matrixRule struct {
	repeats  matrixWhen        // by itself
	delivery payvault.Delivery // of the error
	safe     matrixWhen        // SafeToRetry of the error
	is       error             // a sentinel besides those that follow from status, code and delivery
}

func ruleFor(e effect) matrixRule {
	return map[effect]matrixRule{
		effectUnsent:      {repeats: whenAlways, delivery: payvault.NotSent, safe: whenAlways},
		effectDistrusted:  {repeats: whenNever, delivery: payvault.NotSent, safe: whenAlways},
		effectLost:        {repeats: whenReplay, delivery: payvault.Unknown, safe: whenReplay},
		effectTurnedAway:  {repeats: whenAlways, delivery: payvault.Answered, safe: whenAlways},
		effectHeldOff:     {repeats: whenNever, delivery: payvault.Answered, safe: whenAlways},
		effectGatewayDown: {repeats: whenReplay, delivery: payvault.Unknown, safe: whenReplay},
		effectFailed:      {repeats: whenNever, delivery: payvault.Unknown, safe: whenReplay},
		// A gateway gives codes too: no code of a 5xx is a decision of the service.
		effectGatewayCode: {repeats: whenReplay, delivery: payvault.Unknown, safe: whenReplay},
		effectFailedCode:  {repeats: whenNever, delivery: payvault.Unknown, safe: whenReplay},
		effectRefused:     {repeats: whenNever, delivery: payvault.Answered, safe: whenNever},
		effectRejected:    {repeats: whenNever, delivery: payvault.Answered, safe: whenNever},
		effectMalformed:   {repeats: whenNever, delivery: payvault.Unknown, safe: whenReplay, is: payvault.ErrMalformedResponse},
		effectUnreadable:  {repeats: whenNever, delivery: payvault.Unknown, safe: whenNever, is: payvault.ErrMalformedResponse},
		effectTooLarge:    {repeats: whenNever, delivery: payvault.Unknown, safe: whenNever, is: payvault.ErrResponseTooLarge},
		effectRedirected:  {repeats: whenNever, delivery: payvault.Unknown, safe: whenNever, is: payvault.ErrMalformedResponse},
	}[e]
}

// matrixCall is an operation with its request.
type matrixCall struct {
	request any // nil if it has none
	do      func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error)
}

// matrixOp is an operation of the matrix.
type matrixOp struct {
	name       string
	op         payvault.Operation
	replayable bool
	get        bool // net/http itself sends it again when a connection that was used before is lost
	bodyless   bool
	partner    bool     // it takes a partner's key
	secrets    []string // that its request carries
	again      int      // status with which the emulator refuses to perform it twice on one record; 0: it performs it twice
	prepare    func(ctx context.Context, srv *payvaulttest.Server) (matrixCall, error)
}

// reads reports whether the operation changes nothing.
func (o *matrixOp) reads() bool {
	return slices.ContainsFunc(payvault.Operations(), func(info payvault.OperationInfo) bool {
		return info.Op == o.op && info.Replay == payvault.ReplayRead
	})
}

// performed counts one more performance of the operation, unless the emulator refuses it.
func (o *matrixOp) performed(commits int) (n int, refused bool) {
	if commits > 0 && o.again != 0 {
		return commits, true
	}
	return commits + 1, false
}

// matrixFault is a fault of the matrix. The emulator makes it, or the network between client and emulator, or a service in a
// bubble of package synctest.
type matrixFault struct {
	name    string
	is      effect
	inject  payvaulttest.Fault
	network func(c *matrixCell) http.RoundTripper
	hangs   http.HandlerFunc // in a bubble of package synctest, before the request is answered, and instead of that

	status    int  // of the answer
	code      bool // the answer carries one
	performs  bool // the operation is performed before the fault strikes
	cause     func(error) bool
	waitsFrom time.Duration // Error.RetryAfter
	waitsTo   time.Duration

	tls     bool              // the emulator speaks HTTP/2
	warm    bool              // there is an idle connection
	options []payvault.Option // of the client
	once    string            // why it cannot stay
	note    string            // for those who read the table

	or      effect                                   // it is a race: this may come as well
	special func(op *matrixOp, replay bool) []effect // what it is to some operations
}

// matrixOutcome is what came, or has to come, of a cell.
type matrixOutcome struct {
	ok       bool
	commits  int
	attempts int
	status   int
	delivery string
	safe     bool
	is       []string
}

// possible computes what may come of a cell: one outcome, unless the fault is a race.
func (f *matrixFault) possible(op *matrixOp, withReplay, stays bool) []matrixOutcome {
	replay := op.replayable || withReplay
	var all []matrixOutcome
	var attempt func(o matrixOutcome, unsure bool)
	attempt = func(o matrixOutcome, unsure bool) {
		o.attempts++
		if !stays && o.attempts > 1 {
			all = append(all, o.performed(op))
			return
		}
		if f.performs {
			o.commits, _ = op.performed(o.commits)
		}
		for _, e := range f.effects(op, replay) {
			rule := ruleFor(e)
			switch {
			case e == effectHealed:
				all = append(all, o.performed(op))
			case rule.repeats.holds(replay) && o.attempts < attemptsAtMost:
				attempt(o, unsure || rule.delivery == payvault.Unknown)
			default:
				all = append(all, o.failed(f, op, rule, unsure))
			}
		}
	}
	attempt(matrixOutcome{}, false)
	return all
}

// effects are the effect of the fault on an operation, or the possible ones of a race.
func (f *matrixFault) effects(op *matrixOp, replay bool) []effect {
	if f.special != nil {
		if effects := f.special(op, replay); effects != nil {
			return effects
		}
	}
	if f.or != "" {
		return []effect{f.is, f.or}
	}
	return []effect{f.is}
}

// failed is the outcome of the last attempt that is made. An unsure one follows one that may have performed the operation.
func (o matrixOutcome) failed(f *matrixFault, op *matrixOp, rule matrixRule, unsure bool) matrixOutcome {
	if unsure && rule.delivery == payvault.NotSent {
		rule = ruleFor(effectLost)
	}
	o.status, o.delivery, o.safe = f.status, rule.delivery.String(), rule.safe.holds(op.replayable)
	o.is = sentinelsOf(f.status, f.code, rule)
	return o.of(op)
}

// of leaves out what is said only of operations that change something.
func (o matrixOutcome) of(op *matrixOp) matrixOutcome {
	if op.reads() {
		o.is = append([]string(nil), slices.DeleteFunc(o.is, isOutcomeUnknown)...)
	}
	return o
}

// performed is the outcome of an attempt that no fault strikes.
func (o matrixOutcome) performed(op *matrixOp) matrixOutcome {
	commits, again := op.performed(o.commits)
	if again { // an earlier attempt performed it, and the refusal of this one must not hide that
		return matrixOutcome{
			commits: commits, attempts: o.attempts, status: op.again, delivery: payvault.Unknown.String(),
			is: sentinelsOf(op.again, true, matrixRule{delivery: payvault.Unknown}),
		}
	}
	return matrixOutcome{ok: true, commits: commits, attempts: o.attempts}
}

// sentinelsOf names the sentinels that an error has to match; it matches no other.
func sentinelsOf(status int, code bool, r matrixRule) []string {
	byStatus := map[int]error{
		401: payvault.ErrUnauthorized, 403: payvault.ErrForbidden, 404: payvault.ErrNotFound, 409: payvault.ErrConflict,
		429: payvault.ErrRateLimited,
	}
	want := []error{byStatus[status], r.is}
	if status >= 500 {
		want = append(want, payvault.ErrUnavailable)
	}
	if code && status < 500 {
		want = append(want, payvault.ErrRejected)
	}
	if r.delivery == payvault.Unknown {
		want = append(want, payvault.ErrOutcomeUnknown)
	}
	return sentinelNames(func(sentinel error) bool { return slices.Contains(want, sentinel) })
}

func sentinelNames(holds func(sentinel error) bool) []string {
	var names []string
	for _, sentinel := range []error{
		payvault.ErrInvalidRequest, payvault.ErrMerchantNotSupported, payvault.ErrUnauthorized, payvault.ErrForbidden,
		payvault.ErrNotFound, payvault.ErrConflict, payvault.ErrRateLimited, payvault.ErrRejected, payvault.ErrValidation,
		payvault.ErrUnavailable, payvault.ErrMalformedResponse, payvault.ErrResponseTooLarge, payvault.ErrOutcomeUnknown,
	} {
		if holds(sentinel) {
			names = append(names, sentinel.Error())
		}
	}
	return names
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	faults, table := matrixFaults(t), &matrixTable{marks: map[string]map[string][]string{}}
	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		t.Cleanup(func() { t.Log("\n" + table.text(faults)) })
		for i := range faults {
			t.Run(faults[i].name, func(t *testing.T) {
				t.Parallel()
				ops := matrixOperations()
				for k := range ops {
					for _, run := range faults[i].runs() {
						table.add(&faults[i], &ops[k], run, runCell(t, &faults[i], &ops[k], run))
					}
				}
			})
		}
	})
}

// matrixRun is how a fault and an operation meet.
type matrixRun struct{ withReplay, stays bool }

func (r matrixRun) options() []payvault.CallOption {
	if r.withReplay {
		return []payvault.CallOption{payvault.WithReplay()}
	}
	return nil
}

// runs are the cells of a fault with each operation.
func (f *matrixFault) runs() []matrixRun {
	runs := []matrixRun{{false, false}, {true, false}}
	if f.once == "" {
		runs = append(runs, matrixRun{false, true}, matrixRun{true, true})
	}
	return runs
}

// runCell runs one cell and checks it.
func runCell(t *testing.T, f *matrixFault, op *matrixOp, run matrixRun) (got matrixOutcome) {
	t.Helper()
	name := fmt.Sprintf("%s × %s, %+v", op.name, f.name, run)
	c, err := newCell(t.Context(), f, op, run.stays, nil)
	if !assert.NoError(t, err, name) {
		return got
	}
	c.run(t, run.stays, func(t *testing.T) {
		t.Helper()
		got = c.check(t, name, run)
	})
	c.assertStruck(t, name, run.stays, got.attempts)
	return got
}

// run runs f, in a bubble if the fault takes time, and closes the cell.
func (c *matrixCell) run(t *testing.T, stays bool, f func(t *testing.T)) {
	t.Helper()
	defer c.close()
	if c.fault.hangs == nil {
		f(t)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		c.hang(t, stays)
		f(t)
	})
}

// assertStruck proves that the fault was there, in a cell that is closed.
func (c *matrixCell) assertStruck(t *testing.T, name string, stays bool, attempts int) {
	t.Helper()
	if stays {
		assert.GreaterOrEqual(t, c.struck.Load(), int64(attempts), "%s: the fault did not strike every attempt", name)
		return
	}
	assert.EqualValues(t, 1, c.struck.Load(), "%s: how often the fault struck", name)
}

// check makes the call of a cell and holds what comes of it against the rules.
func (c *matrixCell) check(t *testing.T, name string, run matrixRun) matrixOutcome {
	t.Helper()
	f, op := c.fault, c.op
	var response payvault.Response
	_, err := c.call.do(t.Context(), c.client, append(run.options(), payvault.WithResponse(&response))...)
	got, want := c.outcome(err, response), f.possible(op, run.withReplay, run.stays)
	if len(want) == 1 {
		assert.Equal(t, want[0], got, "%s: %v", name, err)
	} else {
		assert.Contains(t, want, got, "%s: %v", name, err)
	}
	f.checkError(t, name, err)
	if f.hangs != nil { // in a bubble time is exact
		hung := 1
		if run.stays {
			hung = got.attempts
		}
		assert.InDelta(t, time.Duration(hung)*time.Minute, response.Duration, float64(attemptsAtMost*2*time.Millisecond), name)
	}
	if payvault.SafeToRetry(err) {
		c.heal()
		c.checkAgain(t, name+", called again", got.commits, run)
	}
	if !op.replayable && !run.withReplay {
		assert.LessOrEqual(t, c.commits(), 1, "%s: performed twice", name)
	}
	return got
}

// checkAgain holds SafeToRetry to its word: once the fault has passed, calling again succeeds, and unless the operation is
// replayable by what it does it is performed once in all.
func (c *matrixCell) checkAgain(t *testing.T, name string, commits int, run matrixRun) {
	t.Helper()
	_, err := c.call.do(t.Context(), c.client, run.options()...)
	assert.NoError(t, err, name)
	assert.Equal(t, commits+1, c.commits(), name)
	if !c.op.replayable {
		assert.Zero(t, commits, "%s: performed twice", name)
	}
}

// checkError checks what is special about the error of a fault.
func (f *matrixFault) checkError(t *testing.T, name string, err error) {
	t.Helper()
	e, ok := errors.AsType[*payvault.Error](err)
	if !ok || e.StatusCode != f.status {
		return
	}
	if f.cause != nil {
		assert.True(t, f.cause(err), "%s: the cause is not in %v", name, err)
	}
	assert.GreaterOrEqual(t, e.RetryAfter, f.waitsFrom, name)
	assert.LessOrEqual(t, e.RetryAfter, f.waitsTo, name)
}

// outcome reads what came of a call.
func (c *matrixCell) outcome(err error, response payvault.Response) matrixOutcome {
	got := matrixOutcome{ok: err == nil, commits: c.commits(), attempts: response.Attempts}
	if e, failed := errors.AsType[*payvault.Error](err); failed {
		got.attempts, got.status, got.delivery = e.Attempts, e.StatusCode, e.Delivery.String()
		got.safe = payvault.SafeToRetry(err)
		got.is = sentinelNames(func(sentinel error) bool { return errors.Is(err, sentinel) })
	}
	return got
}

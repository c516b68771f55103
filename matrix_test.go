package payvault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
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
	effectUnsent      effect = "no connection"         // or a stream that the server says it has not processed
	effectDistrusted  effect = "no trust"              // no connection, and a second attempt would have none either
	effectLost        effect = "no answer"             // sent, at least in part
	effectTurnedAway  effect = "429"                   // not performed
	effectGatewayDown effect = "502, 503 or 504"       // the service behind it may have performed the operation
	effectFailed      effect = "another 5xx"           // the service failed
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
	whenReplay            // for replayable operations, and for those called WithReplay
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
type matrixCall func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) error

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

	tls     bool                // the emulator speaks HTTP/2
	warm    bool                // there is an idle connection
	strike  func(c *matrixCell) // done when the fault is armed, with the idle connection
	options []payvault.Option   // of the client
	once    string              // why it cannot stay

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
				all = append(all, o.failed(f, rule, replay, unsure))
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
func (o matrixOutcome) failed(f *matrixFault, rule matrixRule, replay, unsure bool) matrixOutcome {
	if unsure && rule.delivery == payvault.NotSent {
		rule = ruleFor(effectLost)
	}
	o.status, o.delivery, o.safe = f.status, rule.delivery.String(), rule.safe.holds(replay)
	o.is = sentinelsOf(f.status, f.code, rule)
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

// mark is an outcome in a few words.
func (o matrixOutcome) mark(op *matrixOp) string {
	var text string
	switch {
	case !o.ok && o.commits > 0 && o.status == op.again && op.again != 0:
		return "retried, refused (done)"
	case o.ok && o.attempts > 1:
		text = "retried, ok"
	case o.ok:
		text = "ok"
	case o.status >= 400 && o.delivery == payvault.Answered.String():
		text = fmt.Sprintf("error: %s %d", o.delivery, o.status)
	default:
		text = "error: " + o.delivery
	}
	if !o.ok && o.attempts > 1 {
		text += fmt.Sprintf(" after %d", o.attempts)
	}
	switch {
	case o.commits > 1:
		return text + " (twice)"
	case o.commits == 1 && !o.ok:
		return text + " (done)"
	}
	return text
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	faults, table := matrixFaults(t), &matrixTable{marks: map[string]map[string]bool{}}
	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		t.Cleanup(func() { t.Log("\n" + table.text(faults)) })
		for i := range faults {
			t.Run(faults[i].name, func(t *testing.T) {
				t.Parallel()
				table.row(t, &faults[i])
			})
		}
	})
}

// matrixTable collects the marks of all cells.
type matrixTable struct {
	mu    sync.Mutex
	marks map[string]map[string]bool
	cells int
}

// row runs all cells of one fault.
func (m *matrixTable) row(t *testing.T, f *matrixFault) {
	t.Helper()
	ops := matrixOperations()
	for i := range ops {
		for _, withReplay := range []bool{false, true} {
			for _, stays := range []bool{false, true} {
				if !stays || f.once == "" {
					m.add(f, &ops[i], withReplay, stays, runCell(t, f, &ops[i], withReplay, stays))
				}
			}
		}
	}
}

// runCell runs one cell and checks it.
func runCell(t *testing.T, f *matrixFault, op *matrixOp, withReplay, stays bool) (got matrixOutcome) {
	t.Helper()
	c, err := newCell(t.Context(), f, op, stays, nil)
	if !assert.NoError(t, err, op.name) {
		return got
	}
	defer c.close()
	if f.hangs == nil {
		return c.check(t, withReplay, stays)
	}
	synctest.Test(t, func(t *testing.T) {
		c.hang(t, stays)
		got = c.check(t, withReplay, stays)
	})
	return got
}

// check makes the call of a cell and holds what comes of it against the rules.
func (c *matrixCell) check(t *testing.T, withReplay, stays bool) matrixOutcome {
	t.Helper()
	f, op := c.fault, c.op
	name := fmt.Sprintf("%s × %s, WithReplay %t, stays %t", op.name, f.name, withReplay, stays)
	var opts []payvault.CallOption
	if withReplay {
		opts = append(opts, payvault.WithReplay())
	}
	var response payvault.Response
	err := c.call(t.Context(), c.client, append(opts, payvault.WithResponse(&response))...)
	got, want := c.outcome(err, response), f.possible(op, withReplay, stays)
	if len(want) == 1 {
		assert.Equal(t, want[0], got, "%s: %v", name, err)
	} else {
		assert.Contains(t, want, got, "%s: %v", name, err)
	}
	f.checkError(t, name, err)
	if f.hangs != nil { // in a bubble time is exact
		hung := 1
		if stays {
			hung = got.attempts
		}
		assert.InDelta(t, time.Duration(hung)*time.Minute, response.Duration, float64(attemptsAtMost*2*time.Millisecond), name)
	}

	// The promise of SafeToRetry: calling again helps, and performs the operation once in all.
	if payvault.SafeToRetry(err) {
		c.heal()
		err = c.call(t.Context(), c.client, opts...)
		again := matrixOutcome{commits: got.commits}.performed(op)
		assert.Equal(t, again.ok, err == nil, "%s, called again: %v", name, err)
		assert.Equal(t, again.commits, c.commits(), "%s, called again", name)
	}
	if !op.replayable && !withReplay {
		assert.LessOrEqual(t, c.commits(), 1, "%s: performed twice", name)
	}
	return got
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

// matrixColumns are the classes of operations; a replayable one is the same with WithReplay.
func matrixColumns() []string { return []string{"replayable", "all others", "others WithReplay"} }

func matrixColumn(op *matrixOp, withReplay bool) string {
	switch {
	case op.replayable:
		return matrixColumns()[0]
	case !withReplay:
		return matrixColumns()[1]
	}
	return matrixColumns()[2]
}

func matrixKey(f *matrixFault, column string, stays bool) string {
	return fmt.Sprint(f.name, column, stays)
}

func (m *matrixTable) add(f *matrixFault, op *matrixOp, withReplay, stays bool, got matrixOutcome) {
	key := matrixKey(f, matrixColumn(op, withReplay), stays)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells++
	if m.marks[key] == nil {
		m.marks[key] = map[string]bool{}
	}
	m.marks[key][got.mark(op)] = true
}

// text prints the table: what happened, not what was expected.
func (m *matrixTable) text(faults []matrixFault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cells: every operation under every fault. An attempt is made at most %d times.\n", m.cells, attemptsAtMost)
	for _, stays := range []bool{false, true} {
		title := "THE FAULT STRIKES ONCE"
		if stays {
			title = "THE FAULT STAYS"
		}
		line := func(cells ...string) {
			fmt.Fprintf(&b, "%-44s | %-28s | %-28s | %s\n", cells[0], cells[1], cells[2], cells[3])
		}
		b.WriteByte('\n')
		line(append([]string{title}, matrixColumns()...)...)
		line(strings.Repeat("-", 44), strings.Repeat("-", 28), strings.Repeat("-", 28), strings.Repeat("-", 28))
		for i := range faults {
			cells := []string{faults[i].name}
			for _, column := range matrixColumns() {
				marks := slices.Sorted(maps.Keys(m.marks[matrixKey(&faults[i], column, stays)]))
				cells = append(cells, strings.Join(marks, " or "))
			}
			if cells[1] != "" {
				line(cells...)
			}
		}
	}
	b.WriteString("\nok: performed, and the caller knows. (done): performed, though the call failed. (twice): performed more than once, which\n" +
		"is harmless for a replayable operation, and what WithReplay allows. refused: the emulator performs it once per record.\n" +
		"after 3: all attempts were used up.\n")
	return b.String()
}

package simulation

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"example.com/payvault"
)

// audit compares the caller's results with the service's records, after the last call.
func (c *caller) audit() {
	for i := range c.outcomes {
		c.auditOutcome(&c.outcomes[i])
	}
	for batch := range max(1, c.plan.Length) {
		c.auditUnit(unit{c.n, batch})
	}
	if secret := leaked(c.texts.String(), c.kind.secrets()); secret != "" {
		c.fail("%q stands in an error, a log record or a trace:\n%s", secret, c.texts.String())
	}
	if !reflect.DeepEqual(c.request, c.kind.request) {
		c.fail("its request has changed")
	}
}

// These are the numbers of retries that the budget of a client allows before its first success.
const (
	mostRetries  = 100
	mostTimeouts = 50 // for retries after a timeout, which cost more
)

// auditBudget checks that all calls together send no more retries than the budget allows while the service is down.
func (r *run) auditBudget(callers []*caller) {
	if r.Down == "" {
		return
	}
	r.strike("down: " + r.Down)
	calls, attempts, most := 0, 0, mostRetries
	for i, c := range callers {
		calls += c.started
		attempts += max(c.attempts, r.note(unit{i, 0}, nil).heads)
	}
	if r.Down == downHangs {
		most = mostTimeouts
	}
	if attempts > calls+most {
		r.fail(-1, "%d attempts of %d calls while the service was down", attempts, calls)
	}
}

// auditUnit checks how often a unit was performed, and how many requests arrived for it.
func (c *caller) auditUnit(u unit) {
	n := c.run.note(u, nil)
	once := !c.kind.reads && !c.kind.same && !c.plan.Replay
	most := copies(c.run.Caller)
	if copiesUnseen(c.run.Caller) {
		most *= c.mostAttempts()
	} else if once && n.again {
		c.fail("batch %d was performed in two attempts", u.batch)
	}
	if once && n.performed > most {
		c.fail("batch %d was performed %d times", u.batch, n.performed)
	}
	if c.plan.Form == formWalk {
		return
	}
	// net/http may repeat a GET by itself. On HTTP/2 it may also repeat a request that has WithReplay and no body.
	hasBody := c.kind.Full != nil && !c.kind.Lists()
	repeats := c.kind.Method == http.MethodGet || c.plan.Replay && !hasBody
	most = copies(c.run.Caller) * c.mostAttempts() * (1 + len(c.plan.Deaths)) * max(1, c.plan.Times)
	if c.plan.Form == formBulk {
		most += copies(c.run.Caller) * n.turned // a job sends a batch again after status 429
	}
	if n.heads > most && !repeats {
		c.fail("batch %d: %d requests in %d attempts", u.batch, n.heads, c.mostAttempts())
	}
}

// auditOutcome checks that a result of the caller agrees with the service's record.
func (c *caller) auditOutcome(o *outcome) {
	n := c.run.note(o.unit, nil)
	if o.seen != nil {
		n = *o.seen
	}
	other := o.label != "" && o.label != fmt.Sprintf("%d/%d", o.unit.call, o.unit.batch)
	if o.err == nil {
		c.auditSuccess(o, n, other)
		return
	}
	e, ok := errors.AsType[*payvault.Error](o.err)
	if !ok || e.Op != c.plan.Op {
		c.fail("an error of another kind: %T %v", o.err, o.err)
		return
	}
	if c.run.isCalm() {
		c.fail("batch %d: it failed, and there was no fault: %v", o.unit.batch, o.err)
	}
	c.say("%q %q %q %v %v", e.Code, e.Message, e.Detail, e.Fields, chain(o.err))
	turned := n.turned + n.leftOut
	// If earlier processes only got refusals that do not concern the batch, the batch counts as not sent.
	if o.life > 0 {
		turned += n.forbidden
	}
	if e.Delivery == payvault.DeliveryNotSent && e.Attempts == 0 && o.life > 0 && n.heads > turned {
		// The error describes only this process of the job, in which no call of Begin for the batch succeeded.
		c.run.strike("job: not sent by this life, but by an earlier one")
		if payvault.SafeToRetry(o.err) {
			c.fail("batch %d: an earlier life sent it, and it is said to be safe to retry: %v", o.unit.batch, o.err)
		}
		return
	}
	// A RoundTripper that hedges may still send a copy of an earlier attempt, even after a 429.
	hidden := copiesUnseen(c.run.Caller) && (e.Attempts > 1 || n.turned+n.leftOut > 0)
	if e.Delivery == payvault.DeliveryNotSent && n.heads > turned && c.plan.Form != formWalk && !hidden {
		c.fail("batch %d: it was not sent, but %d requests arrived: %v", o.unit.batch, n.heads, o.err)
	}
	alone := len(c.run.Calls) == 1 && c.plan.Form != formWalk && c.plan.Form != formBulk && n.turned == 0
	if e.Delivery == payvault.DeliveryNotSent && alone && c.run.Wire == wireHTTP1 && c.run.written() > 0 {
		c.fail("it was not sent, but %d bytes were: %v", c.run.written(), o.err)
	}
	if c.kind.reads || n.performed == 0 {
		return
	}
	if n.lied || other || copiesUnseen(c.run.Caller) {
		return
	}
	if e.Delivery != payvault.DeliveryUnknown {
		c.fail("batch %d: %v, but it was performed: %v", o.unit.batch, e.Delivery, o.err)
	}
	if !errors.Is(e, payvault.ErrOutcomeUnknown) {
		c.fail("batch %d: performed, and the error does not match ErrOutcomeUnknown: %v", o.unit.batch, o.err)
	}
	if payvault.SafeToRetry(o.err) && !c.kind.same {
		c.fail("batch %d: safe to retry, but it was performed: %v", o.unit.batch, o.err)
	}
}

func (c *caller) auditSuccess(o *outcome, n record, other bool) {
	if other || c.run.duplicated.Load() {
		return
	}
	if n.performed == 0 && !c.kind.reads {
		c.fail("batch %d: success, but it was not performed", o.unit.batch)
	} else if !n.said {
		c.fail("batch %d: success, but no answer said so", o.unit.batch)
	}
	if c.kind.issues != "" && !n.mutated && !slices.Contains(n.issued, o.id) {
		c.fail("batch %d: ID %q, but %q was issued", o.unit.batch, o.id, n.issued)
	}
}

// chain returns the texts of an error and of all errors that it wraps, in several formats.
func chain(err error) []string {
	var texts []string
	for ; err != nil; err = errors.Unwrap(err) {
		texts = append(texts, fmt.Sprintf("%v %+v %#v %q", err, err, err, err))
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range many.Unwrap() {
				texts = append(texts, chain(one)...)
			}
		}
	}
	return texts
}

package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
)

const batchSize = payvault.MaxAccountUpdaterCards

// caller makes one call of a scenario, and checks what comes of it.
type caller struct {
	run  *run
	n    int
	plan *Call
	kind kind
	own  *requests

	mu                       sync.Mutex
	started, ended, attempts int // calls of the SDK, and their attempts
	most                     int // calls under way at a time
	panicked                 bool
	left                     bool // the loop
	limited                  bool // the job ended since the service refused it for too long
	keys                     int  // how often it was asked for
	life                     *life
	texts                    strings.Builder // logs, and what observers were told

	outcomes []outcome
}

// outcome is what the caller was told of a unit.
type outcome struct {
	unit  unit
	err   error
	id    string
	label string  // of the answer
	seen  *record // what the service had done when the caller was told, if that may change
	life  int     // of the job
}

func (r *run) newCaller(n int) *caller {
	plan := &r.Calls[n]
	c := &caller{run: r, n: n, plan: plan, kind: kindOf(plan.Op, plan.Form), own: r.shared}
	if !plan.Shared {
		c.own = newRequests()
	}
	return c
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

func (c *caller) fail(format string, args ...any) { c.run.fail(c.n, format, args...) }

// panicAt panics if the plan says so.
func (c *caller) panicAt(place string) {
	if c.plan.Panic == place {
		c.run.strike("panic: " + place)
		c.mu.Lock()
		c.panicked = true
		c.mu.Unlock()
		panic(errInjected)
	}
}

var errNoKey = errors.New("no key today")

// key is the caller's key source.
func (c *caller) key(ctx context.Context) (string, error) {
	c.panicAt("key source")
	c.mu.Lock()
	c.keys++
	fault := ""
	if c.keys <= len(c.plan.Keys) {
		fault = c.plan.Keys[c.keys-1]
	}
	c.mu.Unlock()
	switch fault {
	case "fails":
		c.run.strike("key source: fails")
		return "", errNoKey
	case "slow":
		c.run.strike("key source: slow")
		if err := pause(ctx, 2*time.Second); err != nil {
			return "", err
		}
	}
	return canaryKey, nil
}

// context is that of the caller.
func (c *caller) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, callerKey{}, c)
	switch {
	case c.plan.End == 0:
		return ctx, func() {}
	case c.plan.Deadline:
		c.run.strike("caller: deadline")
		return context.WithTimeout(ctx, c.plan.End)
	}
	c.run.strike("caller: cancels")
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(c.plan.End, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// make makes the call.
func (c *caller) make(ctx context.Context, client *payvault.Client) {
	_ = pause(ctx, c.plan.Pause)
	ctx, cancel := c.context(ctx)
	defer cancel()
	start := time.Now()
	c.run.trace("caller", "call %d: %s %s begins", c.n, c.plan.Op, c.plan.Form)
	c.guarded(func() {
		switch c.plan.Form {
		case formWalk:
			c.walk(ctx, client)
		case formBulk:
			c.bulk(ctx, client)
		default:
			c.single(ctx, client)
		}
	})
	c.run.trace("caller", "call %d: returned", c.n)
	took := time.Since(start)
	if most := c.plan.End + c.patience(); c.plan.End > 0 && took > most {
		c.fail("it ended after %v, its context after %v", took, c.plan.End)
	}
	if longest := c.longest(); took > longest {
		c.fail("it took %v, more than the %v of its attempts", took, longest)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started != c.ended {
		c.fail("%d calls began and %d ended", c.started, c.ended)
	}
	most := c.width()
	if c.plan.Job { // those that wait for the pace make room for others
		most += most/4 + 1
	}
	if c.most > most {
		c.fail("%d calls at a time, not %d", c.most, most)
	}
}

const patience = 100 * time.Millisecond

// patience is how long after its context a call may take. A journal and a stream that block are waited for, and with a
// journal requests in flight.
func (c *caller) patience() time.Duration {
	if c.plan.Form != formBulk {
		return patience
	}
	most := patience + time.Duration(1+c.plan.Length+3*len(c.plan.Journal))*time.Second
	if c.plan.Job {
		most += c.run.Client.Timeout + c.run.Client.MaxBackoff
	}
	return most
}

// mostPages is more than any walk takes, also one that an answer has misled.
const mostPages = 100

// mostPace is more than any request waits for its turn, besides what the service asks for.
const mostPace = 10 * time.Second

// longest is how long a call may take at most.
func (c *caller) longest() time.Duration {
	settings := c.run.Client
	one := patience
	for range c.mostAttempts() {
		one += settings.Timeout + max(settings.MaxBackoff, settings.MaxRetryAfter) + mostPace
	}
	switch c.plan.Form {
	case formWalk:
		return one * time.Duration(mostPages)
	case formBulk:
		const journals = 20 * time.Second
		return (one + c.plan.Slow + journals) * time.Duration(c.plan.Length*(1+len(c.plan.Deaths)))
	}
	return one
}

func (c *caller) mostAttempts() int {
	if c.plan.Attempts > 0 {
		return c.plan.Attempts
	}
	return c.run.Client.Attempts
}

func (c *caller) width() int {
	switch {
	case c.plan.Form == formBulk && c.plan.Width == 0:
		return 4
	case c.plan.Form == "":
		return 1
	}
	return max(1, c.plan.Width)
}

// guarded lets no panic out but that of the plan.
func (c *caller) guarded(f func()) {
	returned := false
	defer func() {
		p := recover()
		switch {
		case p == nil && returned:
			if c.panicked {
				c.fail("the panic of the caller's own code was lost")
			}
		case p == errInjected: //nolint:errorlint // it has to be the value itself
		default:
			c.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	f()
	returned = true
}

func (c *caller) options(raw *payvault.Response) []payvault.CallOption {
	opts := []payvault.CallOption{
		payvault.WithHeader(headerCall, strconv.Itoa(c.n)), payvault.WithHeader("X-Extra", canaryExtra),
		payvault.WithHeader(headerLife, strconv.Itoa(c.lifeNumber())), payvault.WithResponse(raw),
	}
	if c.plan.Replay {
		opts = append(opts, payvault.WithReplay())
	}
	if c.plan.Attempts > 0 {
		opts = append(opts, payvault.WithAttempts(c.plan.Attempts))
	}
	return opts
}

// told takes down what came of a unit.
func (c *caller) told(batch int, id string, err error, raw *payvault.Response) {
	o := outcome{unit: unit{c.n, batch}, err: err, id: id, label: raw.Header.Get(headerAnswer)}
	if _, form := errors.AsType[noResult](err); form {
		c.fail("%v", err)
	}
	if n := int64(len(raw.Body)); n > c.run.Client.MaxBytes {
		c.fail("an answer of %d bytes", n)
	}
	c.outcomes = append(c.outcomes, o)
	c.say("%v %+v %+v", err, err, *raw)
	c.run.trace("caller", "call %d, batch %d: %s %v", c.n, batch, id, err)
}

func (c *caller) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts.WriteString(text)
	c.texts.WriteByte('\n')
}

func (c *caller) single(ctx context.Context, client *payvault.Client) {
	var raw payvault.Response
	id, err := c.kind.do(ctx, client, c.own, c.options(&raw))
	c.told(0, id, err, &raw)
	e, ok := errors.AsType[*payvault.Error](err)
	if ok && c.plan.Times == 0 && (e.Attempts != c.attempts || raw.Attempts != e.Attempts) {
		c.fail("%d attempts, %d in the error, %d in the response", c.attempts, e.Attempts, raw.Attempts)
	}
}

// walk goes over all records of a list.
func (c *caller) walk(ctx context.Context, client *payvault.Client) {
	var raw payvault.Response
	list := c.own.list
	list.Prefetch = c.plan.Width
	opts := c.options(&raw)
	var ids iter.Seq2[string, error]
	if c.plan.Op == payvault.OpCustomersList {
		ids = idsOf(client.Customers.All(ctx, &list, opts...), func(r *payvault.Customer) string { return r.ID })
	} else {
		id := payvault.SubscriptionID(number(canarySub))
		all := client.Subscriptions.AllTransactions(ctx, id, &list, opts...)
		ids = idsOf(all, func(r *payvault.Transaction) string { return r.PurchaseID })
	}
	seen, failed := 0, false
	for id, err := range ids {
		if failed {
			c.fail("the walk went on after its error")
		}
		if err != nil {
			failed = true
			c.told(0, "", err, &raw)
			continue
		}
		if want := recordID(seen); id != want && c.clean() {
			c.fail("record %s where %s was to come", id, want)
		}
		if seen > mostPages*recordsPerPage {
			c.fail("the walk does not end")
			break
		}
		if seen++; seen == c.plan.Leave {
			c.run.strike("caller: leaves a walk")
			break
		}
		c.panicAt("loop")
	}
	want := c.plan.Length * recordsPerPage
	if !failed && c.plan.Leave == 0 && seen != want && c.clean() {
		c.fail("%d records of %d, and no error", seen, want)
	}
}

// clean reports whether the service has told only the truth about its pages.
func (c *caller) clean() bool {
	return !c.run.note(unit{c.n, 0}, nil).mutated && !c.run.duplicated.Load()
}

func idsOf[T any](records iter.Seq2[*T, error], id func(*T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for record, err := range records {
			switch {
			case (record == nil) == (err == nil):
				err = noResult{err != nil}
				fallthrough
			case err != nil:
				if !yield("", err) {
					return
				}
			case !yield(id(record), nil):
				return
			}
		}
	}
}

// observer notes what it is told with the caller whose call it is.
func observer() payvault.Observer {
	return payvault.Observer{
		Start: func(ctx context.Context, info payvault.CallInfo) context.Context {
			c := callerOf(ctx)
			c.say("%+v", info)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.started++
			c.most = max(c.most, c.started-c.ended)
			return ctx
		},
		Attempt: func(ctx context.Context, info payvault.CallInfo, result payvault.CallResult) {
			c := callerOf(ctx)
			c.mu.Lock()
			c.attempts++
			c.mu.Unlock()
			c.say("%+v %+v", info, result)
			c.panicAt("observer")
		},
		End: func(ctx context.Context, info payvault.CallInfo, result payvault.CallResult) {
			c := callerOf(ctx)
			c.say("%+v %+v %s", info, result, result.ErrorClass())
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended++
		},
	}
}

// handler takes log records.
type handler struct{}

func (handler) Enabled(context.Context, slog.Level) bool { return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h handler) WithGroup(string) slog.Handler          { return h }

func (handler) Handle(ctx context.Context, record slog.Record) error {
	c := callerOf(ctx)
	c.say("%s", record.Message)
	record.Attrs(func(a slog.Attr) bool {
		c.say("%s=%v", a.Key, a.Value)
		return true
	})
	return nil
}

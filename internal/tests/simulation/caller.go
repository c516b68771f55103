package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
)

// caller makes one call of a scenario and checks its results.
type caller struct {
	run     *run
	n       int
	plan    *Call
	kind    kind
	request any // the argument of the call; callers may share it

	mu sync.Mutex
	// The observer counts these calls and attempts.
	started, ended, attempts int
	most                     int // largest number of calls under way at the same time
	panicked                 bool
	left                     bool // the caller has broken out of the loop over batches
	limited                  bool // an answer may have ended the job before its last batch
	keys                     int  // how often the key source was called
	life                     *life
	// texts has everything that must not contain secrets: errors, log records and values for observers.
	texts strings.Builder

	outcomes []outcome
}

// outcome is the result of a unit.
type outcome struct {
	unit  unit
	err   error
	id    string
	label string  // header X-Sim-Answer: the call and the batch that the service answered
	seen  *record // the unit's record at the time of the result; nil if no later process can change it
	life  int     // number of the job's process that got the result
}

func (r *run) newCaller(n int) *caller {
	plan := &r.Calls[n]
	c := &caller{run: r, n: n, plan: plan, kind: kindOf(plan.Op, plan.Form)}
	name := string(plan.Op) + plan.Form
	c.request = r.shared[name]
	if c.request == nil || !plan.Shared {
		c.request = c.kind.newRequest()
	}
	if plan.Shared {
		r.shared[name] = c.request
	}
	return c
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

func (c *caller) fail(format string, args ...any) { c.run.fail(c.n, format, args...) }

// panicAt panics if the plan has a panic at this place.
func (c *caller) panicAt(place string) {
	if c.plan.Panic == place {
		c.run.strike("panic: " + place)
		c.mu.Lock()
		c.panicked = true
		c.mu.Unlock()
		panic(errInjected)
	}
}

var errInjected = errors.New("a panic of the caller's own code")

var errNoKey = errors.New("no key today")

// key is the key source of the caller. It may fail or be slow.
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

// context returns the context of the call. The context ends after plan.End, or never if plan.End is 0.
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

// event tells the job's present process about an event of the service. This may kill the process.
func (c *caller) event() {
	c.mu.Lock()
	l := c.life
	c.mu.Unlock()
	if l != nil {
		l.event()
	}
}

func (c *caller) lifeNumber() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == nil {
		return 0
	}
	return c.life.number
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
		opts = append(opts, payvault.WithMaxAttempts(c.plan.Attempts))
	}
	return opts
}

// recordResult records the result of a call or of a batch.
func (c *caller) recordResult(batch int, id string, err error, raw *payvault.Response) {
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

package simulation

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"time"

	"example.com/payvault"
)

// make makes the call, and checks its duration and the observer's counts.
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
	if c.plan.Job { // up to Concurrency/4 + 1 more batches may wait for the rate limit
		most += most/4 + 1
	}
	if c.most > most {
		c.fail("%d calls at a time, not %d", c.most, most)
	}
}

const patience = 100 * time.Millisecond

// patience returns how long a call may continue after its context has ended. A bulk job may wait for its stream, its
// journal and its requests in flight.
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

// mostPages is larger than the number of pages that a walk may read, even if an answer states a wrong number of pages.
const mostPages = 100

// mostPace is longer than any wait for the client's own rate limit. It does not include waits that the service asks
// for.
const mostPace = 10 * time.Second

// longest returns how long a call may take.
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

// guarded runs f. It reports an unplanned panic, and a planned panic that was lost.
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

func (c *caller) single(ctx context.Context, client *payvault.Client) {
	var raw payvault.Response
	id, err := c.kind.do(ctx, client, c.request, c.options(&raw))
	c.recordResult(0, id, err, &raw)
	e, ok := errors.AsType[*payvault.Error](err)
	if ok && c.plan.Times == 0 && (e.Attempts != c.attempts || raw.Attempts != e.Attempts) {
		c.fail("%d attempts, %d in the error, %d in the response", c.attempts, e.Attempts, raw.Attempts)
	}
}

// walk reads all records of a list, and checks their order and number.
func (c *caller) walk(ctx context.Context, client *payvault.Client) {
	var raw payvault.Response
	request, _ := c.request.(*payvault.ListOptions)
	list := *request
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
			c.recordResult(0, "", err, &raw)
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

// clean returns false if an answer of the walk had a mutated body or a wrong page, or may belong to another request.
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

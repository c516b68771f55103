package simulation

import "slices"

// shrunk returns scenarios that are each a little simpler than s. For example, one of them has one call fewer.
func (s Scenario) shrunk() []Scenario {
	var all []Scenario
	add := func(change func(*Scenario)) {
		c := s
		c.Dials, c.Calls = slices.Clone(s.Dials), slices.Clone(s.Calls)
		for i := range c.Calls {
			c.Calls[i].Steps = slices.Clone(c.Calls[i].Steps)
		}
		change(&c)
		all = append(all, c)
	}
	for i := range s.Calls {
		if len(s.Calls) > 1 {
			add(func(c *Scenario) { c.Calls = slices.Delete(c.Calls, i, i+1) })
		}
	}
	if len(s.Dials) > 0 {
		add(func(c *Scenario) { c.Dials = c.Dials[:len(c.Dials)-1] })
	}
	for i, dial := range s.Dials {
		if dial != (Dial{}) {
			add(func(c *Scenario) { c.Dials[i] = Dial{} })
		}
	}
	if s.Caller != callerPlain {
		add(func(c *Scenario) { c.Caller = callerPlain })
	}
	if s.Wire != wireHTTP1 {
		add(func(c *Scenario) { c.Wire = wireHTTP1 })
	}
	for i := range s.Calls {
		for _, simpler := range s.Calls[i].shrunk() {
			add(func(c *Scenario) { c.Calls[i] = simpler })
		}
	}
	return all
}

func (c Call) shrunk() []Call {
	var all []Call
	simplify(&all, &c, &c.Pause)
	simplify(&all, &c, &c.End)
	simplify(&all, &c, &c.Replay)
	simplify(&all, &c, &c.Attempts)
	simplify(&all, &c, &c.Shared)
	simplify(&all, &c, &c.Panic)
	simplify(&all, &c, &c.Leave)
	simplify(&all, &c, &c.Lane)
	if c.Length > 1 {
		shorter := c
		shorter.Length--
		all = append(all, shorter)
	}
	if c.Keys != nil {
		keyed := c
		keyed.Keys = nil
		all = append(all, keyed)
	}
	simplify(&all, &c, &c.Slow)
	simplify(&all, &c, &c.Breaks)
	if n := len(c.Deaths); n > 0 {
		shorter := c
		shorter.Deaths = c.Deaths[:n-1]
		all = append(all, shorter)
	}
	if n := len(c.Journal); n > 0 {
		shorter := c
		shorter.Journal = c.Journal[:n-1]
		all = append(all, shorter)
	}
	for i, fault := range c.Journal {
		if fault != "" {
			other := c
			other.Journal = slices.Clone(c.Journal)
			other.Journal[i] = ""
			all = append(all, other)
		}
	}
	if n := len(c.Steps); n > 0 {
		shorter := c
		shorter.Steps = c.Steps[:n-1]
		all = append(all, shorter)
	}
	for i, step := range c.Steps {
		for _, simpler := range step.shrunk() {
			other := c
			other.Steps = slices.Clone(c.Steps)
			other.Steps[i] = simpler
			all = append(all, other)
		}
	}
	return all
}

func (s Step) shrunk() []Step {
	var all []Step
	simplify(&all, &s, &s.Early)
	simplify(&all, &s, &s.Wait)
	if s.Info != nil {
		other := s
		other.Info = nil
		all = append(all, other)
	}
	simplify(&all, &s, &s.Framing)
	simplify(&all, &s, &s.Cut)
	simplify(&all, &s, &s.Drip)
	simplify(&all, &s, &s.After)
	simplify(&all, &s, &s.RetryAfter)
	if len(all) == 0 && (s.Status != 200 || s.Body != "success") {
		all = append(all, honest())
	}
	return all
}

// simplify appends to *all a copy of *whole with one field set to zero, unless that field is zero already. The argument
// field points to that field of *whole.
func simplify[T any, F comparable](all *[]T, whole *T, field *F) {
	var zero F
	was := *field
	if was != zero {
		*field = zero
		*all = append(*all, *whole)
		*field = was
	}
}

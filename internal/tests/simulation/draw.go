package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"example.com/payvault"
)

// die is the random number generator that draws the values of a scenario.
type die struct {
	*rand.Rand

	echoes []string // values of the request that an answer may repeat
}

func newDie(seed uint64) die {
	return die{Rand: rand.New(rand.NewPCG(seed, 0x51))} //nolint:gosec // it has to be repeatable
}

func (d die) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d die, from []T) T { return from[d.IntN(len(from))] }

// duration draws a duration of a random order of magnitude, up to a limit.
func (d die) duration(most time.Duration) time.Duration {
	return min(most, time.Duration(1+d.Int64N(9))*time.Duration(pow10(d.IntN(11))))
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// Draw returns the scenario of a seed. The same seed always gives the same scenario.
func Draw(seed uint64) Scenario {
	d := newDie(seed)
	s := Scenario{Seed: seed, Wire: d.wire(), Caller: callerPlain, Client: Settings{
		Attempts:      1 + d.IntN(4),
		Timeout:       pick(d, []time.Duration{50 * time.Millisecond, time.Second, 30 * time.Second}),
		MaxBackoff:    pick(d, []time.Duration{time.Millisecond, time.Second}),
		MaxRetryAfter: 5 * time.Second,
		MaxBytes:      64 << 10,
	}}
	if d.chance(45) {
		s.Caller = pick(d, roundTrippers())
	}
	for range d.IntN(4) {
		s.Dials = append(s.Dials, d.dial())
	}
	for range 1 + d.IntN(5) {
		s.Calls = append(s.Calls, d.call())
	}
	if d.IntN(400) == 0 {
		d.down(&s)
	}
	if d.chance(1) {
		d.holdBack(&s)
	}
	return s
}

// holdBack changes s so that a call gets a Retry-After, and another call of the same operation may begin during the
// wait. If the Retry-After comes with status 429, the other call has to wait too, unless it is a Client.Call.
func (d die) holdBack(s *Scenario) {
	s.Wire, s.Caller, s.Down, s.Dials = wireHTTP1, callerPlain, "", nil
	asked := Call{Op: s.Calls[0].Op, Form: s.Calls[0].Form, Length: s.Calls[0].Length, Replay: true}
	other := asked
	other.Lane, other.Pause = 1, d.duration(5*time.Second)
	asked.Steps = []Step{{Status: pick(d, []int{429, 503}), Body: "nothing", RetryAfter: pick(d, []string{"1", "5"})}}
	s.Calls = []Call{asked, other}
}

// down changes s so that the service is down during all calls. Each call is made 40 to 139 times.
func (d die) down(s *Scenario) {
	s.Down, s.Caller, s.Dials = pick(d, downs()), callerPlain, nil
	s.Client.Timeout = min(s.Client.Timeout, time.Second)
	for i, c := range s.Calls {
		if c.Form == formWalk || c.Form == formBulk {
			c.Op, c.Form = payvault.OpApplicationsValidate, ""
		}
		s.Calls[i] = Call{Op: c.Op, Form: c.Form, Lane: c.Lane, Replay: c.Replay, Times: 40 + d.IntN(100)}
	}
}

// wire draws the protocol. It seldom draws one with TLS, because the handshake takes most of the time of a scenario.
func (d die) wire() string {
	switch n := d.IntN(100); {
	case n < 50:
		return wireHTTP1
	case n < 93:
		return wireH2C
	case n < 96:
		return wireHTTP1TLS
	}
	return wireH2
}

func (d die) dial() Dial {
	var dial Dial
	if d.chance(60) {
		dial.Fault = pick(d, dialFaults())
		dial.At = d.IntN(int(pow10(1 + d.IntN(4))))
	}
	if d.chance(20) {
		dial.Wait = d.duration(20 * time.Second)
	}
	if d.chance(10) {
		dial.Chunk = 1 + d.IntN(40)
	}
	return dial
}

func (d die) call() Call {
	operations := kinds()
	kind := operations[d.IntN(len(operations))]
	c := Call{Op: kind.Op, Form: kind.form, Lane: d.IntN(3), Replay: d.chance(10), Shared: d.chance(20)}
	if d.chance(30) {
		c.Pause = d.duration(100 * time.Second)
	}
	if d.chance(25) {
		c.End, c.Deadline = d.duration(40*time.Second), d.chance(50)
	}
	if d.chance(15) {
		c.Attempts = 1 + d.IntN(5)
	}
	if d.chance(5) {
		c.Keys = []string{pick(d, []string{"", "fails", "slow"}), pick(d, keyFaults())}
	}
	steps := d.IntN(4)
	switch c.Form {
	case formWalk, formBulk:
		c.Length, c.Width = 1+d.IntN(5), d.IntN(4)
		steps = d.IntN(4 * c.Length)
		if d.chance(30) {
			c.Leave = 1 + d.IntN(4)
		}
	}
	if c.Form == formBulk {
		d.job(&c)
	}
	if d.chance(5) {
		c.Panic = pick(d, panics())
		// With Prefetch, a goroutine of the SDK runs the caller's code. A panic there would end the simulator, so the panic
		// happens in the caller's loop instead.
		if c.Form == formWalk && c.Width > 0 {
			c.Panic = "loop"
		}
		if c.Form == formBulk && d.chance(20) {
			c.Panic = "stream"
		}
	}
	for range steps {
		c.Steps = append(c.Steps, d.step(kind))
	}
	if c.Job && d.chance(10) {
		d.loseAndRefuse(&c)
	}
	return c
}

// loseAndRefuse gives a job the option WithReplay and three faults. The service performs a batch, but answers with
// status 503. It answers the retry of this batch with status 429. A process of the job dies.
func (d die) loseAndRefuse(c *Call) {
	c.Replay, c.Attempts = true, 2+d.IntN(3)
	first := 2 * d.IntN(c.Length)
	for len(c.Steps) < first+2 {
		c.Steps = append(c.Steps, honest())
	}
	c.Steps[first] = Step{Perform: true, Status: 503, Body: "nothing"}
	c.Steps[first+1] = Step{Status: 429, Body: "nothing", RetryAfter: pick(d, []string{"", "1", "5"})}
	if len(c.Deaths) == 0 {
		c.Deaths = []int{1 + d.IntN(8*c.Length)}
	}
}

// job draws the fields of a call that only a bulk job uses.
func (d die) job(c *Call) {
	if d.chance(15) {
		c.Slow = d.duration(20 * time.Second)
	}
	if d.chance(10) {
		c.Breaks = 1 + d.IntN(cardsOf(c.Length))
		if inBatch := c.Breaks % payvault.MaxAccountUpdaterCards; c.Breaks > inBatch && d.chance(50) {
			c.Breaks -= inBatch // after a complete batch
		}
	}
	if c.Job = d.chance(70); !c.Job {
		return
	}
	for range d.IntN(mostLives) {
		c.Deaths = append(c.Deaths, 1+d.IntN(8*c.Length))
	}
	for range d.IntN(6 * c.Length) {
		fault := ""
		if d.chance(10) {
			fault = pick(d, journalFaults())
		}
		c.Journal = append(c.Journal, fault)
	}
}

// step draws how the service reacts to a request. Only a mutated body may report a false success or a false refusal:
// a client could not detect these.
func (d die) step(k kind) Step {
	s := Step{Status: 200, Pick: d.Uint64N(1 << 20)}
	switch n := d.IntN(100); {
	case n < 30:
		s.Perform, s.Body = true, "success"
	case n < 38:
		s.Body = pick(d, []string{"refusal", "validation"})
	case n < 48:
		s.Status = pick(d, []int{400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 425, 431, 451, 499})
		s.Body = d.anyBody()
		if s.Status == 403 && slices.Contains([]string{"nothing", "text", "success"}, s.Body) {
			s.Perform = d.chance(50) // a firewall has refused the answer
		}
	case n < 58:
		s.Status, s.Body, s.RetryAfter = 429, d.anyBody(), d.retryAfter()
	case n < 72:
		s.Perform, s.Body = d.chance(50), d.anyBody()
		s.Status = pick(d, []int{500, 501, 502, 502, 503, 503, 504, 504, 505, 511, 520, 599})
		if d.chance(20) {
			s.RetryAfter = d.retryAfter()
		}
	case n < 76:
		s.Perform, s.Body = d.chance(50), pick(d, []string{"nothing", "text", "success"})
		s.Status = pick(d, []int{300, 301, 302, 303, 304, 307, 308, 399})
	case n < 78:
		s.Perform, s.Body = d.chance(50), pick(d, []string{"nothing", "text"})
		s.Status = pick(d, []int{101, 204, 205, 600, 999})
	case n < 90:
		s.Perform, s.Body = true, "mutated"
	case n < 94:
		s.Perform, s.Body = d.chance(50), "odd code"
		if d.chance(20) {
			s.Perform, s.Body = false, "both codes"
		}
	case n < 96:
		s.Perform, s.Body = d.chance(50), pick(d, []string{"nothing", "text"})
	case n < 98:
		s.Perform, s.Body = true, "large"
	default:
		s.Perform, s.Body = true, "success"
		if k.Lists() {
			s.Body = pick(d, []string{"endless", "repeated page", "empty page"})
		}
	}
	d.wrap(&s)
	return s
}

func (d die) anyBody() string {
	return pick(d, []string{"refusal", "refusal", "validation", "nothing", "text", "success", "mutated"})
}

func (d die) retryAfter() string {
	return pick(d, []string{
		"", "", "0", "1", "5", "6", "31", "-1", "99999999999999999999", "soon", "Sat, 01 Jan 2000 00:00:03 GMT", "1, 2",
	})
}

// wrap adds faults that can come with any status and body, such as a wait, wrong framing or a cut connection.
func (d die) wrap(s *Step) {
	if d.chance(20) {
		s.Wait = d.duration(90 * time.Second)
	}
	if !s.Perform && d.chance(20) {
		s.Early = true
	}
	if d.chance(8) {
		s.Info = slices.Repeat([]int{pick(d, []int{100, 102, 103, 110})}, pick(d, []int{1, 1, 2, 7}))
	}
	if d.chance(25) {
		s.Framing = pick(d, framings())
	}
	if d.chance(25) {
		s.Cut, s.CutAt, s.Code = pick(d, cuts()), max(0, d.IntN(1400)-400), uint32(d.IntN(16)) //nolint:gosec // small
		if d.chance(40) {
			s.Perform = s.Perform || s.Status >= 500
		}
	}
	if d.chance(5) {
		s.Drip = d.duration(10 * time.Second)
	}
	if d.chance(20) {
		s.After = pick(d, afters())
	}
}

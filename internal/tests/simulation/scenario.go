// Package simulation attacks every call of the SDK from a seed: an in-memory network, a service that is honest or
// not, callers that are patient or not, in a bubble of package testing/synctest, and invariants that are checked
// after each call.
package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"time"

	"example.com/payvault"
)

// Scenario is all that happens, but for the order in which goroutines that can run do so. It is printed as JSON.
type Scenario struct {
	Seed   uint64   `json:"seed"`
	Wire   string   `json:"wire"`   // what client and service speak
	Caller string   `json:"caller"` // the RoundTripper that the caller brings: one of callers
	Client Settings `json:"client"`
	Dials  []Dial   `json:"dials,omitempty"` // of the connections, in their order; further ones are honest
	Down   string   `json:"down,omitempty"`  // how the service is down for all calls: one of downs
	Calls  []Call   `json:"calls"`
}

// Read reads a scenario that was kept.
func Read(file string) (s Scenario, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Settings are those of the client.
type Settings struct {
	Attempts      int           `json:"attempts"`
	Timeout       time.Duration `json:"timeout"` // of an attempt
	MaxBackoff    time.Duration `json:"maxBackoff"`
	MaxRetryAfter time.Duration `json:"maxRetryAfter"`
	MaxBytes      int64         `json:"maxBytes"`
}

// Dial is what becomes of a connection.
type Dial struct {
	Fault string        `json:"fault,omitempty"` // one of dialFaults
	Wait  time.Duration `json:"wait,omitempty"`  // before it is made
	At    int           `json:"at,omitempty"`    // bytes after which the fault strikes
	Chunk int           `json:"chunk,omitempty"` // most bytes that a read gives; 0 for no limit
}

// Call is one call of the SDK, a walk over a list, or a job in bulk.
type Call struct {
	Op       payvault.Operation `json:"op"`
	Form     string             `json:"form,omitempty"`     // "", or one of forms
	Lane     int                `json:"lane,omitempty"`     // calls of a lane follow each other, lanes run at a time
	Times    int                `json:"times,omitempty"`    // how often it is made, one after the other; 0 for once
	Pause    time.Duration      `json:"pause,omitempty"`    // before the call
	End      time.Duration      `json:"end,omitempty"`      // after which the caller's context ends; 0 for never
	Deadline bool               `json:"deadline,omitempty"` // it ends by a deadline, else it is canceled
	Replay   bool               `json:"replay,omitempty"`   // WithReplay
	Attempts int                `json:"attempts,omitempty"` // WithAttempts
	Keys     []string           `json:"keys,omitempty"`     // of the key source: "" or one of keyFaults
	Shared   bool               `json:"shared,omitempty"`   // the request is one value for several calls
	Panic    string             `json:"panic,omitempty"`    // what of the caller's own code panics: one of panics
	Leave    int                `json:"leave,omitempty"`    // the loop, after that many; 0 for never
	Width    int                `json:"width,omitempty"`    // Prefetch, or Concurrency
	Length   int                `json:"length,omitempty"`   // pages, or batches
	Slow     time.Duration      `json:"slow,omitempty"`     // of a job: how long its stream makes each batch wait
	Job      bool               `json:"job,omitempty"`      // it has a journal
	Journal  []string           `json:"journal,omitempty"`  // of its steps: "" or one of journalFaults
	Deaths   []int              `json:"deaths,omitempty"`   // events at which a life ends; there is one more
	Steps    []Step             `json:"steps,omitempty"`    // of its requests; further ones are answered honestly
}

// Step is what the service does with a request that has arrived.
type Step struct {
	Perform    bool          `json:"perform,omitempty"`
	Status     int           `json:"status,omitempty"`
	Body       string        `json:"body,omitempty"` // one of those of exchange.content
	Pick       uint64        `json:"pick,omitempty"` // decides what is open in the body
	RetryAfter string        `json:"retryAfter,omitempty"`
	Early      bool          `json:"early,omitempty"`   // it answers before it has read the body
	Wait       time.Duration `json:"wait,omitempty"`    // before it answers
	Info       []int         `json:"info,omitempty"`    // informational answers before the final one
	Framing    string        `json:"framing,omitempty"` // one of framings
	Cut        string        `json:"cut,omitempty"`     // one of cuts
	CutAt      int           `json:"cutAt,omitempty"`   // per mille of the answer after which it is cut
	Code       uint32        `json:"code,omitempty"`    // of RST_STREAM and GOAWAY
	Drip       time.Duration `json:"drip,omitempty"`    // between the pieces of the answer
	After      string        `json:"after,omitempty"`   // what follows the answer: one of afters
}

// honest is the step of a service without faults.
func honest() Step { return Step{Perform: true, Status: 200, Body: "success"} }

// The choices of a scenario. What stands first is without fault, and the goal when a scenario is shrunk.
const (
	wireHTTP1    = "http/1.1"
	wireHTTP1TLS = "http/1.1 over TLS"
	wireH2C      = "h2c"
	wireH2       = "h2"

	downStatus  = "answers with status 503"
	downRefuses = "refuses connections"
	downHangs   = "does not answer"

	formWalk = "walk"
	formBulk = "bulk"
	formCard = "with card_id"
)

func dialFaults() []string {
	return []string{
		"refused", "unknown host", "hangs", "closed at once", "cut inbound", "swallowed inbound", "cut outbound",
		"swallowed outbound", "half-closed outbound", "not read", "garbage first", "wrong protocol",
		"wrong certificate",
	}
}

func framings() []string {
	return []string{
		"chunked", "until close", "gzip", "broken gzip", "gzip bomb", "length too short", "length too long",
		"chunked and length", "bad chunks", "two lengths", "malformed status", "malformed header",
	}
}

func cuts() []string {
	return []string{"end", "reset", "hang", "half-close", "RST_STREAM", "GOAWAY", "GOAWAY before"}
}

func afters() []string { return []string{"close", "late close", "late 408", "duplicate", "garbage"} }

func downs() []string { return []string{downStatus, downRefuses, downHangs} }

func keyFaults() []string { return []string{"fails", "slow"} }

func journalFaults() []string { return []string{"fails", "fails when done", "slow"} }

func panics() []string { return []string{"key source", "round tripper", "observer", "loop"} }

// die draws for a scenario.
type die struct {
	*rand.Rand

	echoes []string // what answers may repeat of the request
}

func newDie(seed uint64) die {
	return die{Rand: rand.New(rand.NewPCG(seed, 0x51))} //nolint:gosec // it has to be repeatable
}

func (d die) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d die, from []T) T { return from[d.IntN(len(from))] }

// duration draws from all magnitudes up to most.
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

// Draw makes the scenario of a seed.
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
		s.Caller = pick(d, callers())
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
	return s
}

// isCalm reports whether nothing is in the way of any call.
func (s Scenario) isCalm() bool {
	return s.Caller == callerPlain && len(s.Dials) == 0 && s.Down == "" &&
		!slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.isCalm() })
}

func (c Call) isCalm() bool {
	faults := c.Panic != "" || len(c.Keys)+len(c.Journal)+len(c.Deaths) > 0
	return c.End == 0 && !faults && !slices.ContainsFunc(c.Steps, func(s Step) bool { return !s.isHonest() })
}

func (s Step) isHonest() bool {
	s.Pick = 0
	return reflect.DeepEqual(s, honest())
}

// down makes many calls of a service that is down.
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

// wire is seldom one of TLS, whose handshakes take most of the time of a scenario.
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
	c := Call{Op: kind.op, Form: kind.form, Lane: d.IntN(3), Replay: d.chance(10), Shared: d.chance(20)}
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
		// A panic in a goroutine of the SDK ends the process, as it should.
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
	return c
}

// mostLives is how often a job is begun at most.
const mostLives = 3

// job draws what is special about a job in bulk.
func (d die) job(c *Call) {
	if d.chance(15) {
		c.Slow = d.duration(20 * time.Second)
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

// step draws what a service may do. It tells no lies that no client could see through: what says that the request was
// refused was not performed, and what says success was.
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
		if k.list {
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

// wrap adds what may happen to any answer.
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
		s.Cut, s.CutAt, s.Code = pick(d, cuts()), max(0, d.IntN(1400)-400), uint32(d.IntN(16)) //nolint:gosec // few
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

// shrunk gives the scenarios that are a little simpler.
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

// simplify adds a copy of whole with one of its fields set to zero.
func simplify[T any, F comparable](all *[]T, whole *T, field *F) {
	var zero F
	was := *field
	if was != zero {
		*field = zero
		*all = append(*all, *whole)
		*field = was
	}
}

// Package simulation plays random scenarios, each from a seed. A scenario has an in-memory network, a service and
// callers that may misbehave. It runs in a bubble of package testing/synctest, and invariants are checked after each
// call.
package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"example.com/payvault"
)

// Scenario describes all events of a run, except the order of goroutines that can run. It is printed as JSON.
type Scenario struct {
	Seed   uint64   `json:"seed"`
	Wire   string   `json:"wire"`   // protocol: one of the constants below
	Caller string   `json:"caller"` // RoundTripper of the caller: one of roundTrippers
	Client Settings `json:"client"`
	Dials  []Dial   `json:"dials,omitempty"` // one for each connection in order; later connections have no fault
	Down   string   `json:"down,omitempty"`  // the way in which the service is down for all calls: one of downs
	Calls  []Call   `json:"calls"`
}

// Read reads a scenario from a file.
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

// Settings has the settings of the client.
type Settings struct {
	Attempts      int           `json:"attempts"`
	Timeout       time.Duration `json:"timeout"` // timeout of an attempt
	MaxBackoff    time.Duration `json:"maxBackoff"`
	MaxRetryAfter time.Duration `json:"maxRetryAfter"`
	MaxBytes      int64         `json:"maxBytes"`
}

// Dial describes one connection.
type Dial struct {
	Fault string        `json:"fault,omitempty"` // one of dialFaults
	Wait  time.Duration `json:"wait,omitempty"`  // wait before the connection is made
	At    int           `json:"at,omitempty"`    // number of bytes after which the fault strikes
	Chunk int           `json:"chunk,omitempty"` // largest number of bytes that a read returns; 0 for no limit
}

// Call describes one call of the SDK, a walk over a list, or a job.
type Call struct {
	Op       payvault.Operation `json:"op"`
	Form     string             `json:"form,omitempty"`     // "", or one of the forms below
	Lane     int                `json:"lane,omitempty"`     // calls of a lane follow each other; lanes run in parallel
	Times    int                `json:"times,omitempty"`    // number of calls, one after the other; 0 means one
	Pause    time.Duration      `json:"pause,omitempty"`    // wait before the call
	End      time.Duration      `json:"end,omitempty"`      // time until the caller's context ends; 0 for never
	Deadline bool               `json:"deadline,omitempty"` // the context ends by a deadline instead of a cancellation
	Replay   bool               `json:"replay,omitempty"`   // the call has the option WithReplay
	Attempts int                `json:"attempts,omitempty"` // value of the option WithMaxAttempts
	// Keys has the faults of the key source, one for each of its calls: "" or one of keyFaults.
	Keys    []string      `json:"keys,omitempty"`
	Shared  bool          `json:"shared,omitempty"`  // several calls share one request value
	Panic   string        `json:"panic,omitempty"`   // the caller's code that panics: one of panics
	Leave   int           `json:"leave,omitempty"`   // number of items after which the loop is left; 0 for never
	Width   int           `json:"width,omitempty"`   // value of Prefetch or Concurrency
	Length  int           `json:"length,omitempty"`  // number of pages or batches
	Slow    time.Duration `json:"slow,omitempty"`    // wait of the stream before each batch
	Job     bool          `json:"job,omitempty"`     // the job has a journal
	Journal []string      `json:"journal,omitempty"` // for each step of the journal: "" or one of journalFaults
	// Deaths has the events at which a life of the job ends; the last life ends by itself.
	Deaths []int  `json:"deaths,omitempty"`
	Steps  []Step `json:"steps,omitempty"` // one for each request; later requests are answered without fault
}

// mostLives is the largest number of lives of a job.
const mostLives = 3

// Step describes the reaction of the service to a request.
type Step struct {
	Perform    bool          `json:"perform,omitempty"`
	Status     int           `json:"status,omitempty"`
	Body       string        `json:"body,omitempty"` // one of the bodies of exchange.content
	Pick       uint64        `json:"pick,omitempty"` // random number that decides details of the answer
	RetryAfter string        `json:"retryAfter,omitempty"`
	Early      bool          `json:"early,omitempty"`   // the service answers before it has read the body
	Wait       time.Duration `json:"wait,omitempty"`    // wait before the answer
	Info       []int         `json:"info,omitempty"`    // informational answers before the final one
	Framing    string        `json:"framing,omitempty"` // one of framings
	Cut        string        `json:"cut,omitempty"`     // one of cuts
	CutAt      int           `json:"cutAt,omitempty"`   // thousandths of the answer after which it is cut
	Code       uint32        `json:"code,omitempty"`    // error code in RST_STREAM and GOAWAY
	Drip       time.Duration `json:"drip,omitempty"`    // time between the pieces of the answer
	After      string        `json:"after,omitempty"`   // fault after the answer: one of afters
}

// honest returns the step of a service without faults.
func honest() Step { return Step{Perform: true, Status: 200, Body: "success"} }

// These are the choices of a scenario. The first one of each group has no fault. Shrinking replaces the others by it.
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

// These are the RoundTrippers of callers.
const (
	callerPlain     = "plain"
	callerDeadline  = "a deadline per hop"
	callerOwnHooks  = "its own hooks"
	callerNoHooks   = "no hooks"
	callerClient    = "http.Client"
	callerRedirects = "http.Client that follows redirects"
	callerHedges    = "hedges"
	callerHedgesOne = "hedges, one without hooks"
	callerRetries   = "retries"
	callerBoth      = "response and error"
	callerNeither   = "neither response nor error"
	callerLoses     = "loses the response"
	callerTakes     = "takes the body and fails"
	callerNoBody    = "response without a body"
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

func roundTrippers() []string {
	return []string{
		callerDeadline, callerOwnHooks, callerNoHooks, callerClient, callerRedirects, callerHedges, callerHedgesOne,
		callerRetries, callerBoth, callerNeither, callerLoses, callerTakes, callerNoBody,
	}
}

func keyFaults() []string { return []string{"fails", "slow"} }

func journalFaults() []string { return []string{"fails", "fails when done", "slow"} }

func panics() []string { return []string{"key source", "round tripper", "observer", "loop"} }

// isCalm reports whether no fault can affect a call.
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

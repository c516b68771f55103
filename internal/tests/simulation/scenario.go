// Package simulation tests the SDK with random scenarios, each drawn from a seed. In a scenario, callers use the SDK to
// call a simulated service over an in-memory network. Callers, service and network may have faults. A scenario runs in
// a bubble of package testing/synctest, where time is virtual. The package checks invariants after each call and at the
// end of the scenario.
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

// Scenario describes the calls and the faults of one run. It does not decide the order in which goroutines run. Reports
// print it as JSON.
type Scenario struct {
	Seed   uint64   `json:"seed"`
	Wire   string   `json:"wire"`   // protocol: one of the wire constants below
	Caller string   `json:"caller"` // RoundTripper of the client: one of the caller constants below
	Client Settings `json:"client"`
	// Dials describes the connections in order. Later connections have no fault.
	Dials []Dial `json:"dials,omitempty"`
	Down  string `json:"down,omitempty"` // outage of the service during all calls: "" for none, or one of downs
	Calls []Call `json:"calls"`
}

// Read reads a scenario from a JSON file.
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

// Settings has the client settings of a scenario.
type Settings struct {
	Attempts      int           `json:"attempts"`
	Timeout       time.Duration `json:"timeout"` // timeout of an attempt
	MaxBackoff    time.Duration `json:"maxBackoff"`
	MaxRetryAfter time.Duration `json:"maxRetryAfter"`
	MaxBytes      int64         `json:"maxBytes"`
}

// Dial describes one connection and its fault.
type Dial struct {
	Fault string        `json:"fault,omitempty"` // "" or one of dialFaults
	Wait  time.Duration `json:"wait,omitempty"`  // wait before the connection is made
	At    int           `json:"at,omitempty"`    // number of bytes after which the fault happens
	Chunk int           `json:"chunk,omitempty"` // largest number of bytes that a read returns; 0 for no limit
}

// Call describes one call of the SDK: a single request, a walk over all pages of a list, or a bulk job.
type Call struct {
	Op   payvault.Operation `json:"op"`
	Form string             `json:"form,omitempty"` // "", or one of the form constants below
	// Calls with the same lane run one after the other. Different lanes run in parallel.
	Lane  int           `json:"lane,omitempty"`
	Times int           `json:"times,omitempty"` // how often the call is made, one after the other; 0 means once
	Pause time.Duration `json:"pause,omitempty"` // wait before the call
	// End is the time from the start of the call until its context ends. 0 means never.
	End      time.Duration `json:"end,omitempty"`
	Deadline bool          `json:"deadline,omitempty"` // the context ends by a deadline instead of a cancellation
	Replay   bool          `json:"replay,omitempty"`   // the call has the option WithReplay
	// Attempts is the value of the option WithMaxAttempts. 0 means that the call does not have the option.
	Attempts int `json:"attempts,omitempty"`
	// Keys has the faults of the first calls of the key source, in order: "" for no fault, or one of keyFaults.
	Keys   []string `json:"keys,omitempty"`
	Shared bool     `json:"shared,omitempty"` // calls with this flag share one request for each operation and form
	Panic  string   `json:"panic,omitempty"`  // the caller's code that panics: "", "stream", or one of panics
	// Leave is the number of records or batches after which the caller breaks out of its loop. 0 means never.
	Leave  int           `json:"leave,omitempty"`
	Width  int           `json:"width,omitempty"`  // value of Prefetch of a walk, or of Concurrency of a bulk job
	Length int           `json:"length,omitempty"` // number of pages or batches
	Slow   time.Duration `json:"slow,omitempty"`   // time for which the stream of cards pauses once in each full batch
	Job    bool          `json:"job,omitempty"`    // the bulk job has a journal
	// Breaks is the number of cards after which the stream of the first process ends with an error. 0 means never.
	Breaks int `json:"breaks,omitempty"`
	// Journal has the faults of the first writes to the journal, in order: "" for no fault, or one of journalFaults.
	Journal []string `json:"journal,omitempty"`
	// Deaths has one entry for each process of the job except the last: the number of the event at which the process is
	// killed (see life.event). The next process continues the job.
	Deaths []int `json:"deaths,omitempty"`
	// Steps has the service's reactions. Request i of a single call gets Steps[i]. Request i for page or batch n gets
	// Steps[2*n+i]. All numbers start at 0. A request beyond the end of Steps is answered without fault.
	Steps []Step `json:"steps,omitempty"`
}

// cardsOf returns the number of cards in the given number of batches. The last batch is not full.
func cardsOf(batches int) int { return (batches-1)*payvault.MaxAccountUpdaterCards + 37 }

// mostLives is the largest number of processes in which a job runs, one after the other.
const mostLives = 3

// Step describes how the service reacts to a request.
type Step struct {
	Perform    bool          `json:"perform,omitempty"`
	Status     int           `json:"status,omitempty"`
	Body       string        `json:"body,omitempty"` // name of a body: one of the cases of exchange.content
	Pick       uint64        `json:"pick,omitempty"` // random number that decides details of the answer
	RetryAfter string        `json:"retryAfter,omitempty"`
	Early      bool          `json:"early,omitempty"` // the service answers before it has read the body
	Wait       time.Duration `json:"wait,omitempty"`  // wait before the answer
	// Info has the status codes of the informational answers (1xx) that precede the final answer.
	Info    []int         `json:"info,omitempty"`
	Framing string        `json:"framing,omitempty"` // "" or one of framings
	Cut     string        `json:"cut,omitempty"`     // "" or one of cuts
	CutAt   int           `json:"cutAt,omitempty"`   // part of the answer that is sent before the cut, in thousandths
	Code    uint32        `json:"code,omitempty"`    // error code in RST_STREAM and GOAWAY
	Drip    time.Duration `json:"drip,omitempty"`    // time between two pieces of the answer; 0 if it is sent at once
	After   string        `json:"after,omitempty"`   // fault after the answer: "" or one of afters
}

// honest returns a step without faults: the service performs the operation and reports success.
func honest() Step { return Step{Perform: true, Status: 200, Body: "success"} }

// These are the values of the fields Scenario.Wire, Scenario.Down and Call.Form. Down and Form may also be "".
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

// These are the values of the field Scenario.Caller. Each names a RoundTripper around the connection pool, except
// callerPlain, which stands for the pool itself.
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

// isCalm reports whether the scenario has no faults.
func (s Scenario) isCalm() bool {
	return s.Caller == callerPlain && len(s.Dials) == 0 && s.Down == "" &&
		!slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.isCalm() })
}

func (c Call) isCalm() bool {
	faults := c.Panic != "" || c.Breaks > 0 || len(c.Keys)+len(c.Journal)+len(c.Deaths) > 0
	return c.End == 0 && !faults && !slices.ContainsFunc(c.Steps, func(s Step) bool { return !s.isHonest() })
}

func (s Step) isHonest() bool {
	s.Pick = 0
	return reflect.DeepEqual(s, honest())
}

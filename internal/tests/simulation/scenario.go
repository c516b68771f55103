// Package simulation attacks every call of the SDK from a seed: an in-memory network, a service that is honest or
// not, callers that are patient or not, in a bubble of package testing/synctest, and invariants that are checked
// after each call.
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

// Scenario is all that happens, but for the order in which goroutines that can run do so. It is printed as JSON.
type Scenario struct {
	Seed   uint64   `json:"seed"`
	Wire   string   `json:"wire"`   // what client and service speak
	Caller string   `json:"caller"` // the RoundTripper that the caller brings: one of roundTrippers
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
	Attempts int                `json:"attempts,omitempty"` // WithMaxAttempts
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

// mostLives is how often a job is begun at most.
const mostLives = 3

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

// The RoundTrippers that callers bring.
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

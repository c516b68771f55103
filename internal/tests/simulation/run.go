package simulation

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault"
)

// Trace is the list of events on both sides, in the order of time. It is formatted when it is printed, because few
// traces are printed.
type Trace []event

type event struct {
	at           time.Duration
	side, format string
	args         []any
}

// String returns one line per event.
func (t Trace) String() string {
	var b strings.Builder
	for _, e := range t {
		fmt.Fprintf(&b, "%12v %-8s %s\n", e.at, e.side, fmt.Sprintf(e.format, e.args...))
	}
	return b.String()
}

// unit is one request of the caller: a call, or one batch of a job. The batch is 0 for a call.
type unit struct{ call, batch int }

// record has the requests of a unit that the service has received, its actions and its answers.
type record struct {
	heads     int            // number of requests whose header arrived
	lives     [mostLives]int // the same number, by life of the job
	arrivals  int            // number of requests that arrived completely
	performed int
	attempt   string    // attempt that performed the operation, if the RoundTripper sends copies
	again     bool      // two attempts performed the operation
	turned    int       // number of answers with status 429
	forbidden int       // number of refusals that decide nothing; see decidesNothing
	notBefore time.Time // time from which the client may ask again
	issued    []string  // new IDs in answers
	mutated   bool      // an answer was mutated
	stuck     bool      // the service always returns the same page
	said      bool      // an answer reported a success
	lied      bool      // an answer denied an operation that was performed
}

// run is a scenario that is being played.
type run struct {
	Scenario

	world      *World
	start      time.Time
	dials      atomic.Int64
	open       atomic.Int64 // number of open connections, as the client sees them
	serial     atomic.Int64 // number of the next new ID
	duplicated atomic.Bool  // an answer may belong to another request
	serving    sync.WaitGroup
	shared     *requests
	event      func(call int) // called when a batch of a call has arrived and when a request was performed

	mu       sync.Mutex
	book     map[unit]*record
	far      []*conn
	held     map[payvault.Operation][2]time.Time // times of the refusal and of the first permitted retry
	wire     []*stream                           // the bytes from the client to the service, one stream per connection
	failures []string
	events   Trace
	struck   map[string]int
}

func (r *run) closeFar() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.far {
		c.reset()
	}
}

func (r *run) keep(near, far *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.far, r.wire = append(r.far, far), append(r.wire, near.out)
}

// written returns the number of bytes that the client has written.
func (r *run) written() int {
	total := 0
	for _, s := range r.wire {
		s.mu.Lock()
		total += s.passed
		s.mu.Unlock()
	}
	return total
}

// note changes the record of a unit and returns a copy of it.
func (r *run) note(u unit, change func(*record)) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.book[u]
	if n == nil {
		n = &record{}
		r.book[u] = n
	}
	if change != nil {
		change(n)
	}
	return *n
}

func (r *run) strike(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.struck[fault]++
}

// trace records an event. It keeps args until the trace is printed, so nothing may change them.
func (r *run) trace(side, format string, args ...any) {
	e := event{time.Since(r.start), side, format, args}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *run) fail(call int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if call >= 0 {
		name := strings.TrimSpace(string(r.Calls[call].Op) + " " + r.Calls[call].Form)
		text = fmt.Sprintf("call %d, %s: %s", call, name, text)
	}
	r.trace("FAILED", "%s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

package simulation

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault"
)

// Trace lists the events of a run in order of time. An event is formatted only when the trace is printed, because most
// traces are never printed.
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

// unit identifies a batch of a bulk job, a single call or a whole walk (batch is 0), or a page of a walk (batch < 0).
type unit struct{ call, batch int }

// record describes the requests of a unit and the service's reactions to them.
type record struct {
	heads     int            // number of requests whose header arrived
	lives     [mostLives]int // number of requests whose header arrived, by process of a bulk job
	arrivals  int            // number of requests that arrived completely
	leftOut   int            // number of requests that the service has not processed, as HTTP/2 states
	performed int
	attempt   string    // header X-Sim-Attempt of the last request that the service performed
	again     bool      // the service performed requests of two different attempts
	turned    int       // number of answers with status 429
	forbidden int       // number of answers for which decidesNothing returned true
	notBefore time.Time // earliest time at which the client may send again
	issued    []string  // new IDs that the service has put into answers
	mutated   bool      // an answer had a mutated body or a wrong page
	stuck     bool      // from now on, the service returns the same page for every request
	said      bool      // the SDK may treat an answer as a success
	lied      bool      // a mutated answer had a result code other than 0
}

// run is the state of a scenario while it is played.
type run struct {
	Scenario

	world      *World
	start      time.Time
	dials      atomic.Int64
	open       atomic.Int64 // number of connections that the client has not closed
	serial     atomic.Int64 // last number that was given to a new ID or to an attempt
	duplicated atomic.Bool  // an answer was sent twice, so a later request may get the copy
	serving    sync.WaitGroup
	shared     map[string]any // requests that callers share, by operation and form
	event      func(call int) // called after a batch has arrived, and after an operation was performed

	mu       sync.Mutex
	book     map[unit]*record
	far      []*conn
	held     map[payvault.Operation][2]time.Time // when a 429 was sent, and when requests are allowed again
	wire     []*stream                           // the streams from the client to the service, one per connection
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

// written returns the number of bytes that the client has written to all connections.
func (r *run) written() int {
	total := 0
	for _, s := range r.wire {
		s.mu.Lock()
		total += s.passed
		s.mu.Unlock()
	}
	return total
}

// note applies a function to the record of a unit, unless the function is nil. It returns a copy of the record.
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

// trace records an event. Its arguments must not change later, because they are formatted when the trace is printed.
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

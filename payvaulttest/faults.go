package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"example.com/payvault"
)

// FaultKind names a way in which a request fails.
type FaultKind string

// Faults of the connection. What the client sees of them is an error of its transport. Under HTTP/2, which
// [WithTLS] brings, what is said of the connection of a request holds for its stream: the stream is reset,
// and the connection and the other requests on it go on.
const (
	// RefuseConnection accepts new connections and resets them before anything is read from them, and
	// closes idle ones first, so that the next request needs a new one. A connection does not tell its
	// operation, so Operation must be empty; Times counts connections.
	//
	// Nothing is performed, but the client cannot know: its system may have connected and taken bytes
	// before the reset arrives. A request by plain HTTP therefore mostly ends with an unknown outcome;
	// with [WithTLS] the handshake fails, so that the request was not sent. The port stays open, since
	// connections could not be counted, and the port could be lost to another program, if it were
	// closed. For a connection that is truly refused give the client the URL of a server after
	// [Server.Close], as long as no other program takes its port.
	RefuseConnection FaultKind = "refuse connection"
	// ResetConnection resets the connection (HTTP/2: the stream) when a request's headers have arrived,
	// before its body is read.
	ResetConnection FaultKind = "reset connection"
	// DropDuringRead reads some of the body and resets the connection (HTTP/2: the stream); nothing is
	// performed.
	DropDuringRead FaultKind = "drop during read"
	// DropBeforeCommit reads the whole request and closes the connection (HTTP/2: resets the stream);
	// nothing is performed.
	DropBeforeCommit FaultKind = "drop before commit"
	// DropAfterCommit performs the operation and closes the connection (HTTP/2: resets the stream): the
	// answer is lost.
	DropAfterCommit FaultKind = "drop after commit"
	// Hang answers nothing until the client gives up or the server is closed. With AfterCommit the
	// operation is performed first. Hang, Delay and SlowDrip take in all of a
	// body, even one that is too large.
	Hang FaultKind = "hang"
	// Delay waits for Fault.Delay, then goes on as usual: before the operation is performed, or with
	// AfterCommit before its answer. If the client gives up meanwhile, an operation that was not yet
	// performed is not performed.
	Delay FaultKind = "delay"
)

// Faults of the answer. Without AfterCommit they replace the operation, which is not performed; with
// AfterCommit the operation is performed and only its answer is replaced or damaged.
const (
	// Respond answers with Status (200 if zero), Header and Body as they are given: without a
	// Content-Type, unless Header has one.
	Respond FaultKind = "respond"
	// RateLimit answers 429 with RetryAfter, if any, as the Retry-After header, whatever it says.
	RateLimit FaultKind = "rate limit"
	// Redirect answers with Status (307 if zero) and Location.
	Redirect FaultKind = "redirect"
	// EmptyBody answers with Status (200 if zero) and no body.
	EmptyBody FaultKind = "empty body"
	// OtherCode answers with Status (200 if zero), Code, which is not 0, as code or rcode, and Message.
	OtherCode FaultKind = "other code"
	// MalformedJSON answers 200 with a body that is not JSON, though it begins like it.
	MalformedJSON FaultKind = "malformed JSON"
	// TruncatedJSON answers with the first half of a body, as if that were all of it.
	TruncatedJSON FaultKind = "truncated JSON"
	// CutBody announces a whole body, sends the first half and closes the connection (HTTP/2: resets the
	// stream).
	CutBody FaultKind = "cut body"
	// OversizedBody answers with well-formed JSON of Size bytes, or without an end if Size is zero.
	OversizedBody FaultKind = "oversized body"
	// GzipBomb answers with well-formed JSON of Size bytes (64 MiB if zero), compressed.
	GzipBomb FaultKind = "gzip bomb"
	// SlowDrip answers with a whole body, one byte per Fault.Delay (10 ms if zero).
	SlowDrip FaultKind = "slow drip"
)

// Fault makes requests fail. See [Server.Inject].
//
// TruncatedJSON, CutBody and SlowDrip damage Body if it is given, the answer of the operation with
// AfterCommit, and otherwise a short success.
type Fault struct {
	// Operation is the operation to fail; empty for every request, unknown paths included.
	Operation payvault.Operation
	// Kind is the way in which it fails; it says which of the fields below it reads.
	Kind FaultKind
	// Times is the number of requests to fail; 0 for all until the fault is removed.
	Times int
	// AfterCommit lets the operation be performed first. DropAfterCommit does so without it.
	AfterCommit bool

	Status     int           // HTTP status of the answer
	Header     http.Header   // of the answer, besides its own
	Body       string        // of the answer
	Delay      time.Duration // before the answer, or between its bytes
	RetryAfter string        // the Retry-After header, in whatever form
	Location   string        // the Location header
	Code       int           // code, or rcode in three digits
	Message    string        // message, or rmsg
	Size       int64         // bytes of the answer's body
}

// A stage is a point in a request's life at which a fault can strike.
type stage int

const (
	onAccept stage = iota + 1
	onArrival
	duringRead
	beforeCommit
	afterCommit
)

func (f *Fault) stage() stage {
	switch f.Kind {
	case RefuseConnection:
		return onAccept
	case ResetConnection:
		return onArrival
	case DropDuringRead:
		return duringRead
	case DropBeforeCommit:
		return beforeCommit
	case DropAfterCommit:
		return afterCommit
	case Hang, Delay, Respond, RateLimit, Redirect, EmptyBody, OtherCode, MalformedJSON, TruncatedJSON,
		CutBody, OversizedBody, GzipBomb, SlowDrip:
		if f.AfterCommit {
			return afterCommit
		}
		return beforeCommit
	}
	panic(fmt.Sprintf("payvaulttest: there is no fault kind %q", string(f.Kind)))
}

// Inject makes requests fail as the fault says, from now on, and returns a function that removes the
// fault. Of several faults that fit a request, the one injected first strikes, and only that one. A
// fault may be injected while requests are under way; those that arrived before are not affected.
//
// Inject panics if the fault could not strike as it says: if its kind or operation does not exist, a
// status is not in 200 to 599, Times, Delay or Size is negative, OtherCode has the code of success, a
// Size is too small for JSON, RefuseConnection has an Operation, there is a Body, or OtherCode, under a status
// that permits none, or AfterCommit is set for a kind that performs nothing: RefuseConnection,
// ResetConnection, DropDuringRead and DropBeforeCommit.
func (s *Server) Inject(fault Fault) func() {
	at := fault.stage()
	mustFit("fault "+string(fault.Kind), fault.check(s.routes))
	fault.Header = fault.Header.Clone()
	remove := s.faults.add(fault)
	if at == onAccept {
		s.conns.closeIdle()
	}
	return remove
}

// check says what keeps a fault from striking as it says.
func (f *Fault) check(routes []route) error {
	known := f.Operation == "" || slices.ContainsFunc(routes, func(r route) bool { return r.op == f.Operation })
	bodiless := f.Status == http.StatusNoContent || f.Status == http.StatusNotModified
	at := f.stage()
	sized := f.Kind == OversizedBody || f.Kind == GzipBomb
	return cmp.Or(
		fits(known, "the operation does not exist"),
		fits(f.Kind != RefuseConnection || f.Operation == "", "it takes no Operation"),
		fits(!f.AfterCommit || at >= beforeCommit && f.Kind != DropBeforeCommit, "nothing is performed that it could strike after"),
		fits(f.Status == 0 || f.Status >= 200 && f.Status <= 599, "the status is not in 200 to 599"),
		fits(!bodiless || f.Body == "" && f.Kind != OtherCode, "the status permits no body"),
		fits(f.Times >= 0, "the times are below zero"),
		fits(f.Delay >= 0, "the delay is below zero"),
		fits(f.Size >= 0, "the size is below zero"),
		fits(!sized || f.Size == 0 || f.Size >= minOversize, "the size is too small for JSON"),
		fits(f.Kind != OtherCode || f.Code != 0, "the code is that of success"),
	)
}

// ClearFaults removes every fault.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
}

type armedFault struct {
	Fault
	struck int
}

// faults are the faults of a server that still wait for requests.
type faults struct {
	mu   sync.Mutex
	list []*armedFault
}

func (f *faults) add(fault Fault) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	armed := &armedFault{Fault: fault}
	f.list = append(f.list, armed)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.list = slices.DeleteFunc(f.list, func(other *armedFault) bool { return other == armed })
	}
}

// takeRequest returns the fault that a request runs into, or nil.
func (f *faults) takeRequest(op payvault.Operation) *Fault {
	return f.take(func(fault *Fault) bool {
		return fault.Kind != RefuseConnection && (fault.Operation == "" || fault.Operation == op)
	})
}

// refusing tells whether a fault waits for new connections.
func (f *faults) refusing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.list, func(armed *armedFault) bool { return armed.Kind == RefuseConnection })
}

// takeConnection tells whether a new connection is to be refused.
func (f *faults) takeConnection() bool {
	return f.take(func(fault *Fault) bool { return fault.Kind == RefuseConnection }) != nil
}

func (f *faults) take(fits func(*Fault) bool) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.list, func(armed *armedFault) bool { return fits(&armed.Fault) })
	if i < 0 {
		return nil
	}
	armed := f.list[i]
	armed.struck++
	if armed.struck == armed.Times {
		f.list = slices.Delete(f.list, i, i+1)
	}
	fault := armed.Fault
	return &fault
}

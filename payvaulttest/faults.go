package payvaulttest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/faulty"
)

// FaultKind names a way in which a request fails.
type FaultKind string

// Faults of the connection. What the client sees of them is an error of its transport. Under HTTP/2, which
// [WithTLS] brings, what is said of the connection of a request holds for its stream: the stream is reset,
// and the connection and the other requests on it go on.
const (
	// ResetConnection resets the connection when a request's headers have arrived, before its body is read.
	ResetConnection FaultKind = "reset connection"
	// DropBeforeCommit reads the whole request and closes the connection; nothing is performed.
	DropBeforeCommit FaultKind = "drop before commit"
	// DropAfterCommit performs the operation and closes the connection: the answer is lost.
	DropAfterCommit FaultKind = "drop after commit"
	// Hang answers nothing until the client gives up or the server is closed.
	Hang FaultKind = "hang"
	// Delay waits for Fault.Delay, then goes on as usual, unless the client gives up meanwhile.
	Delay FaultKind = "delay"
)

// Faults of the answer. Without AfterCommit they replace the operation, which is not performed; with
// AfterCommit the operation is performed and only its answer is replaced or damaged.
const (
	// Respond answers with Status (200 if zero), Header and Body as they are given, which also makes an empty
	// answer, or a redirect: without a Content-Type, unless Header has one.
	Respond FaultKind = "respond"
	// RateLimit answers 429 with RetryAfter, if any, as the Retry-After header, whatever it says.
	RateLimit FaultKind = "rate limit"
	// PermitRate lets Rate requests a second through, of all clients together, as many at once as come in
	// a second, and answers the others like RateLimit. The clients of [Server.Client] ignore overload: give them
	// [payvault.WithRetryPolicy] with a zero policy to see what other clients do, their waits included.
	PermitRate FaultKind = "permit rate"
	// OtherCode answers with Status (200 if zero), Code, which is not 0, as code or rcode, and Message.
	OtherCode FaultKind = "other code"
	// MalformedJSON answers 200 with a body that is not JSON, though it begins like it.
	MalformedJSON FaultKind = "malformed JSON"
	// TruncatedJSON answers with the first half of a body, as if that were all of it.
	TruncatedJSON FaultKind = "truncated JSON"
	// CutBody announces a whole body, sends the first half and closes the connection.
	CutBody FaultKind = "cut body"
	// OversizedBody answers with well-formed JSON of Size bytes, or without an end if Size is zero.
	OversizedBody FaultKind = "oversized body"
	// SlowDrip answers with a whole body, one byte per Fault.Delay (10 ms if zero).
	SlowDrip FaultKind = "slow drip"
)

// Fault makes requests fail. See [Server.Inject].
//
// TruncatedJSON, CutBody and SlowDrip damage Body if it is given, the answer of the operation with
// AfterCommit, and otherwise a short success.
type Fault struct {
	// Operation is the operation to fail; empty for every request, unknown paths included.
	Operation payvault.Operation `json:"operation,omitzero"`
	// Kind is the way in which it fails; it says which of the fields below it reads.
	Kind FaultKind `json:"kind"`
	// Skip is the number of its requests that pass first: with 2, and Times 1, the third one fails. Those that an
	// earlier fault strikes do not count.
	Skip int `json:"skip,omitzero"`
	// Times is the number of requests to fail; 0 for all until the fault is removed.
	Times int `json:"times,omitzero"`
	// AfterCommit lets the operation be performed first. DropAfterCommit does so without it.
	AfterCommit bool `json:"after_commit,omitzero"`

	Status     int           `json:"status,omitzero"`      // HTTP status of the answer
	Header     http.Header   `json:"header,omitzero"`      // of the answer, besides its own, as net/http sends it
	Body       string        `json:"body,omitzero"`        // of the answer
	Delay      time.Duration `json:"-"`                    // before the answer, or between its bytes
	RetryAfter string        `json:"retry_after,omitzero"` // the Retry-After header, in whatever form
	Code       int           `json:"code,omitzero"`        // code, or rcode in three digits
	Message    string        `json:"message,omitzero"`     // message, or rmsg
	Size       int64         `json:"size,omitzero"`        // bytes of the answer's body
	Rate       float64       `json:"rate,omitzero"`        // requests a second
}

// ArmedFault is a fault that waits for requests.
type ArmedFault struct {
	Fault      // as it was injected
	Struck int // the requests that it made fail
	Left   int // the requests that it will make fail; -1 for all until it is removed
}

// faultFields names the fields that each kind reads, besides those that all do.
func faultFields() map[FaultKind]string {
	return map[FaultKind]string{
		ResetConnection: "", DropBeforeCommit: "", DropAfterCommit: "", Hang: "", MalformedJSON: "",
		Delay:         "Delay",
		Respond:       "Status Header Body",
		RateLimit:     "RetryAfter",
		PermitRate:    "Rate RetryAfter",
		OtherCode:     "Status Code Message",
		TruncatedJSON: "Status Body",
		CutBody:       "Status Body",
		OversizedBody: "Size",
		SlowDrip:      "Status Body Delay",
	}
}

// check returns an error if a fault could not strike as it says. Operations are those of the server.
func (f *Fault) check(operations []string) error {
	kinds := faultFields()
	fields, known := kinds[f.Kind]
	if !known {
		return fmt.Errorf("there is no such kind; the kinds are %q", slices.Sorted(maps.Keys(kinds)))
	}
	read := strings.Fields("Operation Kind Skip Times AfterCommit " + fields)
	for field, value := range reflect.ValueOf(*f).Fields() {
		if !value.IsZero() && !slices.Contains(read, field.Name) {
			return errors.New("the kind does not read " + field.Name)
		}
	}
	bodiless := f.Status == http.StatusNoContent || f.Status == http.StatusNotModified
	cuts := slices.Contains([]FaultKind{CutBody, TruncatedJSON, SlowDrip}, f.Kind)
	performsNothing := []FaultKind{ResetConnection, DropBeforeCommit, PermitRate}
	return cmp.Or(
		fits(f.Operation == "" || slices.Contains(operations, string(f.Operation)),
			fmt.Sprintf("the operation does not exist; the operations are %q", operations)),
		fits(!f.AfterCommit || !slices.Contains(performsNothing, f.Kind), "nothing is performed that it could strike after"),
		fits(f.Status == 0 || f.Status >= 200 && f.Status <= 599, "the status is not in 200 to 599"),
		fits(!bodiless || f.Body == "" && f.Kind != OtherCode && !cuts, "the status permits no body"),
		fits(!cuts || !f.AfterCommit || f.Status == 0 || f.Body != "", "the status is that of what is performed"),
		fits(min(f.Times, f.Skip) >= 0 && f.Delay >= 0 && f.Size >= 0, "times, skip, delay or size is below zero"),
		fits(f.Size == 0 || f.Size >= faulty.MinOversize, "the size is too small for JSON"),
		fits(f.Kind != OtherCode || f.Code != 0, "the code is that of success"),
		fits(f.Kind != PermitRate || f.Rate > 0 && f.Rate <= 1e6, "the rate is not above zero, or above 1e6"),
		fits(f.Kind != Delay || f.Delay > 0, "the delay is not above zero"),
	)
}

type armedFault struct {
	ArmedFault
	id      int64
	seen    int           // requests that fit it
	permits *rate.Limiter // as many at once as come in a second, at least one
}

// faults are the faults of a server that still wait for requests.
type faults struct {
	mu   sync.Mutex
	last int64 // the identifier that was given last
	list []*armedFault
}

// add arms a fault and returns a copy of what is armed.
func (f *faults) add(fault Fault) *armedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	armed := &armedFault{id: f.last, ArmedFault: ArmedFault{Fault: fault, Left: cmp.Or(fault.Times, -1)}}
	armed.permits = rate.NewLimiter(rate.Limit(fault.Rate), int(min(max(fault.Rate, 1), math.MaxInt32)))
	f.list = append(f.list, armed)
	return new(*armed)
}

// remove removes a fault, and reports whether it was still armed.
func (f *faults) remove(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.list)
	f.list = slices.DeleteFunc(f.list, func(other *armedFault) bool { return other.id == id })
	return len(f.list) < n
}

// take returns the fault that a request runs into, or one without a kind.
func (f *faults) take(op payvault.Operation) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, armed := range f.list {
		if armed.Operation != "" && armed.Operation != op {
			continue
		}
		if armed.seen++; armed.seen <= armed.Skip || armed.Kind == PermitRate && armed.permits.Allow() {
			continue
		}
		armed.Struck++
		if armed.Left > 0 {
			armed.Left--
		}
		if armed.Left == 0 {
			f.list = slices.Delete(f.list, i, i+1)
		}
		return armed.Fault
	}
	return Fault{}
}

// around returns a handler that fails as the fault says. Perform is the handler that performs the operation.
func (f *Fault) around(perform http.Handler, tokenize bool) http.Handler {
	if f.Kind == "" {
		return perform
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder() // the answer that is damaged
		faulty.Send(f.Status, nil, []byte(cmp.Or(f.Body, someSuccess))).ServeHTTP(whole, r)
		if f.AfterCommit || f.Kind == DropAfterCommit {
			answer := httptest.NewRecorder()
			perform.ServeHTTP(answer, r)
			perform = faulty.Send(answer.Code, answer.Header(), answer.Body.Bytes())
			if f.Body == "" {
				whole = answer
			}
		}
		f.strike(perform, whole, tokenize).ServeHTTP(w, r)
	})
}

// someSuccess is a short success of any operation.
const someSuccess = `{"code":0,"rcode":"000","message":"Success","rmsg":"Success","data":{}}`

// strike returns the handler that fails. Perform is called by the faults that only delay, whole is the answer that the
// others damage.
func (f *Fault) strike(perform http.Handler, whole *httptest.ResponseRecorder, tokenize bool) http.Handler {
	switch f.Kind {
	case ResetConnection:
		return http.HandlerFunc(faulty.Reset)
	case DropBeforeCommit, DropAfterCommit:
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { faulty.Abort() })
	case Hang:
		return faulty.Wait(math.MaxInt64, perform)
	case Delay:
		return faulty.Wait(f.Delay, perform)
	case Respond:
		return faulty.Send(f.Status, f.Header, []byte(f.Body))
	case RateLimit, PermitRate:
		header := jsonHeader()
		if f.RetryAfter != "" {
			header.Set("Retry-After", f.RetryAfter)
		}
		refusal := refuse(http.StatusTooManyRequests, "Too many requests")
		return faulty.Send(refusal.status, header, refusal.body(tokenize))
	case OtherCode:
		return faulty.Send(f.Status, jsonHeader(), (&refusal{status: f.Code, message: f.Message}).body(tokenize))
	case MalformedJSON:
		return faulty.Send(http.StatusOK, jsonHeader(), []byte(someSuccess[:len(someSuccess)-1]+",}"))
	case TruncatedJSON:
		return faulty.Send(whole.Code, jsonHeader(), whole.Body.Bytes()[:whole.Body.Len()/2])
	case CutBody:
		return faulty.Cut(whole.Code, jsonHeader(), whole.Body.Bytes())
	case SlowDrip:
		return faulty.Drip(whole.Code, jsonHeader(), whole.Body.Bytes(), cmp.Or(f.Delay, 10*time.Millisecond))
	case OversizedBody:
		return faulty.Oversize(jsonHeader(), f.Size)
	}
	return nil
}

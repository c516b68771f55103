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

// FaultKind names a way in which a request fails. There is a constant for each kind, from [ResetConnection] to
// [SlowDrip].
type FaultKind string

// Faults of the connection. Except with Delay, the client gets no answer: its transport returns an error. With HTTP/2,
// which [WithTLS] enables, a fault resets only the stream of the request. Other requests on the connection continue.
const (
	// ResetConnection resets the connection when a request's headers have arrived, before its body is read.
	ResetConnection FaultKind = "reset connection"
	// DropBeforeCommit reads the whole request and closes the connection; nothing is performed.
	DropBeforeCommit FaultKind = "drop before commit"
	// DropAfterCommit performs the operation and closes the connection: the answer is lost.
	DropAfterCommit FaultKind = "drop after commit"
	// Hang never answers. The request ends when the client gives up or the server is closed.
	Hang FaultKind = "hang"
	// Delay waits for the time in Fault.Delay, and then continues normally unless the client has given up.
	Delay FaultKind = "delay"
)

// Faults of the answer. Without AfterCommit the operation is not performed, and the fault gives the answer. With
// AfterCommit the operation is performed, and its answer is replaced or damaged.
const (
	// Respond answers with Status (200 if zero), Header and Body, unchanged. An empty answer and a redirect are possible
	// too. The answer has a Content-Type only if Header has one.
	Respond FaultKind = "respond"
	// RateLimit answers 429. If RetryAfter is set, it is sent unchanged as the Retry-After header, even if it is invalid.
	RateLimit FaultKind = "rate limit"
	// PermitRate permits Rate requests a second from all clients together, and answers the other requests like RateLimit.
	// A burst may have as many requests as one second permits, and at least one. A client of [Server.Client] learns no
	// rate limit from these answers. To test how an ordinary client slows down, use [payvault.NewClient].
	PermitRate FaultKind = "permit rate"
	// OtherCode answers with Status (200 if zero), and a body with Code as code and Message as message. A tokenize answer
	// has them as rcode and rmsg instead. An rcode has at least three digits: 51 becomes "051". Code must not be 0.
	OtherCode FaultKind = "other code"
	// MalformedJSON answers 200 with a body that begins like JSON but is not JSON.
	MalformedJSON FaultKind = "malformed JSON"
	// TruncatedJSON answers with the first half of a body. The Content-Length is the length of this half.
	TruncatedJSON FaultKind = "truncated JSON"
	// CutBody announces the length of a whole body, sends the first half and closes the connection.
	CutBody FaultKind = "cut body"
	// OversizedBody answers with well-formed JSON of Size bytes. If Size is zero, the JSON never ends.
	OversizedBody FaultKind = "oversized body"
	// SlowDrip answers with a whole body, one byte per Fault.Delay (10 ms if zero).
	SlowDrip FaultKind = "slow drip"
)

// Fault makes requests fail. See [Server.Inject].
//
// TruncatedJSON, CutBody and SlowDrip use Body if it is set. If Body is empty and AfterCommit is set, they use the
// answer of the operation. If neither is set, they use a short successful answer.
type Fault struct {
	// Operation is the operation whose requests fail. If it is empty, the fault fits every request, even one with an
	// unknown path.
	Operation payvault.Operation `json:"operation,omitzero"`
	// Kind is the way in which requests fail. It decides which of the fields from Status to Rate are read.
	Kind FaultKind `json:"kind"`
	// Skip is the number of requests that pass first: with Skip 2 and Times 1, the third request fails. Requests that fail
	// because of an earlier fault do not count.
	Skip int `json:"skip,omitzero"`
	// Times is the number of requests that fail. If it is 0, all requests fail until the fault is removed.
	Times int `json:"times,omitzero"`
	// AfterCommit makes the server perform the operation before the request fails. DropAfterCommit always performs it.
	AfterCommit bool `json:"after_commit,omitzero"`

	Status     int           `json:"status,omitzero"`      // HTTP status of the answer
	Header     http.Header   `json:"header,omitzero"`      // headers of the answer; net/http adds its own
	Body       string        `json:"body,omitzero"`        // body of the answer
	Delay      time.Duration `json:"-"`                    // wait before the answer, or between its bytes
	RetryAfter string        `json:"retry_after,omitzero"` // Retry-After header, sent unchanged
	Code       int           `json:"code,omitzero"`        // code of the answer (rcode of a tokenize answer)
	Message    string        `json:"message,omitzero"`     // message of the answer (rmsg of a tokenize answer)
	Size       int64         `json:"size,omitzero"`        // bytes of the answer's body
	Rate       float64       `json:"rate,omitzero"`        // number of requests that are permitted per second
}

// ArmedFault is a fault that waits for requests.
type ArmedFault struct {
	Fault      // the fault as it was injected
	Struck int // number of requests that the fault has made fail
	Left   int // number of requests that the fault will still make fail; -1 for all until it is removed
}

// faultFields returns, for each kind, the fields of a [Fault] that the kind reads. It leaves out the fields that all
// kinds read.
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

// check returns an error if a fault can never make a request fail as described. It gets the names of the server's
// operations.
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
	seen    int           // number of requests that fit the fault
	permits *rate.Limiter // limiter of PermitRate
}

// faults holds the faults that still wait for requests.
type faults struct {
	mu   sync.Mutex
	last int64 // identifier of the newest fault
	list []*armedFault
}

// add adds a fault and returns a copy of the new armedFault.
func (f *faults) add(fault Fault) *armedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	armed := &armedFault{id: f.last, ArmedFault: ArmedFault{Fault: fault, Left: cmp.Or(fault.Times, -1)}}
	armed.permits = rate.NewLimiter(rate.Limit(fault.Rate), int(min(max(fault.Rate, 1), math.MaxInt32)))
	f.list = append(f.list, armed)
	return new(*armed)
}

// remove removes a fault, and reports whether it still waited for requests.
func (f *faults) remove(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.list)
	f.list = slices.DeleteFunc(f.list, func(other *armedFault) bool { return other.id == id })
	return len(f.list) < n
}

// take counts a request for an operation and returns the fault that applies. If no fault applies, the result has no
// kind.
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

// around wraps the handler that performs an operation. The result makes a request fail as the fault describes.
func (f *Fault) around(perform http.Handler, tokenize bool) http.Handler {
	if f.Kind == "" {
		return perform
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder() // the answer that TruncatedJSON, CutBody or SlowDrip damages
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

// someSuccess is a short successful answer that fits every operation.
const someSuccess = `{"code":0,"rcode":"000","message":"Success","rmsg":"Success","data":{}}`

// strike returns the handler that makes a request fail. Only Hang and Delay use the parameter perform. Only
// TruncatedJSON, CutBody and SlowDrip use the parameter whole.
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

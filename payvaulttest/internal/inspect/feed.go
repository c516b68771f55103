package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault"
)

const (
	maxBatch       = 100 // maximum number of requests in one batch
	keptDeliveries = 50

	none = "none" // operation of requests that match no operation
)

// Request is a request, as the page shows it.
type Request struct {
	Number     int64     `json:"number"`    // numbers count up from 1
	Time       time.Time `json:"time"`      // time of the answer
	Operation  string    `json:"operation"` // "none" if the request matches no operation
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	Status     int       `json:"status"` // 0 if there was no answer
	Code       *int      `json:"code,omitempty"`
	MerchantID int64     `json:"merchant_id"` // 0 if no account has the key
	Bytes      int64     `json:"request_bytes"`
	Millis     float64   `json:"milliseconds"`
	Fault      string    `json:"fault"`
	Performed  bool      `json:"performed"`
	Failed     bool      `json:"failed"`         // result of fails
	Why        string    `json:"why,omitempty"`  // reason why the emulator refused the request
	Shape      any       `json:"shape"`          // names without values: the result of [Shape]
	Curl       string    `json:"curl,omitempty"` // command that sends the request again, with fillIn for hidden values

	// These fields are set only while the page shows bodies:
	Path   string `json:"path,omitempty"` // path with query
	Body   string `json:"body,omitempty"`
	Answer string `json:"answer,omitempty"`

	text string // the text that a search looks at
}

// A class identifies either the failed requests of an operation, or its requests that did not fail.
type class struct {
	operation string
	failed    bool
}

// A filter selects requests. The zero filter selects all.
type filter struct {
	class

	search string // text to search for, in lower case
}

func (f filter) takesClass(c class) bool {
	return (f.operation == "" || f.operation == c.operation) && (!f.failed || c.failed)
}

// arrivals counts the requests of a class, and keeps the newest of them. Each class has its own list. Therefore many
// requests of one class do not displace a rare request of another class.
type arrivals struct {
	count  int64
	newest []Request // sorted from old to new
}

// Delivery is a delivery to a webhook, as the page shows it.
type Delivery struct {
	Time      time.Time // end of the delivery
	WebhookID string
	Event     string
	Status    int
	Error     string
}

// Pending is a request that is not answered yet.
type Pending struct {
	Operation string  `json:"operation"`
	Fault     string  `json:"fault"`
	Seconds   float64 `json:"seconds"` // time since the request arrived

	began time.Time
}

// A Feed keeps the newest requests and deliveries of an emulator for the page. It keeps nothing until [Handler] is
// called.
type Feed struct {
	watched atomic.Bool
	bodies  atomic.Bool
	closed  chan struct{}
	closing sync.Once

	mu         sync.Mutex
	start      string // identifies the list of requests; clear begins a new list
	changes    int64  // number of changes to the data of the page
	last       int64  // the number of the newest request
	requests   map[class]*arrivals
	pending    map[*Pending]bool
	deliveries []Delivery
	delivered  int
}

// NewFeed returns an empty feed.
func NewFeed() *Feed {
	f := &Feed{closed: make(chan struct{}), pending: map[*Pending]bool{}}
	f.clear()
	return f
}

// Close ends the event streams of the page.
func (f *Feed) Close() { f.closing.Do(func() { close(f.closed) }) }

// Watched reports whether [Handler] was called. Without the call there is no page, and the feed keeps nothing.
func (f *Feed) Watched() bool { return f.watched.Load() }

// Bodies reports whether the page shows bodies.
func (f *Feed) Bodies() bool { return f.bodies.Load() }

// showBodies turns the bodies of later requests on or off. Turning them off removes all requests from the page.
func (f *Feed) showBodies(shown bool) {
	if f.bodies.Swap(shown) && !shown {
		f.clear()
	}
	f.touch()
}

// clear removes the requests and deliveries. The next request gets the number 1.
func (f *Feed) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.start = strconv.FormatInt(time.Now().UnixNano()+f.changes, 36) // unique, even if the clock does not advance
	f.last = 0
	f.requests = map[class]*arrivals{}
	f.deliveries, f.delivered = nil, 0
}

// fails reports whether the request counts as failed: a fault changed it, its status is not 2xx, or its code is not 0.
// Code 2 of a validation does not count as a failure, because it only says that values are missing.
func (r *Request) fails() bool {
	missing := r.Operation == string(payvault.OpApplicationsValidate) && r.Code != nil && *r.Code == 2
	return r.Fault != "" || r.Status/100 != 2 || r.Code != nil && *r.Code != 0 && !missing
}

// searched returns the text of a request that a search looks at, in lower case.
func (r *Request) searched() string {
	return strings.ToLower(fmt.Sprintln(r.Operation, r.Method, r.Route, r.Status, r.MerchantID, r.Fault, r.Why, r.Shape,
		r.Path, r.Body, r.Answer))
}

// Add adds an answered request to the feed.
func (f *Feed) Add(request Request) {
	if !f.Watched() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.last++
	if !f.Bodies() && request.Path != "" { // bodies were turned off after the request arrived
		request.Path, request.Body, request.Answer, request.Curl = "", "", "", ""
	}
	request.Number = f.last
	request.Operation = cmp.Or(request.Operation, none)
	request.Failed = request.fails()
	request.text = request.searched()
	c := class{request.Operation, request.Failed}
	if f.requests[c] == nil {
		f.requests[c] = &arrivals{}
	}
	a := f.requests[c]
	a.count++
	a.newest = append(a.newest[max(0, len(a.newest)+1-maxBatch):], request)
}

// AddDelivery adds a delivery that has ended to the feed.
func (f *Feed) AddDelivery(delivery Delivery) {
	if !f.Watched() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.delivered++
	f.deliveries = append(f.deliveries[max(0, len(f.deliveries)+1-keptDeliveries):], delivery)
}

// Begin makes the page show a request as pending until end is called. The caller must call Add before end. Otherwise
// the page would not show the request between these two calls.
func (f *Feed) Begin(operation, fault string) (end func()) {
	if !f.Watched() {
		return func() {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	p := &Pending{Operation: cmp.Or(operation, none), Fault: fault, began: time.Now()}
	f.pending[p] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changes++
		delete(f.pending, p)
	}
}

// allPending returns the requests that are not answered yet, the oldest first.
func (f *Feed) allPending() []Pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Pending{}
	for p := range f.pending {
		p.Seconds = time.Since(p.began).Round(time.Second / 10).Seconds()
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Pending) int { return a.began.Compare(b.began) })
	return list
}

// touch counts a change, so that the streams send an event and the pages load the state again.
func (f *Feed) touch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
}

// A position is the number of the last request that a reader has seen, in the list of requests with the identifier
// start.
type position struct {
	start  string
	number int64
}

// String returns the position as the ID of a server-sent event.
func (p position) String() string { return fmt.Sprintf("%s-%d", p.start, p.number) }

// parsePosition returns the position in the ID of an event. If the ID is invalid, it returns the position before all
// requests.
func parsePosition(id string) position {
	start, text, _ := strings.Cut(id, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return position{}
	}
	return position{start, number}
}

// A batch is the data of one event of a stream, or the answer to GET /requests: the newest requests that the reader has
// not seen, and two counts.
type batch struct {
	Start    string    `json:"start"`    // identifies the list of requests
	Requests []Request `json:"requests"` // sorted from old to new
	Matching int64     `json:"matching"` // number of matching requests; with a search, only those that the feed keeps
	Total    int64     `json:"total"`    // number of requests since the feed was made or cleared
}

// since returns the newest requests that match the filter and that a reader at the given position has not seen.
func (f *Feed) since(seen position, take filter) batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seen.start != f.start {
		seen.number = 0
	}
	b := batch{Start: f.start, Requests: []Request{}, Total: f.last}
	for c, a := range f.requests {
		if !take.takesClass(c) {
			continue
		}
		if take.search == "" {
			b.Matching += a.count
		}
		for _, request := range a.newest {
			if !strings.Contains(request.text, take.search) {
				continue
			}
			if take.search != "" {
				b.Matching++
			}
			if request.Number > seen.number {
				b.Requests = append(b.Requests, request)
			}
		}
	}
	slices.SortFunc(b.Requests, func(a, b Request) int { return cmp.Compare(a.Number, b.Number) })
	b.Requests = b.Requests[max(0, len(b.Requests)-maxBatch):]
	return b
}

// current returns the identifier of the list of requests.
func (f *Feed) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start
}

func (f *Feed) changed() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// newestDeliveries returns the newest deliveries, and the number of all deliveries.
func (f *Feed) newestDeliveries() ([]Delivery, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.deliveries), f.delivered
}

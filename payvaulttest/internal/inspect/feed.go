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
	maxBatch       = 100 // requests in one batch
	keptDeliveries = 50

	none = "none" // stands for the operation of requests without operation
)

// Request is a request on the page.
type Request struct {
	Number     int64     `json:"number"`    // counted up from 1
	Time       time.Time `json:"time"`      // time of the answer
	Operation  string    `json:"operation"` // "none" for a request without operation
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	Status     int       `json:"status"` // 0 if there was no answer
	Code       *int      `json:"code,omitempty"`
	MerchantID int64     `json:"merchant_id"` // 0 if no account has the key
	Bytes      int64     `json:"request_bytes"`
	Millis     float64   `json:"milliseconds"`
	Fault      string    `json:"fault"`
	Performed  bool      `json:"performed"`
	Failed     bool      `json:"failed"`         // the request failed, by itself or by a fault
	Why        string    `json:"why,omitempty"`  // reason why the emulator refused the request
	Shape      any       `json:"shape"`          // names without values, by [Shape]
	Curl       string    `json:"curl,omitempty"` // sends the request again; fillIn stands for hidden values

	// Only while bodies are shown:
	Path   string `json:"path,omitempty"` // path with query
	Body   string `json:"body,omitempty"`
	Answer string `json:"answer,omitempty"`

	text string // text to search in
}

// A class is an operation together with an outcome: its requests have failed, or they have not.
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

// Arrivals counts the requests of a class, and holds the newest of them, at most as many as a batch can have. So a rare
// request is not lost among many others.
type arrivals struct {
	count  int64
	newest []Request // the newest requests, the oldest of them first
}

// Delivery is a delivery to a webhook on the page.
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

// A Feed keeps the newest requests and deliveries of an emulator for the page. It keeps nothing before somebody has
// opened the page.
type Feed struct {
	watched atomic.Bool
	bodies  atomic.Bool
	closed  chan struct{}
	closing sync.Once

	mu         sync.Mutex
	start      string // identifies this count of requests: numbers count up from 1 in each
	changes    int64  // number of changes on the page
	last       int64  // the number of the newest request
	requests   map[class]*arrivals
	pending    map[*Pending]bool
	deliveries []Delivery
	delivered  int
}

// NewFeed returns a feed. [Feed.Close] ends its streams.
func NewFeed() *Feed {
	f := &Feed{closed: make(chan struct{}), pending: map[*Pending]bool{}}
	f.clear()
	return f
}

// Close ends the streams.
func (f *Feed) Close() { f.closing.Do(func() { close(f.closed) }) }

// Watched reports whether somebody has opened the page.
func (f *Feed) Watched() bool { return f.watched.Load() }

// Bodies reports whether the page shows bodies.
func (f *Feed) Bodies() bool { return f.bodies.Load() }

// showBodies makes the page show the bodies of the requests that come from now on, or no bodies at all.
func (f *Feed) showBodies(shown bool) {
	if f.bodies.Swap(shown) && !shown {
		f.clear()
	}
	f.touch()
}

// clear removes the requests and deliveries, and counts requests from 1 again.
func (f *Feed) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.start = strconv.FormatInt(time.Now().UnixNano()+f.changes, 36) // unique, even if the clock stands still
	f.last = 0
	f.requests = map[class]*arrivals{}
	f.deliveries, f.delivered = nil, 0
}

// fails reports whether the request failed, by itself or by a fault. A validation that finds missing values has not
// failed.
func (r *Request) fails() bool {
	missing := r.Operation == string(payvault.OpApplicationsValidate) && r.Code != nil && *r.Code == 2
	return r.Fault != "" || r.Status/100 != 2 || r.Code != nil && *r.Code != 0 && !missing
}

// searched returns the text that a search looks at, in lower case: all texts of the request on the page.
func (r *Request) searched() string {
	return strings.ToLower(fmt.Sprintln(r.Operation, r.Method, r.Route, r.Status, r.MerchantID, r.Fault, r.Why, r.Shape,
		r.Path, r.Body, r.Answer))
}

// Add adds a request that was answered to the page.
func (f *Feed) Add(request Request) {
	if !f.Watched() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.last++
	if !f.Bodies() && request.Path != "" { // bodies were shown when it arrived
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

// AddDelivery adds a delivery that has ended to the page.
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

// Begin shows a request as pending until end is called. Call Add before end, so that the request is never missing.
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

// touch tells readers that the page is out of date.
func (f *Feed) touch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
}

// A position is the newest request that a reader has seen, in one count of requests.
type position struct {
	start  string
	number int64
}

// String writes a position as the ID of an event.
func (p position) String() string { return fmt.Sprintf("%s-%d", p.start, p.number) }

// parsePosition reads the ID of an event. If id is not valid, it returns the position of a reader that has seen
// nothing.
func parsePosition(id string) position {
	start, text, _ := strings.Cut(id, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return position{}
	}
	return position{start, number}
}

// A batch is one message of a stream: the newest requests that the reader has not seen, and counts.
type batch struct {
	Start    string    `json:"start"`    // identifies the count of requests
	Requests []Request `json:"requests"` // the newest ones, in the order in which they arrived
	Matching int64     `json:"matching"` // requests that match; a search counts only those that are kept
	Total    int64     `json:"total"`    // requests since the page was made or cleared
}

// since returns the newest requests after a position that match a filter.
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

// current returns the identifier of this count of requests.
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

// newestDeliveries returns the newest deliveries, and the total number.
func (f *Feed) newestDeliveries() ([]Delivery, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.deliveries), f.delivered
}

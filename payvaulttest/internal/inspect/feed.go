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
	maxBatch       = 100 // requests at once
	keptDeliveries = 50

	none = "none" // stands for the operation of requests that have none
)

// Request is what the page shows of a request.
type Request struct {
	Number     int64     `json:"number"`    // counted up from 1
	Time       time.Time `json:"time"`      // of the answer
	Operation  string    `json:"operation"` // or none
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	Status     int       `json:"status"` // 0 if there was no answer
	Code       *int      `json:"code,omitempty"`
	MerchantID int64     `json:"merchant_id"` // 0 if the key is of no account
	Bytes      int64     `json:"request_bytes"`
	Millis     float64   `json:"milliseconds"`
	Fault      string    `json:"fault"`
	Performed  bool      `json:"performed"`
	Failed     bool      `json:"failed"`         // something went wrong, or was made to
	Why        string    `json:"why,omitempty"`  // the emulator refused it
	Shape      any       `json:"shape"`          // names without values, of [Shape]
	Curl       string    `json:"curl,omitempty"` // the command that makes it again; fillIn stands for what is not shown

	// These only while bodies are shown.
	Path   string `json:"path,omitempty"` // with the query
	Body   string `json:"body,omitempty"`
	Answer string `json:"answer,omitempty"`

	text string // to search in
}

// A class is the requests of an operation that failed, or those that did not.
type class struct {
	operation string
	failed    bool
}

// A filter takes requests. An empty one takes all.
type filter struct {
	class

	search string // in small letters
}

func (f filter) takesClass(c class) bool {
	return (f.operation == "" || f.operation == c.operation) && (!f.failed || c.failed)
}

// Arrivals are how many requests of a class there were, and as many of the newest as a batch can have, so that a
// rare one is not lost among many others.
type arrivals struct {
	count  int64
	newest []Request // the oldest first
}

// Delivery is what the page shows of a delivery to a webhook.
type Delivery struct {
	Time      time.Time // of its end
	WebhookID string
	Event     string
	Status    int
	Error     string
}

// Pending is a request that is not answered yet.
type Pending struct {
	Operation string  `json:"operation"`
	Fault     string  `json:"fault"`
	Seconds   float64 `json:"seconds"` // since it arrived

	began time.Time
}

// A Feed keeps the newest requests and deliveries of an emulator for the page. It keeps nothing before it is watched.
type Feed struct {
	watched atomic.Bool
	bodies  atomic.Bool
	closed  chan struct{}
	closing sync.Once

	mu         sync.Mutex
	start      string // tells this count of requests from others: numbers count up from 1 in each
	changes    int64  // of anything that the page shows
	last       int64  // the number of the newest request
	requests   map[class]*arrivals
	pending    map[*Pending]bool
	deliveries []Delivery
	delivered  int
}

// NewFeed returns a feed; [Feed.Close] ends its streams.
func NewFeed() *Feed {
	f := &Feed{closed: make(chan struct{}), pending: map[*Pending]bool{}}
	f.clear()
	return f
}

// Close ends the streams.
func (f *Feed) Close() { f.closing.Do(func() { close(f.closed) }) }

// Watched reports whether there is a page.
func (f *Feed) Watched() bool { return f.watched.Load() }

// Bodies reports whether the page shows bodies.
func (f *Feed) Bodies() bool { return f.bodies.Load() }

// showBodies lets the page show the bodies of the requests that come, or no bodies at all.
func (f *Feed) showBodies(shown bool) {
	if f.bodies.Swap(shown) && !shown {
		f.clear()
	}
	f.touch()
}

// clear forgets the requests and deliveries, and counts requests from 1 again.
func (f *Feed) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.start = strconv.FormatInt(time.Now().UnixNano()+f.changes, 36) // clocks stand still in tests
	f.last = 0
	f.requests = map[class]*arrivals{}
	f.deliveries, f.delivered = nil, 0
}

// fails reports whether something went wrong, or was made to. A validation that finds values missing has not failed.
func (r *Request) fails() bool {
	missing := r.Operation == string(payvault.OpApplicationsValidate) && r.Code != nil && *r.Code == 2
	return r.Fault != "" || r.Status/100 != 2 || r.Code != nil && *r.Code != 0 && !missing
}

// searched returns the text that a search looks at, in small letters: all that the page shows of the request.
func (r *Request) searched() string {
	return strings.ToLower(fmt.Sprintln(r.Operation, r.Method, r.Route, r.Status, r.MerchantID, r.Fault, r.Why, r.Shape,
		r.Path, r.Body, r.Answer))
}

// Add shows a request that was answered.
func (f *Feed) Add(request Request) {
	if !f.Watched() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.last++
	if !f.Bodies() && request.Path != "" { // it arrived while they were shown
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

// AddDelivery shows a delivery that has ended.
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

// Begin shows a request as pending until it is ended. Add it before that, so that it is always shown.
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

// touch says that the page shows something that is not true any more.
func (f *Feed) touch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
}

// A position is how far a reader has come: a request of one count.
type position struct {
	start  string
	number int64
}

// String writes a position as the ID of an event.
func (p position) String() string { return fmt.Sprintf("%s-%d", p.start, p.number) }

// parsePosition reads the ID of an event. What is none is the position of a reader that has seen nothing.
func parsePosition(id string) position {
	start, text, _ := strings.Cut(id, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return position{}
	}
	return position{start, number}
}

// A batch is what a stream sends at once.
type batch struct {
	Start    string    `json:"start"`    // of the count
	Requests []Request `json:"requests"` // the newest ones, in the order in which they arrived
	Matching int64     `json:"matching"` // those that the filter takes: of all, or with a search of those that are kept
	Total    int64     `json:"total"`    // since the page was made, or cleared
}

// since returns the newest requests after a position that a filter takes.
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

// current returns what tells this count of requests from others.
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

// newestDeliveries returns the newest deliveries, and the number of all.
func (f *Feed) newestDeliveries() ([]Delivery, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.deliveries), f.delivered
}

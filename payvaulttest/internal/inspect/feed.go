package inspect

import (
	"cmp"
	"context"
	"log/slog"
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

// Request is what the page knows of a request: the log record of the emulator, and the names of its fields.
type Request struct {
	Number     int64     `json:"number"`    // counted up from 1
	Time       time.Time `json:"time"`      // of the answer
	Operation  string    `json:"operation"` // or none
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	Status     int64     `json:"status"` // 0 if there was no answer
	Code       *int64    `json:"code,omitempty"`
	MerchantID int64     `json:"merchant_id"` // 0 if the key is of no account
	Bytes      int64     `json:"request_bytes"`
	Millis     float64   `json:"milliseconds"`
	Fault      string    `json:"fault"`
	Performed  bool      `json:"performed"`
	Failed     bool      `json:"failed"`        // something went wrong, or was made to
	Why        string    `json:"why,omitempty"` // the emulator refused it
	Shape      any       `json:"shape,omitempty"`
}

// A class is the requests of an operation that failed, or those that did not. As a filter it takes what it names.
type class struct {
	operation string
	failed    bool
}

func (c class) takes(other class) bool {
	return (c.operation == "" || c.operation == other.operation) && (!c.failed || other.failed)
}

// Arrivals are how many requests of a class there were, and as many of the newest as a batch can have, so that a
// rare one is not lost among many others.
type arrivals struct {
	count  int64
	newest []Request // the oldest first
}

// Delivery is the log record of a delivery to a webhook.
type Delivery struct {
	Time      time.Time // of its end
	WebhookID string
	Event     string
	Status    int64
	Error     string
}

// Pending is a request that is not answered yet.
type Pending struct {
	Operation string  `json:"operation"`
	Fault     string  `json:"fault"`
	Seconds   float64 `json:"seconds"` // since it arrived

	began time.Time
}

// A Feed is the [slog.Handler] that keeps the newest records of an emulator for the page. It takes those attributes
// that it knows, and nothing before it is watched.
type Feed struct {
	watched atomic.Bool
	closed  chan struct{}
	closing sync.Once
	start   string // tells this feed from others: numbers count up from 1 in each

	mu         sync.Mutex
	changes    int64 // of anything that the page shows
	last       int64 // the number of the newest request
	requests   map[class]*arrivals
	pending    map[*Pending]bool
	deliveries []Delivery
	delivered  int
}

// NewFeed makes a feed; [Feed.Close] ends its streams.
func NewFeed() *Feed {
	return &Feed{closed: make(chan struct{}), start: strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// Close ends the streams.
func (f *Feed) Close() { f.closing.Do(func() { close(f.closed) }) }

// watch begins to keep records.
func (f *Feed) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests == nil {
		f.requests = map[class]*arrivals{}
		f.pending = map[*Pending]bool{}
	}
	f.watched.Store(true)
}

// Enabled implements [slog.Handler].
func (f *Feed) Enabled(context.Context, slog.Level) bool { return f.watched.Load() }

// WithAttrs implements [slog.Handler]; the emulator adds none.
func (f *Feed) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup implements [slog.Handler]; the emulator opens none.
func (f *Feed) WithGroup(string) slog.Handler { return f }

// Handle implements [slog.Handler].
func (f *Feed) Handle(_ context.Context, record slog.Record) error {
	a := map[string]any{}
	record.Attrs(func(attr slog.Attr) bool { a[attr.Key] = attr.Value.Any(); return true })
	switch record.Message {
	case "request":
		request := Request{
			Time: record.Time, Operation: of[string](a, "operation"), Method: of[string](a, "method"),
			Route: of[string](a, "route"), Status: of[int64](a, "status"), MerchantID: of[int64](a, "merchant_id"),
			Bytes: of[int64](a, "request_bytes"), Millis: float64(of[time.Duration](a, "duration").Microseconds()) / 1000,
			Fault: of[string](a, "fault"), Performed: of[bool](a, "performed"), Why: of[string](a, "why"), Shape: a["shape"],
		}
		if code, sent := a["code"].(int64); sent {
			request.Code = &code
		}
		f.addRequest(request)
	case "delivery":
		f.addDelivery(Delivery{
			Time: record.Time, WebhookID: of[string](a, "webhook_id"), Event: of[string](a, "event"),
			Status: of[int64](a, "status"), Error: of[string](a, "error"),
		})
	}
	return nil
}

// of is the value of an attribute, or nothing.
func of[T any](attrs map[string]any, name string) T {
	value, _ := attrs[name].(T)
	return value
}

// fails reports whether something went wrong, or was made to. A validation that finds values missing has not failed.
func (r *Request) fails() bool {
	missing := r.Operation == string(payvault.OpApplicationsValidate) && r.Code != nil && *r.Code == 2
	return r.Fault != "" || r.Status/100 != 2 || r.Code != nil && *r.Code != 0 && !missing
}

func (f *Feed) addRequest(request Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.last++
	request.Number = f.last
	request.Operation = cmp.Or(request.Operation, none)
	request.Failed = request.fails()
	c := class{request.Operation, request.Failed}
	if f.requests[c] == nil {
		f.requests[c] = &arrivals{}
	}
	a := f.requests[c]
	a.count++
	a.newest = append(a.newest[max(0, len(a.newest)+1-maxBatch):], request)
}

func (f *Feed) addDelivery(delivery Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.delivered++
	f.deliveries = append(f.deliveries[max(0, len(f.deliveries)+1-keptDeliveries):], delivery)
}

// Begin shows a request until it is ended. Its record comes before that, so that it is always shown.
func (f *Feed) Begin(operation, fault string) (end func()) {
	if !f.watched.Load() {
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

// A batch is what a stream sends at once.
type batch struct {
	Start    string    `json:"start"`    // of the feed
	Requests []Request `json:"requests"` // the newest, the oldest of them first
	Matching int64     `json:"matching"` // of all, those that the filter takes
	Total    int64     `json:"total"`    // since the page was made
}

// since returns the newest requests after a number that a filter takes.
func (f *Feed) since(number int64, filter class) batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := batch{Start: f.start, Requests: []Request{}, Total: f.last}
	for c, a := range f.requests {
		if !filter.takes(c) {
			continue
		}
		b.Matching += a.count
		for _, request := range a.newest {
			if request.Number > number {
				b.Requests = append(b.Requests, request)
			}
		}
	}
	slices.SortFunc(b.Requests, func(a, b Request) int { return cmp.Compare(a.Number, b.Number) })
	b.Requests = b.Requests[max(0, len(b.Requests)-maxBatch):]
	return b
}

func (f *Feed) total() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
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
	return append([]Delivery{}, f.deliveries...), f.delivered
}

// numberOf is the number of the request that the ID of an event names; 0 if it is of another feed.
func (f *Feed) numberOf(event string) int64 {
	text, ours := strings.CutPrefix(event, f.start+"-")
	number, err := strconv.ParseInt(text, 10, 64)
	if !ours || err != nil {
		return 0
	}
	return min(max(number, 0), f.total())
}

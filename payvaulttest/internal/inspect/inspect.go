// Package inspect serves a web page and a JSON API that show the requests, records and faults of an emulator.
package inspect

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
)

const (
	maxStreams   = 4                // a browser opens six connections to a host; streams leave two for other requests
	pollEvery    = time.Second / 5  // time between two checks of a stream for changes
	speakEvery   = 5 * time.Second  // longest time without an event in a stream
	writeTimeout = 10 * time.Second // time after which a stream to a slow or disconnected reader ends
	maxFault     = 64 << 10         // largest size of a fault, in bytes
)

// An Emulator is the server whose records the page shows, and into which the page injects faults.
type Emulator interface {
	Connection() Connection
	Operations() []string // names of the operations, sorted
	AllCommits() map[payvault.Operation]int
	Tables() []Table
	Presets(operation payvault.Operation, times, skip int) ([]Preset, error)
	Arm(fault []byte) (Armed, error) // injects a fault that is given as JSON
	Armed() []Armed
	Disarm(id int64) bool
	ClearFaults()
	Reset() // restores the state in which the server started
}

// A Connection has the values that a client needs to send requests.
type Connection struct {
	URL      string    `json:"url"`
	Accounts []Account `json:"accounts"`
	Curl     string    `json:"curl"` // curl command of a first request
	Go       string    `json:"go"`   // Go code of a first request
}

// An Account is an API key of the emulator, with the merchant or partner to which the key belongs.
type Account struct {
	MerchantID int64   `json:"merchant_id"`
	APIKey     string  `json:"api_key"`
	Partner    bool    `json:"partner"`
	VendorID   int64   `json:"vendor_id,omitempty"`
	ActsFor    []int64 `json:"acts_for,omitempty"`
}

// A Table has the newest records of one resource.
type Table struct {
	Name    string   `json:"name"`
	Total   int      `json:"total"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Armed is the JSON of a fault that waits for requests.
type Armed struct {
	ID        int64  `json:"id"`
	Operation string `json:"operation"` // empty for all operations
	Kind      string `json:"kind"`
	Status    int    `json:"status,omitempty"` // the fields from Status to RetryAfter are copied from the fault
	Delay     string `json:"delay,omitempty"`
	Performed bool   `json:"after_commit,omitempty"`
	Code      int    `json:"code,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Skip      int    `json:"skip,omitempty"`

	Rate       float64 `json:"rate,omitempty"`
	RetryAfter string  `json:"retry_after,omitempty"`

	Struck int    `json:"struck"`
	Left   int    `json:"left"` // number of requests that the fault will still make fail; -1 for all until it is removed
	Go     string `json:"go"`   // Go code that injects the fault
}

// A Preset is a fault that a click on the page injects.
type Preset struct {
	Label string `json:"label"`
	Fault any    `json:"fault"` // the fault in the form that Arm reads
	Go    string `json:"go"`
}

//go:embed page.html style.css script.js
var files embed.FS

const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

type handler struct {
	emulator Emulator
	feed     *Feed
	streams  chan struct{} // has one element per open stream
}

// Handler returns the handler of the page of an emulator. The feed has the requests of the emulator. The handler
// answers only requests that come from loopback and have a loopback address or localhost in the Host header.
func Handler(emulator Emulator, feed *Feed) http.Handler {
	feed.watched.Store(true)
	h := &handler{emulator: emulator, feed: feed, streams: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.file("page.html", "text/html; charset=utf-8"))
	mux.HandleFunc("GET /style.css", h.file("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /script.js", h.file("script.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("GET /favicon.ico", h.icon)
	mux.HandleFunc("GET /connection", asked(h.connection))
	mux.HandleFunc("GET /events", asked(h.filtered(h.events), "operation", "failed", "search"))
	mux.HandleFunc("GET /requests", asked(h.filtered(h.requests), "operation", "failed", "search"))
	mux.HandleFunc("DELETE /requests", asked(h.clearRequests))
	mux.HandleFunc("GET /state", asked(h.state))
	mux.HandleFunc("PUT /bodies", asked(h.showBodies, "shown"))
	mux.HandleFunc("POST /reset", asked(h.reset))
	mux.HandleFunc("GET /presets", asked(h.presets, "operation", "times", "skip"))
	mux.HandleFunc("GET /faults", asked(h.listFaults))
	mux.HandleFunc("POST /faults", asked(h.arm))
	mux.HandleFunc("DELETE /faults", asked(h.clearFaults))
	mux.HandleFunc("DELETE /faults/{id}", asked(h.disarm))
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard sets headers that isolate the page from other web sites. It refuses requests from other machines, and requests
// whose Host header is not loopback. Otherwise an attacker could read the page from a web site whose name resolves to
// loopback (DNS rebinding).
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control":                "no-store",
			"Content-Security-Policy":      contentPolicy,
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
		} {
			w.Header().Set(name, value)
		}
		remote, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !remote.Addr().Unmap().IsLoopback() || !isLoopback(r.Host) {
			http.Error(w, "open this page at 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a Host header, with or without a port, is localhost or a loopback address.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && ip.IsLoopback()
}

func (h *handler) file(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, _ := files.ReadFile(name) // the file is embedded
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(text)
	}
}

// icon answers with status 204. Browsers request an icon, but there is none.
func (h *handler) icon(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func answer(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

// asked refuses a query that is malformed, repeats a parameter, or has a parameter that is not in names. The handlers
// would ignore these mistakes.
func asked(next http.HandlerFunc, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		fit := err == nil
		for name, values := range query {
			fit = fit && slices.Contains(names, name) && len(values) == 1
		}
		if !fit {
			known := cmp.Or(strings.Join(names, ", "), "nothing")
			refuse(w, http.StatusBadRequest, "the query is not understood; what is read of it, once each: "+known)
			return
		}
		next(w, r)
	}
}

// filtered reads the filter in a query and passes it to next. It refuses invalid values.
func (h *handler) filtered(next func(w http.ResponseWriter, r *http.Request, take filter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		failed, err := strconv.ParseBool(cmp.Or(query.Get("failed"), "false"))
		operation := query.Get("operation")
		switch {
		case err != nil:
			refuse(w, http.StatusBadRequest, "failed is true or false")
		case operation != "" && operation != none && !slices.Contains(h.emulator.Operations(), operation):
			refuse(w, http.StatusBadRequest, "the operation does not exist; /state lists them")
		default:
			next(w, r, filter{class{operation, failed}, strings.ToLower(query.Get("search"))})
		}
	}
}

func (h *handler) requests(w http.ResponseWriter, _ *http.Request, take filter) {
	answer(w, http.StatusOK, h.feed.since(position{}, take))
}

func (h *handler) clearRequests(w http.ResponseWriter, _ *http.Request) {
	h.feed.clear()
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) connection(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, h.emulator.Connection())
}

func (h *handler) showBodies(w http.ResponseWriter, r *http.Request) {
	shown, err := strconv.ParseBool(r.URL.Query().Get("shown"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "shown is true or false")
		return
	}
	h.feed.showBodies(shown)
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) reset(w http.ResponseWriter, _ *http.Request) {
	h.emulator.Reset()
	h.feed.showBodies(false)
	h.feed.clear()
	w.WriteHeader(http.StatusNoContent)
}

// events streams the new requests in batches. It sends a batch, which may be empty, when anything has changed, or when
// speakEvery has passed since the last batch. It polls for changes, so that neither many requests nor a slow reader can
// delay the emulator.
func (h *handler) events(w http.ResponseWriter, r *http.Request, take filter) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	s := stream{feed: h.feed, out: w, take: take, changes: -1, sent: parsePosition(r.Header.Get("Last-Event-ID"))}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for s.tell() {
		select {
		case <-poll.C:
		case <-r.Context().Done():
			return
		case <-h.feed.closed:
			return
		}
	}
}

type stream struct {
	feed    *Feed
	out     http.ResponseWriter
	take    filter
	sent    position // position after the last batch
	changes int64
	spoken  time.Time
}

// tell sends a batch if anything has changed, or if the last batch was sent speakEvery ago. It returns false if sending
// failed.
func (s *stream) tell() bool {
	changes := s.feed.changed()
	if changes == s.changes && time.Since(s.spoken) < speakEvery {
		return true
	}
	news := s.feed.since(s.sent, s.take)
	s.sent, s.changes, s.spoken = position{news.Start, news.Total}, changes, time.Now()
	text, err := json.Marshal(news)
	if err != nil {
		return false
	}
	control := http.NewResponseController(s.out)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // the error means only that the writer has no deadlines
	if _, err := fmt.Fprintf(s.out, "id: %s\ndata: %s\n\n", s.sent, text); err != nil {
		return false
	}
	return control.Flush() == nil
}

func (h *handler) state(w http.ResponseWriter, _ *http.Request) {
	newest, total := h.feed.newestDeliveries()
	deliveries := Table{
		Name: "deliveries", Total: total, Rows: [][]any{},
		Columns: []string{"time", "webhook_id", "event", "status", "error"},
	}
	for _, d := range slices.Backward(newest) {
		at := d.Time.Format("2006-01-02T15:04:05.000Z07:00")
		deliveries.Rows = append(deliveries.Rows, []any{at, d.WebhookID, d.Event, d.Status, d.Error})
	}
	tables := append(h.emulator.Tables(), deliveries)
	for _, table := range tables {
		table.hide()
	}
	answer(w, http.StatusOK, map[string]any{
		"start":      h.feed.current(),
		"bodies":     h.feed.Bodies(),
		"operations": h.emulator.Operations(),
		"commits":    h.emulator.AllCommits(),
		"pending":    h.feed.allPending(),
		"faults":     h.emulator.Armed(),
		"tables":     tables,
	})
}

func (h *handler) presets(w http.ResponseWriter, r *http.Request) {
	query := url.Values{"times": {"1"}, "skip": {"0"}}
	maps.Copy(query, r.URL.Query())
	times, badTimes := strconv.Atoi(query.Get("times"))
	skip, badSkip := strconv.Atoi(query.Get("skip"))
	if badTimes != nil || badSkip != nil {
		refuse(w, http.StatusBadRequest, "times and skip are whole numbers")
		return
	}
	list, err := h.emulator.Presets(payvault.Operation(query.Get("operation")), times, skip)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, http.StatusOK, list)
}

func (h *handler) listFaults(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, h.emulator.Armed())
}

func (h *handler) arm(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFault))
	if err != nil {
		refuse(w, http.StatusBadRequest, "the fault is too long, or did not arrive")
		return
	}
	armed, err := h.emulator.Arm(text)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	h.feed.touch()
	answer(w, http.StatusCreated, armed)
}

func (h *handler) disarm(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || !h.emulator.Disarm(id) {
		refuse(w, http.StatusNotFound, "there is no such fault")
		return
	}
	h.feed.touch()
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) clearFaults(w http.ResponseWriter, _ *http.Request) {
	h.emulator.ClearFaults()
	h.feed.touch()
	w.WriteHeader(http.StatusNoContent)
}

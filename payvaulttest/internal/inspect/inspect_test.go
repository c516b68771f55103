package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeEmulator is an Emulator with one record and a count of commits. It keeps the faults that Arm adds.
type fakeEmulator struct {
	Emulator

	armed []Armed
}

func (e *fakeEmulator) Operations() []string {
	return []string{"applications.validate", "customers.create", "customers.list", "invoices.send", "payees.delete"}
}

func (e *fakeEmulator) AllCommits() map[payvault.Operation]int {
	return map[payvault.Operation]int{"invoices.send": 2}
}

func (e *fakeEmulator) Tables() []Table {
	return []Table{{Name: "invoices", Total: 1, Columns: []string{"invoice_id"}, Rows: [][]any{{"INV-1"}}}}
}

func (e *fakeEmulator) Arm([]byte) (Armed, error) {
	e.armed = append(e.armed, Armed{ID: 1})
	return e.armed[0], nil
}

func (e *fakeEmulator) Presets(payvault.Operation, int, int) ([]Preset, error) { return nil, nil }

func (e *fakeEmulator) Connection() Connection { return Connection{} }
func (e *fakeEmulator) Armed() []Armed         { return e.armed }
func (e *fakeEmulator) Disarm(int64) bool      { return true }
func (e *fakeEmulator) ClearFaults()           { e.armed = nil }
func (e *fakeEmulator) Reset()                 { e.armed = nil }

func newHandler() (http.Handler, *Feed) {
	feed := NewFeed()
	return Handler(&fakeEmulator{}, feed), feed
}

func request(method, target, body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:5000", "127.0.0.1:8701"
	return r
}

func ask(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// call sends a request, such as "GET /state", and returns the answer.
func call(h http.Handler, text string) *httptest.ResponseRecorder {
	method, target, _ := strings.Cut(text, " ")
	return ask(h, request(method, target, ""))
}

// TestFiles checks the Content-Type of the page's files. Browsers do not guess another type, because the answers also
// have the header X-Content-Type-Options: nosniff.
func TestFiles(t *testing.T) {
	t.Parallel()
	h, _ := newHandler()
	for path, contentType := range map[string]string{
		"/": "text/html", "/style.css": "text/css", "/script.js": "text/javascript",
	} {
		assert.Equal(t, contentType+"; charset=utf-8", call(h, "GET "+path).Header().Get("Content-Type"))
	}
}

// TestHeaders checks that every answer, even an error, has the headers that isolate the page from other web sites.
func TestHeaders(t *testing.T) {
	t.Parallel()
	h, feed := newHandler()
	want := http.Header{
		"Cache-Control": {"no-store"},
		"Content-Security-Policy": {
			"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
				"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Referrer-Policy":              {"no-referrer"},
		"X-Content-Type-Options":       {"nosniff"},
	}
	check := func(r *http.Request, status int) {
		t.Helper()
		w := ask(h, r)
		assert.Equal(t, status, w.Code, "%s %s", r.Method, r.URL)
		for name, values := range want {
			assert.Equal(t, values, w.Header()[name], "%s of %s %s", name, r.Method, r.URL)
		}
	}
	check(request("HEAD", "/events", ""), http.StatusOK) // ends at once
	feed.Close()                                         // so that GET /events ends
	for _, path := range []string{
		"/", "/style.css", "/script.js", "/connection", "/events", "/requests", "/state", "/presets", "/faults",
	} {
		check(request("GET", path, ""), http.StatusOK)
		check(request("HEAD", path, ""), http.StatusOK)
		rebound := request("GET", path, "")
		rebound.Host = "attacker.example"
		check(rebound, http.StatusMisdirectedRequest)
	}
	for text, status := range map[string]int{
		"GET /favicon.ico": 204, "GET /other": 404, "PUT /state": 405, "POST /faults": 201, "DELETE /faults/x": 404,
		"DELETE /faults": 204, "DELETE /requests": 204, "PUT /bodies?shown=true": 204, "PUT /bodies?shown=yes": 400,
		"POST /reset": 204,
	} {
		method, target, _ := strings.Cut(text, " ")
		check(request(method, target, ""), status)
	}
	foreign := request("POST", "/faults", `{"kind":"hang"}`)
	foreign.Header.Set("Origin", "http://attacker.example")
	check(foreign, http.StatusForbidden)
}

// TestOnlyLoopback checks that the page answers only requests from loopback whose Host header is localhost or a
// loopback address.
func TestOnlyLoopback(t *testing.T) {
	t.Parallel()
	h, _ := newHandler()
	for host, want := range map[string]int{
		"127.0.0.1:8701": 200, "localhost:8701": 200, "LocalHost": 200, "[::1]:8701": 200,
		"attacker.example": 421, "127.0.0.1.attacker.example:8701": 421, "localhost.attacker.example": 421, "": 421,
		"0.0.0.0:8701": 421, "localhost@attacker.example": 421,
	} {
		r := request("GET", "/", "")
		r.Host = host
		assert.Equal(t, want, ask(h, r).Code, host)
	}
	r := request("GET", "/", "")
	r.RemoteAddr = "192.0.2.1:5000"
	assert.Equal(t, http.StatusMisdirectedRequest, ask(h, r).Code, "from another machine")
}

// TestOtherOrigins checks that the page refuses changes that a browser requests for another web site.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	h, _ := newHandler()
	for _, test := range []struct {
		name, value string
		forbidden   bool
	}{
		{"Sec-Fetch-Site", "cross-site", true},
		{"Sec-Fetch-Site", "same-site", true}, // a page on another port of this machine
		{"Origin", "http://attacker.example", true},
		{"Origin", "null", true},
		{"Sec-Fetch-Site", "same-origin", false},
		{"Origin", "http://127.0.0.1:8701", false},
		{"User-Agent", "curl", false},
	} {
		for _, text := range []string{
			"POST /faults", "DELETE /faults", "DELETE /requests", "POST /reset", "PUT /bodies?shown=true",
		} {
			method, path, _ := strings.Cut(text, " ")
			r := request(method, path, `{"kind":"hang"}`)
			r.Header.Set(test.name, test.value)
			assert.Equal(t, test.forbidden, ask(h, r).Code == http.StatusForbidden, "%s: %v", text, test)
		}
	}
	for _, header := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods"} {
		assert.Empty(t, call(h, "OPTIONS /faults").Header().Get(header))
	}
}

// TestFaultsAreNews checks that adding and removing a fault counts as a change, so that the open pages show it.
func TestFaultsAreNews(t *testing.T) {
	t.Parallel()
	h, feed := newHandler()
	for _, text := range []string{"POST /faults", "DELETE /faults/1", "DELETE /faults"} {
		before := feed.changed()
		assert.Equal(t, 2, call(h, text).Code/100, text)
		assert.Equal(t, before+1, feed.changed(), text)
	}
}

// TestRecord checks that the feed keeps the requests and the newest deliveries, but keeps nothing before Handler is
// called. A body must not be kept if bodies were turned off before its request ended.
func TestRecord(t *testing.T) {
	t.Parallel()
	feed := NewFeed()
	feed.Add(Request{Operation: "before the page"})
	feed.AddDelivery(Delivery{Event: "before the page"})
	h := Handler(&fakeEmulator{}, feed)
	given := Request{
		Time: time.Now().UTC(), Operation: "invoices.send", Method: "POST", Route: "/r", Status: 200, Code: new(0),
		MerchantID: 5, Bytes: 7, Millis: 1.5, Fault: "delay", Performed: true, Why: "w", Shape: map[string]any{"body": "•••"},
		Curl: "curl",
	}
	feed.Add(given)
	for range keptDeliveries + 7 {
		feed.AddDelivery(Delivery{Time: time.Now(), WebhookID: "4929123456781234", Event: "e", Status: 200, Error: "refused"})
	}
	feed.Add(Request{Path: "/p", Body: "b", Answer: "a", Curl: "c"})
	given.Number, given.Failed = 1, true
	assert.Equal(t, []Request{given, {Number: 2, Operation: "none", Failed: true}}, requests(t, h, "").Requests)
	state := call(h, "GET /state").Body.String()
	const now = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)"`
	assert.Regexp(t, `"rows":\[\[`+now+`,"4929xxxxxx781234","e",200,"refused"\],`, state)
	assert.Contains(t, state, `{"name":"deliveries","total":57,`)
	assert.Equal(t, keptDeliveries, strings.Count(state, "4929xxxxxx781234"))
	assert.Contains(t, state, `"commits":{"invoices.send":2}`)
}

// requests returns the answer of GET /requests with a query.
func requests(t *testing.T, h http.Handler, query string) (news batch) {
	t.Helper()
	text := call(h, "GET /requests"+query).Body.Bytes()
	require.NoError(t, json.Unmarshal(text, &news), "%s: %s", query, text)
	return news
}

// TestFilter checks which requests each filter selects, and that invalid filters are refused.
func TestFilter(t *testing.T) {
	t.Parallel()
	h, feed := newHandler()
	const create, list, validate = "customers.create", "customers.list", "applications.validate"
	for _, r := range []Request{
		{Operation: create, Status: 200, Code: new(0)},
		{Operation: list, Status: 200, Code: new(2)},
		{Operation: list, Status: 404},
		{Operation: list, Status: 200, Why: "Order_On"},
		{},
		{Operation: create, Status: 200, Fault: "delay"},
		{Operation: validate, Status: 200, Code: new(2)}, // code 2 of a validation is not a failure
		{Operation: validate, Status: 200, Code: new(7)},
		{Operation: validate, Status: 400, Code: new(2)},
	} {
		feed.Add(r)
	}
	all := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for query, want := range map[string][]int64{
		"": all, "?operation=&failed=&search=": all, "?failed=false": all, "?failed=true": {2, 3, 5, 6, 8, 9},
		"?operation=" + list: {2, 3, 4}, "?operation=" + list + "&failed=1": {2, 3}, "?operation=invoices.send": nil,
		"?operation=none": {5}, "?search=order_on": {4}, "?search=ORDER&operation=" + list: {4},
		"?search=order&failed=true": nil, "?search=404": {3},
	} {
		news := requests(t, h, query)
		var got []int64
		for _, r := range news.Requests {
			got = append(got, r.Number)
			assert.Equal(t, r.Number != 1 && r.Number != 4 && r.Number != 7, r.Failed)
		}
		assert.Equal(t, want, got, query)
		assert.Equal(t, []int64{int64(len(want)), 9}, []int64{news.Matching, news.Total}, query)
	}
	for query, want := range map[string]string{
		"?failed=x":    `{"error":"failed is true or false"}`,
		"?operation=x": `{"error":"the operation does not exist; /state lists them"}`,
	} {
		for _, path := range []string{"/requests", "/events"} {
			w := call(h, "GET "+path+query)
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.JSONEq(t, want, w.Body.String())
		}
	}
}

// TestQueriesAreRead checks that a query with an unknown or repeated parameter is refused, and that the refused request
// changes nothing.
func TestQueriesAreRead(t *testing.T) {
	t.Parallel()
	h, _ := newHandler()
	require.Equal(t, http.StatusCreated, ask(h, request("POST", "/faults", `{"kind":"hang"}`)).Code)
	for _, target := range []string{
		"DELETE /faults?operation=invoices.send", "DELETE /faults/1?times=1", "POST /faults?kind=hang", "GET /faults?id=1",
		"GET /state?operation=payees.delete", "GET /presets?time=2", "GET /presets?times=2&times=3",
		"GET /requests?failed=true;operation=payees.delete",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := ask(h, request(method, path, `{"kind":"hang"}`))
		assert.Equal(t, http.StatusBadRequest, w.Code, target)
		assert.Contains(t, w.Body.String(), "the query is not understood", target)
	}
	assert.Contains(t, call(h, "GET /faults").Body.String(), `[{"id":1,`)
}

// TestRareRequest checks that a filter finds a single request that was followed by thousands of other requests, and
// that the counts include the requests that the feed no longer keeps.
func TestRareRequest(t *testing.T) {
	t.Parallel()
	_, feed := newHandler()
	feed.Add(Request{Operation: "payees.delete", Status: 200})
	feed.Add(Request{Operation: "customers.list", Status: 404})
	for range 5000 {
		feed.Add(Request{Operation: "customers.list", Status: 200})
	}
	for c, number := range map[class]int64{{failed: true}: 2, {operation: "payees.delete"}: 1} {
		b := feed.since(position{}, filter{class: c})
		require.Len(t, b.Requests, 1)
		assert.Equal(t, number, b.Requests[0].Number)
		assert.EqualValues(t, 1, b.Matching)
	}
	for operation, matching := range map[string]int64{"customers.list": 5001, "": 5002} {
		b := feed.since(position{}, filter{class: class{operation: operation}})
		assert.Len(t, b.Requests, maxBatch)
		assert.EqualValues(t, 5002, b.Requests[maxBatch-1].Number, "the newest")
		assert.Equal(t, matching, b.Matching, "all of them")
	}
}

// TestSince checks that a reader gets only the requests after its position, or all requests if the position belongs to
// another list.
func TestSince(t *testing.T) {
	t.Parallel()
	h, feed := newHandler()
	for range 3 {
		feed.Add(Request{})
	}
	for id, want := range map[string]int{
		feed.start + "-2": 1, feed.start + "-3": 0, feed.start + "-x": 3, "another-2": 3, "2": 3, "": 3,
	} {
		assert.Len(t, feed.since(parsePosition(id), filter{}).Requests, want, id)
	}
	seen := position{feed.start, 3}
	call(h, "DELETE /requests")
	assert.NotEqual(t, seen.start, feed.start)
	assert.Empty(t, feed.since(seen, filter{}).Requests)
	feed.Add(Request{})
	b := feed.since(seen, filter{})
	require.Len(t, b.Requests, 1)
	assert.Equal(t, []int64{1, 1}, []int64{b.Requests[0].Number, b.Total})
	assert.Contains(t, call(h, "GET /state").Body.String(), `"start":"`+feed.start+`"`)
}

// batches decodes the events that a stream sent.
func batches(t *testing.T, text string) []batch {
	t.Helper()
	var list []batch
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		id, data, _ := strings.Cut(event, "\n")
		var b batch
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &b))
		require.Equal(t, fmt.Sprintf("id: %s-%d", b.Start, b.Total), id)
		list = append(list, b)
	}
	return list
}

// TestStream checks that a stream sends the newest requests and the number of all requests, and that it sends an event
// every five seconds (speakEvery) even without changes.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, feed := newHandler()
		for range 3 {
			feed.Add(Request{})
		}
		w := httptest.NewRecorder()
		r := request("GET", "/events", "")
		r.Header.Set("Last-Event-ID", feed.start+"-1")
		go h.ServeHTTP(w, r)
		synctest.Wait()
		for range 5000 { // 1,000 requests a second
			feed.Add(Request{})
			<-time.After(time.Millisecond)
		}
		<-time.After(2 * speakEvery)
		feed.Close()
		feed.Close()
		synctest.Wait()

		assert.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
		sent := batches(t, w.Body.String())
		assert.InDelta(t, 27, len(sent), 1)
		assert.Empty(t, sent[len(sent)-1].Requests, "without news it speaks, too")
		assert.Len(t, sent[0].Requests, 2, "only those after the last one that the reader had")
		number := int64(1)
		for _, b := range sent {
			for _, request := range b.Requests {
				assert.Greater(t, request.Number, number)
				number = request.Number
			}
			assert.LessOrEqual(t, len(b.Requests), maxBatch)
		}
		assert.EqualValues(t, 5003, number, "the newest is shown")
		assert.EqualValues(t, 5003, sent[len(sent)-1].Matching, "all are counted")
	})
}

// TestPending checks that the page shows requests without an answer as pending, the oldest first.
func TestPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, feed := newHandler()
		var want []Pending
		for i := range 9 { // enough to notice an unsorted list, which is in random order
			want = append(want, Pending{Operation: strings.Repeat("x", 9-i), Fault: "hang", Seconds: float64(9 - i)})
			defer feed.Begin(want[i].Operation, "hang")()
			<-time.After(time.Second)
		}
		defer feed.Begin("", "")()
		before := feed.changed()
		feed.Begin("", "")()
		assert.Equal(t, before+2, feed.changed(), "the pages hear of its beginning and its end")
		var state struct {
			Pending []Pending `json:"pending"`
		}
		require.NoError(t, json.Unmarshal(call(h, "GET /state").Body.Bytes(), &state))
		assert.Equal(t, append(want, Pending{Operation: "none"}), state.Pending)
	})
}

// openStream requests the event stream of a page, and returns the status and the body of the answer.
func openStream(ctx context.Context, t *testing.T, server *httptest.Server) (status int, body io.ReadCloser) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events", nil)
	require.NoError(t, err)
	resp, err := server.Client().Do(r)
	require.NoError(t, err)
	return resp.StatusCode, resp.Body
}

// TestStreamOutlivesTimeouts checks that a stream continues after the ReadTimeout and the WriteTimeout of its server.
func TestStreamOutlivesTimeouts(t *testing.T) {
	t.Parallel()
	h, feed := newHandler()
	server := httptest.NewUnstartedServer(h)
	server.Config.ReadTimeout, server.Config.WriteTimeout = pollEvery, pollEvery
	server.Start()
	_, body := openStream(t.Context(), t, server)
	lines := bufio.NewScanner(body)
	for range 4 {
		feed.Add(Request{})
		for range 3 { // the lines of an event
			require.True(t, lines.Scan(), "the stream ended: %v", lines.Err())
		}
	}
	feed.Close()
	assert.False(t, lines.Scan())
	require.NoError(t, lines.Err())
	require.NoError(t, body.Close())
	server.Close()
}

// TestStreamsEnd checks that at most maxStreams streams can be open at once, and that another stream can be opened
// after one is closed.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	h, feed := newHandler()
	server := httptest.NewServer(h)
	ctx, cancel := context.WithCancel(t.Context())
	var bodies []io.Closer
	for i := range maxStreams + 1 {
		want := http.StatusOK
		if i == maxStreams {
			want = http.StatusServiceUnavailable
		}
		status, body := openStream(ctx, t, server)
		assert.Equal(t, want, status)
		bodies = append(bodies, body)
	}
	for _, body := range bodies {
		assert.NoError(t, body.Close())
	}
	require.Eventually(t, func() bool {
		status, body := openStream(ctx, t, server)
		return status == http.StatusOK || body.Close() != nil
	}, 10*time.Second, 10*time.Millisecond, "a closed page makes room")
	feed.Close()
	server.Close() // waits for the streams
	cancel()
}

type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestReaderThatIsGone checks that a stream ends when writing to its reader fails.
func TestReaderThatIsGone(t *testing.T) {
	t.Parallel()
	h, _ := newHandler()
	h.ServeHTTP(brokenWriter{httptest.NewRecorder()}, request("GET", "/events", "")) // must return
}

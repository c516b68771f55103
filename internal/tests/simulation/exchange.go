package simulation

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
)

// These headers carry data of the simulator. A request has the numbers of its call and process, and also of its attempt
// if the RoundTripper sends copies. An answer has the numbers of the call and the batch.
const (
	headerCall    = "X-Sim-Call"
	headerLife    = "X-Sim-Life"
	headerAttempt = "X-Sim-Attempt"
	headerAnswer  = "X-Sim-Answer"
)

const elsewhere = "/elsewhere" // path to which the service redirects

const batchSize = payvault.MaxAccountUpdaterCards

// exchange is a request that the service has received, with its answer.
type exchange struct {
	run  *run
	call int
	life int

	attempt string // header X-Sim-Attempt; "" unless the RoundTripper sends copies
	unit    unit
	path    string
	kind    kind
	step    Step
	page    int
	gzip    bool // the client accepts gzip
	body    []byte
}

// begin checks the header of a request and returns its exchange. It returns nil if the request followed a redirect, or
// names no call of the scenario.
func (r *run) begin(method, path, query string, header http.Header) *exchange {
	number, err := strconv.Atoi(header.Get(headerCall))
	if err != nil || number < 0 || number >= len(r.Calls) {
		r.fail(-1, "a request without its call: %s %s %v", method, path, header)
		return nil
	}
	call := &r.Calls[number]
	x := &exchange{
		run: r, call: number, unit: unit{number, 0}, path: path, kind: kindOf(call.Op, call.Form),
		gzip: strings.Contains(header.Get("Accept-Encoding"), "gzip"),
	}
	x.attempt = header.Get(headerAttempt)
	x.life, _ = strconv.Atoi(header.Get(headerLife))
	r.trace("service", "call %d: %s %s?%s", number, method, path, query)
	if path == basePath+elsewhere {
		if r.Caller != callerRedirects {
			r.fail(number, "a redirect was followed")
		}
		return nil
	}
	if header.Get("Authorization") != r.world.token {
		r.fail(number, "the key did not come with the request")
	}
	if want := x.kind.Method + " " + basePath + x.kind.path; method+" "+path != want {
		r.fail(number, "%s %s arrived instead of %s", method, path, want)
	}
	x.page = pageOf(query)
	if call.Form == formBulk {
		x.unit.batch = -1
		return x
	}
	x.head()
	return x
}

// head records that a request has arrived, and selects the step for it.
func (x *exchange) head() {
	now := time.Now()
	early := false
	n := x.run.note(x.unit, func(n *record) {
		held := x.run.held[x.kind.Op]
		early = now.After(held[0]) && now.Before(held[1]) && x.paced()
		n.heads++
		n.lives[x.life]++
	})
	index, call := n.heads-1, &x.run.Calls[x.call]
	if now.Before(n.notBefore) && call.Form != formWalk && len(call.Deaths) == 0 {
		x.run.fail(x.call, "asked again %v too early", n.notBefore.Sub(now))
	}
	if early {
		x.run.fail(x.call, "asked while the service held its operation back")
	}
	switch call.Form {
	case formWalk:
		index = x.page*2 + x.run.note(unit{x.call, -1 - x.page}, func(n *record) { n.heads++ }).heads - 1
	case formBulk:
		index += x.unit.batch * 2
	}
	x.step = honest()
	if index < len(call.Steps) {
		x.step = call.Steps[index]
	}
	switch x.run.Down {
	case downStatus:
		x.step = Step{Status: http.StatusServiceUnavailable}
	case downHangs:
		x.step = Step{Status: http.StatusServiceUnavailable, Cut: "hang"}
	}
	if x.kind.Lists() {
		x.run.note(x.unit, func(n *record) { // once the service repeats a page, it does so for ever
			if n.stuck = n.stuck || x.step.Body == "repeated page"; n.stuck {
				x.step.Body, x.step.Perform, x.step.Status = "repeated page", true, 200
			}
		})
	}
}

// early reports whether the service answers before it has read the body.
func (x *exchange) early() bool { return x.unit.batch >= 0 && x.step.Early }

// paced reports whether the request must wait after a 429 to another request of its operation. Three kinds of calls
// need not wait: Client.Call has no rate limit, a job with a journal has its own client, and a slow key source may
// delay a request that has already waited.
func (x *exchange) paced() bool {
	plan := &x.run.Calls[x.call]
	return !plan.Job && plan.Op != payvault.OpCall && plan.Keys == nil
}

// complete records that a request has arrived with its body, and checks the body.
func (x *exchange) complete(body []byte) {
	x.body = body
	if x.unit.batch < 0 {
		x.unit.batch = batchOf(body)
		x.head()
		x.run.event(x.call)
	}
	x.run.note(x.unit, func(n *record) { n.arrivals++ })
	if !x.kind.isComplete(body) {
		x.run.fail(x.call, "the body did not come whole: %d bytes", len(body))
	}
}

// perform waits as the step says. If the step performs the operation, it does so before or after the wait.
func (x *exchange) perform() {
	late := x.step.Pick%2 == 1
	if x.step.Perform && !late {
		x.performNow()
	}
	if x.step.Wait > 0 {
		x.run.strike("answer: waits")
		<-time.After(x.step.Wait)
	}
	if x.step.Perform && late {
		x.performNow()
	}
}

func (x *exchange) performNow() {
	x.run.note(x.unit, func(n *record) {
		n.again = n.again || n.performed > 0 && n.attempt != x.attempt
		n.attempt = x.attempt
		n.performed++
	})
	x.run.trace("service", "call %d, batch %d: performed", x.call, x.unit.batch)
	x.run.event(x.call)
}

// label returns the value of header X-Sim-Answer: the numbers of the answered call and batch.
func (x *exchange) label() string { return strconv.Itoa(x.call) + "/" + strconv.Itoa(x.unit.batch) }

// batchOf returns the number of the batch in a request body. The ID of the first card is its position in the stream.
func batchOf(body []byte) int {
	_, rest, _ := bytes.Cut(body, []byte(`"card_id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	position, err := strconv.Atoi(string(id))
	if err != nil {
		return 0
	}
	return position / batchSize
}

func pageOf(query string) int {
	_, text, _ := strings.Cut("&"+query, "&page=")
	text, _, _ = strings.Cut(text, "&")
	page, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return page
}

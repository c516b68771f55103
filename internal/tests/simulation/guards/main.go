// Command guards tests the simulator. It breaks the guards in a copy of the SDK, one by one, and counts the scenarios
// that the simulator needs to detect each broken guard. A guard is a piece of code that keeps an invariant.
//
// The command finds a guard by its text in the source, so the SDK needs no code for this test. If a change removes the
// text, TestGuards fails, and somebody has to decide how the guard can be broken now.
//
// Run the command in the folder internal/tests/simulation:
//
//	go run ./guards                # all guards
//	go run ./guards -only redirect # guards with "redirect" in their names
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// guard is a piece of code of the SDK that keeps an invariant, and a broken version of this code. A blank in old stands
// for any white space and comments.
type guard struct{ name, file, old, broken string }

// find returns the start and the end of each occurrence of g.old in the text of its file.
func (g guard) find(text []byte) [][]int {
	words := strings.Fields(regexp.QuoteMeta(g.old))
	return regexp.MustCompile(strings.Join(words, `(\s|//.*\n)+`)).FindAllIndex(text, -1)
}

const (
	delivery = "internal/transport/delivery.go"
	resend   = "internal/transport/resend.go"
	attempt  = "internal/transport/attempt.go"
	response = "internal/transport/response.go"
	retry    = "internal/transport/retry.go"
	redact   = "internal/redact/redact.go"
)

func guards() []guard {
	return []guard{
		{"replay class, after a lost connection", retry, "failed.Delivery != NotSent && !c.Replay", "false"},
		{
			"replay class, after 502, 503, 504", retry,
			"http.StatusGatewayTimeout:",
			"http.StatusGatewayTimeout: isHarmless = true",
		},
		{
			"replay class, of the table", "operations.go",
			`"/platform/invoice/{invoice_id}/send", ReplayNever`,
			`"/platform/invoice/{invoice_id}/send", ReplaySame`,
		},
		{
			"GetBody only on HTTP/1", resend,
			"c.client.onlyHTTP1 && (!isSafe",
			"(!isSafe",
		},
		{
			"an empty body that cannot be had anew, on HTTP/2", resend,
			"req.Body, req.GetBody = attemptReader{content, body}, nil",
			"if req.Body != nil { req.Body, req.GetBody = attemptReader{content, body}, nil }",
		},
		{
			"a 429 after the RoundTripper sent it twice", retry,
			"isHarmless = c.Replay || !c.result.Unsure",
			"isHarmless = true",
		},
		{"most attempts", "internal/transport/call.go", "max: cmp.Or(r.", "max: 1 + cmp.Or(r."},
		{"budget of retries", retry, "if c.cost == 0 {", "if c.cost == 0 && false {"},
		{
			"a refusal is waited for", retry,
			"c.Pace.Refused(c.lastPlace, after)",
			"c.Pace.Refused(c.lastPlace, 0)",
		},
		{
			"a refusal holds all calls of its operation back", "exchange.go",
			"c.paces[op.Op]",
			"c.paces[OpCall]",
		},
		{"Retry-After", retry, "return after }", "return after / 2 }"},
		{"Retry-After beyond the cap", retry, "return after > c.longestRetryAfter()", "return false"},
		{
			"deadline of the attempt, body included", attempt,
			"context.WithTimeout(c.ctx, c.timeout())",
			"context.WithTimeout(c.ctx, 100*c.timeout())",
		},
		{
			"the caller's context", "internal/transport/call.go",
			"ctx: ctx,",
			"ctx: context.WithoutCancel(ctx),",
		},
		{"cap of the body", response, "int64(len(body)) > limit {", "int64(len(body)) > limit<<20 {"},
		{
			"a change of protocol ends the connection", response,
			"defer resp.Body.Close() if resp.StatusCode == http.StatusSwitchingProtocols {",
			"if resp.StatusCode != http.StatusSwitchingProtocols { defer resp.Body.Close() } else {",
		},
		{"redirects", attempt, "c.client.base.RoundTrip(sent)", "(&http.Client{Transport: c.client.base}).Do(sent)"},
		{"not sent: no headers were written", delivery, "case trace.wroteHeaders.Load():", "case false:"},
		{"not sent: the body was not read", delivery, "c.Length > 0 && !bodyMayBeRead", "c.Length > 0"},
		{
			"not sent: no connection for what has no body", delivery,
			"c.client.standard && trace.connections.Load() == 0",
			"trace.connections.Load() == 0",
		},
		{"sticky unknown: an earlier attempt", attempt, "unsure := c.mayBePerformed()", "unsure := false"},
		{
			"sticky unknown: sent twice by the RoundTripper", response,
			"r.Unsure = r.Unsure || c.mayHaveResent(trace)",
			"",
		},
		{
			"a 403 without a code", "errors.go",
			"case e.StatusCode == http.StatusForbidden: return false",
			"",
		},
		{
			"status 408 on a connection that was idle", delivery,
			"status == http.StatusRequestTimeout && !trace.isNew()",
			"status == http.StatusRequestTimeout && false",
		},
		{
			"success by status, not only by code", "exchange.go",
			"case r.Status < 200 || r.Status > 299:",
			"case r.Status < 200 || r.Status > 299 && r.Status != http.StatusUnavailableForLegalReasons:",
		},
		{
			"success of a read", "exchange.go",
			"case r.Status < 200 || r.Status > 299:",
			"case r.Status < 200 || r.Status > 299 && (out.call.op.Replay != ReplayRead || r.Status < http.StatusBadGateway):",
		},
		{"a success is told as one", "exchange.go", "malformed == nil {", "malformed == nil && len(r.Body)%3 > 0 {"},
		{"success by code, not by status", "call_reply.go", "err = into.result().Check(op.Op.decider())", ""},
		{
			"a code and an rcode that contradict each other", "internal/answer/codes.go",
			"case Disagree(own, other):",
			"case Disagree(own, other) && by > ByEither:",
		},
		{
			"a code of a 5xx is no refusal", "errors.go",
			"return e.StatusCode < 500 && e.Code != \"\" && !answer.Code(e.Code).IsZero()",
			"return e.Code != \"\" && !answer.Code(e.Code).IsZero()",
		},
		{
			"a redirect is no refusal", "errors.go",
			"return e.StatusCode/100 == 4",
			"return e.StatusCode/100 == 4 || e.StatusCode/100 == 3",
		},
		{
			"safe to retry only what is replayable", "errors.go",
			"isHarmless := e.replayClass() == ReplaySame || e.replayClass() == ReplayRead",
			"isHarmless := true",
		},
		{"redaction of the request's secrets", "exchange.go", "texts := secretsOf(out.content.body)", "var texts []string"},
		{"redaction of IDs in the path", "call.go", "name != publicParam &&", "name == publicParam &&"},
		{
			"redaction of the key", "exchange.go",
			"texts = append(texts, keyOf(key), strings.TrimPrefix(key, basic))",
			"_ = strings.TrimPrefix(key, basic)",
		},
		{
			"redaction of the Authorization value", "exchange.go",
			", strings.TrimPrefix(key, basic))",
			")\n\t\t_ = strings.TrimPrefix(key, basic)",
		},
		{
			"redaction of card numbers", redact,
			"from >= 0 && mayHoldCard(text[from:to])",
			"from >= 0 && mayHoldCard(text[from:from])",
		},
		{
			"redaction of what is escaped", redact,
			"if escapesHide || tagsHide {",
			"if (escapesHide || tagsHide) && text == \"\" {",
		},
		{
			"observers are told no IDs", "exchange.go",
			"Path: call.op.Path, Server",
			"Path: call.op.Path + strings.Join(call.checkPath(&problems{}), \"/\"), Server",
		},
		{"what net/http quotes of an answer", "errors_cause.go", `{ return e.text }`, `{ return e.err.Error() }`},
		{
			"the caller's request is left as it is", "call.go",
			"R(&filled).prepare(c, p)",
			"R(req).prepare(c, p); filled = *req",
		},
		{
			"a page that repeats the one before", "page_walk.go",
			"case w.previous != nil && p.repeats", "case p.Number > 1000 && p.repeats",
		},
		{
			"batches at a time", "submit_all.go",
			"make(chan struct{}, o.Concurrency)",
			"make(chan struct{}, o.Concurrency+1)",
		},
		{"a job that is left ends its batches", "submit_all.go", "defer w.leave()", ""},
		{
			"journal: what was begun is not sent again", "bulk_send.go",
			"case known.Begun:",
			"case known.Begun && known.Outcome != nil:",
		},
		{
			"journal: what is of unknown outcome is not sent again", "bulk_errors.go",
			"return BatchUnknown",
			"return BatchNotSent",
		},
		{
			"journal: nothing is sent that it has not recorded", "bulk_send.go",
			"w.leaveOut(b) case b.isOther",
			"return true; case b.isOther",
		},
		{
			"journal: no card number as the ID of a request", "bulk_batch.go",
			"containsCard(b.RequestID, cards)",
			"containsCard(b.RequestID, nil)",
		},
		{
			"journal: a batch is recorded before it is sent", "bulk_send.go",
			"hasBegun = w.begin(b)",
			"hasBegun = true",
		},
		{
			"journal: an answer is recorded after the walk has ended", "bulk_send.go",
			"w.journal.End(w.requests,",
			"w.journal.End(w.sending,",
		},
		{
			"journal: an unknown outcome is recorded", "bulk_send.go",
			"if w.journal == nil { return } if err := w.journal.End(",
			"if w.journal == nil || outcome.Status == BatchUnknown { return }; if err := w.journal.End(",
		},
		{"journal: a batch that waited is recorded anew", retry, "c.begun = false", ""},
		{
			"journal: a batch that may have been performed stays begun while it waits", retry,
			" || c.mayBePerformed() {",
			" {",
		},
		{
			"a batch is sent only when the next card has come", "bulk_stream.go",
			"batch.End++",
			"batch.End++; if batch.isFull() { next := batch.next(); w.start(batch, valid); batch, valid = next, nil }",
		},
		{
			"an error of the stream stops the walk", "bulk_stream.go",
			"w.stop(&StopError{Reason: StopStream, cause: disown(err)})",
			"_ = err",
		},
		{
			"journal: what it was not asked about is not safe to retry", "bulk_walk.go",
			"final: w.journal != nil",
			"final: false",
		},
		{
			"observers hear of a call that panics", "exchange.go",
			"e.observers.end(e.ctx, e.info, callResult(e.info.Op, e.result, into, took, e.unread, e.err))",
			"if r := callResult(e.info.Op, e.result, into, took, e.unread, e.err); r.ErrorClass() != \"panic\" { " +
				"e.observers.end(e.ctx, e.info, r) }",
		},
	}
}

func main() {
	only := flag.String("only", "", "break only guards whose name contains this")
	n := flag.Int("n", 100000, "scenarios at most")
	limit := flag.Duration("timeout", 10*time.Minute, "time for each guard")
	flag.Parse()
	if err := run(*only, *n, *limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(only string, n int, limit time.Duration) error {
	root, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "guards")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := os.CopyFS(scratch, os.DirFS(root)); err != nil {
		return err
	}
	fmt.Printf("| guard that is broken | scenarios | broken invariant |\n|---|---|---|\n")
	missed := 0
	for _, g := range guards() {
		if !strings.Contains(g.name, only) {
			continue
		}
		found, err := try(scratch, g, n, limit)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", g.name, err)
		}
		if found == "" {
			found = "- | not found |"
			missed++
		}
		fmt.Printf("| %s | %s\n", g.name, found)
	}
	if missed > 0 {
		return fmt.Errorf("%d guards are not held", missed)
	}
	return nil
}

var (
	scenariosPattern = regexp.MustCompile(`(?m)^(\d+) scenarios, \d+ calls in`)
	failurePattern   = regexp.MustCompile(`(?m)^seed \d+, .*:\n(.*)$`)
	stuckPattern     = regexp.MustCompile(`seed (\d+) does not end`)
)

// try breaks one guard and plays scenarios. It returns the last two columns of the guard's row in the printed table, or
// "" if the simulator has not found the broken guard.
func try(scratch string, g guard, n int, limit time.Duration) (string, error) {
	path := filepath.Join(scratch, g.file)
	whole, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	places := g.find(whole)
	if len(places) != 1 {
		return "", fmt.Errorf("%s has it %d times: %s", g.file, len(places), g.old)
	}
	broken := slices.Concat(whole[:places[0][0]], []byte(g.broken), whole[places[0][1]:])
	if err := os.WriteFile(path, broken, 0o600); err != nil { //nolint:gosec // a file in the copy
		return "", err
	}
	defer func() { _ = os.WriteFile(path, whole, 0o600) }() //nolint:gosec // a file in the copy
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	folder, program := filepath.Join(scratch, "internal", "tests", "simulation"), filepath.Join(scratch, "simulate.out")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./simulate") //nolint:gosec // the path is made above
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	command := exec.CommandContext(ctx, program, //nolint:gosec // the program was built above
		"-n", strconv.Itoa(n), "-failures", "1", "-workers", "1", "-shrink=false")
	command.Dir = folder
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	if stuck := stuckPattern.FindSubmatch(out); stuck != nil {
		return fmt.Sprintf("%s | it does not end |", stuck[1]), nil
	}
	failure, scenarios := failurePattern.FindSubmatch(out), scenariosPattern.FindSubmatch(out)
	if failure == nil || scenarios == nil {
		if err != nil && scenarios == nil {
			return "", fmt.Errorf("%w\n%.3000s", err, out)
		}
		return "", nil
	}
	text, _, _ := strings.Cut(string(failure[1]), ": payvault")
	return fmt.Sprintf("%s | %.110s |", scenarios[1], strings.ReplaceAll(text, "|", "/")), nil
}

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// state is what the calls of a period left behind, by the traces that they leave.
type state struct {
	srv                               *payvaulttest.Server
	cards, customers, payees, updates map[string]int
	applications                      map[int64]int
	events                            map[string]bool
}

func newState(p *period) *state {
	s := &state{
		srv: p.srv, cards: map[string]int{}, customers: map[string]int{}, payees: map[string]int{}, updates: map[string]int{},
		applications: map[int64]int{}, events: map[string]bool{},
	}
	for _, card := range p.srv.Cards.All() {
		s.cards[card.CardholderName]++
	}
	for _, customer := range p.srv.Customers.All() {
		s.customers[customer.ReferenceID]++
	}
	for _, payee := range p.srv.Payees.All() {
		s.payees[payee.Name]++
	}
	for _, request := range p.srv.AccountUpdaterRequests.All() {
		s.updates[request.Cards[0].CardID]++
	}
	for _, app := range p.srv.Applications.All() {
		s.applications[app.SalesRep]++
	}
	webhook, _ := p.srv.Webhooks.Get(p.ids.Webhook)
	for _, event := range webhook.Events {
		s.events[string(event)] = true
	}
	return s
}

// audit holds what the callers were told against what the emulator did.
func (p *period) audit() {
	state := newState(p)
	books := map[payvault.Operation]map[string]int{}
	for _, r := range p.records {
		if books[r.op] == nil {
			books[r.op] = map[string]int{}
		}
		books[r.op][r.outcome]++
		n := r.performed(state)
		switch {
		case n < 0, r.outcome == succeeded && n == 1, r.outcome == decided && n == 0, r.outcome == unknown && n <= 1:
		default:
			p.problem("%s: the caller was told %q, but it was performed %d times", r.op, r.outcome, n)
		}
	}
	for op, outcomes := range books {
		commits := p.srv.Commits(op)
		switch {
		case op == payvault.OpTokensTokenize, op == opTokenizeSaved: // two in one counter: the cards were counted above
		case replayable(op):
			if commits < outcomes[succeeded] {
				p.problem("%s: %d successes, but only %d commits", op, outcomes[succeeded], commits)
			}
		default:
			if commits < outcomes[succeeded] || commits > outcomes[succeeded]+outcomes[unknown] {
				p.problem("%s: %d successes and %d unknown outcomes, but %d commits", op, outcomes[succeeded], outcomes[unknown],
					commits)
			}
		}
	}
}

func replayable(op payvault.Operation) bool {
	return slices.ContainsFunc(payvault.Operations(), func(info payvault.OperationInfo) bool {
		return info.Op == op && info.Replay != payvault.ReplayNever
	})
}

// The secrets that requests carry.
const (
	canaryCard    = "4000123498761234"
	canaryWallet  = "wallet-payload-5Kq0x"
	canaryRouting = "998877665"
	canaryAccount = "55443322110099"
)

// watcher searches what is logged for secrets, and drops it.
type watcher struct {
	canaries [][]byte
	lines    atomic.Int64
	found    atomic.Int64
}

func newWatcher() *watcher {
	w := &watcher{}
	for _, canary := range []string{
		canaryCard, canaryWallet, canaryRouting, canaryAccount, "merchant-api-key", "partner-vendor-key",
		base64.StdEncoding.EncodeToString([]byte(":merchant-api-key")),
		base64.StdEncoding.EncodeToString([]byte(":partner-vendor-key")),
	} {
		w.canaries = append(w.canaries, []byte(canary))
	}
	return w
}

func (w *watcher) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (w *watcher) Write(line []byte) (int, error) {
	w.lines.Add(1)
	w.search(line)
	return len(line), nil
}

func (w *watcher) search(text []byte) {
	for _, canary := range w.canaries {
		if bytes.Contains(text, canary) {
			w.found.Add(1)
		}
	}
}

// sample is what the process holds at the end of a period, when nobody calls.
type sample struct{ heap, goroutines, sockets int }

func takeSample() sample {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{int(m.HeapAlloc >> 10), runtime.NumGoroutine(), sockets()}
}

// sockets counts the open sockets of the process, where the system shows them; a connection has two here.
func sockets() int {
	links, _ := filepath.Glob("/proc/self/fd/*")
	n := 0
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// verdict prints the result and returns the exit status.
func (s *soak) verdict(ctx context.Context) int {
	s.flat("heap KiB", func(s sample) int { return s.heap }, 4<<10)
	s.flat("goroutines", func(s sample) int { return s.goroutines }, 64)
	s.flat("sockets", func(s sample) int { return s.sockets }, 32)
	if found := s.watch.found.Load(); found > 0 {
		s.problem("%d secrets in log lines or errors", found)
	}
	if ctx.Err() != nil {
		s.problem("interrupted")
	}
	s.printf("%d calls in %.0f s, %d log lines searched\n", s.done.Load(), time.Since(s.began).Seconds(),
		s.watch.lines.Load())
	for _, class := range slices.Sorted(maps.Keys(s.classes)) {
		s.printf("%9d %s\n", s.classes[class], class)
	}
	for _, problem := range s.problems {
		s.printf("BROKEN: %s\n", problem)
	}
	if len(s.problems) > 0 {
		return 1
	}
	s.printf("Every success was performed once, nothing else more than once, and no secret was seen.\n")
	return 0
}

// flat compares the last quarter of the samples with the second one.
func (s *soak) flat(name string, of func(sample) int, slack int) {
	quarter := len(s.samples) / 4
	if quarter == 0 {
		return
	}
	mean := func(samples []sample) int {
		sum := 0
		for _, sample := range samples {
			sum += of(sample)
		}
		return sum / len(samples)
	}
	second, last := mean(s.samples[quarter:2*quarter]), mean(s.samples[len(s.samples)-quarter:])
	s.printf("%s: %d in the second quarter, %d in the last\n", name, second, last)
	if last > second+second/4+slack {
		s.problem("%s grew from %d to %d", name, second, last)
	}
}

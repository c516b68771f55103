package simulation

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/payvault"
)

// Result is the result of one run of a scenario.
type Result struct {
	Failures []string
	Trace    Trace
	Struck   map[string]int // how often each fault happened
	Calls    int            // pages and batches count as calls
}

// settle is the virtual time that a run waits after its last call, so that all connections can close. All dials,
// handshakes and deadlines of RoundTrippers end within this time.
const settle = 90 * time.Second

// longestScenario is the virtual time after which a run fails because it does not end.
const longestScenario = 24 * time.Hour

// Run plays a scenario in its own synctest bubble.
func (w *World) Run(t *testing.T, s Scenario) (result Result) {
	t.Helper()
	r := &run{
		Scenario: s, world: w, book: map[unit]*record{}, struck: map[string]int{}, shared: map[string]any{},
		held: map[payvault.Operation][2]time.Time{},
	}
	callers := make([]*caller, 0, len(s.Calls))
	for i := range s.Calls {
		callers = append(callers, r.newCaller(i))
	}
	r.event = func(call int) { callers[call].event() }
	defer func() {
		if p := recover(); p != nil { // synctest.Test panics if goroutines are left, or if all of them wait for ever
			r.fail(-1, "%v", p)
		}
		result = Result{r.failures, r.events, r.struck, 0}
		for _, c := range callers {
			result.Calls += c.started
		}
	}()
	synctest.Test(t, func(t *testing.T) { r.play(t.Context(), callers) })
	return result
}

func (r *run) play(ctx context.Context, callers []*caller) {
	r.start = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tooLong := time.AfterFunc(longestScenario, func() {
		r.fail(-1, "it does not end")
		cancel()
		r.closeFar()
	})
	base := r.pool()
	client, err := r.client(base)
	if err != nil {
		r.fail(-1, "no client: %v", err)
		return
	}
	var lanes sync.WaitGroup
	for lane := range 3 {
		lanes.Go(func() {
			for _, c := range callers {
				for range max(1, c.plan.Times) {
					if c.plan.Lane == lane {
						c.make(ctx, client)
					}
				}
			}
		})
	}
	lanes.Wait()
	base.CloseIdleConnections()
	<-time.After(settle)
	base.CloseIdleConnections()
	synctest.Wait()
	tooLong.Stop()
	http2 := r.Wire == wireH2C || r.Wire == wireH2
	left := r.open.Load()
	r.closeFar()
	r.serving.Wait()
	if http2 { // after a GOAWAY, net/http may keep an unusable connection open until the service closes it
		synctest.Wait()
		left = r.open.Load()
	}
	if left > 0 {
		r.fail(-1, "%d connections are left open", left)
	}
	for _, c := range callers {
		c.audit()
	}
	r.auditBudget(callers)
}

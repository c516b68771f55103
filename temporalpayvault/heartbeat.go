package temporalpayvault

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// heartbeat tells the server what an attempt has come to.
type heartbeat struct {
	record func(ctx context.Context, details any) error // returns when the server has it
	turn   sync.Mutex                                   // held while one is recorded, so that they arrive in order

	refused func(error)   // called when the attempt is to end
	timeout time.Duration // after which the server takes a silent attempt for lost

	mu sync.Mutex // of what the details are taken from
}

// newHeartbeat gives that of an attempt which begins.
func (a *Activities) newHeartbeat(ctx context.Context) *heartbeat {
	h := &heartbeat{record: recordHeartbeat, timeout: heartbeatTimeout(ctx)}
	if a.record != nil {
		h.record = a.record
	}
	return h
}

// send records details, by whoever has the turn. An attempt ends with the first heartbeat that the server refuses, and
// with the first of which it is not known whether the server has it: it may come after a newer one.
func (h *heartbeat) send(ctx context.Context, details any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	err := h.record(ctx, details)
	if err != nil {
		h.refused(err)
	}
	return err
}

// startedAgain is the error of an attempt that the server starts a second time all the same, as it does after a panic
// or by hand: the one before was lost, with what its last heartbeat says.
func startedAgain[T any](ctx context.Context) error {
	var last T
	if err := activity.GetHeartbeatDetails(ctx, &last); err != nil {
		return err // another worker may be able to read it
	}
	return temporal.NewHeartbeatTimeoutError(last)
}

func errHeartbeat(err error) error {
	return temporal.NewApplicationError("a heartbeat was not recorded: "+err.Error(), TypeSafeToRetry)
}

// ledger is the progress of an attempt. Batches that are announced at the same time share a heartbeat.
type ledger struct {
	*heartbeat

	outcomes map[int]Outcome
	sending  map[int]bool // of the announced batches, whether the server knows
}

// announce returns when the server knows that a batch may be sent.
func (l *ledger) announce(ctx context.Context, batch int) error {
	l.mu.Lock()
	l.sending[batch] = false
	l.mu.Unlock()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	shared := l.sending[batch]
	l.mu.Unlock()
	if shared {
		return nil
	}
	err := l.write(ctx)
	if err != nil {
		l.settle(batch, nil) // it is not sent
	}
	return err
}

// settle says what came of a batch; nil if it was not sent, or turned away.
func (l *ledger) settle(batch int, o *Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sending, batch)
	if o != nil {
		l.outcomes[batch] = *o
	}
}

// know takes down what came of a batch, which stays announced until the journal has it too.
func (l *ledger) know(o *Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o != nil {
		l.outcomes[o.Batch] = *o
	}
}

// flush records the progress.
func (l *ledger) flush(ctx context.Context) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	return l.write(ctx)
}

func (l *ledger) write(ctx context.Context) error {
	p := l.progress()
	if err := l.send(ctx, p); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, batch := range p.Sending {
		if _, announced := l.sending[batch]; announced {
			l.sending[batch] = true
		}
	}
	return nil
}

// progress returns a copy.
func (l *ledger) progress() report {
	l.mu.Lock()
	defer l.mu.Unlock()
	byBatch := func(a, b Outcome) int { return cmp.Compare(a.Batch, b.Batch) }
	return report{
		Outcomes: slices.SortedFunc(maps.Values(l.outcomes), byBatch), Sending: slices.Sorted(maps.Keys(l.sending)),
	}
}

// testRun is the run of the SDK's test environments, which have no client for activities. No server gives that ID.
const testRun = "default-test-run-id"

// recordHeartbeat returns when the server has a heartbeat. The server refuses that of an attempt which it has given up.
func recordHeartbeat(ctx context.Context, details any) error {
	info := activity.GetInfo(ctx)
	if info.WorkflowExecution.RunID == testRun {
		activity.RecordHeartbeat(ctx, details)
		return nil
	}
	return activity.GetClient(ctx).RecordActivityHeartbeat(ctx, info.TaskToken, details)
}

func heartbeatTimeout(ctx context.Context) time.Duration {
	return orDefault(activity.GetInfo(ctx).HeartbeatTimeout, defaultHeartbeat)
}

// keepAlive calls beat from time to time, until the function that it returns is called.
func keepAlive(ctx context.Context, beat func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(heartbeatTimeout(ctx) / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				beat()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

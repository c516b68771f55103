package temporalpayvault

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// progress is what a heartbeat holds: the journal of an activity.
type progress struct {
	Outcomes []Outcome `json:"o,omitempty"` // what is known
	Sending  []int     `json:"s,omitempty"` // batches that were announced, and may have been sent; see know
	Unsent   []int     `json:"u,omitempty"` // those of them that were not performed, which the journal may not have
}

// heartbeat is the progress of an attempt. Batches that are announced at the same time share a call of the server.
type heartbeat struct {
	record func(context.Context, progress) error // returns when the server has it
	turn   sync.Mutex                            // held while one is recorded, so that they arrive in order

	refused func(error)   // called when the attempt is to end
	timeout time.Duration // after which the server takes a silent attempt for lost

	mu       sync.Mutex
	heard    time.Time // when the last one that the server has was sent, or the attempt began, by the clock on the wall
	outcomes map[int]Outcome
	sending  map[int]bool // of the announced batches, whether the server knows
	unsent   map[int]bool // those of them that were not performed, which the journal has not recorded
}

// announce returns when the server knows that a batch may be sent.
func (h *heartbeat) announce(ctx context.Context, batch int) error {
	h.mu.Lock()
	h.sending[batch] = false
	h.mu.Unlock()
	h.turn.Lock()
	defer h.turn.Unlock()
	h.mu.Lock()
	shared := h.sending[batch]
	h.mu.Unlock()
	if shared {
		return nil
	}
	err := h.write(ctx)
	if err != nil {
		h.settle(batch, nil) // it is not sent
	}
	return err
}

// settle says what came of a batch; nil if it was not sent, or turned away.
func (h *heartbeat) settle(batch int, o *Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sending, batch)
	delete(h.unsent, batch)
	if o != nil {
		h.outcomes[batch] = *o
	}
}

// know takes down what came of a batch, which stays announced until the journal has it too.
func (h *heartbeat) know(o *Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o != nil {
		h.outcomes[o.Batch] = *o
	}
}

// oweUnsent keeps a batch that was not performed announced, for the next attempt to record that in the journal.
func (h *heartbeat) oweUnsent(batch int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsent[batch] = true
}

// flush records the progress.
func (h *heartbeat) flush(ctx context.Context) error {
	h.turn.Lock()
	defer h.turn.Unlock()
	return h.write(ctx)
}

func (h *heartbeat) write(ctx context.Context) error {
	began, p := wallClock(), h.progress()
	err := h.isSilent()
	if err == nil {
		err = h.record(ctx, p)
	}
	if err == nil { // else another attempt may have begun before the server had this heartbeat
		err = h.isSilent()
	}
	if err != nil {
		if isRefused(err) {
			h.refused(err)
		}
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = began
	for _, batch := range p.Sending {
		if _, announced := h.sending[batch]; announced {
			h.sending[batch] = true
		}
	}
	return nil
}

var errSilent = errors.New("nothing has come from this attempt for its heartbeat timeout")

// isSilent returns an error if another attempt may be at work. The server does not always refuse this one then: it
// tells attempts by their numbers, which begin again when an activity is reset.
func (h *heartbeat) isSilent() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if wallClock().Sub(h.heard) > h.timeout {
		return errSilent
	}
	return nil
}

// wallClock goes on while a machine is suspended, which the monotonic clock may not.
func wallClock() time.Time { return time.Now().Round(0) }

// isRefused reports whether the attempt is to end. It was canceled, paused or reset; or another one may be at work,
// since the server does not know this one any more, or nothing has come from it for the heartbeat timeout.
func isRefused(err error) bool {
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return unknown || late || errors.Is(err, errSilent) || errors.Is(err, context.DeadlineExceeded) ||
		temporal.IsCanceledError(err) || errors.Is(err, activity.ErrActivityPaused) ||
		errors.Is(err, activity.ErrActivityReset)
}

// progress returns a copy.
func (h *heartbeat) progress() progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	byBatch := func(a, b Outcome) int { return cmp.Compare(a.Batch, b.Batch) }
	return progress{
		slices.SortedFunc(maps.Values(h.outcomes), byBatch), slices.Sorted(maps.Keys(h.sending)),
		slices.Sorted(maps.Keys(h.unsent)),
	}
}

// testRun is the run of the SDK's test environments, which have no client for activities. No server gives that ID.
const testRun = "default-test-run-id"

// recordHeartbeat returns when the server has a heartbeat. The server refuses that of an attempt which it has given up.
func recordHeartbeat(ctx context.Context, p progress) error {
	info := activity.GetInfo(ctx)
	if info.WorkflowExecution.RunID == testRun {
		activity.RecordHeartbeat(ctx, p)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatTimeout(ctx))
	defer cancel()
	return activity.GetClient(ctx).RecordActivityHeartbeat(ctx, info.TaskToken, p)
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

package payvault

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// window runs up to size jobs at a time and gives their results back in the order of the jobs. Without a size a
// job runs when its result is asked for, in the goroutine that asks.
type window[R any] struct {
	size    int
	most    int                            // jobs that run or whose results wait for an older one
	next    func() (job func() R, ok bool) // called in the goroutine that asks for results
	queue   []chan R                       // the results to come, in the order of the jobs
	slots   chan struct{}                  // holds one for each job that runs
	running sync.WaitGroup                 // wait for it before leaving
}

func newWindow[R any](size, most int, next func() (job func() R, ok bool)) *window[R] {
	return &window[R]{size: size, most: most, next: next, slots: make(chan struct{}, max(size, 0))}
}

// fill starts jobs until the window is full or there are no more.
func (w *window[R]) fill() {
	for len(w.queue) < w.size {
		w.slots <- struct{}{}
		if !w.start() {
			return
		}
	}
}

// start runs the next job in the slot that has been taken for it.
func (w *window[R]) start() bool {
	job, ok := w.next()
	if !ok {
		<-w.slots
		return false
	}
	result := make(chan R, 1)
	w.queue = append(w.queue, result)
	w.running.Go(func() {
		result <- job()
		<-w.slots
	})
	return true
}

// pop waits for the oldest job. Each younger one that ends meanwhile makes room for another, so that a slow job does not
// hold up the rest. It returns false if there is no job.
func (w *window[R]) pop() (result R, ok bool) {
	if w.size <= 0 {
		job, ok := w.next()
		if ok {
			result = job()
		}
		return result, ok
	}
	w.fill()
	if len(w.queue) == 0 {
		return result, false
	}
	oldest, slots := w.queue[0], w.slots
	for {
		if len(oldest) > 0 || len(w.queue) == w.most {
			slots = nil
		}
		select {
		case result = <-oldest:
			w.queue = w.queue[1:]
			return result, true
		case slots <- struct{}{}:
			if !w.start() {
				slots = nil
			}
		}
	}
}

// turns keep younger jobs from taking the processors away from the oldest, which the others wait for. That one does the second half
// of its work at once; the others a few at a time, the older ones first.
type turns struct {
	mu      sync.Mutex
	oldest  int
	free    int
	waiting map[int]chan func() // by the number of the job
}

// newTurns leaves one processor to the oldest job.
func newTurns(processors int) *turns {
	return &turns{free: max(1, processors-1), waiting: map[int]chan func(){}}
}

// wait returns when it is the turn of a job, with what ends its turn.
func (t *turns) wait(job int) (done func()) {
	t.mu.Lock()
	if job == t.oldest {
		t.mu.Unlock()
		return func() {}
	}
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return t.next
	}
	turn := make(chan func(), 1)
	t.waiting[job] = turn
	t.mu.Unlock()
	return <-turn
}

// next gives the turn that ends to the oldest that waits.
func (t *turns) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	t.give(slices.Min(slices.Collect(maps.Keys(t.waiting))), t.next)
}

// setOldest tells which job the others wait for now.
func (t *turns) setOldest(job int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.oldest = job
	t.give(job, func() {})
}

func (t *turns) give(job int, done func()) {
	if turn := t.waiting[job]; turn != nil {
		turn <- done
		delete(t.waiting, job)
	}
}

// cancelable is context.WithCancel, but leaves it to the calls to refuse a nil context with an error.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}

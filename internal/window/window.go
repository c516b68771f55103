// Package window runs a limited number of jobs at the same time and returns their results in order.
package window

import "sync"

// Window runs each job in a goroutine of its own, and returns the results in the order in which the jobs were started.
// Only one goroutine may call Start, HasRoom and End. Only one goroutine, the same or another one, may call Pop, Stop
// and Wait.
type Window[R any] struct {
	room    chan struct{}        // has a token for each job that was started and not popped
	queue   chan chan outcome[R] // has a channel for each of these jobs, the oldest first
	stopped chan struct{}        // closed by Stop
	running sync.WaitGroup
}

// outcome is the result of a job, or the value with which the job panicked.
type outcome[R any] struct {
	result   R
	panicked any
}

// mostJobs limits the memory of the channels if a caller asks for a huge window.
const mostJobs = 20_000

// New returns a window. The parameter size is the number of jobs that the window has room for, at most 20,000. A job
// takes up room until its result is popped.
func New[R any](size int) *Window[R] {
	size = min(max(size, 0), mostJobs)
	return &Window[R]{
		room: make(chan struct{}, size), queue: make(chan chan outcome[R], size), stopped: make(chan struct{}),
	}
}

// HasRoom reports whether the window has room for another job.
func (w *Window[R]) HasRoom() bool { return len(w.room) < cap(w.room) }

// Start waits until the window has room, and starts a job. After Stop it starts nothing and returns false.
func (w *Window[R]) Start(job func() R) bool {
	if w.IsStopped() { // if there is room too, the select below would choose at random
		return false
	}
	select {
	case <-w.stopped:
		return false
	case w.room <- struct{}{}:
	}
	done := make(chan outcome[R], 1)
	w.queue <- done
	w.running.Go(func() {
		var o outcome[R]
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.result = job()
	})
	return true
}

// End declares that no job follows.
func (w *Window[R]) End() { close(w.queue) }

// Pop waits for the oldest job and returns its result. It returns false if there is no job and End was called. If the
// job has panicked, Pop panics with the same value.
func (w *Window[R]) Pop() (result R, ok bool) {
	oldest, ok := <-w.queue
	if !ok {
		return result, false
	}
	o := <-oldest
	<-w.room
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.result, true
}

// Stop ends the window: no more jobs are started. Call it once.
func (w *Window[R]) Stop() { close(w.stopped) }

// IsStopped reports whether Stop was called.
func (w *Window[R]) IsStopped() bool {
	select {
	case <-w.stopped:
		return true
	default:
		return false
	}
}

// Wait waits until no job runs. Call it when no more jobs will be started and the remaining results are not needed.
// First make the jobs end, for example by canceling their context. Wait panics with the value of the first job that has
// panicked and was not popped.
func (w *Window[R]) Wait() {
	w.running.Wait()
	for len(w.queue) > 0 {
		if o := <-<-w.queue; o.panicked != nil {
			panic(o.panicked)
		}
	}
}

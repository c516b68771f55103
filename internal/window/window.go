// Package window runs jobs ahead and returns their results in order.
package window

import "sync"

// Window runs up to size jobs at a time, each in a goroutine of its own. Pop returns the results in the order of the
// jobs. With size 0 no job runs ahead: Pop runs it. A Window is for one goroutine.
type Window[R any] struct {
	size    int
	next    func() (job func() R, ok bool)
	queue   []chan outcome[R] // one channel for each job that has begun, the oldest first
	running sync.WaitGroup
}

// outcome is what a job returned, or the value that it panicked with.
type outcome[R any] struct {
	result   R
	panicked any
}

// New returns a window over the jobs that next returns. Fill and Pop call next, in their own goroutine. When next
// returns false there is no job at the moment; it is called again later.
func New[R any](size int, next func() (job func() R, ok bool)) *Window[R] {
	return &Window[R]{size: size, next: next}
}

// Fill starts jobs until size of them have begun and were not popped, or there are no more.
func (w *Window[R]) Fill() {
	for len(w.queue) < w.size {
		job, ok := w.next()
		if !ok {
			return
		}
		w.start(job)
	}
}

// start runs a job in a goroutine of its own.
func (w *Window[R]) start(job func() R) {
	done := make(chan outcome[R], 1)
	w.queue = append(w.queue, done)
	w.running.Go(func() {
		var o outcome[R]
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.result = job()
	})
}

// Pop fills the window, waits for the oldest job and returns its result. It returns false if there is no job. If the
// job has panicked, Pop panics with the same value.
func (w *Window[R]) Pop() (result R, ok bool) {
	if w.size <= 0 {
		job, ok := w.next()
		if ok {
			result = job()
		}
		return result, ok
	}
	w.Fill()
	if len(w.queue) == 0 {
		return result, false
	}
	oldest := <-w.queue[0]
	w.queue = w.queue[1:]
	if oldest.panicked != nil {
		panic(oldest.panicked)
	}
	return oldest.result, true
}

// Wait waits until no job runs. Call it before you leave a window whose results are not needed; whoever calls it has to
// end the jobs.
func (w *Window[R]) Wait() { w.running.Wait() }

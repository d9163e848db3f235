// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// queue holds what a device has yet to do. Its fields are guarded by the device's lock; steps run without it.
type queue struct {
	steps   []*step
	staged  uint64    // bytes of host data that wait in steps
	most    uint64    // how many there may be before Submit waits
	working bool      // there is a goroutine that runs the steps
	busy    bool      // it is in the middle of one
	turn    sync.Cond // a step has ended
	// slice is how long the goroutine may hold the thread; 0 where it has one of its own.
	slice time.Duration
}

// step is one command with its operands, or what somebody waits for.
type step struct {
	label  string // of a kernel
	staged uint64 // bytes of host data
	do     func()
	begun  bool
	done   chan error // of what somebody waits for: holds the outcome
}

const (
	// defaultStaged lets a program be some buffers ahead of the device without doubling its memory.
	defaultStaged = 256 << 20
	// pageSlice is how long a page may stand still. A pause costs some 4 ms.
	pageSlice = 50 * time.Millisecond
)

func (q *queue) init(lock sync.Locker) {
	q.turn.L, q.most = lock, defaultStaged
	if wasm {
		q.slice = pageSlice
	}
}

// push queues a step and sees to it that somebody runs it.
func (d *device) push(s *step) {
	q := &d.queue
	q.steps = append(q.steps, s)
	q.staged += s.staged
	if !q.working {
		q.working = true
		go d.work()
	}
}

// throttle holds a caller who submits data faster than it is taken in. With a single thread nobody may wait for the
// worker, which may itself be waiting for the page, so the caller only gives it a chance to run.
func (d *device) throttle() {
	q := &d.queue
	if q.slice > 0 {
		if q.staged > q.most {
			d.mu.Unlock()
			runtime.Gosched()
			d.mu.Lock()
		}
		return
	}
	for q.staged > q.most {
		q.turn.Wait()
	}
}

// work runs steps until there are none. A step that does not return, because its reference panicked or ended the goroutine,
// loses the device.
func (d *device) work() {
	var s *step
	defer func() {
		if s == nil {
			return
		}
		cause := panicText(recover())
		d.mu.Lock()
		defer d.mu.Unlock()
		d.queue.busy, d.queue.working = false, false
		d.SetLost("kernel " + s.label + ": " + cause)
		d.settle()
	}()
	breath := time.Now()
	for {
		if s = d.next(s); s == nil {
			return
		}
		s.do()
		if s.done != nil {
			s.done <- nil
		}
		if limit := d.queue.slice; limit > 0 && time.Since(breath) > limit {
			d.rest()
			breath = time.Now()
		}
	}
}

// next ends the step before, and begins the next one if there is any.
func (d *device) next(last *step) *step {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &d.queue
	if last != nil {
		q.staged -= last.staged
	}
	q.busy = len(q.steps) > 0
	q.turn.Broadcast()
	if !q.busy {
		q.steps, q.working = nil, false
		return nil
	}
	s := q.steps[0]
	q.steps[0] = nil // releases its memory when it has run
	q.steps = q.steps[1:]
	s.begun = true
	return s
}

// rest lets the page run. Only a wait for a timer does that.
func (d *device) rest() {
	d.mu.Lock()
	d.queue.busy = false
	d.queue.turn.Broadcast()
	d.mu.Unlock()
	time.Sleep(time.Nanosecond)
}

// settle lets the running step finish and drops all others, because the device is closed or lost.
func (d *device) settle() {
	q := &d.queue
	left := q.steps
	q.steps = nil // the worker finds nothing more to do
	for q.busy {
		q.turn.Wait()
	}
	for _, s := range left {
		q.staged -= s.staged
		if s.done != nil {
			s.done <- d.Usable("cpu: queued work")
		}
	}
	q.turn.Broadcast()
}

// run queues a step that prepare makes under the lock, and waits for it. A step that has not begun when ctx ends never will; one
// that has is quickly done, and until it is, the caller's memory is in use.
func (d *device) run(ctx context.Context, op string, prepare func() (do func(), err error)) error {
	s := &step{done: make(chan error, 1)}
	d.mu.Lock()
	err := d.ready(ctx, op)
	if err == nil {
		s.do, err = prepare()
	}
	if err == nil {
		d.push(s)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
	}
	d.mu.Lock()
	begun := s.begun
	if !begun {
		s.do = nothing
	}
	d.mu.Unlock()
	if !begun {
		return fail(op, ctx.Err())
	}
	return <-s.done
}

func nothing() {}

// panicText puts what recover returned into words.
func panicText(cause any) (text string) {
	defer func() {
		if recover() != nil { // from a method of cause
			text = "panic"
		}
	}()
	switch v := cause.(type) {
	case nil:
		return "the reference ended its goroutine"
	case error:
		return "panic: " + v.Error()
	case string:
		return "panic: " + v
	}
	return "panic"
}

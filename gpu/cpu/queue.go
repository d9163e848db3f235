// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// queue holds what a device has yet to do. Its fields are guarded by the device's lock; steps run without it.
type queue struct {
	jobs    []*job
	staged  uint64    // bytes of host data that wait in jobs
	most    uint64    // how many there may be before Submit waits
	working bool      // there is a goroutine that runs the jobs
	busy    bool      // it is in the middle of a step
	turn    sync.Cond // a step or a job has ended
	// slice is how long the goroutine may hold the thread; 0 where it has one of its own.
	slice time.Duration
}

// job is a submitted list, or a fence: a caller who waits for everything before it.
type job struct {
	steps  []step
	at     int // the next step
	staged uint64
	done   chan struct{} // closed at the end, after err is set
	err    error         // why it ended early: ErrClosed or ErrDeviceLost
}

// step is one command with its operands. A step of a kernel has its label.
type step struct {
	label string
	do    func()
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

// push queues a job and sees to it that somebody runs it.
func (d *device) push(j *job) {
	j.done = make(chan struct{})
	q := &d.queue
	q.jobs = append(q.jobs, j)
	q.staged += j.staged
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
	var s step
	clean := false
	defer func() {
		if clean {
			return
		}
		cause := panicText(recover())
		d.mu.Lock()
		defer d.mu.Unlock()
		d.queue.busy, d.queue.working = false, false
		d.lose("kernel " + s.label + ": " + cause)
	}()
	breath := time.Now()
	for {
		var ok bool
		if s, ok = d.next(); !ok {
			clean = true
			return
		}
		s.do()
		if limit := d.queue.slice; limit > 0 && time.Since(breath) > limit {
			d.rest()
			breath = time.Now()
		}
	}
}

// next ends the step before, and begins the next one if there is any.
func (d *device) next() (step, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &d.queue
	q.busy = false
	defer q.turn.Broadcast()
	for len(q.jobs) > 0 {
		j := q.jobs[0]
		if j.at < len(j.steps) {
			s := j.steps[j.at]
			j.steps[j.at] = step{} // releases its memory
			j.at++
			q.busy = true
			return s, true
		}
		q.jobs[0] = nil
		q.jobs = q.jobs[1:]
		q.end(j, nil)
	}
	q.jobs, q.working = nil, false
	return step{}, false
}

// rest lets the page run. Only a wait for a timer does that.
func (d *device) rest() {
	d.mu.Lock()
	d.queue.busy = false
	d.queue.turn.Broadcast()
	d.mu.Unlock()
	time.Sleep(time.Nanosecond)
}

func (q *queue) end(j *job, err error) {
	q.staged -= j.staged
	j.err = err
	close(j.done)
}

// settle lets the running step finish and ends all jobs that are left with err.
func (d *device) settle(err error) {
	q := &d.queue
	left := q.jobs
	q.jobs = nil // the worker finds nothing more to do
	for q.busy {
		q.turn.Wait()
	}
	for _, j := range left {
		if j.at == len(j.steps) && j.at > 0 {
			q.end(j, nil) // its last step was the one that was running
			continue
		}
		q.end(j, err)
	}
	q.turn.Broadcast()
}

// lose ends the device.
func (d *device) lose(reason string) {
	d.objects.SetLost(reason)
	d.settle(fault.ErrDeviceLost)
	close(d.lost)
}

// await waits for a job. A job that has not begun when ctx ends never will; one that has is quickly done, and until it
// is, the caller's memory is in use.
func (d *device) await(ctx context.Context, op string, j *job) error {
	select {
	case <-j.done:
		return d.outcome(op, j)
	case <-ctx.Done():
	}
	d.mu.Lock()
	begun := j.at > 0
	if !begun {
		j.steps = nil
	}
	d.mu.Unlock()
	if !begun {
		return fail(op, ctx.Err(), "")
	}
	<-j.done
	return d.outcome(op, j)
}

// outcome is the error of a job that is done. The reason of a loss no longer changes then.
func (d *device) outcome(op string, j *job) error {
	if j.err == nil {
		return nil
	}
	return fail(op, j.err, d.objects.Reason())
}

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
	case interface{ String() string }:
		return "panic: " + v.String()
	case string:
		return "panic: " + v
	}
	return "panic"
}

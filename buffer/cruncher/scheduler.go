// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The scheduler of a [DevicePool] has one list of jobs. Each device's goroutine takes the first job that it may run.

// poolDevice is a device of a [DevicePool].
type poolDevice struct {
	cr      *Cruncher
	busy    bool // with a job that is not complete
	done    int
	retired bool // it takes no more
}

// jobBatch is the jobs of one Enqueue.
type jobBatch struct {
	jobs []*job
	done int // so many of the first ones are complete
}

// job is a task of a batch. A broadcast is one job for all devices.
type job struct {
	task    *Task
	batch   *jobBatch
	section *section
	number  int           // in the order of all jobs
	after   int           // all jobs with smaller numbers are complete before this one begins
	begun   []*poolDevice // the devices that have begun it; nil is one of them if it was dropped
	running int           // how many of them are at it
}

// section is the tasks between a begin and an end.
type section struct {
	device *poolDevice
	begun  bool // one of the tasks has ended
}

// newBatch makes the jobs of tasks.
func newBatch(list []*Task) (*jobBatch, error) {
	const op = "Enqueue"
	var open *section
	var kind TaskType // of begin that the section has
	b := new(jobBatch)
	for i, t := range list {
		if t == nil || t.params == nil {
			return nil, fail(op, gpu.ErrInvalid, "nil task")
		}
		if begin := t.opts.Type & (SelectBegin | SerialBegin); begin != 0 {
			if open != nil || begin == SelectBegin|SerialBegin {
				return nil, fail(op, gpu.ErrInvalid, "task ", itoa(i), " begins a section within another")
			}
			open, kind = new(section), begin
		}
		task := *t
		task.r.Blobs = 1
		b.jobs = append(b.jobs, &job{task: &task, batch: b, section: open})
		if end := t.opts.Type & (SelectEnd | SerialEnd); end != 0 {
			if open == nil || end != kind<<1 {
				return nil, fail(op, gpu.ErrInvalid, "task ", itoa(i), " ends a section that did not begin")
			}
			open = nil
		}
	}
	if open != nil {
		return nil, fail(op, gpu.ErrInvalid, "a section does not end")
	}
	return b, nil
}

func (j *job) broadcast() bool { return j.task.opts.Type&Broadcast != 0 }

// takes reports whether a device has yet to run a broadcast.
func (j *job) takes(d *poolDevice) bool {
	return !d.retired && !slices.Contains(j.begun, d) && !slices.Contains(j.begun, nil)
}

// left is how many devices have yet to complete a job.
func (p *DevicePool) left(j *job) int {
	n := j.running
	if j.broadcast() {
		for _, d := range p.devices {
			if j.takes(d) {
				n++
			}
		}
	}
	if len(j.begun) == 0 {
		n = max(n, 1)
	}
	return n
}

// open yields the jobs that are not complete, in their order.
func (p *DevicePool) open(yield func(*job) bool) {
	for _, b := range p.batches {
		for _, j := range b.jobs[b.done:] {
			if p.left(j) > 0 && !yield(j) {
				return
			}
		}
	}
}

// stuck reports whether a job waits and no device is left for it.
func (p *DevicePool) stuck() bool {
	alive := slices.ContainsFunc(p.devices, func(d *poolDevice) bool { return !d.retired })
	for j := range p.open {
		if !alive && j.running == 0 {
			return true
		}
	}
	return false
}

// serve is a device's goroutine.
func (p *DevicePool) serve(d *poolDevice) {
	device := d.cr.workers[0]
	for j := p.next(d); j != nil; j = p.next(d) {
		err := fail("DevicePool", gpu.ErrDeviceLost, "or it has come back without what was on it")
		if !device.lost() {
			err = j.task.compute(p.life.ctx, d.cr)
		}
		if err == nil || !device.lost() || !p.retire(d, j) {
			go p.callback(d, j, err) // which may close the pool, or end its goroutine
		}
	}
	err := d.cr.Close()
	p.mu.Lock()
	p.errs = append(p.errs, err)
	p.mu.Unlock()
}

// next waits for a job of a device. It returns nil when the device takes no more.
func (p *DevicePool) next(d *poolDevice) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; !d.retired; p.change.Wait() {
		if d.busy {
			continue
		}
		if j := p.choose(d); j != nil {
			j.begun = append(j.begun, d)
			j.running++
			d.busy = true
			p.change.Broadcast() // it may be another device's turn
			return j
		}
	}
	return nil
}

// choose returns the first job that a device may begin, if there is one.
func (p *DevicePool) choose(d *poolDevice) *job {
	first := -1 // the number of the first job that is not complete
	for j := range p.open {
		if first < 0 {
			first = j.number
		}
		switch s := j.section; {
		case j.after > first: // and so are all that follow
			return nil
		case j.broadcast():
			if j.takes(d) {
				return j
			}
		case len(j.begun) > 0:
		case s != nil && s.device != nil && !s.device.retired:
			if s.device == d {
				return j
			}
		case s != nil || p.mode == Greedy:
			if p.devices[slices.IndexFunc(p.devices, func(o *poolDevice) bool { return !o.busy && !o.retired })] != d {
				return nil // the one added first takes it
			}
			if s != nil {
				s.device = d
			}
			return j
		default:
			for p.turn %= len(p.devices); p.devices[p.turn].retired; p.turn = (p.turn + 1) % len(p.devices) {
			}
			if p.devices[p.turn] != d {
				return nil
			}
			p.turn++
			return j
		}
	}
	return nil
}

// callback makes the callback of a job that has ended, and completes it also if that panics or ends the goroutine.
func (p *DevicePool) callback(d *poolDevice, j *job, err error) {
	if err != nil && d != nil && p.life.over() {
		err = fail("DevicePool", gpu.ErrClosed, "the pool")
	}
	defer func() {
		if cause := fault.Panic(recover()); cause != "" && err == nil {
			err = fail("Task", ErrCallback, cause)
		}
		p.complete(d, j, err)
	}()
	if j.task.opts.Callback != nil {
		j.task.opts.Callback(err)
	}
}

// complete notes that a job has ended. d is nil for one that was dropped.
func (p *DevicePool) complete(d *poolDevice, j *job, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d != nil {
		d.busy = false
		if err == nil {
			d.done++
		}
		if j.section != nil {
			j.section.begun = true
		}
	}
	if err != nil && p.err == nil {
		p.err = err
	}
	j.running--
	p.sweep(j.batch)
}

// sweep removes a batch that is complete. It is near the front of a list that may be long.
func (p *DevicePool) sweep(b *jobBatch) {
	for b.done < len(b.jobs) && p.left(b.jobs[b.done]) == 0 {
		b.done++
	}
	if b.done == len(b.jobs) {
		at := slices.Index(p.batches, b)
		p.batches = slices.Delete(p.batches, at, at+1)
	}
	p.ended = clock()
	p.change.Broadcast()
}

// drop keeps further devices from beginning some jobs. Jobs that no device has begun end.
func (p *DevicePool) drop(jobs []*job, err error) {
	var list []*job
	for _, j := range jobs {
		if len(j.begun) == 0 {
			j.running++
			list = append(list, j)
		}
		j.begun = append(j.begun, nil)
	}
	go p.callbacks(list, err)
}

// callbacks makes the callbacks of jobs that were dropped, one after the other, on goroutines of their own, which they may end.
func (p *DevicePool) callbacks(list []*job, err error) {
	if len(list) > 0 {
		defer func() { go p.callbacks(list[1:], err) }()
		p.callback(nil, list[0], err)
	}
}

// retire records that a device was lost with a job. Other devices run that job and the rest of the device's sections, except for tasks
// that need elements which their section left on the device. It returns false if the pool is closed.
func (p *DevicePool) retire(d *poolDevice, failed *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.over() {
		return false
	}
	d.retired, d.busy = true, false
	failed.begun = slices.DeleteFunc(failed.begun, func(o *poolDevice) bool { return o == d })
	failed.running--
	var stale []*job
	for j := range p.open {
		if s := j.section; s != nil && s.device == d && s.begun && len(j.begun) == 0 && j.task.needs(d.cr) {
			stale = append(stale, j)
		}
	}
	p.drop(stale, fail("DevicePool", ErrStale, "earlier tasks of the section left it on the device"))
	for _, b := range slices.Clone(p.batches) {
		p.sweep(b)
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// The scheduler of a [DevicePool]: one list of jobs, of which each device's goroutine takes the next one that it may.

// poolDevice is a device of a [DevicePool].
type poolDevice struct {
	dev        *gpu.Device
	generation uint32 // of the device, when it was added
	cr         *Cruncher
	busy       bool // with a job that is not complete
	done       int
	retired    bool // it takes no more
}

func (d *poolDevice) idle() bool { return !d.busy && !d.retired }

// jobBatch is what the jobs of one Enqueue have in common.
type jobBatch struct {
	broadcasts []*job // which devices that come later run, too
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
	serial bool
	device *poolDevice
	begun  bool // one of the tasks has ended
}

// jobsOf makes the jobs of tasks.
func jobsOf(list []*Task) ([]*job, error) {
	var jobs []*job
	var open *section
	b := new(jobBatch)
	for i, t := range list {
		if t == nil || t.params == nil {
			return nil, fail("Enqueue", gpu.ErrInvalid, "nil task")
		}
		begin, end := t.types&(SelectBegin|SerialBegin), t.types&(SelectEnd|SerialEnd)
		if begin != 0 {
			if open != nil || begin == SelectBegin|SerialBegin {
				return nil, fail("Enqueue", gpu.ErrInvalid, "task ", itoa(i), " begins a section within another")
			}
			open = &section{serial: begin == SerialBegin}
		}
		task := *t
		task.r.Blobs = 1
		j := &job{task: &task, batch: b, section: open}
		jobs = append(jobs, j)
		if j.broadcast() {
			b.broadcasts = append(b.broadcasts, j)
		}
		if end != 0 {
			if open == nil || end == SelectEnd|SerialEnd || open.serial != (end == SerialEnd) {
				return nil, fail("Enqueue", gpu.ErrInvalid, "task ", itoa(i), " ends a section that did not begin")
			}
			open = nil
		}
	}
	if open != nil {
		return nil, fail("Enqueue", gpu.ErrInvalid, "a section does not end")
	}
	return jobs, nil
}

func (j *job) broadcast() bool { return j.task.types&Broadcast != 0 }

// takes reports whether a device has yet to run a broadcast.
func (j *job) takes(d *poolDevice) bool {
	return !d.retired && !slices.Contains(j.begun, d) && !slices.Contains(j.begun, nil)
}

// lost says why a device cannot go on with what it has. One that has come back has nothing of it.
func (d *poolDevice) lost() error {
	if err := d.dev.Usable(); err != nil {
		return err
	}
	if d.dev.Generation() != d.generation {
		return fail("DevicePool", gpu.ErrDeviceLost, "it has come back without what was on it")
	}
	return nil
}

// alive counts the devices that take tasks. The lock is held.
func (p *DevicePool) alive() int {
	n := 0
	for _, d := range p.devices {
		if !d.retired {
			n++
		}
	}
	return n
}

// serve is a device's goroutine.
func (p *DevicePool) serve(d *poolDevice) {
	for j := p.next(d); j != nil; j = p.next(d) {
		err := d.lost()
		if err == nil {
			err = j.task.compute(p.life.ctx, d.cr)
		}
		if err != nil && p.life.over() {
			err = fail("DevicePool", gpu.ErrClosed, "the pool")
		}
		switch {
		case err != nil && d.lost() != nil && p.retire(d, j):
		case j.task.done == nil:
			p.complete(d, j, err)
		default:
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
	for _, j := range p.jobs {
		switch s := j.section; {
		case j.after > p.jobs[0].number: // and so are all that follow
			return nil
		case j.broadcast():
			if j.takes(d) {
				return j
			}
		case len(j.begun) > 0:
		case s != nil && s.device != nil:
			if s.device == d {
				return j
			}
		case s != nil || p.mode&RoundRobin == 0:
			if p.devices[slices.IndexFunc(p.devices, (*poolDevice).idle)] != d {
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

// callback makes the callback of a job that has ended, and completes it also if that ends the goroutine.
func (p *DevicePool) callback(d *poolDevice, j *job, err error) {
	defer func() { p.complete(d, j, err) }()
	if panicked := j.task.call(err); err == nil {
		err = panicked
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
	if err != nil && d != nil && p.mode&StopOnError != 0 {
		var rest []*job
		for _, o := range p.jobs {
			if o.batch == j.batch {
				rest = append(rest, o)
			}
		}
		j.batch.broadcasts = nil
		p.drop(rest, fail("DevicePool", ErrStopped))
	}
	j.running--
	p.sweep(slices.Index(p.jobs, j) + 1)
}

// sweep removes those of the first n jobs that are complete. What is at work is near the front of a list that may be long.
func (p *DevicePool) sweep(n int) {
	rest := 0
	for i := n - 1; i >= 0; i-- {
		j := p.jobs[i]
		open := j.running > 0 || len(j.begun) == 0 || j.broadcast() && slices.ContainsFunc(p.devices, j.takes)
		if open {
			rest++
			p.jobs[n-rest] = j
		}
	}
	clear(p.jobs[:n-rest])
	p.jobs = p.jobs[n-rest:]
	p.ended = time.Now()
	p.change.Broadcast()
}

// drop ends those of some jobs that no device has begun, and has no other device begin the rest.
func (p *DevicePool) drop(jobs []*job, err error) {
	var list []*job
	for _, j := range jobs {
		if len(j.begun) == 0 {
			j.running++
			list = append(list, j)
		}
		j.begun = append(j.begun, nil)
	}
	go func() {
		for _, j := range list {
			done := make(chan struct{})
			go func() { // which the callback may end
				defer close(done)
				p.callback(nil, j, err)
			}()
			<-done
		}
	}()
}

// retire notes that a device is lost with a job. That and the rest of its sections are for others, but tasks that need what others of
// their section left on the device. It reports false of a pool that is closed.
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
	for _, j := range p.jobs {
		if s := j.section; s == nil || s.device != d || len(j.begun) > 0 {
			continue
		}
		if j.section.begun && d.cr.keeps(j.task) {
			stale = append(stale, j)
		}
	}
	for _, j := range p.jobs {
		if j.section != nil && j.section.device == d {
			j.section.device = nil
		}
	}
	p.drop(stale, fail("DevicePool", ErrStale, "earlier tasks of the section left it on the device"))
	p.sweep(len(p.jobs))
	return true
}

// repeatBroadcasts has broadcasts that are complete begin again for a new device, while other tasks of their batches are not.
func (p *DevicePool) repeatBroadcasts() {
	var again []*job
	var last *jobBatch // which many in a row have in common
	for _, j := range p.jobs {
		if j.batch == last {
			continue
		}
		last = j.batch
		for _, o := range j.batch.broadcasts {
			if !slices.Contains(p.jobs, o) && !slices.Contains(again, o) {
				again = append(again, o)
			}
		}
	}
	p.jobs = append(again, p.jobs...)
	slices.SortFunc(p.jobs, func(a, b *job) int { return a.number - b.number })
	p.change.Broadcast()
}

// keeps reports whether a task reads what only this cruncher's devices have.
func (cr *Cruncher) keeps(t *Task) bool {
	cr.mu.lock()
	defer cr.mu.unlock()
	for i := range t.params.list {
		p := &t.params.list[i]
		f := &p.flags
		if p.array == nil {
			continue
		}
		if r := cr.arrays[p.array.body]; r != nil && !f.Read && !f.PartialRead && !f.WriteOnly && len(r.values.Newest(r.array.all(), memory.Newer)) > 0 {
			return true
		}
	}
	return false
}

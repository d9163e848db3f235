// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// The scheduler of a [DevicePool]: one queue of jobs, a ready queue for each device, and for each device a goroutine that computes
// what is in its own.

// poolDevice is a device of a [DevicePool].
type poolDevice struct {
	dev        *gpu.Device
	generation uint32 // of the device, when it was added
	cr         *Cruncher
	ready      []*job // for this device and no other, in order
	busy       bool   // with a job that is not complete
	done       int
	retired    bool // it takes no more
}

// jobBatch is the tasks of one Enqueue.
type jobBatch struct {
	number     int
	left       int    // jobs that are not complete
	broadcasts []*job // for devices that come later
	stopped    bool
}

// job is a task of a batch. Jobs of a broadcast are one for all devices.
type job struct {
	task    *Task
	types   TaskType
	batch   *jobBatch
	section *section
}

// section is the tasks between a begin and an end.
type section struct {
	serial bool
	device *poolDevice
	begun  bool // one of the tasks has ended
}

// jobsOf makes the jobs of tasks.
func jobsOf(list []*Task, b *jobBatch) ([]*job, error) {
	var jobs []*job
	var open *section
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
		jobs = append(jobs, &job{task: &task, types: t.types, batch: b, section: open})
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

// load is how much a device has to do.
func (d *poolDevice) load() int {
	if d.busy {
		return 1 + len(d.ready)
	}
	return len(d.ready)
}

// notify wakes the goroutines that wait for a change. The lock is held.
func (p *DevicePool) notify() {
	close(p.event)
	p.event = make(chan struct{})
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

// dispatch moves jobs to the ready queues as far as that is possible now. The lock is held.
func (p *DevicePool) dispatch() {
	for p.step() {
	}
	p.notify()
}

// step decides about the next job, and reports whether it could.
func (p *DevicePool) step() bool {
	if p.alive() == 0 {
		return false
	}
	if len(p.retries) > 0 {
		return p.place(p.retries[0]) && shift(&p.retries)
	}
	if len(p.queue) == 0 {
		return false
	}
	j := p.queue[0]
	if (p.barrier || j.types&GlobalSyncFirst != 0) && p.busy() {
		return false
	}
	p.barrier = false
	if !p.place(j) {
		return false
	}
	p.barrier = j.types&GlobalSyncLast != 0
	return shift(&p.queue)
}

func shift(list *[]*job) bool {
	(*list)[0] = nil
	*list = (*list)[1:]
	return true
}

func (p *DevicePool) busy() bool {
	return slices.ContainsFunc(p.devices, func(d *poolDevice) bool { return d.load() > 0 })
}

// place gives a job to a device, or to all, and reports whether one was free.
func (p *DevicePool) place(j *job) bool {
	if j.types&Broadcast != 0 {
		j.batch.left += p.alive() - 1
		j.batch.broadcasts = append(j.batch.broadcasts, j)
		for _, d := range p.devices {
			if !d.retired {
				d.ready = append(d.ready, j)
			}
		}
		return true
	}
	d := p.choose(j)
	if d == nil {
		return false
	}
	d.ready = append(d.ready, j)
	return true
}

// choose returns the device for a job, or nil if that is not free. Jobs of a section wait wherever the section is.
func (p *DevicePool) choose(j *job) *poolDevice {
	if s := j.section; s != nil {
		if s.device == nil || s.device.retired {
			s.device = p.idlest()
		}
		return s.device
	}
	d := p.idlest()
	if p.mode&RoundRobin != 0 {
		for p.turn %= len(p.devices); p.devices[p.turn].retired; p.turn = (p.turn + 1) % len(p.devices) {
		}
		d = p.devices[p.turn]
	}
	if d.load() > 0 {
		return nil
	}
	p.turn++
	return d
}

// idlest returns the device with the least to do. There is one.
func (p *DevicePool) idlest() *poolDevice {
	var best *poolDevice
	for _, d := range p.devices {
		if !d.retired && (best == nil || d.load() < best.load()) {
			best = d
		}
	}
	return best
}

// next waits for a job of a device. It returns nil when the device takes no more.
func (p *DevicePool) next(d *poolDevice) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !d.retired {
		if !d.busy && len(d.ready) > 0 {
			j := d.ready[0]
			d.busy = shift(&d.ready)
			return j
		}
		event := p.event
		p.mu.Unlock()
		<-event
		p.mu.Lock()
	}
	return nil
}

// serve is a device's goroutine.
func (p *DevicePool) serve(d *poolDevice) {
	for j := p.next(d); j != nil; j = p.next(d) {
		err := d.lost()
		if err == nil {
			err = p.run(d, j)
		}
		switch {
		case err != nil && d.lost() != nil && p.reassign(d, j):
		case j.task.done == nil:
			p.complete(d, j, err)
		default:
			p.callback(d, j, err)
		}
	}
	err := d.cr.Close()
	p.mu.Lock()
	p.errs = append(p.errs, err)
	p.mu.Unlock()
}

// run computes a job.
func (p *DevicePool) run(d *poolDevice, j *job) error {
	p.mu.Lock()
	stopped := j.batch.stopped
	p.mu.Unlock()
	if stopped {
		return fail("DevicePool", ErrStopped)
	}
	err := j.task.compute(p.life.ctx, d.cr)
	if err != nil && p.life.over() {
		err = fail("DevicePool", gpu.ErrClosed, "the pool")
	}
	return err
}

// callback makes the callback of a job that has ended, on a goroutine of its own: the callback may end that, or close the pool.
func (p *DevicePool) callback(d *poolDevice, j *job, err error) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		var panicked error
		defer func() {
			if err == nil {
				err = panicked
			}
			p.complete(d, j, err)
			close(ended)
		}()
		panicked = j.task.call(err)
	}()
	return ended
}

// complete notes that a job has ended. d is nil for one that was dropped.
func (p *DevicePool) complete(d *poolDevice, j *job, err error) {
	p.mu.Lock()
	if d != nil {
		d.busy = false
		if err == nil {
			d.done++
		}
		if j.section != nil {
			j.section.begun = true
		}
	}
	p.subtract(j)
	b := j.batch
	var dropped []*job
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		if p.mode&StopOnError != 0 && !b.stopped {
			b.stopped = true
			dropped = p.withdraw(b)
		}
	}
	if p.life.over() {
		p.notify()
	} else {
		p.dispatch()
	}
	p.mu.Unlock()
	p.drop(dropped, fail("DevicePool", ErrStopped))
}

// subtract counts a job as complete.
func (p *DevicePool) subtract(j *job) {
	p.ended = time.Now()
	if j.batch.left--; j.batch.left == 0 {
		p.batches = slices.DeleteFunc(p.batches, func(b *jobBatch) bool { return b == j.batch })
	}
}

// withdraw takes back the jobs of a batch that no device has begun.
func (p *DevicePool) withdraw(b *jobBatch) (taken []*job) {
	others := func(list []*job) []*job {
		var rest []*job
		for _, j := range list {
			if j.batch == b {
				taken = append(taken, j)
			} else {
				rest = append(rest, j)
			}
		}
		return rest
	}
	p.retries, p.queue = others(p.retries), others(p.queue)
	for _, d := range p.devices {
		d.ready = others(d.ready)
	}
	b.broadcasts = nil
	return taken
}

// drop ends jobs that are not to be computed.
func (p *DevicePool) drop(jobs []*job, err error) {
	if len(jobs) == 0 {
		return
	}
	go func() {
		for _, j := range jobs {
			<-p.callback(nil, j, err)
		}
	}()
}

// reassign notes that a device is lost and gives its jobs to others: failed, and all that wait. It reports whether failed is among
// them.
func (p *DevicePool) reassign(d *poolDevice, failed *job) bool {
	p.mu.Lock()
	if p.life.over() {
		p.mu.Unlock()
		return false
	}
	orphans := append([]*job{failed}, d.ready...)
	d.retired, d.busy, d.ready = true, false, nil
	var stale []*job
	for _, o := range orphans {
		switch {
		case o.types&Broadcast != 0 && p.alive() > 0: // the others do it anyway
			p.subtract(o)
		case o.types&Broadcast != 0:
			o.batch.broadcasts = slices.DeleteFunc(o.batch.broadcasts, func(x *job) bool { return x == o })
			p.retries = append(p.retries, o)
		case o.section != nil && o.section.begun && d.cr.keeps(o.task):
			stale = append(stale, o)
		default:
			p.retries = append(p.retries, o)
		}
	}
	p.dispatch()
	p.mu.Unlock()
	p.drop(stale, fail("DevicePool", ErrStale, "earlier tasks of the section left it on the device"))
	return true
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
		if r := cr.arrays[p.array.body]; r != nil && !f.Read && !f.PartialRead && !f.WriteOnly && r.dirty.Len() > 0 {
			return true
		}
	}
	return false
}

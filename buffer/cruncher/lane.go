// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// lane is a device of a [DevicePool]. A goroutine computes what it is given, in that order.
type lane struct {
	dev     *gpu.Device
	life    uint32 // of the device, when it was added
	cr      *Cruncher
	jobs    chan *job // has room for all that may be in flight
	pending []*job    // for this device and no other, in order
	flying  int       // given, and not complete
	done    int
	dead    bool // it takes no more
}

// batch is an enqueued task pool.
type batch struct {
	number     int
	left       int    // jobs that are not complete
	broadcasts []*job // for devices that come later
	stopped    bool
}

// job is a task of a batch. Jobs of a broadcast are one for all devices.
type job struct {
	task    *Task
	types   TaskType
	batch   *batch
	section *section
}

// section is the tasks between a begin and an end.
type section struct {
	serial bool
	group  *TaskGroup
	lane   *lane
	begun  bool // one of the tasks has ended
}

// jobsOf makes the jobs of a pool.
func jobsOf(list []entry, b *batch) ([]*job, error) {
	var jobs []*job
	var open *section
	for i, e := range list {
		begin, end := e.types&(SelectBegin|SerialBegin), e.types&(SelectEnd|SerialEnd)
		if begin != 0 {
			if open != nil || begin == SelectBegin|SerialBegin {
				return nil, fail("Enqueue", gpu.ErrInvalid, "task ", itoa(i), " begins a section within another")
			}
			open = &section{serial: begin == SerialBegin, group: e.group}
		}
		t := *e.task
		t.r.Blobs = 1
		jobs = append(jobs, &job{task: &t, types: e.types, batch: b, section: open})
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

// retire closes a lane: what it was given comes back to it only. The pool's lock is held.
func (l *lane) retire() {
	if !l.dead {
		l.dead = true
		close(l.jobs)
	}
}

// lost says why a lane's device cannot go on with what it has. One that has come back has nothing of it.
func (l *lane) lost() error {
	if err := l.dev.Usable(); err != nil {
		return err
	}
	if l.dev.Generation() != l.life {
		return fail("DevicePool", gpu.ErrDeviceLost, "it has come back without what was on it")
	}
	return nil
}

// load is how much a lane has to do.
func (l *lane) load() int { return l.flying + len(l.pending) }

// dispatch gives out as many tasks as may be under way now. The lock is held.
func (p *DevicePool) dispatch() {
	for p.step() {
	}
	for _, l := range p.lanes {
		for !l.dead && l.flying < p.conf.limit && len(l.pending) > 0 {
			l.jobs <- l.pending[0] // has room
			l.pending = l.pending[1:]
			l.flying++
		}
	}
	p.notify()
}

// step decides about the next task, and reports whether it could.
func (p *DevicePool) step() bool {
	if p.alive() == 0 {
		return false
	}
	if len(p.redo) > 0 {
		return p.place(p.redo[0]) && shift(&p.redo)
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
	return slices.ContainsFunc(p.lanes, func(l *lane) bool { return l.load() > 0 })
}

// place gives a job to a lane, or to all, and reports whether one had room.
func (p *DevicePool) place(j *job) bool {
	if j.types&Broadcast != 0 {
		j.batch.left += p.alive() - 1
		j.batch.broadcasts = append(j.batch.broadcasts, j)
		for _, l := range p.lanes {
			if !l.dead {
				l.pending = append(l.pending, j)
			}
		}
		return true
	}
	l := p.choose(j)
	if l == nil {
		return false
	}
	l.pending = append(l.pending, j)
	return true
}

// choose returns the lane for a job, or nil if that has no room now. Sections have room wherever they are.
func (p *DevicePool) choose(j *job) *lane {
	if s := j.section; s != nil {
		if s.group != nil && s.lane == nil {
			s.lane = p.homes[s.group]
		}
		if s.lane == nil || s.lane.dead {
			s.lane = p.idlest()
		}
		if s.group != nil {
			p.homes[s.group] = s.lane
		}
		return s.lane
	}
	l := p.idlest()
	if p.mode == RoundRobin {
		for p.turn %= len(p.lanes); p.lanes[p.turn].dead; p.turn = (p.turn + 1) % len(p.lanes) {
		}
		l = p.lanes[p.turn]
	}
	if l.load() >= p.conf.limit {
		return nil
	}
	p.turn++
	return l
}

// idlest returns the lane with the least to do. There is one.
func (p *DevicePool) idlest() *lane {
	var best *lane
	for _, l := range p.lanes {
		if !l.dead && (best == nil || l.load() < best.load()) {
			best = l
		}
	}
	return best
}

// serve is a lane's goroutine.
func (p *DevicePool) serve(l *lane) {
	for j := range l.jobs {
		err := l.lost()
		if err == nil {
			err = p.run(l, j)
		}
		switch {
		case err != nil && l.lost() != nil && p.bury(l, j):
		case j.task.done == nil:
			p.complete(l, j, err)
		default:
			ended := p.callback(l, j, err)
			if j.section != nil && j.section.serial {
				select {
				case <-ended:
				case <-p.life.ctx.Done(): // the callback may be what closes the pool
				}
			}
		}
	}
	err := l.cr.Close()
	p.mu.Lock()
	p.errs = append(p.errs, err)
	p.mu.Unlock()
}

// run computes a job.
func (p *DevicePool) run(l *lane, j *job) error {
	p.mu.Lock()
	stopped := j.batch.stopped
	p.mu.Unlock()
	if stopped {
		return fail("DevicePool", ErrStopped)
	}
	err := j.task.compute(p.life.ctx, l.cr)
	if err != nil && p.life.over() {
		err = fail("DevicePool", gpu.ErrClosed, "the pool")
	}
	return err
}

// callback makes the callback of a job that has ended, on a goroutine of its own: it may end that.
func (p *DevicePool) callback(l *lane, j *job, err error) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		var cerr error
		defer func() {
			if err == nil {
				err = cerr
			}
			p.complete(l, j, err)
			close(ended)
		}()
		cerr = j.task.call(err)
	}()
	return ended
}

// complete notes that a job has ended. l is nil for one that was dropped.
func (p *DevicePool) complete(l *lane, j *job, err error) {
	p.mu.Lock()
	if l != nil {
		l.flying--
		if err == nil {
			l.done++
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
		if p.conf.stop && !b.stopped {
			b.stopped = true
			dropped = p.withdraw(b)
		}
	}
	if !p.life.over() {
		p.dispatch()
	}
	p.mu.Unlock()
	p.drop(dropped, fail("DevicePool", ErrStopped))
}

// subtract counts a job as complete.
func (p *DevicePool) subtract(j *job) {
	p.ended = time.Now()
	if j.batch.left--; j.batch.left == 0 {
		p.batches = slices.DeleteFunc(p.batches, func(b *batch) bool { return b == j.batch })
	}
}

// withdraw takes back the jobs of a batch that no device was given.
func (p *DevicePool) withdraw(b *batch) []*job {
	var out []*job
	take := func(list []*job) []*job {
		var stay []*job
		for _, j := range list {
			if j.batch == b {
				out = append(out, j)
			} else {
				stay = append(stay, j)
			}
		}
		return stay
	}
	p.redo, p.queue = take(p.redo), take(p.queue)
	for _, l := range p.lanes {
		l.pending = take(l.pending)
	}
	b.broadcasts = nil
	return out
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

// bury notes that a lane's device is lost and gives its jobs to others: j, which failed, and all that wait. It reports whether
// j is among them.
func (p *DevicePool) bury(l *lane, j *job) bool {
	p.mu.Lock()
	if p.life.over() {
		p.mu.Unlock()
		return false
	}
	orphans := []*job{j}
	if !l.dead {
		for len(l.jobs) > 0 {
			orphans = append(orphans, <-l.jobs)
		}
		l.retire()
	}
	l.flying -= len(orphans)
	orphans = append(orphans, l.pending...)
	l.pending = nil
	var stale []*job
	for _, o := range orphans {
		switch {
		case o.types&Broadcast != 0 && p.alive() > 0: // the others do it anyway
			p.subtract(o)
		case o.types&Broadcast != 0:
			o.batch.broadcasts = slices.DeleteFunc(o.batch.broadcasts, func(x *job) bool { return x == o })
			p.redo = append(p.redo, o)
		case o.section != nil && o.section.begun && l.cr.keeps(o.task):
			stale = append(stale, o)
		default:
			p.redo = append(p.redo, o)
		}
	}
	p.dispatch()
	p.mu.Unlock()
	p.drop(stale, fail("DevicePool", ErrStale, "earlier tasks of the section left it on the device"))
	return true
}

// keeps reports whether a task reads what only this cruncher's devices have.
func (cr *Cruncher) keeps(t *Task) bool {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	for i := range t.group.list {
		p := &t.group.list[i]
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

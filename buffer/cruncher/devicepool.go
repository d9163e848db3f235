// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// TaskType says what is special about a task in a [DevicePool]. Types are joined by |, and have the values of Cekirdekler's
// ClTaskType. Outside of a pool only TransferOnly has an effect.
type TaskType uint8

// The types.
const (
	SelectBegin     TaskType = 1 << iota // this task and the following ones run on one device, that with the least to do
	SelectEnd                            // this is the last one of them
	GlobalSyncFirst                      // all earlier tasks are complete before this one begins
	GlobalSyncLast                       // this task and all earlier ones are complete before later ones begin
	Broadcast                            // runs on every device, also on those added while its pool is under way
	TransferOnly                         // moves what the task would and runs no kernel
	SerialBegin                          // like SelectBegin; besides, a task begins when the callback of the one before has returned
	SerialEnd                            // this is the last one of them
)

// Task is a call of [Cruncher.Compute] to be made later, with the flags that its arrays had when the task was made. A task does not
// change and can be computed any number of times, also by several goroutines at once if its arrays allow that.
//
// It is ClTask of Cekirdekler, https://github.com/tugrul512bit/Cekirdekler, file ClPipeline.cs.
type Task struct {
	id      int
	kernels string
	r       Range
	params  *group
	opts    TaskOptions
}

// TaskOptions are further settings of [NewTask]. The zero value sets none.
type TaskOptions struct {
	Type TaskType
	// Callback is called each time that the task has ended, with the error of its computation or nil. In a pool the device has
	// no other task before it returns: it must not wait for the pool. A callback there that panics is [ErrCallback].
	Callback func(error)
}

// NewTask makes a task of [Cruncher.Compute] with the parameters, of which [Params] joins several.
func NewTask(id int, kernels string, r Range, p Param, opts TaskOptions) (*Task, error) {
	const op = "NewTask"
	r.Inner = slices.Clone(r.Inner)
	t := &Task{id: id, kernels: kernels, r: r, params: newGroup(p), opts: opts}
	list, err := gather([]Param{t.params})
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(splitNames(kernels)) == 0 {
		return nil, fail(op, kernel.ErrKernel, "none is named")
	}
	for i := range list {
		if opts.Type&Broadcast != 0 && list[i].flags.Write {
			return nil, fail(op, gpu.ErrInvalid, "a task for all devices would write ", list[i].name)
		}
	}
	t.r.TransferOnly = t.r.TransferOnly || opts.Type&TransferOnly != 0
	return t, nil
}

// Compute makes the call on all devices of the cruncher, then calls the task's callback.
func (t *Task) Compute(ctx context.Context, cr *Cruncher) error {
	if t == nil || t.params == nil {
		return fail("Task", gpu.ErrInvalid, "no task")
	}
	err := t.compute(ctx, cr)
	if t.opts.Callback != nil {
		t.opts.Callback(err)
	}
	return err
}

func (t *Task) compute(ctx context.Context, cr *Cruncher) error {
	return cr.Compute(ctx, t.id, t.kernels, t.r, t.params)
}

// needs reports whether the task reads elements that only a cruncher's devices have.
func (t *Task) needs(cr *Cruncher) bool {
	return slices.ContainsFunc(t.params.list, func(p param) bool {
		if p.array == nil || p.flags.goesUp() || p.flags.WriteOnly {
			return false
		}
		holders, _ := p.array.stale(p.array.all())
		return slices.Contains(holders, cr)
	})
}

// PoolMode says which device gets the next task.
type PoolMode uint8

// The modes are Cekirdekler's DEVICE_COMPUTE_AT_WILL and DEVICE_ROUND_ROBIN, which does nothing there.
const (
	Greedy     PoolMode = iota // whichever has the least to do
	RoundRobin                 // the next one in the order in which they were added
)

// DevicePool computes whole tasks, each on one of several devices. Tasks are given out in the order of
// [DevicePool.Enqueue]; while one device is at work others go on with later tasks, except where the
// [TaskType] of a task says otherwise. A device has one task at a time, which ends when its callback has returned. Each device has a
// [Cruncher] of its own: what tasks leave on a device without writing it to the host is seen by later tasks of that device only.
//
// A task whose device is lost is computed by another one; so are the tasks that wait for that device. A task of a section,
// between SelectBegin and SelectEnd or SerialBegin and SerialEnd, that needs what only the lost device had is [ErrStale]. A device
// that has come back, see [gpu.Device.Reopen], is to be added again. So that a
// task is done either wholly or not at all, [Range.Blobs] has no effect in a pool.
//
// Tasks that may run at the same time must not write elements that others read or write. Arrays of which each task writes a
// part of its own are best read with PartialRead.
//
// It is ClDevicePool of Cekirdekler, file ClPipeline.cs, whose round robin is not implemented and whose threads poll.
type DevicePool struct {
	mode PoolMode
	wgsl string
	life lifetime
	wg   sync.WaitGroup // of the devices' goroutines

	mu      sync.Mutex
	change  *sync.Cond // of what follows
	devices []*poolDevice
	batches []*jobBatch   // that are not complete, in their order
	count   int           // of jobs so far
	fence   int           // jobs from now on begin when all with smaller numbers are complete
	turn    int           // of round robin
	began   time.Duration // by clock, 0 for not yet
	ended   time.Duration
	err     error // the first one since Finish
	errs    []error
}

// started is when the program started. A [time.Time] among a pool's fields would make programs for pages a hundredth larger: the linker
// keeps its String with all that prints dates.
var started = time.Now()

// clock returns the time since then, which is not 0.
func clock() time.Duration { return max(time.Since(started), 1) }

// NewDevicePool makes a pool without devices for kernels of the source. The context is as for [New].
func NewDevicePool(ctx context.Context, mode PoolMode, wgsl string) (*DevicePool, error) {
	const op = "NewDevicePool"
	if err := begun(ctx, op); err != nil {
		return nil, err
	}
	if mode > RoundRobin {
		return nil, fail(op, gpu.ErrInvalid, "unknown mode")
	}
	if _, err := kernel.Parse(wgsl); err != nil {
		return nil, err
	}
	p := &DevicePool{mode: mode, wgsl: wgsl, life: newLifetime()}
	p.change = sync.NewCond(&p.mu)
	return p, nil
}

// AddDevice adds a device, which stays the caller's, also while tasks are under way. One may be added several times: its
// additions are devices of their own to the pool.
func (p *DevicePool) AddDevice(dev *gpu.Device) error {
	if p == nil {
		return fail("AddDevice", gpu.ErrInvalid, "nil pool")
	}
	cr, err := New(context.Background(), []*gpu.Device{dev}, p.wgsl)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.over() {
		return fail("AddDevice", gpu.ErrClosed, "the pool")
	}
	d := &poolDevice{cr: cr}
	p.devices = append(p.devices, d)
	for _, b := range p.batches {
		b.done = 0 // broadcasts begin again
	}
	p.wg.Go(func() { p.serve(d) })
	return nil
}

// Enqueue has the devices compute tasks, and returns at once. Sections that overlap, that do not begin or do not end are refused.
func (p *DevicePool) Enqueue(tasks ...*Task) error {
	const op = "Enqueue"
	if p == nil {
		return fail(op, gpu.ErrInvalid, "nil pool")
	}
	b, err := newBatch(tasks)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.over() {
		return fail(op, gpu.ErrClosed, "the pool")
	}
	if len(b.jobs) == 0 {
		return nil
	}
	if p.began == 0 {
		p.began = clock()
	}
	for _, j := range b.jobs {
		j.number = p.count
		p.count++
		if j.task.opts.Type&GlobalSyncFirst != 0 {
			p.fence = j.number
		}
		j.after = p.fence
		if j.task.opts.Type&GlobalSyncLast != 0 {
			p.fence = p.count
		}
	}
	p.batches = append(p.batches, b)
	p.change.Broadcast()
	return nil
}

// Finish returns when all tasks enqueued before are complete, and their callbacks have returned. The duration is from the first
// Enqueue after the last Finish to the completion of the last task, the error the first one of a task since then. Without
// devices, or when all are lost, tasks that wait for one make it return [ErrDevices] or [gpu.ErrDeviceLost]; they are kept
// for devices added later.
func (p *DevicePool) Finish(ctx context.Context) (time.Duration, error) {
	const op = "Finish"
	switch {
	case p == nil || ctx == nil:
		return 0, fail(op, gpu.ErrInvalid, "nil pool or context")
	case p.change == nil:
		return 0, fail(op, gpu.ErrClosed, "the pool")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.change.Broadcast()
		p.mu.Unlock()
	})
	defer stop()
	for last := p.count; !p.life.over() && len(p.batches) > 0 && p.batches[0].jobs[0].number < last; p.change.Wait() {
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case !p.stuck():
		case len(p.devices) == 0:
			return 0, fail(op, ErrDevices, "tasks wait for one")
		default:
			return 0, fail(op, gpu.ErrDeviceLost, "all devices")
		}
	}
	if p.life.over() {
		return 0, fail(op, gpu.ErrClosed, "the pool")
	}
	var took time.Duration
	if p.began != 0 {
		took = p.ended - p.began
	}
	err := p.err
	p.began, p.err = 0, nil
	if len(p.batches) > 0 { // enqueued meanwhile
		p.began = clock()
	}
	return took, err
}

// Completed returns how many tasks each device has computed, in the order in which the devices were added.
func (p *DevicePool) Completed() []int {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []int
	for _, d := range p.devices {
		list = append(list, d.done)
	}
	return list
}

// Remaining returns how many tasks are not complete. A broadcast counts once for each device.
func (p *DevicePool) Remaining() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for j := range p.open {
		n += p.left(j)
	}
	return n
}

// Close stops what is under way and drops what waits, whose callbacks get [gpu.ErrClosed], and gives the device memory of the
// pool back. It does not wait for callbacks. The devices stay. Later calls do nothing.
func (p *DevicePool) Close() error {
	if p == nil || p.life.ctx == nil { // which never changes
		return nil
	}
	p.mu.Lock()
	if !p.life.over() {
		p.life.end()
		for _, d := range p.devices {
			d.retired = true
		}
		p.drop(slices.Collect(p.open), fail("DevicePool", gpu.ErrClosed, "the pool"))
		p.change.Broadcast()
	}
	p.mu.Unlock()
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.errs...)
	p.errs = nil
	return err
}

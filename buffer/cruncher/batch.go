// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// Batch is a sequence of calls that are queued without waiting for results. All results come back at its end; see [Cruncher.Batch]. It is
// Cekirdekler's enqueueMode, for any number of devices.
type Batch struct {
	cr      *Cruncher
	held    map[*Any]bool   // the arrays, which the program must not lose before their results come back
	wake    []chan struct{} // of each device
	reached []atomic.Int64  // of each device: so many calls are done
	queued  atomic.Int64    // calls
	before  []result        // what was on the host where results came early
}

// Batch runs queue, which queues calls with [Batch.Compute], then waits for them and copies their results to the host. The results are
// those of the same calls of [Cruncher.Compute]. Until Batch returns, the host memory of the arrays must not be used, and other calls of
// the cruncher are [ErrBatch].
//
// Within a batch all calls of an id divide the range as the first one did, and the balancer learns nothing, because single calls are
// not timed. A call waits only for elements that have to move from one device to another.
//
// If queue returns an error, the results of the calls that it queued are copied to the host all the same. If copying fails, host memory
// is unchanged, and the newest elements are on the devices only. Calls that upload arrays begin with the host's elements again.
//
// If a lost device alone had results of the batch, calls that need them and the batch itself are [ErrStale], and host memory is
// unchanged. The calls may be queued again, in another batch.
func (cr *Cruncher) Batch(ctx context.Context, queue func(b *Batch) error) error {
	const op = "Batch"
	if queue == nil {
		return fail(op, gpu.ErrInvalid, "nil function")
	}
	if err := cr.begin(ctx, op, nil); err != nil {
		return err
	}
	b := cr.open()
	cr.refresh()
	cr.mu.unlock()
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watchers sync.WaitGroup
	for i, w := range cr.workers {
		watchers.Go(func() { b.watch(watch, i, w) })
	}
	defer watchers.Wait()
	defer stop()
	ended := false
	defer func() {
		if !ended { // queue has panicked
			cr.mu.lock()
			cr.abandon()
			cr.mu.unlock()
		}
	}()
	err := queue(b)
	cr.mu.lock()
	defer cr.mu.unlock()
	ended = true
	return errors.Join(err, cr.finish(ctx))
}

func (cr *Cruncher) open() *Batch {
	b := &Batch{cr: cr, held: map[*Any]bool{}, reached: make([]atomic.Int64, len(cr.workers))}
	for range cr.workers {
		b.wake = append(b.wake, make(chan struct{}, 1))
	}
	if cr.batch, cr.mark = b, cr.uses; cr.conf.coherence != Pin {
		cr.fixed.Clear()
	}
	return b
}

// finish copies the batch's results to the host and waits until all devices are done.
func (cr *Cruncher) finish(ctx context.Context) error {
	const op = "Batch"
	defer cr.abandon()
	if cr.closed {
		return fail(op, gpu.ErrClosed, "the cruncher")
	}
	list, err := cr.fetch(ctx, op, slices.Collect(maps.Values(cr.arrays)), memory.Pending)
	if err != nil {
		return err
	}
	for _, w := range cr.workers {
		if w.lost() {
			continue
		}
		if err := w.dev.Sync(ctx); err != nil && !w.lost() {
			return named(op, err)
		}
	}
	cr.noteLost()
	for _, r := range cr.arrays {
		if r.batch == cr.batch && r.stale() {
			return fail(op, ErrStale, "a device was lost")
		}
	}
	if err := cr.settle(ctx, list); err != nil {
		return err
	}
	cr.batch.before = nil
	return nil
}

// abandon ends a batch that failed. Host memory gets back the elements that results have replaced; newer elements stay on the devices.
func (cr *Cruncher) abandon() {
	before := cr.batch.before
	cr.batch = nil
	for i := len(before) - 1; i >= 0; i-- {
		r := &before[i]
		if to, err := r.array.host.Part(r.Offset, r.Width).Writer(); err == nil && cr.arrays[r.array] == r.residency {
			to(r.mem)
			r.values.HostChanged(r.Region, memory.Newer)
			cr.arrived(r)
		}
	}
	for _, r := range cr.arrays {
		r.again = r.again || len(r.values.Newest(r.array.all(), memory.Pending)) > 0
		r.values.Change(r.array.all(), memory.Pending, memory.Newer)
		r.batch = nil
		cr.tell(r)
	}
}

// bringEarly copies results of the batch to the host before a call overwrites them whose flags do not copy them back. The elements that
// they replace on the host are kept until the batch has succeeded.
func (cr *Cruncher) bringEarly(ctx context.Context, c *call) error {
	if c.batch == nil {
		return nil
	}
	var list []*residency
	for k := range c.arrays {
		if a := &c.arrays[k]; a.changed && !a.flags.Write {
			list = append(list, a.residency)
		}
	}
	results, err := cr.fetch(ctx, "Batch", list, memory.Pending)
	if err != nil || len(results) == 0 {
		return err
	}
	before := slices.Clone(results)
	for i := range before {
		r := &before[i]
		host := r.array.host.Part(r.Offset, r.Width)
		if host.Foreign == nil {
			r.mem = slices.Clone(host.Mem())
		} else if r.mem, err = memory.Load(ctx, cr.workers[r.Slot].dev, host); err != nil {
			return err
		}
	}
	if err = cr.settle(ctx, results); err == nil {
		c.batch.before = append(c.batch.before, before...)
	}
	return err
}

// Compute queues a call of [Cruncher.Compute]. It returns the errors that are found before the call runs; [Cruncher.Batch] returns later
// ones. After the end of the batch it is [gpu.ErrClosed].
func (b *Batch) Compute(ctx context.Context, id int, kernels string, r Range, ps ...Param) error {
	if b == nil || b.cr == nil {
		return fail("Compute", gpu.ErrInvalid, "nil batch")
	}
	if err := b.cr.compute(ctx, b, id, kernels, r, ps); err != nil {
		return named("Compute", err)
	}
	b.queued.Add(1)
	b.notify()
	return nil
}

// notify wakes the goroutines that watch how far the devices are.
func (b *Batch) notify() {
	for _, wake := range b.wake {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// watch counts the calls that a device has completed.
func (b *Batch) watch(ctx context.Context, i int, w *worker) {
	for {
		select {
		case <-b.wake[i]:
		case <-ctx.Done():
			return
		}
		n := b.queued.Load()
		if w.dev.Sync(ctx) == nil {
			b.reached[i].Store(n)
		}
	}
}

// Reached returns how many of the calls queued so far are done on all devices that are not lost.
func (b *Batch) Reached() int {
	if b == nil {
		return 0
	}
	n := b.queued.Load()
	for i := range b.reached {
		if b.cr.workers[i].dev.Usable() == nil {
			n = min(n, b.reached[i].Load())
		}
	}
	return int(n)
}

// Remaining returns how many of the calls queued so far are not done yet.
func (b *Batch) Remaining() int {
	if b == nil {
		return 0
	}
	queued := int(b.queued.Load())
	return max(queued-b.Reached(), 0)
}

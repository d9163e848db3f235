// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"runtime"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/turn"
)

// queue submits the command lists of a device, one at a time. A submission may have to wait for work that does not end. It is therefore
// guarded by the queue's turn, for which callers wait with a context, and not by the device's lock, which every call needs. The turn is
// taken before the lock.
type queue struct {
	drv  driver.Device
	turn turn.Lock
	next uint64 // the first batch that the driver did not get yet; under the device's lock

	spare  batch              // the memory of the last one; of who has the turn
	single driver.CommandList // of what does not go with a batch; likewise
}

// drainer is a driver's device whose submissions wait for earlier ones and cannot be cancelled. Lists that only define and forget binding
// sets do not wait.
type drainer interface {
	// Drain returns when a submission would not have to wait, or with the context's error. If there is nothing to wait for the
	// context does not matter.
	Drain(ctx context.Context) error
}

// idler is a driver's device that can say, without waiting, whether all submitted work is done.
type idler interface{ Idle() bool }

// Idle submits what is recorded, if that needs no waiting, and reports whether the device is known to have finished, so that a call which
// waits for it would return at once. It is false if the driver cannot say, and after an error.
func (d *Device) Idle() bool {
	if d.lock("Idle") != nil {
		return false
	}
	q := d.queue
	d.mu.Unlock()
	busy, ok := q.drv.(idler)
	if !ok || d.flush(ended) != nil || !busy.Idle() {
		return false
	}
	d.mu.Lock()
	same := d.queue == q
	if same {
		d.settle(q.next)
	}
	d.mu.Unlock()
	return same
}

// Sent reports whether everything that was recorded was submitted.
func (d *Device) Sent() bool {
	if d.lock("Sent") != nil {
		return false
	}
	defer d.mu.Unlock()
	return d.batch.commands == 0
}

// waits says that submissions may have to wait. In pages they never do; asking for Done there means that the call waits.
const waits = runtime.GOOS != "js"

// limit is a context that ends by itself. Those of package context would make a page's program 16 KB larger.
type limit struct {
	context.Context
	done chan struct{}
	err  error
}

func (l *limit) Done() <-chan struct{} { return l.done }

func (l *limit) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// ended is a context for calls that must not wait.
var ended = func() context.Context {
	l := &limit{context.Background(), make(chan struct{}), context.Canceled}
	close(l.done)
	return l
}()

// drain waits until a submission would not have to.
func (q *queue) drain(ctx context.Context) error {
	if busy, ok := q.drv.(drainer); ok {
		return busy.Drain(ctx)
	}
	return nil
}

// ready takes the turn for a submission that will not have to wait.
func (d *Device) ready(ctx context.Context, q *queue) error {
	if err := q.turn.Take(ctx); err != nil {
		return err
	}
	err := q.drain(ctx)
	if err != nil {
		_ = d.leave(q) // the caller gets the error of the wait
	}
	return err
}

// unlock ends a call. It submits a batch that has become large, unless the device is busy, and frees memory that the batch does not use.
func (d *Device) unlock() error {
	n, frees := d.batch.commands, len(d.batch.after) > 0
	large := d.together == 0 && n > 0 && n%d.enough() == 0
	d.mu.Unlock()
	if large || n == 0 && frees {
		return d.flushIdle()
	}
	return nil
}

// flushIdle submits the batch unless the device is busy.
func (d *Device) flushIdle() error {
	if err := d.flush(ended); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Together runs fn and then submits its commands at once, together with commands queued before and, meanwhile, by other goroutines. A batch
// is submitted earlier if it reaches its limit of 4096 commands or 64 MiB of host memory, or if a call waits for results. Together
// returns the error of fn or of a submission.
func (d *Device) Together(fn func() error) error {
	const op = "Together"
	if fn == nil {
		return fail(op, ErrInvalid, "nil function")
	}
	if err := d.lock(op); err != nil {
		return err
	}
	d.together++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.together--
		d.mu.Unlock()
	}()
	if err := fn(); err != nil {
		return err
	}
	d.mu.Lock()
	large := d.together == 1 && d.batch.commands >= d.enough()
	d.mu.Unlock()
	if large {
		return named(op, d.flushIdle())
	}
	return nil
}

// added counts a command and unlocks the device. If the batch is at its limit it waits until the batch is submitted.
func (d *Device) added() error {
	d.batch.commands++
	if d.batch.commands < mostCommands && d.batch.staged < mostStaged {
		return d.unlock()
	}
	d.mu.Unlock()
	return d.flush(context.Background())
}

// Ready waits until commands can be added without waiting. Calls that have a context use it before they add commands, since adding takes no
// context. It waits only if the batch is nearly full and cannot be submitted because the device is busy.
func (d *Device) Ready(ctx context.Context) error {
	const op = "Ready"
	if ctx == nil {
		return fail(op, ErrInvalid, "nil context")
	}
	if err := d.lock(op); err != nil {
		return err
	}
	full := waits && (d.batch.commands >= mostCommands/4*3 || d.batch.staged >= mostStaged/4*3)
	d.mu.Unlock()
	if !full {
		return nil
	}
	return named(op, d.flush(ctx))
}

// flush submits the batch to the driver. A batch that the driver refuses is dropped whole. If the context ends while flush waits for the
// device the batch stays; after that the submission goes on.
func (d *Device) flush(ctx context.Context) error {
	d.mu.Lock()
	q := d.queue
	d.mu.Unlock()
	if err := q.turn.Take(ctx); err != nil {
		return fail("Flush", err)
	}
	b, err := d.take(ctx, q)
	if err != nil {
		return cmp.Or(err, d.leave(q))
	}
	if !waits || ctx == ended || len(b.list.Words) == 0 || ctx.Done() == nil {
		return cmp.Or(d.send(q, &b), d.leave(q))
	}
	done := make(chan error, 1)
	go func() { done <- cmp.Or(d.send(q, &b), d.leave(q)) }()
	select {
	case err = <-done:
		return err
	case <-ctx.Done():
		return fail("Flush", ctx.Err())
	}
}

// take removes the batch from the device, after waiting until the driver can accept it at once.
func (d *Device) take(ctx context.Context, q *queue) (b batch, err error) {
	d.mu.Lock()
	if d.queue == q && d.batch.commands > 0 {
		d.mu.Unlock()
		if err := q.drain(ctx); err != nil {
			return b, err
		}
		d.mu.Lock()
		return d.cut(q), nil
	}
	return d.cut(q), nil
}

// cut begins another batch and unlocks the device. It returns no batch for the queue of an earlier generation.
func (d *Device) cut(q *queue) (b batch) {
	if d.queue == q {
		b, d.batch = d.batch, q.spare
		d.sending(&b)
		d.batch.epoch = b.epoch + 1
		q.spare = batch{}
	}
	d.mu.Unlock()
	return b
}

// send submits a batch to the driver and then runs the functions that were deferred until after it.
func (d *Device) send(q *queue, b *batch) error {
	var err error
	if len(b.list.Words) > 0 {
		b.list.Number = b.epoch
		if err = d.submit(q, &b.list); err != nil {
			err = d.blame(&b.launches, err)
			d.drop(q, b.epoch, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue == q && b.epoch > 0 {
		if q.next = b.epoch + 1; len(b.list.Words) > 0 && err == nil {
			d.stats.Submissions++
		}
		if !d.refusesLater() {
			d.settle(q.next)
		}
		for _, free := range b.after {
			free()
		}
	}
	b.list.Reset()
	clear(b.after)
	q.spare = batch{list: b.list, after: b.after[:0]}
	return err
}

// submit submits a list to the driver.
func (d *Device) submit(q *queue, list *driver.CommandList) error {
	for {
		err := q.drv.Submit(list)
		if err == nil || !d.waited(q, 0, err) {
			return err
		}
	}
}

// leave releases what was to be freed during the turn, then the turn.
func (d *Device) leave(q *queue) error {
	var first error
	for {
		d.mu.Lock()
		if d.queue != q || d.batch.commands > 0 || len(d.batch.after) == 0 {
			q.turn.Give()
			d.mu.Unlock()
			return first
		}
		b := d.cut(q)
		first = cmp.Or(first, d.send(q, &b))
	}
}

// drop notes that a batch was refused, and drops what was collected since. Its binding sets and the cache's are forgotten. Whether the
// driver got as far as to define or to forget one is not known, so each is forgotten by a list of its own, which fails where there is
// none. A driver may report an error of earlier work at any submission; the second try is then the one that forgets. If that fails,
// too, for another reason than that there is no set, its id is not used again.
func (d *Device) drop(q *queue, epoch uint64, why error) {
	d.mu.Lock()
	if d.queue != q {
		d.mu.Unlock()
		return
	}
	d.refused(epoch, why)
	d.batch.list.Reset()
	d.batch.commands, d.batch.launched, d.batch.staged = 0, 0, 0
	d.batch.epoch++
	last := d.setIDs.last
	clear(d.sets)
	d.setIDs = idTable{last: last}
	d.mu.Unlock()
	var free []uint32
	for id := last; id > 0; id-- {
		q.single.Unbind(driver.BindingsID(id))
		err := d.submit(q, &q.single) // the caller gets the error of the refused list
		if err != nil {
			err = d.submit(q, &q.single)
		}
		q.single.Reset()
		if err == nil || errors.Is(err, ErrInvalid) {
			free = append(free, id)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue == q {
		d.setIDs.free = append(d.setIDs.free, free...)
	}
}

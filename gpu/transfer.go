// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Write copies host memory to the buffer from offset on, a multiple of 4. The caller may change the memory as soon as
// Write returns. Bytes after a size that is no multiple of 4, up to the next multiple, become zero.
//
// It goes ahead of the batch in progress where that does not use the buffer, else with it. While the device is at work a copy of the
// memory goes with the batch; where there are many such, Write waits.
func (b *Buffer) Write(offset uint64, src Host) error {
	const op = "Write"
	if err := b.lock(op); err != nil {
		return err
	}
	d, q := b.dev, b.dev.queue
	d.mu.Unlock()
	if !src.Valid() {
		return fail(op, ErrInvalid, "host memory shorter than it says")
	}
	if err := driver.CheckRange("gpu: Write", offset, (uint64(src.Size)+3)&^3, b.mem.size); err != nil || src.Size == 0 {
		return err
	}
	for again := true; ; again = false {
		err := d.ready(ended, q)
		if waits && errors.Is(err, context.Canceled) && src.Foreign == nil && src.Size <= mostStaged {
			return b.stage(offset, src)
		} else if err != nil {
			err = d.ready(context.Background(), q)
		}
		if err == nil {
			err = cmp.Or(b.write(q, offset, src), d.leave(q))
		}
		if !again || !d.relieve(context.Background(), q, err) {
			return d.outcome(op, q.drv, err)
		}
	}
}

// stage has a copy of host memory go with the batch.
func (b *Buffer) stage(offset uint64, src Host) error {
	src = HostBytes(slices.Clone(src.Mem()))
	if err := b.lock("Write"); err != nil {
		return err
	}
	d := b.dev
	d.write(b.mem)
	b.mem.replaced(offset, uint64(src.Size))
	d.batch.list.Write(b.mem.id, offset, src)
	d.batch.staged += src.Size
	d.stats.BytesUp += uint64(src.Size)
	d.note("write", "bytes", uint64(src.Size), "offset", offset)
	return named("Write", d.added())
}

// write submits host memory. The caller has the queue's turn.
func (b *Buffer) write(q *queue, offset uint64, src Host) error {
	if err := b.lock("Write"); err != nil {
		return err
	}
	d := b.dev
	if d.queue != q {
		d.mu.Unlock()
		return fail("Write", ErrDeviceLost, "it came back meanwhile")
	}
	d.stats.BytesUp += uint64(src.Size)
	d.note("write", "bytes", uint64(src.Size), "offset", offset)
	var err error
	if d.queued(b.mem) {
		if d.refusesLater() { // otherwise nobody but this caller has to know
			d.write(b.mem)
		}
		d.batch.list.Write(b.mem.id, offset, src)
		batch := d.cut(q)
		err = d.send(q, &batch)
	} else {
		q.single.Write(b.mem.id, offset, src)
		d.mu.Unlock()
		err = d.submit(q, &q.single)
		q.single.Reset()
	}
	if err == nil {
		d.mu.Lock()
		b.mem.replaced(offset, uint64(src.Size))
		d.mu.Unlock()
	}
	return err
}

// Timestamp queues the device's clock into the 8 bytes from offset on, a multiple of 8, as a number of 64 bits, the low half first: the time
// at which what was queued before is done. It counts ticks of Info().Limits.TimestampPeriod nanoseconds from some moment on, in pages
// most often in steps of 100 microseconds. A device without [driver.FeatureTimestamps] is [ErrUnsupported].
func (b *Buffer) Timestamp(offset uint64) error {
	const op = "Timestamp"
	if err := b.lock(op); err != nil {
		return err
	}
	d := b.dev
	err := driver.CheckRange("gpu: Timestamp", offset, 8, b.mem.size)
	switch {
	case !d.info.Features.Has(driver.FeatureTimestamps):
		err = fail(op, ErrUnsupported, "the device has no timestamps")
	case err == nil && offset%8 != 0:
		err = fail(op, ErrInvalid, "offset ", offset, " is not a multiple of 8")
	}
	if err != nil {
		d.mu.Unlock()
		return err
	}
	d.write(b.mem)
	b.mem.replaced(offset, 8)
	d.batch.list.Timestamp(b.mem.id, offset)
	return named(op, d.added())
}

// Clear queues zeros for size bytes from offset on, both multiples of 4.
func (b *Buffer) Clear(offset, size uint64) error {
	if err := b.lock("Clear"); err != nil {
		return err
	}
	d := b.dev
	if err := driver.CheckRange("gpu: Clear", offset, size, b.mem.size); err != nil || size == 0 {
		d.mu.Unlock()
		return err
	}
	d.write(b.mem)
	b.mem.replaced(offset, size)
	d.batch.list.Clear(b.mem.id, offset, size)
	return named("Clear", d.added())
}

// CopyFrom queues a copy of size bytes between two buffers of one device; offsets and size are multiples of 4.
func (b *Buffer) CopyFrom(offset uint64, src *Buffer, srcOffset, size uint64) error {
	const op = "CopyFrom"
	if b == nil || src == nil || src.dev != b.dev {
		return fail(op, ErrForeign, "copy between two devices")
	}
	if err := b.lock(op); err != nil {
		return err
	}
	d, to, from := b.dev, b.mem, src.mem
	err := src.present(op)
	if err == nil && from == to {
		err = fail(op, ErrInvalid, "within one buffer")
	}
	if err == nil {
		err = cmp.Or(driver.CheckRange("gpu: CopyFrom", offset, size, to.size), driver.CheckRange("gpu: CopyFrom", srcOffset, size, from.size))
	}
	if err == nil && size > 0 {
		err = cmp.Or(from.intact(op), to.intact(op))
	}
	if err != nil || size == 0 {
		d.mu.Unlock()
		return err
	}
	d.write(to)
	d.use(from)
	d.batch.list.Copy(to.id, offset, from.id, srcOffset, size)
	return named(op, d.added())
}

// Read copies from the buffer to host memory and waits for it. t.Buffer is ignored.
func (b *Buffer) Read(ctx context.Context, t Transfer) error {
	err := b.await(ctx, "Read", func(drv driver.Device) error {
		t.Buffer = b.mem.id
		return drv.Read(ctx, t)
	})
	if err == nil {
		b.dev.mu.Lock()
		b.dev.stats.BytesDown += uint64(t.Width) * uint64(t.Count)
		b.dev.note("read", "bytes", uint64(t.Width)*uint64(t.Count), "offset", t.Offset)
		b.dev.mu.Unlock()
	}
	return err
}

// Sync waits until everything queued before is done. The error of other buffers' work is not this one's.
func (b *Buffer) Sync(ctx context.Context) error {
	return b.await(ctx, "Sync", func(drv driver.Device) error { return drv.Wait(ctx) })
}

// await has the driver wait, once what is queued has left. A batch that was refused is an error only if it was to write the buffer.
func (b *Buffer) await(ctx context.Context, op string, wait func(driver.Device) error) error {
	if err := b.lock(op); err != nil {
		return err
	}
	d, m, q := b.dev, b.mem, b.dev.queue
	m.reading++
	d.batch.list.More = op == "Read"
	d.mu.Unlock()
	defer d.unpin(m, q)
	before, err := b.left(ctx, op, q)
	for again, late := true, true; late && err == nil; {
		err = wait(q.drv)
		late = d.waited(q, before, err)
		if again && !late {
			again, late = false, d.relieve(ctx, q, err)
		}
		if late {
			err = nil
		}
		d.mu.Lock()
		err = cmp.Or(m.intact(op), err) // others may have heard of a refusal meanwhile
		d.mu.Unlock()
	}
	return d.outcome(op, q.drv, err)
}

// unpin ends a call during which the memory may not be recycled; m.reading counts such calls.
func (d *Device) unpin(m *memory, q *queue) {
	d.mu.Lock()
	if m.reading--; m.left && m.reading == 0 && d.queue == q && !d.closed {
		d.recycle(m)
	}
	_ = d.unlock() // the error of a batch is told to who waits for that
}

// left returns the number of the queue's next batch, once what was queued has left.
func (b *Buffer) left(ctx context.Context, op string, q *queue) (before uint64, err error) {
	if err = fault.Ended(ctx, "gpu: "+op); err != nil {
		return 0, err
	}
	if err = b.dev.flush(ctx); err != nil && ctx.Err() != nil { // what that refuses has failed
		return 0, err
	}
	b.dev.mu.Lock()
	defer b.dev.mu.Unlock()
	return q.next, b.mem.intact(op)
}

// Map waits for what is queued, gives the CPU size bytes of the buffer's own memory from offset on while access runs, and
// takes them back. It needs a buffer of [Device.NewMappable]. On devices that take memory when it is first used, only that
// of the range is taken. The slice is dead afterwards, and not before, even if access closes the buffer or the device: the latter makes
// Map return ErrClosed.
func (b *Buffer) Map(ctx context.Context, offset, size uint64, access func([]byte) error) (err error) {
	const op = "Map"
	if err := b.lock(op); err != nil {
		return err
	}
	m := b.mem
	m.reading++
	defer b.dev.unpin(m, b.dev.queue)
	b.dev.mu.Unlock()
	switch {
	case !m.mappable:
		err = fail(op, ErrUnsupported, "the buffer is not mappable")
	case access == nil:
		err = fail(op, ErrInvalid, "nil function")
	case offset > m.size || size > m.size-offset:
		err = fail(op, ErrInvalid, size, " bytes at ", offset, " of ", m.size)
	case size == 0:
		return access(nil)
	}
	if err != nil {
		return err
	}
	skip := offset % 8
	var drv driver.Device
	var mem []byte
	err = b.await(ctx, op, func(d driver.Device) (err error) {
		drv = d
		mem, err = d.Map(ctx, m.id, offset-skip, (skip+size+3)/4*4) // m.size is a multiple of 4
		return err
	})
	if mem != nil {
		defer func() { err = cmp.Or(err, b.dev.outcome(op, drv, drv.Unmap(m.id))) }()
	}
	if err != nil {
		return err
	}
	return access(mem[skip : skip+size : skip+size])
}

// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Types of host memory.
type (
	// Host is memory of the CPU: Go bytes, or a typed array of JavaScript.
	Host = driver.Host
	// Transfer describes rows of bytes to copy from a buffer: Count of them, of Width bytes and Pitch bytes apart, from Offset on
	// to HostOffset of Host. A plain copy has Count 1. Its Buffer field is filled in by [Buffer.Read].
	Transfer = driver.Transfer
)

// HostBytes makes a Host of Go memory.
func HostBytes(b []byte) Host { return driver.HostBytes(b) }

// Buffer is memory of a device: untyped bytes that kernels read and write. Close gives it back.
type Buffer struct {
	dev        *Device
	mem        *memory
	generation uint32 // of the device
	closed     bool
}

// memory is a buffer of the driver's. The Buffers of an imported one share it.
type memory struct {
	id       driver.BufferID
	size     uint64
	mappable bool
	imported int    // the Buffers of an imported one; 0 for the library's own
	epoch    uint64 // the last batch that used it

	wrote     uint64 // the last batch that wrote it
	unsettled bool   // that may be refused still
	failed    error  // why it does not have what it should: a batch was refused
}

// granule is the step of buffer sizes: a vector of four words.
const granule = 16

// defaultPool is how many bytes of closed buffers a device keeps. Reuse needs no waiting, commands run in order; but a buffer comes
// back with the batch that used it last, for the batch in progress may still name it.
const defaultPool = 256 << 20

// NewBuffer makes a buffer of at least size bytes; size 0 is allowed and has nothing behind it but a few bytes. What it
// holds is undefined: use [Buffer.Clear] for zeros.
func (d *Device) NewBuffer(size uint64) (*Buffer, error) { return d.newBuffer(size, false) }

// NewMappable makes a buffer that the CPU can map in place. It needs driver.FeatureMappable.
func (d *Device) NewMappable(size uint64) (*Buffer, error) { return d.newBuffer(size, true) }

func (d *Device) newBuffer(size uint64, mappable bool) (*Buffer, error) {
	const op = "NewBuffer"
	if err := d.lock(op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if most := d.info.Limits.MaxBufferSize; size > most {
		return nil, fail(op, ErrLimit, size, " bytes, the largest buffer has ", most)
	}
	size = max(size+granule-1, granule) / granule * granule
	live := d.stats.LiveBytes + size
	if most := d.conf.memory; most > 0 && live > most {
		return nil, fail(op, ErrNoMemory, size, " bytes over the limit of ", most)
	}
	mem, err := d.allocate(size, mappable)
	if err != nil {
		return nil, err
	}
	d.stats.LiveBytes, d.stats.PeakBytes = live, max(d.stats.PeakBytes, live)
	return d.newHandle(mem), nil
}

// newHandle makes a Buffer of memory.
func (d *Device) newHandle(m *memory) *Buffer {
	d.stats.Buffers++
	return &Buffer{dev: d, mem: m, generation: d.generation.Load()}
}

func (d *Device) allocate(size uint64, mappable bool) (*memory, error) {
	if !mappable {
		if m, ok := d.pool.Take(size).(*memory); ok {
			m.wrote, m.failed = 0, nil
			return m, nil
		}
	}
	id := driver.BufferID(d.buffers.take())
	err := d.drv.NewBuffer(id, size, mappable)
	if err != nil && d.pool.Bytes > 0 && d.shrinkPool(0) == nil && d.flush() == nil { // the pool may hold what is missing
		err = d.drv.NewBuffer(id, size, mappable)
	}
	if err != nil {
		d.buffers.give(uint32(id))
		return nil, err
	}
	return &memory{id: id, size: size, mappable: mappable}, nil
}

// shrinkPool destroys what has waited longest, until the rest has at most so many bytes.
func (d *Device) shrinkPool(limit uint64) error {
	for m := d.pool.Evict(limit); m != nil; m = d.pool.Evict(limit) {
		if err := d.destroy(m.(*memory)); err != nil {
			return err
		}
	}
	return nil
}

// ImportBuffer wraps a buffer that somebody else made on this very device: a *wgpu.Buffer natively, a GPUBuffer in a
// page, usable as storage and for copies both ways. It is never destroyed by Sublet and must outlive the result.
func (d *Device) ImportBuffer(handle any) (*Buffer, error) {
	if err := d.lockFor("ImportBuffer", handle); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	id := driver.BufferID(d.buffers.take())
	known, size, err := d.drv.ImportBuffer(id, handle)
	if known != id || err != nil {
		d.buffers.give(uint32(id))
	}
	if err != nil {
		return nil, err
	}
	m := d.imports[known]
	if m == nil {
		m = &memory{id: known, size: size}
		d.imports[known] = m
	}
	m.imported++
	return d.newHandle(m), nil
}

// DestroyBuffer destroys a buffer that somebody else made on this very device, unmapping it if need be. What was queued
// before still sees it.
func (d *Device) DestroyBuffer(handle any) error {
	if err := d.lockFor("DestroyBuffer", handle); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.flush(); err != nil {
		return err
	}
	return d.drv.DestroyBuffer(handle)
}

// lockFor locks the device for a call on a buffer of the caller's.
func (d *Device) lockFor(op string, handle any) error {
	if handle == nil {
		return fail(op, ErrInvalid, "nil buffer")
	}
	return d.lock(op)
}

// Identity returns a number that the Buffers of one imported buffer have in common and no others of the device have, or
// 0 for a buffer of the library's own. Kernels must not bind a buffer for writing beside another of the same identity.
func (b *Buffer) Identity() uint32 {
	if b == nil || b.mem == nil || b.mem.imported == 0 {
		return 0
	}
	return uint32(b.mem.id)
}

// Device returns the device the buffer belongs to.
func (b *Buffer) Device() *Device {
	if b == nil {
		return nil
	}
	return b.dev
}

// Size returns how many bytes kernels may use: the size asked for rounded up to 16, or an imported buffer's own.
func (b *Buffer) Size() uint64 {
	if b == nil || b.mem == nil {
		return 0
	}
	return b.mem.size
}

// Handle returns the platform's buffer: a *wgpu.Buffer, a GPUBuffer as js.Value, or nil. It belongs to Sublet; flush
// before using it elsewhere.
func (b *Buffer) Handle() any {
	if b.lock("Handle") != nil {
		return nil
	}
	defer b.dev.mu.Unlock()
	return b.dev.drv.Handle(b.mem.id)
}

// lock locks the device of a buffer that can be used, or says why it cannot.
func (b *Buffer) lock(op string) error {
	if b == nil || b.dev == nil {
		return fail(op, ErrInvalid, "nil buffer")
	}
	if err := b.dev.lock(op); err != nil {
		return err
	}
	err := b.present(op)
	if err != nil {
		b.dev.mu.Unlock()
	}
	return err
}

// present reports why a buffer is not there any more.
func (b *Buffer) present(op string) error {
	if b.closed {
		return fail(op, ErrClosed, "the buffer")
	}
	if b.Lost() {
		return fail(op, ErrDeviceLost, "the buffer was on the device before it came back")
	}
	return nil
}

// Lost reports whether the buffer is gone with a device that was lost and came back.
func (b *Buffer) Lost() bool {
	return b != nil && b.dev != nil && b.generation != b.dev.generation.Load()
}

// intact reports why the memory does not have what it should.
func (m *memory) intact(op string) error {
	if m.failed == nil {
		return nil
	}
	return fail(op, m.failed, "and with it work on the buffer")
}

// replaced notes that bytes are about to be written. If they are all, what failed before does not matter.
func (m *memory) replaced(offset, size uint64) {
	if offset == 0 && size+granule > m.size {
		m.failed = nil
	}
}

// Renew says that what the buffer holds does not matter, as kernels are about to write all of it. Without that, a buffer that a refused
// batch was to write gives the error of that to whoever uses it next.
func (b *Buffer) Renew() error {
	err := b.lock("Renew")
	if err == nil {
		b.mem.failed = nil
		b.dev.mu.Unlock()
	}
	return err
}

// Close gives the memory back: to the pool, or for an imported buffer to its owner. What was queued before still sees
// it. Later calls do nothing.
func (b *Buffer) Close() error {
	if b == nil || b.dev == nil {
		return nil
	}
	d, m := b.dev, b.mem
	d.mu.Lock()
	defer d.mu.Unlock()
	closed := b.closed || d.closed || b.Lost()
	b.closed = true
	if closed {
		return nil
	}
	d.stats.Buffers--
	if m.imported > 0 {
		return d.closeImport(m)
	}
	d.stats.LiveBytes -= m.size
	if m.mappable || m.size > d.poolLimit {
		return d.destroy(m)
	}
	d.pool.Put(m, m.size)
	return d.shrinkPool(d.poolLimit)
}

// closeImport flushes what uses the buffer: its owner may do anything with it afterwards.
func (d *Device) closeImport(m *memory) error {
	err := d.flush()
	if m.imported--; m.imported > 0 {
		return err
	}
	delete(d.imports, m.id)
	return errors.Join(err, d.destroy(m))
}

// Write copies host memory to the buffer from offset on, a multiple of 4. The caller may change the memory as soon as
// Write returns. Bytes after a size that is no multiple of 4, up to the next multiple, become zero.
//
// It goes ahead of the batch in progress where that does not use the buffer, else with it.
func (b *Buffer) Write(offset uint64, src Host) error {
	const op = "Write"
	if err := b.lock(op); err != nil {
		return err
	}
	d := b.dev
	defer d.mu.Unlock()
	if !src.Valid() {
		return fail(op, ErrInvalid, "host memory shorter than it says")
	}
	if err := driver.CheckRange("gpu: Write", offset, (uint64(src.Size)+3)&^3, b.mem.size); err != nil || src.Size == 0 {
		return err
	}
	b.mem.replaced(offset, uint64(src.Size))
	list := &d.batch.single
	if d.queued(b.mem) {
		d.write(b.mem)
		list = &d.batch.list
	}
	list.Write(b.mem.id, offset, src)
	d.stats.BytesUp += uint64(src.Size)
	if list == &d.batch.list {
		return d.flush()
	}
	err := d.submit(list)
	list.Reset()
	return err
}

// Clear queues zeros for size bytes from offset on, both multiples of 4.
func (b *Buffer) Clear(offset, size uint64) error {
	if err := b.lock("Clear"); err != nil {
		return err
	}
	d := b.dev
	defer d.mu.Unlock()
	if err := driver.CheckRange("gpu: Clear", offset, size, b.mem.size); err != nil || size == 0 {
		return err
	}
	d.write(b.mem)
	b.mem.replaced(offset, size)
	d.batch.list.Clear(b.mem.id, offset, size)
	return d.added()
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
	d := b.dev
	defer d.mu.Unlock()
	if err := src.present(op); err != nil {
		return err
	}
	if src.mem == b.mem {
		return fail(op, ErrInvalid, "within one buffer")
	}
	to, from := b.mem, src.mem
	err := cmp.Or(driver.CheckRange("gpu: CopyFrom", offset, size, to.size), driver.CheckRange("gpu: CopyFrom", srcOffset, size, from.size))
	if err != nil || size == 0 {
		return err
	}
	if err := cmp.Or(from.intact(op), to.intact(op)); err != nil {
		return err
	}
	d.write(to)
	d.use(from)
	d.batch.list.Copy(to.id, offset, from.id, srcOffset, size)
	return d.added()
}

// Read copies from the buffer to host memory and waits for it. t.Buffer is ignored.
func (b *Buffer) Read(ctx context.Context, t Transfer) error {
	err := b.await("Read", func(drv driver.Device) error {
		t.Buffer = b.mem.id
		return drv.Read(ctx, t)
	})
	if err == nil {
		b.dev.mu.Lock()
		b.dev.stats.BytesDown += uint64(t.Width) * uint64(t.Count)
		b.dev.mu.Unlock()
	}
	return err
}

// Sync waits until everything queued before is done. The error of other buffers' work is not this one's.
func (b *Buffer) Sync(ctx context.Context) error {
	return b.await("Sync", func(drv driver.Device) error { return drv.Wait(ctx) })
}

// await has the driver wait, once what is queued has left. A batch that was refused is an error only if it was to write the buffer.
func (b *Buffer) await(op string, wait func(driver.Device) error) error {
	if err := b.lock(op); err != nil {
		return err
	}
	d, drv := b.dev, b.dev.drv
	_ = d.flush() // what that refuses has failed
	before, err := d.batch.epoch, b.mem.intact(op)
	d.mu.Unlock()
	for err == nil {
		err = wait(drv)
		if !d.waited(b.generation, before, err) {
			return outcome(op, drv, err)
		}
		d.mu.Lock()
		err = b.mem.intact(op)
		d.mu.Unlock()
	}
	return err
}

// Map waits for what is queued, gives the CPU size bytes of the buffer's own memory from offset on while access runs, and
// takes them back. It needs a buffer of [Device.NewMappable]. On devices that take memory when it is first used, only that
// of the range is taken. The slice is dead afterwards.
func (b *Buffer) Map(ctx context.Context, offset, size uint64, access func([]byte) error) (err error) {
	const op = "Map"
	if err := b.lock(op); err != nil {
		return err
	}
	m, drv := b.mem, b.dev.drv
	switch {
	case !m.mappable:
		err = fail(op, ErrUnsupported, "the buffer is not mappable")
	case access == nil:
		err = fail(op, ErrInvalid, "nil function")
	case offset > m.size || size > m.size-offset:
		err = fail(op, ErrInvalid, size, " bytes at ", offset, " of ", m.size)
	case size > 0:
		_ = b.dev.flush() // what that refuses has failed
		err = m.intact(op)
	}
	b.dev.mu.Unlock()
	if err != nil {
		return err
	}
	if size == 0 {
		return access(nil)
	}
	skip := offset % 8
	mem, err := drv.Map(ctx, m.id, offset-skip, (skip+size+3)/4*4) // m.size is a multiple of 4
	if err != nil {
		return outcome(op, drv, err)
	}
	defer func() { err = cmp.Or(err, outcome(op, drv, drv.Unmap(m.id))) }()
	return access(mem[skip : skip+size : skip+size])
}

// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/rules"
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
	id         driver.BufferID
	size       uint64 // usable
	real       uint64 // allocated; 0 for an imported buffer
	mappable   bool
	closed     bool
	generation uint32 // of the device
	epoch      uint64 // the last batch that used it
	imported   *imported
}

// granule is the step of buffer sizes: a vector of four words.
const granule = 16

// defaultPool is how many bytes of closed buffers a device keeps for reuse.
const defaultPool = 256 << 20

// pool keeps closed buffers by size. Reuse needs no waiting, commands run in order; but a buffer comes back with the batch
// that used it last, for the batch in progress may still name it.
type pool struct {
	limit  uint64
	bytes  uint64
	oldest list.List                  // of pooled
	bySize map[uint64][]*list.Element // oldest first
}

type pooled struct {
	size, epoch uint64
	id          driver.BufferID
}

// take removes the newest buffer of the size.
func (p *pool) take(size uint64) (b pooled, ok bool) {
	if all := p.bySize[size]; len(all) > 0 {
		return p.remove(size, len(all)-1), true
	}
	return pooled{}, false
}

func (p *pool) give(b pooled) {
	if p.bySize == nil {
		p.bySize = map[uint64][]*list.Element{}
	}
	p.bySize[b.size] = append(p.bySize[b.size], p.oldest.PushBack(b))
	p.bytes += b.size
}

// evict removes the buffer that has waited longest. There is one.
func (p *pool) evict() pooled { return p.remove(p.oldest.Front().Value.(pooled).size, 0) }

func (p *pool) remove(size uint64, at int) pooled {
	all := p.bySize[size]
	b := p.oldest.Remove(all[at]).(pooled)
	copy(all[at:], all[at+1:])
	all[len(all)-1] = nil
	if p.bySize[size] = all[:len(all)-1]; len(all) == 1 {
		delete(p.bySize, size) // the size may never come again
	}
	p.bytes -= size
	return b
}

// NewBuffer makes a buffer of at least size bytes; size 0 is allowed and has nothing behind it but a few bytes. What it
// holds is undefined: use [Buffer.Clear] for zeros.
func (d *Device) NewBuffer(size uint64) (*Buffer, error) { return d.newBuffer(size, false) }

// NewMappable makes a buffer that the CPU can map in place. It needs FeatureMappable.
func (d *Device) NewMappable(size uint64) (*Buffer, error) { return d.newBuffer(size, true) }

func (d *Device) newBuffer(size uint64, mappable bool) (*Buffer, error) {
	const op = "NewBuffer"
	if err := d.lock(op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if size > d.info.Limits.MaxBufferSize {
		return nil, fail(op, ErrLimit, num(size), " bytes, the largest buffer has ", num(d.info.Limits.MaxBufferSize))
	}
	real := max(size+granule-1, granule) / granule * granule
	if d.conf.memory > 0 && d.stats.LiveBytes+real > d.conf.memory {
		return nil, fail(op, ErrNoMemory, num(size), " bytes over the limit of ", num(d.conf.memory))
	}
	mem, err := d.allocate(real, mappable)
	if err != nil {
		return nil, err
	}
	d.stats.Buffers++
	d.stats.LiveBytes += real
	d.stats.PeakBytes = max(d.stats.PeakBytes, d.stats.LiveBytes)
	return &Buffer{
		dev: d, id: mem.id, size: real, real: real, mappable: mappable, generation: d.generation.Load(), epoch: mem.epoch,
	}, nil
}

func (d *Device) allocate(real uint64, mappable bool) (mem pooled, err error) {
	if !mappable {
		if mem, ok := d.pool.take(real); ok {
			d.stats.PooledBytes = d.pool.bytes
			return mem, nil
		}
	}
	id := d.buffers.take()
	err = d.drv.NewBuffer(id, real, mappable)
	if err != nil && d.pool.bytes > 0 && d.shrinkPool(0) == nil && d.flush() == nil { // the pool may hold what is missing
		err = d.drv.NewBuffer(id, real, mappable)
	}
	if err != nil {
		d.buffers.give(id)
	}
	return pooled{size: real, id: id}, err
}

// ImportBuffer wraps a buffer that somebody else made on this very device: a *wgpu.Buffer natively, a GPUBuffer in a
// page, usable as storage and for copies both ways. It is never destroyed by Sublet and must outlive the result.
func (d *Device) ImportBuffer(handle any) (*Buffer, error) {
	const op = "ImportBuffer"
	if handle == nil {
		return nil, fail(op, ErrInvalid, "nil buffer")
	}
	if err := d.lock(op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	id, shared, err := d.share(handle)
	if err != nil {
		return nil, err
	}
	shared.users++
	d.stats.Buffers++
	return &Buffer{dev: d, id: id, size: shared.size, imported: shared, generation: d.generation.Load()}, nil
}

// share finds what the Buffers of an imported buffer have in common.
func (d *Device) share(handle any) (driver.BufferID, *imported, error) {
	if id, ok := d.drv.Imported(handle); ok {
		if shared := d.imports[id]; shared != nil {
			return id, shared, nil
		}
		if err := d.flush(); err != nil { // the last of them was closed, and id goes with the batch
			return 0, nil, err
		}
	}
	id := d.buffers.take()
	size, err := d.drv.ImportBuffer(id, handle)
	if err != nil {
		d.buffers.give(id)
		return 0, nil, err
	}
	if d.imports == nil {
		d.imports = map[driver.BufferID]*imported{}
	}
	d.imports[id] = &imported{size: size}
	return id, d.imports[id], nil
}

// Identity returns a number that the Buffers of one imported buffer have in common and no others of the device have, or
// 0 for a buffer of the library's own. Kernels must not bind a buffer for writing beside another of the same identity.
func (b *Buffer) Identity() uint32 {
	if b == nil || b.real != 0 {
		return 0
	}
	return uint32(b.id)
}

// DestroyBuffer destroys a buffer that somebody else made on this very device, unmapping it if need be. What was queued
// before still sees it.
func (d *Device) DestroyBuffer(handle any) error {
	const op = "DestroyBuffer"
	if handle == nil {
		return fail(op, ErrInvalid, "nil buffer")
	}
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.flush(); err != nil {
		return err
	}
	return d.drv.DestroyBuffer(handle)
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
	if b == nil {
		return 0
	}
	return b.size
}

// Handle returns the platform's buffer: a *wgpu.Buffer, a GPUBuffer as js.Value, or nil. It belongs to Sublet; flush
// before using it elsewhere.
func (b *Buffer) Handle() any {
	if b.lock("Handle") != nil {
		return nil
	}
	defer b.dev.mu.Unlock()
	return b.dev.drv.Handle(b.id)
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
	if b.generation != b.dev.generation.Load() {
		return fail(op, ErrDeviceLost, "the buffer was on the device before it came back")
	}
	return nil
}

// Lost reports whether the buffer is gone with a device that was lost and came back.
func (b *Buffer) Lost() bool {
	return b != nil && b.dev != nil && b.generation != b.dev.generation.Load()
}

// Close gives the memory back: to the pool, or for an imported buffer to its owner. What was queued before still sees
// it. Later calls do nothing.
func (b *Buffer) Close() error {
	if b == nil || b.dev == nil {
		return nil
	}
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.closed || d.closed || b.generation != d.generation.Load() {
		b.closed = true
		return nil
	}
	b.closed = true
	d.stats.Buffers--
	d.stats.LiveBytes -= b.real
	if b.real == 0 {
		return d.closeImport(b)
	}
	if b.mappable || b.real > d.pool.limit {
		return d.destroy(b.id)
	}
	d.pool.give(pooled{b.real, b.epoch, b.id})
	return d.shrinkPool(d.pool.limit)
}

func (d *Device) shrinkPool(limit uint64) error {
	for d.pool.bytes > limit {
		if err := d.destroy(d.pool.evict().id); err != nil {
			return err
		}
	}
	d.stats.PooledBytes = d.pool.bytes
	return nil
}

// closeImport flushes what uses the buffer: its owner may do anything with it afterwards.
func (d *Device) closeImport(b *Buffer) error {
	b.imported.users--
	last := b.imported.users == 0
	var err error
	if d.queued(b) {
		err = d.flush()
	}
	if last {
		delete(d.imports, b.id)
		err = errors.Join(err, d.destroy(b.id))
	}
	return err
}

// imported is a buffer of the caller's.
type imported struct {
	size  uint64
	users int
	epoch uint64 // the last batch that used it
}

// destroy releases a buffer for good once the batch in progress has left, and unbinds what names it.
func (d *Device) destroy(id driver.BufferID) error {
	d.sets.dropBuffer(&d.batch.list, id)
	d.batch.freed = append(d.batch.freed, id)
	if d.batch.commands == 0 {
		return d.flush()
	}
	return nil
}

// Write copies host memory to the buffer from offset on, a multiple of 4. The caller may change the memory as soon as
// Write returns. Bytes after a size that is no multiple of 4, up to the next multiple, become zero.
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
	src = src.Part(0, src.Size)
	if offset%4 != 0 || offset > b.size || uint64(src.Size) > b.size-offset {
		return fail(op, ErrInvalid, num(uint64(src.Size)), " bytes at ", num(offset), " of ", num(b.size))
	}
	tail := src.Size % 4
	if src.Foreign != nil {
		tail = 0 // the driver fills it up
	}
	whole := src.Part(0, src.Size-tail)
	if err := d.write(b, offset, whole); err != nil || tail == 0 {
		return err
	}
	var last [4]byte
	copy(last[:], src.Bytes[whole.Size:])
	return d.write(b, offset+uint64(whole.Size), HostBytes(last[:]))
}

// Clear queues zeros for size bytes from offset on, both multiples of 4.
func (b *Buffer) Clear(offset, size uint64) error {
	if err := b.lock("Clear"); err != nil {
		return err
	}
	d := b.dev
	defer d.mu.Unlock()
	if err := rules.Range("gpu: Clear", offset, size, b.size); err != nil || size == 0 {
		return err
	}
	d.use(b)
	d.batch.list.Clear(b.id, offset, size)
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
	if src == b {
		return fail(op, ErrInvalid, "within one buffer")
	}
	err := cmp.Or(rules.Range("gpu: CopyFrom", offset, size, b.size), rules.Range("gpu: CopyFrom", srcOffset, size, src.size))
	if err != nil || size == 0 {
		return err
	}
	d.use(b)
	d.use(src)
	d.batch.list.Copy(b.id, offset, src.id, srcOffset, size)
	return d.added()
}

// Read copies from the buffer to host memory and waits for it. t.Buffer is ignored.
func (b *Buffer) Read(ctx context.Context, t Transfer) error {
	if err := b.lock("Read"); err != nil {
		return err
	}
	d := b.dev
	err := d.flush()
	if err == nil {
		d.stats.BytesDown += uint64(max(t.Width, 0)) * uint64(max(t.Count, 0))
	}
	drv := d.drv
	d.mu.Unlock()
	if err != nil {
		return err
	}
	t.Buffer = b.id
	return drv.Read(ctx, t)
}

func num(v uint64) string { return strconv.FormatUint(v, 10) }

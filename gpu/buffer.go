// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Types of host memory.
type (
	// Host is memory of the CPU's side: Go bytes, or a typed array of JavaScript.
	Host = driver.Host
	// Transfer describes rows of bytes to copy from a buffer: Count of them, of Width bytes and Pitch bytes apart, from Offset on
	// to HostOffset of Host. A plain copy has Count 1. Its Buffer field is filled in by [Buffer.Read].
	Transfer = driver.Transfer
)

// HostBytes makes a Host of Go memory.
func HostBytes(b []byte) Host { return driver.HostBytes(b) }

// Buffer is memory of a device: untyped bytes that kernels read and write. Close gives it back.
type Buffer struct {
	dev      *Device
	id       driver.BufferID
	size     uint64 // usable
	real     uint64 // allocated; 0 for an imported buffer
	mappable bool
	closed   bool
	life     uint32 // of the device
	epoch    uint64 // the last batch that used it
	imported *imported
}

// granule is the step of buffer sizes: a vector of four words.
const granule = 16

// pool keeps closed buffers by size. Reuse needs no waiting, commands run in order; but a buffer comes back with the batch
// that used it last, for the batch in progress may still name it.
type pool struct {
	limit  uint64
	bytes  uint64
	free   map[uint64][]driver.BufferID
	epochs map[driver.BufferID]uint64
	order  []pooled // oldest first, may hold entries that were taken meanwhile
}

type pooled struct {
	size uint64
	id   driver.BufferID
}

func (p *pool) take(size uint64) (id driver.BufferID, epoch uint64, ok bool) {
	ids := p.free[size]
	if len(ids) == 0 {
		return 0, 0, false
	}
	id = ids[len(ids)-1]
	p.free[size] = ids[:len(ids)-1]
	p.bytes -= size
	epoch = p.epochs[id]
	delete(p.epochs, id)
	return id, epoch, true
}

func (p *pool) give(size uint64, id driver.BufferID, epoch uint64) {
	if p.free == nil {
		p.free, p.epochs = map[uint64][]driver.BufferID{}, map[driver.BufferID]uint64{}
	}
	p.epochs[id] = epoch
	p.free[size] = append(p.free[size], id)
	p.order = append(p.order, pooled{size, id})
	p.bytes += size
}

// evict removes the buffer that has waited longest.
func (p *pool) evict() (pooled, bool) {
	for len(p.order) > 0 {
		old := p.order[0]
		p.order = p.order[1:]
		ids := p.free[old.size]
		for i, id := range ids {
			if id == old.id {
				if p.free[old.size] = append(ids[:i:i], ids[i+1:]...); len(ids) == 1 {
					delete(p.free, old.size) // the size may never come again
				}
				p.bytes -= old.size
				delete(p.epochs, id)
				return old, true
			}
		}
	}
	return pooled{}, false
}

// NewBuffer makes a buffer of at least size bytes; size 0 is allowed and has nothing behind it but a few bytes. What it
// holds is undefined: use [Buffer.Clear] for zeros.
func (d *Device) NewBuffer(size uint64) (*Buffer, error) { return d.newBuffer(size, false) }

// NewMappable makes a buffer that the CPU can map in place. It needs FeatureMappable.
func (d *Device) NewMappable(size uint64) (*Buffer, error) { return d.newBuffer(size, true) }

func (d *Device) newBuffer(size uint64, mappable bool) (*Buffer, error) {
	const op = "NewBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(op); err != nil {
		return nil, err
	}
	if size > d.info.Limits.MaxBufferSize {
		return nil, fail(op, ErrLimit, num(size), " bytes, the largest buffer has ", num(d.info.Limits.MaxBufferSize))
	}
	real := max(size+granule-1, granule) / granule * granule
	if d.conf.memory > 0 && d.stats.LiveBytes+real > d.conf.memory {
		return nil, fail(op, ErrNoMemory, num(size), " bytes over the limit of ", num(d.conf.memory))
	}
	id, epoch, err := d.allocate(real, mappable)
	if err != nil {
		return nil, err
	}
	d.stats.Buffers++
	d.stats.LiveBytes += real
	d.stats.PeakBytes = max(d.stats.PeakBytes, d.stats.LiveBytes)
	return &Buffer{dev: d, id: id, size: real, real: real, mappable: mappable, life: d.life.Load(), epoch: epoch}, nil
}

func (d *Device) allocate(real uint64, mappable bool) (id driver.BufferID, epoch uint64, err error) {
	if !mappable {
		if id, epoch, ok := d.pool.take(real); ok {
			d.stats.PooledBytes = d.pool.bytes
			return id, epoch, nil
		}
	}
	id = d.buffers.take()
	err = d.drv.NewBuffer(id, real, mappable)
	if err != nil && d.pool.bytes > 0 { // the pool may hold what is missing
		if d.shrinkPool(0) == nil && d.flush() == nil {
			err = d.drv.NewBuffer(id, real, mappable)
		}
	}
	if err != nil {
		d.buffers.give(id)
		return 0, 0, err
	}
	return id, 0, nil
}

// ImportBuffer wraps a buffer that somebody else made on this very device: a *wgpu.Buffer natively, a GPUBuffer in a
// page, usable as storage and for copies both ways. It is never destroyed by Sublet and must outlive the result.
func (d *Device) ImportBuffer(handle any) (*Buffer, error) {
	const op = "ImportBuffer"
	if handle == nil {
		return nil, fail(op, ErrInvalid, "nil buffer")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(op); err != nil {
		return nil, err
	}
	id, shared, err := d.share(handle)
	if err != nil {
		return nil, err
	}
	shared.users++
	d.stats.Buffers++
	return &Buffer{dev: d, id: id, size: shared.size, imported: shared, life: d.life.Load()}, nil
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
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(op); err != nil {
		return err
	}
	if err := d.flush(); err != nil {
		return err
	}
	return d.drv.DestroyBuffer(handle)
}

// Device returns the device the buffer belongs to.
func (b *Buffer) Device() *Device { return b.dev }

// Size returns how many bytes kernels may use: the size asked for rounded up to 16, or an imported buffer's own.
func (b *Buffer) Size() uint64 { return b.size }

// Handle returns the platform's buffer: a *wgpu.Buffer, a GPUBuffer as js.Value, or nil. It belongs to Sublet; flush
// before using it elsewhere.
func (b *Buffer) Handle() any {
	b.dev.mu.Lock()
	defer b.dev.mu.Unlock()
	if b.usable("Handle") != nil {
		return nil
	}
	return b.dev.drv.BufferHandle(b.id)
}

func (b *Buffer) usable(op string) error {
	if err := b.dev.usable(op); err != nil {
		return err
	}
	if b.closed {
		return fail(op, ErrClosed, "the buffer")
	}
	if b.life != b.dev.life.Load() {
		return fail(op, ErrDeviceLost, "the buffer was on the device before it came back")
	}
	return nil
}

// Lost reports whether the buffer is gone with a device that was lost and came back.
func (b *Buffer) Lost() bool { return b != nil && b.life != b.dev.life.Load() }

// Close gives the memory back: to the pool, or for an imported buffer to its owner. What was queued before still sees
// it. Later calls do nothing.
func (b *Buffer) Close() error {
	if b == nil {
		return nil
	}
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.closed || d.closed || b.life != d.life.Load() {
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
	d.pool.give(b.real, b.id, b.epoch)
	return d.shrinkPool(d.pool.limit)
}

func (d *Device) shrinkPool(limit uint64) error {
	for d.pool.bytes > limit {
		old, ok := d.pool.evict()
		if !ok {
			break
		}
		if err := d.destroy(old.id); err != nil {
			return err
		}
	}
	if len(d.pool.order) > 1024 && len(d.pool.order) > 4*d.poolCount() {
		d.compactPool()
	}
	d.stats.PooledBytes = d.pool.bytes
	return nil
}

func (d *Device) poolCount() int {
	n := 0
	for _, ids := range d.pool.free {
		n += len(ids)
	}
	return n
}

// compactPool drops the entries of order whose buffers were taken again.
func (d *Device) compactPool() {
	in := map[pooled]bool{}
	for size, ids := range d.pool.free {
		if len(ids) == 0 {
			delete(d.pool.free, size)
		}
		for _, id := range ids {
			in[pooled{size, id}] = true
		}
	}
	var order []pooled
	for _, e := range slices.Backward(d.pool.order) { // the newest entry of each buffer counts
		if in[e] {
			order = append(order, e)
			delete(in, e)
		}
	}
	slices.Reverse(order)
	d.pool.order = order
}

// closeImport flushes what uses the buffer: its owner may do with it what he likes afterwards.
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
	d.sets.drop(&d.batch.list, id)
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
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := b.usable(op); err != nil {
		return err
	}
	if !src.Valid() {
		return fail(op, ErrInvalid, "host memory shorter than it says")
	}
	src = src.Part(0, src.Size)
	if offset%4 != 0 || offset > b.size || uint64(src.Size) > b.size-offset {
		return fail(op, ErrInvalid, num(uint64(src.Size)), " bytes at ", num(offset), " of ", num(b.size))
	}
	tail := src.Size % 4
	if tail == 0 || src.Foreign != nil {
		return d.writeSome(b, offset, src)
	}
	whole := src.Size - tail
	if err := d.writeSome(b, offset, HostBytes(src.Bytes[:whole])); err != nil {
		return err
	}
	var last [4]byte
	copy(last[:], src.Bytes[whole:src.Size])
	return d.writeSome(b, offset+uint64(whole), HostBytes(last[:]))
}

func (d *Device) writeSome(b *Buffer, offset uint64, src Host) error {
	if src.Size == 0 {
		return nil
	}
	return d.write(b, offset, src)
}

// Clear queues zeros for size bytes from offset on, both multiples of 4.
func (b *Buffer) Clear(offset, size uint64) error {
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := b.usable("Clear"); err != nil {
		return err
	}
	if offset%4 != 0 || size%4 != 0 || offset > b.size || size > b.size-offset {
		return fail("Clear", ErrInvalid, num(size), " bytes at ", num(offset), " of ", num(b.size))
	}
	if size == 0 {
		return nil
	}
	d.touch(b)
	d.batch.list.Clear(b.id, offset, size)
	return d.added()
}

// CopyFrom queues a copy of size bytes between two buffers of one device; offsets and size are multiples of 4.
func (b *Buffer) CopyFrom(offset uint64, src *Buffer, srcOffset, size uint64) error {
	const op = "CopyFrom"
	if src == nil || src.dev != b.dev {
		return fail(op, ErrForeign, "copy between two devices")
	}
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := b.usable(op); err != nil {
		return err
	}
	if err := src.usable(op); err != nil {
		return err
	}
	switch {
	case src == b:
		return fail(op, ErrInvalid, "within one buffer")
	case offset%4 != 0 || srcOffset%4 != 0 || size%4 != 0,
		offset > b.size || size > b.size-offset, srcOffset > src.size || size > src.size-srcOffset:
		return fail(op, ErrInvalid, num(size), " bytes from ", num(srcOffset), " to ", num(offset))
	case size == 0:
		return nil
	}
	d.touch(b)
	d.touch(src)
	d.batch.list.Copy(b.id, offset, src.id, srcOffset, size)
	return d.added()
}

// Read copies from the buffer to host memory and waits for it. t.Buffer is ignored.
func (b *Buffer) Read(ctx context.Context, t Transfer) error {
	d := b.dev
	d.mu.Lock()
	if err := b.usable("Read"); err != nil {
		d.mu.Unlock()
		return err
	}
	if err := d.flush(); err != nil {
		d.mu.Unlock()
		return err
	}
	d.stats.BytesDown += uint64(max(t.Width, 0)) * uint64(max(t.Count, 0))
	t.Buffer = b.id
	drv := d.drv
	d.mu.Unlock()
	return drv.Read(ctx, t)
}

func num(v uint64) string { return strconv.FormatUint(v, 10) }

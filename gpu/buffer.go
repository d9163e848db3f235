// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

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
	imported bool   // it is somebody else's
	shares   int    // the open Buffers of an imported one
	epoch    uint64 // the last batch that used it

	reading   int         // calls that wait for what it has, and may have to ask for it again, or map it
	left      bool        // its Buffer was closed meanwhile
	missing   atomic.Bool // there is nothing behind it; written under the lock
	wrote     uint64      // the last batch that wrote it
	unsettled bool        // that may be refused still
	failed    error       // why it does not have what it should: a batch was refused
}

// granule is the step of buffer sizes: a vector of four words.
const granule = 16

// defaultPool is how many bytes of closed buffers a device keeps. Reuse needs no waiting, commands run in order; but a buffer comes
// back with the batch that used it last, for the batch in progress may still name it.
const defaultPool = 256 << 20

// NewBuffer makes a buffer of at least size bytes, which may be 0. Its content is undefined: use [Buffer.Clear] for zeros.
func (d *Device) NewBuffer(size uint64) (*Buffer, error) { return d.newBuffer(size, false) }

// NewMappable makes a buffer that the CPU can map in place. It needs driver.FeatureMappable.
func (d *Device) NewMappable(size uint64) (*Buffer, error) { return d.newBuffer(size, true) }

func (d *Device) newBuffer(size uint64, mappable bool) (*Buffer, error) {
	const op = "NewBuffer"
	if most := d.orClosed().info.Limits.MaxBufferSize; size > most && d.Usable() == nil {
		return nil, fail(op, ErrLimit, size, " bytes, the largest buffer has ", most)
	}
	size = max(size+granule-1, granule) / granule * granule
	for again := true; ; again = false {
		b, q, err := d.makeBuffer(size, mappable)
		if !again || !d.relieve(context.Background(), q, err) {
			return b, err
		}
	}
}

func (d *Device) makeBuffer(size uint64, mappable bool) (*Buffer, *queue, error) {
	const op = "NewBuffer"
	if err := d.lock(op); err != nil {
		return nil, nil, err
	}
	defer d.mu.Unlock()
	live := d.stats.LiveBytes + size
	if most := d.conf.memory; most > 0 && live > most {
		return nil, nil, fail(op, ErrNoMemory, size, " bytes beside the ", live-size, " in use, over the limit of ", most)
	}
	mem, err := d.allocate(size, live, mappable)
	if err != nil {
		return nil, d.queue, named(op, err)
	}
	d.stats.LiveBytes, d.stats.PeakBytes = live, max(d.stats.PeakBytes, live)
	d.note("buffer made", "bytes", size, "live", live)
	return d.newHandle(mem), d.queue, nil
}

// newHandle makes a Buffer of memory.
func (d *Device) newHandle(m *memory) *Buffer {
	d.stats.Buffers++
	return &Buffer{dev: d, mem: m, generation: d.generation.Load()}
}

// allocate takes memory from the pool or makes it; live is how much is in use then.
func (d *Device) allocate(size, live uint64, mappable bool) (*memory, error) {
	if d.short != nil {
		d.shrinkPool(0) // the rest has had its chance
	}
	if !mappable {
		if m, ok := d.pool.Take(size).(*memory); ok {
			m.wrote, m.failed = 0, nil
			return m, nil
		}
	}
	if most := d.conf.memory; waits && most > 0 {
		d.shrinkPool(min(d.poolLimit, most-live)) // what is kept for reuse is within the limit, too
	}
	id := driver.BufferID(d.buffers.take())
	err := d.drv.NewBuffer(id, size, mappable)
	if err != nil {
		d.buffers.give(uint32(id))
		return nil, err
	}
	m := &memory{id: id, size: size, mappable: mappable}
	d.memories[id] = m
	return m, nil
}

// shrinkPool destroys the pool's oldest buffers until the rest has at most so many bytes.
func (d *Device) shrinkPool(limit uint64) {
	for m := d.pool.Evict(limit); m != nil; m = d.pool.Evict(limit) {
		d.destroy(m.(*memory))
	}
}

// relieve empties the pool after a call that failed for lack of memory, and reports whether the call should be repeated. The caller has
// neither the lock nor the queue's turn.
func (d *Device) relieve(ctx context.Context, q *queue, err error) bool {
	if !errors.Is(err, ErrNoMemory) {
		return false
	}
	d.mu.Lock()
	there := d.queue == q && !d.closed
	if there {
		d.shrinkPool(0)
	}
	d.mu.Unlock()
	return there && d.flush(ctx) == nil
}

// ImportBuffer wraps a buffer that somebody else made on this very device: a *wgpu.Buffer natively, a GPUBuffer in a
// page, usable as storage and for copies both ways, of a size that is a multiple of 4. It is never destroyed by Sublet and must
// outlive the result.
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
		return nil, named("ImportBuffer", err)
	}
	m := d.memories[known]
	if m == nil {
		m = &memory{id: known, size: size, imported: true}
		d.memories[known] = m
	} else if m.shares == 0 { // it was closed, and waits for a batch to be freed
		m.wrote, m.failed = 0, nil
	}
	m.shares++
	return d.newHandle(m), nil
}

// DestroyBuffer destroys a buffer that somebody else made on this very device, unmapping it if need be. What was queued
// before still sees it.
func (d *Device) DestroyBuffer(handle any) error {
	const op = "DestroyBuffer"
	if err := d.lockFor(op, handle); err != nil {
		return err
	}
	d.mu.Unlock()
	if err := d.flush(context.Background()); err != nil {
		return named(op, err)
	}
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	return named(op, d.drv.DestroyBuffer(handle))
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
	if b == nil || b.mem == nil || !b.mem.imported {
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

// lock locks the device of a usable buffer, or returns why it is not usable.
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

// present returns an error if the buffer was closed or lost.
func (b *Buffer) present(op string) error {
	if b.closed {
		return fail(op, ErrClosed, "the buffer")
	}
	if b.stale() {
		return fail(op, ErrDeviceLost, "the buffer was on the device before it came back")
	}
	return b.mem.present(op)
}

// Lost reports whether the buffer has no memory: because the device was lost and reopened, or because there was none, which browsers
// report late.
func (b *Buffer) Lost() bool { return b != nil && b.dev != nil && (b.stale() || b.mem.missing.Load()) }

func (b *Buffer) stale() bool { return b.generation != b.dev.generation.Load() }

// present returns an error if there was no memory for the buffer.
func (m *memory) present(op string) error {
	if m.missing.Load() {
		return fail(op, ErrNoMemory, "there was none for the buffer")
	}
	return nil
}

// intact returns the error of work that should have written the memory, or of present.
func (m *memory) intact(op string) error {
	if m.failed == nil || m.missing.Load() {
		return m.present(op)
	}
	return fail(op, m.failed, ", and with it work on the buffer")
}

// replaced records a write. If it covers all bytes, an earlier failure does not matter any more.
func (m *memory) replaced(offset, size uint64) {
	if offset == 0 && size+granule > m.size {
		m.failed = nil
	}
}

// Renew says that kernels are about to write the whole buffer, so that its present content does not matter. Without this call a buffer
// that a refused batch should have written returns the error of that batch when it is next used.
func (b *Buffer) Renew() error {
	err := b.lock("Renew")
	if err == nil {
		b.mem.failed = nil
		b.dev.mu.Unlock()
	}
	return err
}

// Close returns the memory to the pool, or that of an imported buffer to its owner. Commands queued before can still use it. Later calls
// do nothing.
func (b *Buffer) Close() error {
	if b == nil || b.dev == nil {
		return nil
	}
	d, m := b.dev, b.mem
	d.mu.Lock()
	closed := b.closed || d.closed || b.stale()
	b.closed = true
	if closed {
		d.mu.Unlock()
		return nil
	}
	d.stats.Buffers--
	if m.imported {
		d.mu.Unlock()
		return b.closeImport()
	}
	d.stats.LiveBytes -= m.size
	d.note("buffer closed", "bytes", m.size, "live", d.stats.LiveBytes)
	d.recycle(m)
	return named("Close", d.unlock())
}

// recycle returns memory without a Buffer to the pool once no call waits to read it.
func (d *Device) recycle(m *memory) {
	m.left = m.reading > 0
	switch {
	case m.left:
	case m.mappable || m.missing.Load() || m.size > d.poolLimit:
		d.destroy(m)
	default:
		d.pool.Put(m, m.size)
		d.shrinkPool(d.poolLimit)
	}
}

// closeImport flushes what uses the buffer: its owner may do anything with it afterwards.
func (b *Buffer) closeImport() error {
	d, m := b.dev, b.mem
	err := d.flush(context.Background())
	d.mu.Lock()
	if m.shares--; m.shares > 0 || d.closed || b.stale() {
		d.mu.Unlock()
		return named("Close", err)
	}
	d.destroy(m)
	return named("Close", cmp.Or(err, d.unlock()))
}

// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
import "C"

import (
	"context"
	"math/bits"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Read copies through staging buffers, in chunks if need be. Rows with wide gaps between them are fetched one by one.
func (d *device) Read(ctx context.Context, t driver.Transfer) error {
	const op = "Read"
	if err := d.beginRead(ctx, op, t); err != nil {
		return err
	}
	defer d.users.Add(-1)
	if t.Span() == 0 {
		return nil
	}
	host := t.Host.Mem()[t.HostOffset:]
	start, end := t.Offset&^3, alignUp(t.Offset+uint64(t.Span()))
	// There are count parts of a size, pitch apart, most of them at once: chunks, or rows.
	size, most := d.chunk, uint64(1)
	pitch, count := size, (end-start+size-1)/size
	if row := alignUp(t.Offset%4 + uint64(t.Width)); t.Count > 1 && t.Pitch%4 == 0 && t.Pitch-t.Width >= rowGap && row <= size {
		pitch, count, size, most = uint64(t.Pitch), uint64(t.Count), row, size/row
	}
	for ; count > 0; start += most * pitch {
		n, part := min(most, count), min(size, end-start)
		span := C.core_span{
			buffer: C.uint32_t(t.Buffer), offset: C.uint64_t(start), size: C.uint64_t(part), pitch: C.uint64_t(pitch), count: C.uint64_t(n),
		}
		err := d.fetch(ctx, op, span, func(b []byte) {
			for i := range n {
				scatter(host, t, start+i*pitch, b[i*part:][:part])
			}
		})
		if err != nil {
			return err
		}
		count -= n
	}
	return nil
}

// rowGap is the least gap between rows that costs more to copy than a command for the next row.
const rowGap = 8 << 10

// beginRead checks a transfer and counts a user.
func (d *device) beginRead(ctx context.Context, op string, t driver.Transfer) error {
	if err := d.enter(ctx, op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.CheckRead(t); err != nil {
		return err
	}
	if t.Host.Foreign != nil {
		return d.fail(op, fault.ErrUnsupported, "host memory that is not Go's")
	}
	d.users.Add(1)
	return nil
}

func alignUp(n uint64) uint64 { return (n + 3) &^ 3 }

// scatter copies what rows of t lie in b, which holds the buffer's bytes from base on.
func scatter(host []byte, t driver.Transfer, base uint64, b []byte) {
	end := base + uint64(len(b))
	row := 0
	if t.Count > 1 && base > t.Offset {
		row = int((base - t.Offset) / uint64(t.Pitch))
	}
	for ; row < t.Count; row++ {
		lo := t.Offset + uint64(row)*uint64(t.Pitch)
		if lo >= end {
			return
		}
		hi := min(lo+uint64(t.Width), end)
		if lo = max(lo, base); lo < hi {
			copy(host[lo-t.Offset:], b[lo-base:hi-base])
		}
	}
}

// fetch reads parts of a buffer and shows them to use one behind the other, unless what they hold may be wrong.
func (d *device) fetch(ctx context.Context, op string, span C.core_span, use func([]byte)) error {
	if err := d.lockIdle(ctx, op); err != nil {
		return err
	}
	if d.guard.refusal != nil {
		defer d.mu.Unlock()
		return d.guard.refusal
	}
	var e C.core_error
	lists := d.guard.lists
	size, guard := uint64(span.size*span.count), uint64(0)
	if span.guard = C.bool(!d.guard.idle()); span.guard {
		guard = C.CORE_GUARD
	}
	staging, err := d.newStaging(op, size+guard, &e)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	var s *C.core_signal
	if staging.ref != nil {
		if s = C.core_read(d.c, &span, staging.ref, &e); s == nil {
			d.drop(staging)
		}
		if d.holds && s != nil {
			d.holds = false
			d.unread.Stop()
		}
	}
	d.noticeLoss()
	d.mu.Unlock()
	if err := d.take(op, &e, fault.ErrInvalid); err != nil {
		return err
	}
	mapped, err := d.await(ctx, op, s)
	if err == nil && !mapped {
		err = d.fail(op, fault.ErrDeviceLost, "the staging buffer could not be mapped")
	}
	if err != nil {
		d.drop(staging) // to use it again would not be safe: the work may be done only now and fulfil a later request
		return err
	}
	mem := unsafe.Slice((*byte)(C.core_mapped(d.c, staging.ref, 0, C.uint64_t(size+guard))), size+guard)
	if err = d.verify(lists, mem[size:]); err == nil {
		use(mem[:size])
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	C.core_unmap(d.c, staging.ref)
	d.staging.Put(staging, staging.size)
	d.trimStaging(stagingKept)
	return err
}

const (
	minStaging  = 1 << 12 // bytes of the smallest staging buffer
	maxStaging  = 1 << 28 // of the largest
	stagingKept = 1 << 28 // of all that are kept for later
)

// staging is a buffer to read through, whose size is a power of two.
type staging struct {
	ref  C.WGPUBuffer
	size uint64
}

// newStaging finds or makes a staging buffer of at least size bytes. It is called under the lock.
func (d *device) newStaging(op string, size uint64, e *C.core_error) (*staging, error) {
	size = max(minStaging, uint64(1)<<bits.Len64(size-1))
	if s, ok := d.staging.Take(size).(*staging); ok {
		return s, nil
	}
	end, err := d.confine(op, size, leastSpace)
	if err != nil {
		return nil, err
	}
	defer end()
	return &staging{C.core_staging_new(d.c, C.uint64_t(size), e), size}, nil
}

// trimStaging releases staging buffers until those that are kept have at most limit bytes.
func (d *device) trimStaging(limit uint64) {
	for s := d.staging.Evict(limit); s != nil; s = d.staging.Evict(limit) {
		d.drop(s.(*staging))
	}
}

func (d *device) drop(s *staging) { C.core_drop_buffer(d.lib.calls, s.ref) }

// claim marks a buffer as one call's of Map. The buffer may be unmapped, freed or replaced while that call waits; it is
// still that call's business as long as it bears its claim.
type claim struct {
	id           driver.BufferID
	buf          *buffer
	offset, size uint64
	mapped       bool // or asked for
	lent         bool // Map has returned the memory
}

// Map maps for reading and then for writing. The library knows only either; the first makes the memory show what kernels
// wrote where caches are not coherent, and the second is the one whose writes are seen by kernels.
func (d *device) Map(ctx context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	const op = "Map"
	c, err := d.claim(ctx, op, id, offset, size)
	if err != nil {
		return nil, err
	}
	defer d.users.Add(-1)
	bytes, err := d.mapClaimed(ctx, op, c)
	if err != nil {
		d.disclaim(c)
	}
	return bytes, err
}

// claim notes the mapping, so that from now on no list may name the buffer.
func (d *device) claim(ctx context.Context, op string, id driver.BufferID, offset, size uint64) (*claim, error) {
	if err := d.enter(ctx, op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if err := d.Objects.Map(id, offset, size); err != nil {
		return nil, err
	}
	d.users.Add(1)
	c := &claim{id: id, buf: d.buffers[id], offset: offset, size: size}
	c.buf.claim = c
	return c, nil
}

// disclaim takes back a mapping that failed.
func (d *device) disclaim(c *claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.buffers[c.id] == c.buf && c.buf.claim == c {
		d.unclaim(c.buf)
		_ = d.Objects.Unmap(c.id) // it was mapped: the claim says so
	}
}

func (d *device) mapClaimed(ctx context.Context, op string, c *claim) ([]byte, error) {
	// Only an idle buffer is asked for: a request that is cancelled while work runs would fulfil a later one too early.
	if err := d.Wait(ctx); err != nil {
		return nil, err
	}
	if err := d.populate(ctx, op, c); err != nil {
		return nil, err
	}
	for _, write := range []bool{false, true} {
		if err := d.mapMode(ctx, op, c, write, c.size); err != nil {
			return nil, err
		}
	}
	if err := d.lockClaimed(ctx, op, c); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	c.lent = true
	d.users.Add(1) // until unclaim
	p := C.core_mapped(d.c, c.buf.ref, C.uint64_t(c.offset), C.uint64_t(c.size))
	return unsafe.Slice((*byte)(p), c.size), nil
}

// mapMode maps the first size bytes of what is claimed, in place of what was mapped before.
func (d *device) mapMode(ctx context.Context, op string, c *claim, write bool, size uint64) error {
	if err := d.lockClaimed(ctx, op, c); err != nil {
		return err
	}
	var e C.core_error
	if c.mapped {
		C.core_unmap(d.c, c.buf.ref)
	}
	c.mapped = true
	s := C.core_map(d.c, c.buf.ref, C.bool(write), C.uint64_t(c.offset), C.uint64_t(size), &e)
	d.mu.Unlock()
	if err := d.take(op, &e, fault.ErrInvalid); err != nil {
		return err
	}
	mapped, err := d.await(ctx, op, s)
	if err == nil && !mapped {
		err = d.fail(op, fault.ErrInvalid, "the mapping was given up")
	}
	return err
}

const (
	populateMin  = 64 << 10 // less is left to page faults
	populateStep = 16 << 20 // for how much at a time others may wait
)

// populate has the system give a software adapter's memory at once, for what is mapped for the first time. Otherwise the
// library takes it, as it zeroes it, page by page, and the faults take several times as long as the zeroing.
func (d *device) populate(ctx context.Context, op string, c *claim) error {
	if d.Info().Kind != driver.KindCPU || d.openGL || c.size < populateMin || c.offset+c.size <= c.buf.populated {
		return nil
	}
	if err := d.mapMode(ctx, op, c, false, 8); err != nil { // so little only tells where the memory is
		return err
	}
	var p unsafe.Pointer
	for done := uint64(0); done < c.size; done += populateStep {
		if err := d.lockClaimed(ctx, op, c); err != nil {
			return err
		}
		if p == nil {
			p = C.core_mapped(d.c, c.buf.ref, C.uint64_t(c.offset), 8)
		}
		n := min(populateStep, c.size-done)
		C.core_populate(p, C.uint64_t(done), C.uint64_t(n))
		c.buf.populated = max(c.buf.populated, c.offset+done+n)
		d.mu.Unlock()
	}
	return nil
}

// lockClaimed locks the device if the buffer is still this call's.
func (d *device) lockClaimed(ctx context.Context, op string, c *claim) error {
	if err := d.enter(ctx, op); err != nil {
		return err
	}
	if d.buffers[c.id] == c.buf && c.buf.claim == c {
		return nil
	}
	d.mu.Unlock()
	return d.fail(op, fault.ErrClosed, "the buffer was freed or unmapped meanwhile")
}

// Unmap lets a device that was closed or lost meanwhile go.
func (d *device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.alive("Unmap")
	if err == nil {
		err = d.Objects.Unmap(id)
	}
	d.unclaim(d.buffers[id])
	return err
}

// unclaim ends the mapping of a buffer, if it has one. It is called under the lock.
func (d *device) unclaim(b *buffer) {
	if b == nil || b.claim == nil {
		return
	}
	c := b.claim
	b.claim = nil
	if !d.isLost() {
		C.core_unmap(d.c, b.ref)
	}
	if c.lent {
		d.users.Add(-1)
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
import "C"

import (
	"context"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// claim marks a buffer as one call's of Map. The buffer may be unmapped, freed or replaced while that call waits; it is
// still that call's business as long as it bears its claim.
type claim struct {
	id           driver.BufferID
	buf          *buffer
	offset, size uint64
	mapped       bool // or asked for
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
		c.buf.claim = nil
		C.cog_unmap(d.c, c.buf.ref)
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
	for _, mode := range []C.uint32_t{C.WGPUMapMode_Read, C.WGPUMapMode_Write} {
		if err := d.mapMode(ctx, op, c, mode, c.size); err != nil {
			return nil, err
		}
	}
	if err := d.lockClaimed(ctx, op, c); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	p := C.cog_mapped(c.buf.ref, C.uint64_t(c.offset), C.uint64_t(c.size))
	return unsafe.Slice((*byte)(p), c.size), nil
}

// mapMode maps the first size bytes of what is claimed, in place of what was mapped before.
func (d *device) mapMode(ctx context.Context, op string, c *claim, mode C.uint32_t, size uint64) error {
	if err := d.lockClaimed(ctx, op, c); err != nil {
		return err
	}
	var e C.cog_error
	if c.mapped {
		C.cog_unmap(d.c, c.buf.ref)
	}
	c.mapped = true
	s := C.cog_map(d.c, c.buf.ref, mode, C.uint64_t(c.offset), C.uint64_t(size), &e)
	d.mu.Unlock()
	if err := take(op, &e, fault.ErrInvalid); err != nil {
		return err
	}
	status, err := d.await(ctx, op, s)
	if err == nil && status != C.WGPUBufferMapAsyncStatus_Success {
		err = fail(op, fault.ErrInvalid, "the mapping was given up")
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
	if err := d.mapMode(ctx, op, c, C.WGPUMapMode_Read, 8); err != nil { // so little only tells where the memory is
		return err
	}
	var p unsafe.Pointer
	for done := uint64(0); done < c.size; done += populateStep {
		if err := d.lockClaimed(ctx, op, c); err != nil {
			return err
		}
		if p == nil {
			p = C.cog_mapped(c.buf.ref, C.uint64_t(c.offset), 8)
		}
		n := min(populateStep, c.size-done)
		C.cog_populate(p, C.uint64_t(done), C.uint64_t(n))
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
	return fail(op, fault.ErrClosed, "the buffer was freed or unmapped meanwhile")
}

func (d *device) Unmap(id driver.BufferID) error {
	if err := d.lock("Unmap"); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.Objects.Unmap(id); err != nil {
		return err
	}
	b := d.buffers[id]
	b.claim = nil
	C.cog_unmap(d.c, b.ref)
	return nil
}

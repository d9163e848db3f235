// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
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
		span := C.cog_span{C.uint32_t(t.Buffer), C.uint64_t(start), C.uint64_t(part), C.uint64_t(pitch), C.uint64_t(n)}
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
		return fail(op, fault.ErrUnsupported, "host memory that is not Go's")
	}
	if end := t.Offset + uint64(t.Span()); alignUp(end) > d.BufferSize(t.Buffer) {
		return fail(op, fault.ErrUnsupported, "the last bytes of a buffer whose size is not a multiple of 4")
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

// fetch reads parts of a buffer and shows them to use one behind the other.
func (d *device) fetch(ctx context.Context, op string, span C.cog_span, use func([]byte)) error {
	if err := d.Drain(ctx); err != nil {
		return err
	}
	if err := d.lock(op); err != nil {
		return err
	}
	var e C.cog_error
	size := uint64(span.size * span.count)
	staging := d.newStaging(size, &e)
	var s *C.cog_signal
	if staging.ref != nil {
		if s = C.cog_read(d.c, &span, staging.ref, &e); s == nil {
			staging.release()
		}
	}
	d.noticeLoss()
	d.mu.Unlock()
	if err := take(op, &e, fault.ErrInvalid); err != nil {
		return err
	}
	status, err := d.await(ctx, op, s)
	if err == nil && status != C.WGPUBufferMapAsyncStatus_Success {
		err = fail(op, fault.ErrDeviceLost, "the staging buffer could not be mapped")
	}
	if err != nil {
		staging.release() // to use it again would not be safe: the work may be done only now and fulfil a later request
		return err
	}
	use(unsafe.Slice((*byte)(C.cog_mapped(staging.ref, 0, C.uint64_t(size))), size))
	d.mu.Lock()
	defer d.mu.Unlock()
	C.cog_unmap(d.c, staging.ref)
	d.staging.Put(staging, staging.size)
	d.trimStaging(stagingKept)
	return nil
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
func (d *device) newStaging(size uint64, e *C.cog_error) *staging {
	size = max(minStaging, uint64(1)<<bits.Len64(size-1))
	if s, ok := d.staging.Take(size).(*staging); ok {
		return s
	}
	return &staging{C.cog_staging_new(d.c, C.uint64_t(size), e), size}
}

// trimStaging releases staging buffers until those that are kept have at most limit bytes.
func (d *device) trimStaging(limit uint64) {
	for s := d.staging.Evict(limit); s != nil; s = d.staging.Evict(limit) {
		s.(*staging).release()
	}
}

func (s *staging) release() { C.wgpuBufferRelease(s.ref) }

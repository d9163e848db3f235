// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"cmp"
	"context"
	"math/bits"

	"github.com/gogpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

const (
	minStaging  = 1 << 12 // bytes of the smallest staging buffer
	maxStaging  = 1 << 26 // of the largest
	stagingKept = 1 << 28 // of all that are kept for later
)

// Read copies through staging buffers, in chunks if need be.
func (d *device) Read(ctx context.Context, t driver.Transfer) error {
	const op = "Read"
	if err := d.admit(ctx, op, t); err != nil {
		return err
	}
	if t.Span() == 0 {
		return d.Wait(ctx)
	}
	host := t.Host.Mem()[t.HostOffset:]
	for start, end := t.Offset&^3, (t.Offset+uint64(t.Span())+3)&^3; start < end; start += maxStaging {
		if err := d.fetch(ctx, op, t.Buffer, start, min(maxStaging, end-start), func(b []byte) { scatter(host, t, start, b) }); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) admit(ctx context.Context, op string, t driver.Transfer) error {
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := fault.Ended(ctx, name+": "+op); err != nil {
		return err
	}
	if err := d.CheckRead(t); err != nil {
		return err
	}
	if t.Host.Foreign != nil {
		return fail(op, fault.ErrUnsupported, "host memory that is not Go's")
	}
	return nil
}

// scatter copies what rows of t lie in b, which holds the buffer's bytes from base on.
func scatter(host []byte, t driver.Transfer, base uint64, b []byte) {
	end := base + uint64(len(b))
	for row := range t.Count {
		lo := t.Offset + uint64(row)*uint64(t.Pitch)
		hi := min(lo+uint64(t.Width), end)
		if lo = max(lo, base); lo < hi {
			copy(host[lo-t.Offset:], b[lo-base:hi-base])
		}
	}
}

// fetch reads a part of a buffer and shows it to use.
func (d *device) fetch(ctx context.Context, op string, id driver.BufferID, offset, size uint64, use func([]byte)) error {
	if d.Info().Kind == driver.KindCPU { // where a submission may last as long as those before, whatever the context
		if err := d.Wait(ctx); err != nil {
			return err
		}
	}
	staging, pending, err := d.request(op, id, offset, size)
	if err != nil {
		return err
	}
	var failed error
	err = d.await(ctx, op, func() (done bool) {
		d.dev.Poll(wgpu.PollPoll)
		done, failed = pending.Status()
		return done
	})
	if err == nil && failed != nil {
		err = d.lose(op, failed)
	}
	if err != nil {
		d.abandon(staging)
		return err
	}
	return d.show(op, staging, size, use)
}

// request submits a copy and asks for its mapping, in one go: the library maps a buffer when all is done that is submitted by then.
func (d *device) request(op string, id driver.BufferID, offset, size uint64) (staging *wgpu.Buffer, pending *wgpu.MapPending, err error) {
	if err := d.lock(op); err != nil {
		return nil, nil, err
	}
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	b := d.buffers[id]
	if b == nil || offset+size > (b.Size()+3)&^3 {
		return nil, nil, fail(op, fault.ErrClosed, "the buffer was freed meanwhile")
	}
	room := max(minStaging, uint64(1)<<bits.Len64(size-1))
	if staging, _ = d.staging.Take(room).(*wgpu.Buffer); staging == nil {
		staging, err = d.dev.CreateBuffer(&wgpu.BufferDescriptor{Size: room, Usage: wgpu.BufferUsageMapRead | wgpu.BufferUsageCopyDst})
		if err != nil {
			return nil, nil, fail(op, fault.ErrNoMemory, err.Error())
		}
	}
	r := recorder{d: d, touched: map[*wgpu.Buffer]bool{}}
	if err := cmp.Or(r.zero(&driver.CommandList{}), r.copy(&buffer{Buffer: staging}, 0, b, offset, size), r.flush()); err != nil {
		return nil, nil, d.lose(op, err)
	}
	if pending, err = staging.MapAsync(wgpu.MapModeRead, 0, size); err != nil {
		return nil, nil, d.lose(op, err)
	}
	return staging, pending, nil
}

// abandon releases a staging buffer that is still to be written and mapped.
func (d *device) abandon(staging *wgpu.Buffer) {
	var err error
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue("Read", &err)
	_ = staging.Unmap() // ends the request
	d.discard(staging.Release)
}

func (d *device) show(op string, staging *wgpu.Buffer, size uint64, use func([]byte)) (err error) {
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	m, err := staging.MappedRange(0, size)
	if err != nil {
		return d.lose(op, err)
	}
	use(m.Bytes())
	m.Release()
	if err := staging.Unmap(); err != nil {
		return d.lose(op, err)
	}
	d.staging.Put(staging, staging.Size())
	for s := d.staging.Evict(stagingKept); s != nil; s = d.staging.Evict(stagingKept) {
		s.(*wgpu.Buffer).Release()
	}
	return nil
}

// Map is ErrUnsupported: no buffer is mappable.
func (d *device) Map(ctx context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := cmp.Or(d.Objects.Map(id, offset, size), fault.Ended(ctx, name+": Map")); err != nil {
		return nil, err
	}
	return nil, fail("Map", fault.ErrUnsupported)
}

func (d *device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Objects.Unmap(id)
}

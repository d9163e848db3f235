// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// Intent tells what a kernel is going to do with the bytes of a region.
type Intent uint8

// The intents. What a kernel that replaces finds is undefined: it writes every byte that matters, of the whole region.
const (
	Reads Intent = iota
	Writes
	Replaces
)

// Use returns memory of a device that is current in a region, for a kernel that is about to use nothing else of the buffer.
// The memory begins with byte base of the buffer. Where the buffer's device can hold the buffer as a whole that is 0, and the memory is
// valid until the buffer is closed; elsewhere, and on another device, until the kernel is queued. Say [Buffer.Wrote] once a kernel that writes is queued. The context
// ends what Use may have to wait for: other calls that have the buffer, and copies by way of the host.
func (b *Buffer) Use(ctx context.Context, dev *gpu.Device, r Region, in Intent) (mem *gpu.Buffer, base int, err error) {
	const op = "Use"
	if ctx == nil {
		return nil, 0, fail(op, gpu.ErrInvalid, "nil context")
	}
	m, w, err := b.beginIn(ctx, op, in, r)
	if err != nil {
		return nil, 0, err
	}
	defer m.Unlock()
	if dev == nil {
		return nil, 0, fail(op, gpu.ErrInvalid, "nil device")
	}
	d, err := b.prepare(ctx, op, m, dev, w, in == Replaces)
	if err != nil {
		return nil, 0, err
	}
	return d.Mem, d.Lo - b.back.At, nil
}

// prepare returns a device's replica that is current in a region, or about to be replaced.
func (b *Buffer) prepare(
	ctx context.Context, op string, m *memory.Memory, dev *gpu.Device, w Region, replace bool,
) (*memory.Replica, error) {
	d, err := m.On(op, b.back, dev, w)
	if err != nil {
		return nil, named(op, err)
	}
	replace = replace && d.Lo == w.Offset && d.Hi == w.End()
	if replace && b.mode != External && d.Mem.Lost() {
		m.Renew(d)
	}
	return d, named(op, m.Prepare(ctx, d, w, replace))
}

// Memory makes all of the memory of the buffer's device current and returns it, for kernels with an intent: see [Buffer.Use], which
// takes a context. It is the buffer's and valid until that is closed.
func (b *Buffer) Memory(in Intent) (*gpu.Buffer, error) {
	if b == nil {
		return nil, fail("Memory", gpu.ErrInvalid, "nil buffer")
	}
	mem, _, err := b.Use(context.Background(), b.dev, Range(0, b.size), in)
	return mem, named("Memory", err)
}

// Wrote notes that a kernel of a device wrote the region, on what Use returned last for that device. It waits for nobody. Of memory that
// is ReadOnly nothing is noted: it could not get there.
func (b *Buffer) Wrote(dev *gpu.Device, r Region) {
	b = b.orClosed()
	b.mu.Lock()
	k := b.back
	b.mu.Unlock()
	if k == nil || dev == nil || b.ReadOnly() {
		return // nothing was written, or it is given back
	}
	m, turn := k.Enter()
	if !turn {
		m.Later(func(m *memory.Memory) func() { b.wrote(m, dev, r); return nil })
		return
	}
	b.wrote(m, dev, r)
	m.Unlock()
}

func (b *Buffer) wrote(m *memory.Memory, dev *gpu.Device, r Region) {
	const op = "Wrote"
	if b.back == nil {
		return // closed meanwhile
	}
	w, err := b.place(op, r)
	if err != nil {
		return
	}
	if d, err := m.On(op, b.back, dev, w); err == nil && d.Mem != nil {
		m.Wrote(d, w)
	}
}

// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// Intent says whether a kernel reads the bytes of a region, changes them or replaces them.
type Intent uint8

// The intents. A kernel that replaces must write every byte of the region that is read later: the bytes that it finds are undefined.
const (
	Reads Intent = iota
	Writes
	Replaces
)

// Use returns device memory in which a region of the buffer is current, for a kernel that uses only this region. It begins with
// byte base of the buffer. If dev is the buffer's device and can hold the whole buffer, base is 0 and the memory is valid until the
// buffer is closed; otherwise it is valid until the kernel is queued. After queuing a kernel that writes, call [Buffer.Wrote]. Use may
// wait, until the context ends, for other calls that use the buffer and for copies through the host.
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

// prepare returns a replica on a device after bringing a region of it up to date, unless the intent is to replace it.
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

// Memory is [Buffer.Use] of the whole buffer on its own device, without a context. The memory is valid until the buffer is closed.
func (b *Buffer) Memory(in Intent) (*gpu.Buffer, error) {
	if b == nil {
		return nil, fail("Memory", gpu.ErrInvalid, "nil buffer")
	}
	mem, _, err := b.Use(context.Background(), b.dev, Range(0, b.size), in)
	return mem, named("Memory", err)
}

// Wrote records that a kernel was queued which writes the region in the memory that Use returned last for that device. It does not
// wait. For ReadOnly memory it does nothing.
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

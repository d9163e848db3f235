// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// Intent tells what a kernel is going to do with the bytes of a region.
type Intent uint8

// The intents. What a kernel that replaces finds is undefined: it writes every byte that matters, of the whole buffer.
const (
	Reads Intent = iota
	Writes
	Replaces
)

// Use returns memory of a device that is current in a region, for a kernel that is about to use nothing else of the buffer.
// The memory begins with byte base of the buffer. Where the device can hold the buffer as a whole that is 0, and the memory is
// valid until the buffer is closed; else until the kernel is queued. Say [Buffer.Wrote] once a kernel that writes is queued.
func (b *Buffer) Use(dev *gpu.Device, r Region, in Intent) (mem *gpu.Buffer, base int, err error) {
	const op = "Use"
	if dev == nil {
		return nil, 0, fail(op, gpu.ErrInvalid, "nil device")
	}
	return b.use(op, dev, r, in)
}

func (b *Buffer) use(op string, dev *gpu.Device, w Region, in Intent) (mem *gpu.Buffer, base int, err error) {
	m, err := b.beginFor(op, in)
	if err != nil {
		return nil, 0, err
	}
	defer b.end(m)
	if err := b.holds(op, w); err != nil {
		return nil, 0, err
	}
	k := b.back
	w.Offset += k.At
	r, err := m.On(op, k, dev, w)
	if err != nil {
		return nil, 0, err
	}
	replace := in == Replaces && r.All()
	if replace && b.mode == Owned && r.Mem.Lost() {
		m.GiveUp(r) // what was lost is no loss
	}
	if err := m.Prepare(r, w.Joined(), replace); err != nil {
		return nil, 0, err
	}
	return r.Mem, r.Lo - k.At, nil
}

// Memory makes all of the memory of the buffer's device current and returns it, for kernels with an intent: see [Buffer.Use]. It is
// the buffer's and valid until that is closed.
func (b *Buffer) Memory(in Intent) (*gpu.Buffer, error) {
	mem, _, err := b.use("Memory", b.dev, memory.Between(0, b.size), in)
	return mem, err
}

// Wrote notes that a kernel of a device wrote the region, on what Use returned last for that device.
func (b *Buffer) Wrote(dev *gpu.Device, w Region) {
	m, err := b.begin("Wrote")
	if err != nil {
		return // nothing was written
	}
	defer b.end(m)
	k := b.back
	if dev == nil || b.holds("Wrote", w) != nil {
		return
	}
	w.Offset += k.At
	if r, err := m.On("Wrote", k, dev, w); err == nil && r.Mem != nil {
		m.Wrote(r, w)
	}
}

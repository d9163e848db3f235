// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/gpu"
)

// Copy makes a buffer of the library's own with the same bytes: Go memory where Go memory holds them, else memory of the
// device. It waits for nothing; results in memory that the device holds in parts must be synced before ([ErrUnsynced]).
func (b *Buffer) Copy() (*Buffer, error) {
	const op = "Copy"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(op); err != nil {
		return nil, err
	}
	if err := b.synced(op, 0, b.size, nil); err != nil {
		return nil, err
	}
	switch {
	case b.all.where == None:
		return New(b.dev, b.size)
	case b.onHost():
		mem := make([]byte, b.size)
		copy(mem, b.host.Bytes)
		return Wrap(b.dev, gpu.HostBytes(mem), nil)
	case b.all.where == Host:
		return FromHost(b.dev, b.host)
	}
	c, err := New(b.dev, b.size)
	if err != nil {
		return nil, err
	}
	mem, err := c.Writable(true)
	if err == nil {
		err = mem.CopyFrom(0, b.all.mem, 0, min(mem.Size(), b.all.mem.Size())/4*4)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.all.where = Device
	return c, nil
}

// onHost reports whether Go memory holds the current bytes. Of memory that the device holds in parts it does once results
// have been downloaded.
func (b *Buffer) onHost() bool {
	return b.host.Bytes != nil && (b.Windowed() || b.all.where&Host != 0)
}

// gather brings results in parts of memory together on the host, where it is then used.
func (b *Buffer) gather(ctx context.Context) error {
	if !b.Windowed() {
		return nil
	}
	return b.download(ctx)
}

func (b *Buffer) inside(op string, offset, size int) error {
	if offset < 0 || size < 0 || offset > b.size || size > b.size-offset {
		return fail(op, gpu.ErrInvalid, "beyond the buffer")
	}
	return nil
}

// holds refuses regions that do not lie in the buffer.
func (b *Buffer) holds(op string, r Region) error {
	switch {
	case r.Offset < 0 || r.Width < 0 || r.Count < 0 || r.Offset > b.size,
		r.Count > 1 && (r.Pitch < r.Width || r.Pitch > 0 && r.Count-1 > b.size/r.Pitch),
		r.Span() < 0 || r.Span() > b.size-r.Offset:
		return fail(op, gpu.ErrInvalid, "a region beyond the buffer")
	}
	return nil
}

// View gives the CPU a region to read while fn runs: the bytes from its first to its last, those between its rows
// undefined. They are the memory itself where the CPU can reach the current bits, else a copy. The slice is dead
// afterwards, and fn must not use the buffer.
func (b *Buffer) View(ctx context.Context, r Region, fn func([]byte) error) error {
	const op = "View"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(op); err != nil {
		return err
	}
	if fn == nil {
		return fail(op, gpu.ErrInvalid, "nil function")
	}
	if err := b.holds(op, r); err != nil {
		return err
	}
	if err := b.gather(ctx); err != nil {
		return err
	}
	end := r.Offset + r.Span()
	switch {
	case r.Span() == 0:
		return fn(nil)
	case b.InPlace():
		return b.all.mem.Map(ctx, uint64(r.Offset), uint64(r.Span()), fn)
	case b.onHost():
		return fn(b.host.Bytes[r.Offset:end:end])
	}
	w := &b.all // only Go memory is windowed
	w.hi = b.size
	if err := b.current(w); err != nil {
		return err
	}
	mem := make([]byte, r.Span())
	if err := w.mem.Read(ctx, w.transfer(r, gpu.HostBytes(mem), 0)); err != nil {
		return err
	}
	return fn(mem)
}

// Update gives the CPU size bytes from offset on while fn rewrites them. Without keep fn replaces all of them, and does
// not see what they were. Only they move. After an error of fn's memory of the device is as it was. The slice is dead
// afterwards, and fn must not use the buffer.
func (b *Buffer) Update(ctx context.Context, offset, size int, keep bool, fn func([]byte) error) error {
	const op = "Update"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.writable(op); err != nil {
		return err
	}
	if fn == nil {
		return fail(op, gpu.ErrInvalid, "nil function")
	}
	if err := b.inside(op, offset, size); err != nil {
		return err
	}
	if err := b.gather(ctx); err != nil {
		return err
	}
	end := offset + size
	switch {
	case size == 0:
		return fn(nil)
	case b.InPlace():
		return b.all.mem.Map(ctx, uint64(offset), uint64(size), fn)
	case b.onHost():
		return errors.Join(fn(b.host.Bytes[offset:end:end]), b.follow(offset, end))
	}
	return b.updateDevice(ctx, offset, end, keep, fn)
}

// follow brings a part of Go memory that was written to the device, if that was current.
func (b *Buffer) follow(offset, end int) error {
	if b.Windowed() {
		return b.drop(func(w *window) bool { return w.lo < end && offset < w.hi })
	}
	if b.all.where != Both {
		return nil
	}
	lo, hi := words(offset, end, b.size)
	if b.all.mem.Write(uint64(lo), gpu.HostBytes(b.host.Bytes[lo:hi])) != nil {
		b.all.where = Host // the next kernel sees to it, or finds out why not
	}
	return nil
}

// words rounds a range out to multiples of 4, but not beyond the end.
func words(offset, end, size int) (lo, hi int) {
	return offset &^ 3, min(end+(4-end%4)%4, size)
}

func (b *Buffer) updateDevice(ctx context.Context, offset, end int, keep bool, fn func([]byte) error) error {
	whole := offset == 0 && end == b.size
	w := &b.all
	w.hi = b.size
	err := b.allocate(w)
	if err == nil && (keep || !whole) {
		err = b.current(w)
	}
	if err != nil {
		return err
	}
	lo, hi := words(offset, end, b.size)
	mem := make([]byte, hi-lo)
	read := func(from, to int) {
		if err == nil && from < to {
			err = w.mem.Read(ctx, w.transfer(Region{from, to - from, to - from, 1}, gpu.HostBytes(mem), from-lo))
		}
	}
	if keep {
		read(lo, hi)
	} else { // neighbours in the same words
		read(lo, offset)
		read(end, hi)
	}
	if err == nil {
		err = fn(mem[offset-lo : end-lo : end-lo])
	}
	if err == nil {
		err = w.mem.Write(uint64(lo), gpu.HostBytes(mem))
	}
	if err == nil {
		b.wrote(w, Region{lo, hi - lo, hi - lo, 1})
	}
	return err
}

// Patch replaces bytes from offset on, at any offset and of any number. Only they move, to where the current bits are.
// It waits only for neighbours in the same word of the device's memory.
func (b *Buffer) Patch(ctx context.Context, offset int, src []byte) error {
	b.mu.Lock()
	direct := !b.onHost() && !b.InPlace() && offset%4 == 0 && (len(src)%4 == 0 || offset+len(src) == b.size)
	b.mu.Unlock()
	if direct {
		return b.Write(offset, gpu.HostBytes(src))
	}
	return b.Update(ctx, offset, len(src), false, func(mem []byte) error { copy(mem, src); return nil })
}

// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/gpu"
)

// Readable makes the device's side current and returns it, for kernels that read. The result is the buffer's and valid
// until it is closed.
func (b *Buffer) Readable() (*gpu.Buffer, error) {
	mem, _, err := b.ReadableRange(0, b.size)
	return mem, err
}

// ReadableRange is [Buffer.Readable] for bytes lo to hi-1. What it returns begins with byte base, at most lo, of the
// buffer. Of memory that the device can hold as a whole that is 0; of what is larger the result is valid until the
// kernel that it is for is queued.
func (b *Buffer) ReadableRange(lo, hi int) (mem *gpu.Buffer, base int, err error) {
	const op = "Readable"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(op); err != nil {
		return nil, 0, err
	}
	w, err := b.window(op, lo, hi)
	if err != nil {
		return nil, 0, err
	}
	if err := b.current(w); err != nil {
		return nil, 0, err
	}
	return w.mem, w.base, nil
}

// Writable returns the device's side for kernels that write. If they will write every byte that matters, whole saves
// bringing it up to date first. Say [Buffer.Wrote] once the kernel is queued.
func (b *Buffer) Writable(whole bool) (*gpu.Buffer, error) {
	mem, _, err := b.WritableRange(0, b.size, whole)
	return mem, err
}

// WritableRange is [Buffer.Writable] for kernels that write among bytes lo to hi-1; see [Buffer.ReadableRange].
func (b *Buffer) WritableRange(lo, hi int, whole bool) (mem *gpu.Buffer, base int, err error) {
	const op = "Writable"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.writable(op); err != nil {
		return nil, 0, err
	}
	if whole && !b.Windowed() {
		b.replaced(&b.all)
	}
	w, err := b.window(op, lo, hi)
	if err != nil {
		return nil, 0, err
	}
	if err := b.synced(op, lo, hi, w); err != nil {
		return nil, 0, err
	}
	if whole && !b.Windowed() {
		err = b.allocate(w)
	} else {
		err = b.current(w)
	}
	if err != nil {
		return nil, 0, err
	}
	return w.mem, w.base, nil
}

// Wrote notes that a kernel wrote the region. It must have been queued on what Writable or WritableRange returned last.
func (b *Buffer) Wrote(r Region) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, err := b.window("Wrote", r.Offset, r.Offset+r.Span())
	if err != nil {
		return // it was not
	}
	_ = b.drop(func(o *window) bool { return o != w && o.lo < r.Offset+r.Span() && r.Offset < o.hi })
	b.wrote(w, r)
}

// Touch says that the caller wrote into the host memory: it is current now and the device's side is not. Results that
// were not synced are given up. It has no effect on memory without a host side.
func (b *Buffer) Touch() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable("Touch"); err != nil {
		return err
	}
	if !b.HasHost() {
		return nil
	}
	b.all.where, b.all.dirty = Host, b.all.dirty[:0]
	return b.drop(func(*window) bool { return true })
}

// ClearHost sets a region of the caller's memory to zero, if that is Go's, current and not
// read-only, and reports whether it is.
func (b *Buffer) ClearHost(r Region) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Windowed() || b.all.where != Host || b.host.Bytes == nil || b.host.ReadOnly {
		return false
	}
	for i := range r.Count {
		clear(b.host.Bytes[r.Offset+i*r.Pitch:][:r.Width])
	}
	return true
}

// Sync brings results back: it waits for what is queued and copies what kernels wrote since the last Sync into the host
// memory. Where there is no host memory it only waits.
func (b *Buffer) Sync(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable("Sync"); err != nil {
		return err
	}
	if !b.HasHost() {
		return b.dev.Sync(ctx)
	}
	return b.download(ctx)
}

func (b *Buffer) download(ctx context.Context) error {
	for _, w := range b.windows() {
		if w.where != Device {
			continue
		}
		for len(w.dirty) > 0 {
			r := w.dirty[len(w.dirty)-1]
			if err := w.mem.Read(ctx, w.transfer(r, b.host, r.Offset)); err != nil {
				return err
			}
			w.dirty = w.dirty[:len(w.dirty)-1]
		}
		w.where = Both
	}
	return nil
}

func (w *window) transfer(r Region, dst gpu.Host, offset int) gpu.Transfer {
	return gpu.Transfer{
		Offset: uint64(r.Offset - w.base), Host: dst, HostOffset: offset, Width: r.Width, Pitch: r.Pitch, Count: r.Count,
	}
}

// Read copies a region into other memory of the caller's, in which rows have the same pitch and the first begins at
// offset.
func (b *Buffer) Read(ctx context.Context, r Region, dst gpu.Host, offset int) error {
	const op = "Read"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(op); err != nil {
		return err
	}
	if err := b.holds(op, r); err != nil {
		return err
	}
	if !dst.Valid() || offset < 0 || r.Span() > dst.Size-offset {
		return fail(op, ErrShort, "the destination")
	}
	dst = dst.Part(0, dst.Size)
	if dst.ReadOnly {
		return fail(op, gpu.ErrReadOnly, "the destination")
	}
	if r.Span() == 0 {
		return nil
	}
	if b.Windowed() {
		if err := b.download(ctx); err != nil {
			return err
		}
	}
	if (b.Windowed() || b.all.where&Host != 0) && b.host.Foreign == nil && dst.Foreign == nil {
		for i := range r.Count {
			o := i * r.Pitch
			copy(dst.Bytes[offset+o:offset+o+r.Width], b.host.Bytes[r.Offset+o:])
		}
		return nil
	}
	w, err := b.window(op, r.Offset, r.Offset+r.Span())
	if err != nil {
		return err
	}
	if err := b.current(w); err != nil {
		return err
	}
	return w.mem.Read(ctx, w.transfer(r, dst, offset))
}

// Access gives the CPU the buffer's bytes while fn runs: the mapping itself, the host's side, or a copy. With write set,
// what fn leaves there is the buffer's new content; an error of fn's then leaves the content of an owned buffer as it
// was. The slice is dead afterwards. fn must not use the buffer otherwise, nor write into memory that is read-only.
func (b *Buffer) Access(ctx context.Context, write bool, fn func([]byte) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	check := b.usable
	if write {
		check = b.writable
	}
	if err := check("Access"); err != nil {
		return err
	}
	if fn == nil {
		return fail("Access", gpu.ErrInvalid, "nil function")
	}
	switch {
	case b.InPlace():
		return b.all.mem.Map(ctx, 0, uint64(b.size), fn)
	case b.host.Bytes != nil:
		if err := b.download(ctx); err != nil {
			return err
		}
		err := fn(b.host.Bytes[:b.size:b.size])
		if write {
			b.all.where = Host
			err = errors.Join(err, b.drop(func(*window) bool { return true }))
		}
		return err
	}
	return b.accessCopy(ctx, write, fn)
}

func (b *Buffer) accessCopy(ctx context.Context, write bool, fn func([]byte) error) error {
	w := &b.all // Go memory is accessed itself, other memory is never windowed
	w.hi = b.size
	if err := b.current(w); err != nil {
		return err
	}
	mem := make([]byte, b.size)
	whole := Region{0, b.size, b.size, 1}
	if err := w.mem.Read(ctx, w.transfer(whole, gpu.HostBytes(mem), 0)); err != nil {
		return err
	}
	if err := fn(mem); err != nil || !write {
		return err
	}
	if err := w.mem.Write(0, gpu.HostBytes(mem)); err != nil {
		return err
	}
	w.dirty = w.dirty[:0]
	b.wrote(w, whole)
	return nil
}

// Write replaces bytes from offset on, a multiple of 4 unless everything to the end is replaced. The caller may reuse the
// memory at once.
func (b *Buffer) Write(offset int, src gpu.Host) error {
	const op = "Write"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.writable(op); err != nil {
		return err
	}
	if err := b.inside(op, offset, src.Size); err != nil {
		return err
	}
	if b.Windowed() {
		return b.writeHost(offset, src)
	}
	whole := offset == 0 && src.Size == b.size
	if whole {
		b.replaced(&b.all)
	}
	w, err := b.window(op, 0, b.size)
	if err == nil {
		err = b.allocate(w)
	}
	if err == nil && !whole {
		err = b.current(w)
	}
	if err == nil {
		err = w.mem.Write(uint64(offset), src)
	}
	if err == nil {
		b.wrote(w, Region{offset, src.Size, src.Size, 1})
	}
	return err
}

// writeHost is Write into memory that the device cannot hold: it goes to the host's side.
func (b *Buffer) writeHost(offset int, src gpu.Host) error {
	const op = "Write"
	if src.Foreign != nil || !src.Valid() {
		return fail(op, gpu.ErrInvalid, "not Go memory")
	}
	end := offset + src.Size
	if err := b.synced(op, offset, end, nil); err != nil {
		return err
	}
	copy(b.host.Bytes[offset:end], src.Mem())
	return b.drop(func(w *window) bool { return w.lo < end && offset < w.hi })
}

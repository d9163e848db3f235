// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"runtime"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
)

// Readable makes the device's side current and returns it, for kernels that read. The result is the buffer's and valid
// until it is closed.
func (b *Buffer) Readable() (*gpu.Buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable("Readable"); err != nil {
		return nil, err
	}
	return b.mem, b.current()
}

// Writable returns the device's side for kernels that write. If they will write every byte that matters, whole saves
// bringing it up to date first. Say [Buffer.Wrote] once the kernel is queued.
func (b *Buffer) Writable(whole bool) (*gpu.Buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.writable("Writable"); err != nil {
		return nil, err
	}
	if !whole {
		return b.mem, b.current()
	}
	return b.mem, b.allocate()
}

// Wrote notes that a kernel wrote the region. It must have been queued on what Writable returned.
func (b *Buffer) Wrote(r Region) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.where = Device
	if !b.HasHost() {
		return
	}
	if slices.Contains(b.dirty, r) {
		return
	}
	if len(b.dirty) >= maxDirty {
		b.dirty = append(b.dirty[:0], Region{0, b.size, b.size, 1})
		return
	}
	b.dirty = append(b.dirty, r)
}

// allocate makes the device's side exist.
func (b *Buffer) allocate() error {
	if b.mem != nil {
		return nil
	}
	mem, err := b.dev.NewBuffer(uint64(b.size))
	if err != nil {
		return err
	}
	b.mem = mem
	b.net = runtime.AddCleanup(b, func(m *gpu.Buffer) { _ = m.Close() }, mem)
	b.netted = true
	return nil
}

// current makes the device's side hold the current bits.
func (b *Buffer) current() error {
	if err := b.allocate(); err != nil {
		return err
	}
	if b.where&Device != 0 {
		return nil
	}
	if b.where == None {
		if err := b.mem.Clear(0, b.mem.Size()/4*4); err != nil {
			return err
		}
		b.where = Device
		return nil
	}
	if err := b.mem.Write(0, b.host); err != nil {
		return err
	}
	b.where = Both
	return nil
}

// Touch says that the caller wrote into the host memory: it is current now and the device's side is not. Results that
// were not synced are given up. It has no effect on memory without a host side.
func (b *Buffer) Touch() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable("Touch"); err != nil {
		return err
	}
	if b.HasHost() {
		b.where, b.dirty = Host, b.dirty[:0]
	}
	return nil
}

// ClearHost sets a region of the caller's memory to zero, if that is Go's, current and not
// read-only, and reports whether it is.
func (b *Buffer) ClearHost(r Region) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.where != Host || b.host.Bytes == nil || b.host.ReadOnly {
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
	if b.where != Device {
		return nil
	}
	for len(b.dirty) > 0 {
		r := b.dirty[len(b.dirty)-1]
		if err := b.mem.Read(ctx, b.transfer(r, b.host, r.Offset)); err != nil {
			return err
		}
		b.dirty = b.dirty[:len(b.dirty)-1]
	}
	b.where = Both
	return nil
}

func (b *Buffer) transfer(r Region, dst gpu.Host, offset int) gpu.Transfer {
	return gpu.Transfer{
		Offset: uint64(r.Offset), Host: dst, HostOffset: offset, Width: r.Width, Pitch: r.Pitch, Count: r.Count,
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
	if r.Offset < 0 || r.Width < 0 || r.Count < 0 || r.Count > 1 && r.Pitch < r.Width || r.Offset > b.size || r.Span() > b.size-r.Offset {
		return fail(op, gpu.ErrInvalid, "a region beyond the buffer")
	}
	if offset < 0 || r.Span() > dst.Size-offset {
		return fail(op, ErrShort, "the destination")
	}
	if dst.ReadOnly {
		return fail(op, gpu.ErrReadOnly, "the destination")
	}
	if r.Span() == 0 {
		return nil
	}
	if b.where&Host != 0 && b.host.Foreign == nil && dst.Foreign == nil {
		for i := range r.Count {
			o := i * r.Pitch
			copy(dst.Bytes[offset+o:offset+o+r.Width], b.host.Bytes[r.Offset+o:])
		}
		return nil
	}
	if err := b.current(); err != nil {
		return err
	}
	return b.mem.Read(ctx, b.transfer(r, dst, offset))
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
		return b.mem.Map(ctx, func(mem []byte) error { return fn(mem[:b.size:b.size]) })
	case b.host.Bytes != nil:
		if err := b.download(ctx); err != nil {
			return err
		}
		err := fn(b.host.Bytes[:b.size:b.size])
		if write {
			b.where = Host
		}
		return err
	}
	return b.accessCopy(ctx, write, fn)
}

func (b *Buffer) accessCopy(ctx context.Context, write bool, fn func([]byte) error) error {
	if err := b.current(); err != nil {
		return err
	}
	mem := make([]byte, b.size)
	whole := Region{0, b.size, b.size, 1}
	if err := b.mem.Read(ctx, b.transfer(whole, gpu.HostBytes(mem), 0)); err != nil {
		return err
	}
	if err := fn(mem); err != nil || !write {
		return err
	}
	if err := b.mem.Write(0, gpu.HostBytes(mem)); err != nil {
		return err
	}
	b.where = Device
	if b.HasHost() {
		b.dirty = append(b.dirty[:0], whole)
	}
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
	if offset < 0 || offset > b.size || src.Size > b.size-offset || src.Size < 0 {
		return fail(op, gpu.ErrInvalid, "beyond the buffer")
	}
	whole := offset == 0 && src.Size == b.size
	err := b.allocate()
	if err == nil && !whole {
		err = b.current()
	}
	if err == nil {
		err = b.mem.Write(uint64(offset), src)
	}
	if err != nil {
		return err
	}
	b.where = Device
	if b.HasHost() {
		b.dirty = append(b.dirty, Region{offset, src.Size, src.Size, 1})
	}
	return nil
}

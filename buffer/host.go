// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// Touch says that the caller has written to the host memory, in the regions or, if none is given, anywhere. These bytes are then current
// on the host and stale on the devices, and results for them that were not synced are dropped. It has no effect on memory without a
// host side.
func (b *Buffer) Touch(regions ...Region) error {
	const op = "Touch"
	m, err := b.begin(context.Background(), op, Reads)
	if err != nil {
		return err
	}
	defer m.Unlock()
	if len(regions) == 0 {
		regions = []Region{Range(0, b.size)}
	}
	for _, r := range regions {
		if _, err := b.place(op, r); err != nil {
			return err
		}
	}
	if !b.back.Hosted {
		return nil
	}
	for _, r := range regions {
		w, _ := b.place(op, r) // as above
		if streams {
			_ = b.Spoil(nil, r)
		}
		if err := m.HostWrote(w); err != nil {
			return named(op, err)
		}
	}
	return nil
}

// ClearHost sets a region of the caller's memory to zero if that is Go memory, current and not read-only, and reports whether it did.
func (b *Buffer) ClearHost(r Region) bool {
	m, w, err := b.beginIn(context.Background(), "ClearHost", Writes, r)
	if err != nil {
		return false
	}
	defer m.Unlock()
	if b.windowed || b.back.Whole.Valid() || !b.onHost(m, b.back.All()) {
		return false
	}
	for i := range w.Count { // rows of nothing are one
		clear(b.host.Bytes[w.Offset-b.back.At+i*w.Pitch:][:w.Width])
	}
	return m.HostWrote(w) == nil
}

// Sync waits for what is queued and copies the bytes that kernels wrote since the last Sync to the host memory. Without host memory it
// only waits. After an error, some of the regions that different calls wrote may have been copied and others not.
func (b *Buffer) Sync(ctx context.Context) error {
	const op = "Sync"
	m, err := b.begin(ctx, op, Reads)
	if err != nil {
		return err
	}
	defer m.Unlock()
	switch mem := b.back.Whole.Mem; {
	case b.back.Hosted:
		err = m.Download(ctx, b.back, b.back.All())
	case mem != nil:
		err = m.Wait(func() error { return mem.Sync(ctx) })
	default:
		err = m.Wait(func() error { return b.dev.Sync(ctx) })
	}
	return named(op, err)
}

// SyncHost is [Buffer.Sync] and returns the host memory: the caller's own if it was wrapped, the host's copy of a pair otherwise. It may
// be used while no kernel uses the buffer, and stays at the same address until the last share is closed. After writing to it call
// [Buffer.Touch]. A buffer without host memory is [gpu.ErrUnsupported].
func (b *Buffer) SyncHost(ctx context.Context) (gpu.Host, error) {
	const op = "SyncHost"
	m, err := b.begin(ctx, op, Reads)
	if err != nil {
		return gpu.Host{}, err
	}
	defer m.Unlock()
	if !b.back.Hosted {
		return gpu.Host{}, fail(op, gpu.ErrUnsupported, "there is no host memory")
	}
	if err := m.Download(ctx, b.back, b.back.All()); err != nil {
		return gpu.Host{}, named(op, err)
	}
	return b.host, nil
}

// Read copies a region to host memory of the caller, where the first row begins at offset and the rows have the same pitch.
func (b *Buffer) Read(ctx context.Context, r Region, dst gpu.Host, offset int) error {
	const op = "Read"
	m, w, err := b.beginIn(ctx, op, Reads, r)
	if err != nil {
		return err
	}
	defer m.Unlock()
	if !dst.Valid() || offset < 0 || r.Span() > dst.Size-offset {
		return fail(op, ErrShort, r.Span(), " bytes to a destination of ", dst.Size-offset)
	}
	dst = dst.Part(0, dst.Size)
	if dst.ReadOnly {
		return fail(op, gpu.ErrReadOnly, "the destination")
	}
	if r.Span() == 0 {
		return nil
	}
	if err := b.gather(ctx, m); err != nil {
		return named(op, err)
	}
	if dst.Foreign == nil && b.onHost(m, w) {
		for i := range r.Count {
			o := i * r.Pitch
			copy(dst.Bytes[offset+o:offset+o+r.Width], b.host.Bytes[r.Offset+o:])
		}
		return nil
	}
	return named(op, b.download(ctx, m, w, dst, offset))
}

// download reads a region from the device, after making it current there.
func (b *Buffer) download(ctx context.Context, m *memory.Memory, w Region, dst gpu.Host, offset int) error {
	d, err := m.On("Read", b.back, b.dev, w)
	if err == nil {
		err = m.Update(ctx, d, w)
	}
	if err != nil {
		return err
	}
	return m.Wait(func() error { return d.Mem.Read(ctx, d.Transfer(w, dst, offset)) })
}

// onHost reports whether Go memory holds the current bytes of a region.
func (b *Buffer) onHost(m *memory.Memory, w Region) bool {
	return b.host.Bytes != nil && !m.Lacks(w)
}

// gather copies the results of memory that devices hold in windows to the host, where the memory is then used.
func (b *Buffer) gather(ctx context.Context, m *memory.Memory) error {
	if !b.windowed {
		return nil
	}
	return m.Download(ctx, b.back, b.back.All())
}

// Access calls fn with the bytes of a region, from the first to the last; those between its rows are undefined. They are the memory itself
// if the CPU can access it, else a copy. Results in a region of one row are first copied to wrapped Go memory. With Writes and Replaces
// the region must have one row, and the changes that fn makes become its content; with Replaces the bytes are undefined at first. If fn
// returns an error, memory of the device does not change. The slice must not be used after fn.
//
// While fn runs, calls that write the buffer are [gpu.ErrMapped]; so are calls that read it, unless fn only reads a copy or the host's
// memory. Close takes effect when fn returns.
func (b *Buffer) Access(ctx context.Context, r Region, in Intent, fn func([]byte) error) error {
	const op = "Access"
	m, w, err := b.beginIn(ctx, op, in, r)
	if err != nil {
		return err
	}
	defer func() {
		if m != nil {
			m.Unlock()
		}
	}()
	if fn == nil || in != Reads && r.Count != 1 {
		return fail(op, gpu.ErrInvalid, "nil function, or rows to be written")
	}
	if err := b.gather(ctx, m); err != nil {
		return named(op, err)
	}
	if b.host.Bytes != nil && r.Count == 1 && r.Width > 0 && (in != Replaces || b.onHost(m, w)) {
		if err := m.Download(ctx, b.back, w); err != nil {
			return named(op, err)
		}
	}
	end := r.End()
	switch {
	case r.Span() == 0:
		return b.apart(&m, in, func() error { return fn(nil) })
	case b.inPlace(b.host):
		mem := b.back.Whole.Mem
		return b.apart(&m, Writes, func() error {
			err := mem.Map(ctx, uint64(r.Offset), uint64(r.Span()), fn)
			if in != Reads {
				b.Wrote(b.dev, r) // for replicas on other devices
			}
			return err
		})
	case b.onHost(m, w):
		mem, k := b.host.Bytes[r.Offset:end:end], b.back
		return b.apart(&m, in, func() error {
			err := fn(mem)
			if in != Reads {
				hostWrote(k, w)
			}
			return err
		})
	case in != Reads:
		return b.changeDevice(ctx, &m, w, in == Writes, fn)
	}
	mem := make([]byte, r.Span())
	if err := b.download(ctx, m, w, gpu.HostBytes(mem), 0); err != nil {
		return named(op, err)
	}
	return b.apart(&m, in, func() error { return fn(mem) })
}

// hostWrote records that a region of one row was written. It cannot fail and does not wait.
func hostWrote(k *memory.Backing, w Region) {
	m, turn := k.Enter()
	if !turn {
		m.Later(func(m *memory.Memory) func() { _ = m.HostWrote(w); return nil })
		return
	}
	_ = m.HostWrote(w)
	m.Unlock()
}

// apart unlocks the memory and calls a function of the caller's, which may use wraps of overlapping memory, and read the buffer if it only
// reads. Memory that was closed meanwhile is given back when the last function ends.
func (b *Buffer) apart(m **memory.Memory, in Intent, fn func() error) (err error) {
	note := func(n int) (last bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if in == Reads {
			b.readers += n
		} else {
			b.changing = n > 0
		}
		return b.shares == 0 && !b.accessed()
	}
	note(1)
	(*m).Unlock()
	*m = nil
	defer func() {
		if note(-1) {
			err = errors.Join(err, b.free())
		}
	}()
	return fn()
}

// changeDevice changes a region of the device's memory through a copy.
func (b *Buffer) changeDevice(ctx context.Context, m **memory.Memory, w Region, keep bool, fn func([]byte) error) error {
	r, err := (*m).On("Update", b.back, b.dev, w)
	if err != nil {
		return err
	}
	all, k := r.Words(w), b.back
	if err := (*m).Prepare(ctx, r, all, !keep && w.Width == b.size); err != nil {
		return err
	}
	mem := make([]byte, all.Width)
	read := func(part Region) {
		if err == nil && part.Width > 0 {
			err = (*m).Wait(func() error { return r.Mem.Read(ctx, r.Transfer(part, gpu.HostBytes(mem), part.Offset-all.Offset)) })
		}
	}
	if keep {
		read(all)
	} else { // neighbours in the same words
		read(memory.Between(all.Offset, w.Offset))
		read(memory.Between(w.End(), all.End()))
	}
	if err != nil {
		return err
	}
	lo := w.Offset - all.Offset
	return b.apart(m, Writes, func() error {
		if err := fn(mem[lo : lo+w.Width : lo+w.Width]); err != nil {
			return err
		}
		m, err := k.Lock(ctx)
		if err != nil {
			return fail("Access", err)
		}
		defer m.Unlock()
		if err := r.Mem.Write(uint64(all.Offset-r.Lo), gpu.HostBytes(mem)); err != nil {
			return err
		}
		m.Wrote(r, w)
		return nil
	})
}

// Patch replaces any number of bytes at any offset. Only these bytes are copied, to where the current bytes are. It waits only if it has to
// read other bytes of the same word from the device.
func (b *Buffer) Patch(ctx context.Context, offset int, src []byte) error {
	r := Range(offset, len(src))
	m, w, err := b.beginIn(ctx, "Patch", Writes, r)
	if err != nil {
		return err
	}
	direct := !b.windowed && !b.onHost(m, w) && !b.inPlace(b.host) && offset%4 == 0 && (len(src)%4 == 0 || offset+len(src) == b.size)
	m.Unlock()
	if direct {
		return b.write(ctx, "Patch", offset, gpu.HostBytes(src))
	}
	return b.Access(ctx, r, Replaces, func(mem []byte) error { copy(mem, src); return nil })
}

// Write replaces bytes from offset on, a multiple of 4 unless everything to the end is replaced. The caller may reuse the
// memory at once.
func (b *Buffer) Write(offset int, src gpu.Host) error {
	return b.write(context.Background(), "Write", offset, src)
}

func (b *Buffer) write(ctx context.Context, op string, offset int, src gpu.Host) error {
	if streams && b != nil {
		_ = b.Spoil(nil, Range(offset, src.Size))
	}
	m, w, err := b.beginIn(ctx, op, Writes, Range(offset, src.Size))
	if err != nil {
		return err
	}
	defer m.Unlock()
	if b.windowed {
		if src.Foreign != nil || !src.Valid() {
			return fail(op, gpu.ErrInvalid, "not Go memory")
		}
		copy(b.host.Bytes[offset:], src.Mem())
		return m.HostWrote(w)
	}
	r, err := b.prepare(ctx, op, m, b.dev, w, src.Size == b.size)
	if err != nil {
		return err
	}
	if err := r.Mem.Write(uint64(offset), src); err != nil {
		return named(op, err)
	}
	m.Wrote(r, w)
	return nil
}

// Copy makes an owned buffer with the same bytes: in Go memory if Go memory holds them, else in device memory. It waits, until the context
// ends, for other calls that use the buffer, but not for the device; results in memory that the device holds in windows must be synced
// before ([ErrUnsynced]).
func (b *Buffer) Copy(ctx context.Context) (*Buffer, error) {
	const op = "Copy"
	if ctx == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil context")
	}
	m, err := b.begin(ctx, op, Reads)
	if err != nil {
		return nil, err
	}
	defer m.Unlock()
	k, all := b.back, b.back.All()
	switch {
	case !k.Hosted && !m.Written():
		return New(b.dev, b.size)
	case b.onHost(m, all):
		mem := make([]byte, b.size)
		copy(mem, b.host.Bytes)
		return Wrap(b.dev, gpu.HostBytes(mem), nil)
	case b.windowed:
		return nil, fail(op, ErrUnsynced)
	case k.Hosted && !m.Lacks(all):
		return FromHost(b.dev, b.host)
	}
	r, err := b.prepare(ctx, op, m, b.dev, all, false)
	if err != nil {
		return nil, err
	}
	c, err := New(b.dev, b.size)
	if err != nil {
		return nil, err
	}
	mem, err := c.Memory(Replaces)
	if err == nil {
		err = mem.CopyFrom(0, r.Mem, 0, min(mem.Size(), r.Mem.Size())/4*4)
	}
	if err != nil {
		_ = c.Close()
		return nil, named(op, err)
	}
	c.Wrote(c.dev, Range(0, c.size))
	return c, nil
}

const (
	pieceSize = 1 << 20  // what is in the cache on its way to the device
	queuedMax = 16 << 20 // what drivers may keep copies of before the device has it
)

// Filler makes buffers from a stream, one after the other, through one small staging buffer. It must not be used by several goroutines at
// once.
type Filler struct {
	piece  []byte
	queued int
}

// New makes a buffer on the device and calls read with one piece after the other to fill. The first piece is read before the buffer is
// allocated, so that a short stream which claims to be long does not take memory. New waits for the device now and then, so that it
// needs only some 20 MiB beside the buffer.
func (f *Filler) New(ctx context.Context, dev *gpu.Device, size int, read func([]byte) error) (*Buffer, error) {
	if f == nil || ctx == nil || read == nil {
		return nil, fail("New", gpu.ErrInvalid, "nil filler, context or function")
	}
	b, err := New(dev, size)
	if err != nil {
		return nil, err
	}
	if err := f.fill(ctx, b, read); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

func (f *Filler) fill(ctx context.Context, b *Buffer, read func([]byte) error) error {
	if n := min(b.size, pieceSize); len(f.piece) < n {
		f.piece = make([]byte, n)
	}
	var mem *gpu.Buffer
	for done := 0; done < b.size; done += pieceSize {
		piece := f.piece[:min(pieceSize, b.size-done)]
		if err := read(piece); err != nil {
			return err // the caller's own
		}
		var err error
		if mem == nil {
			mem, err = b.Memory(Replaces)
		}
		if err == nil {
			err = mem.Write(uint64(done), gpu.HostBytes(piece)) // the last one also zeroes the rest of its word
		}
		if f.queued += len(piece); err == nil && f.queued >= queuedMax {
			err, f.queued = b.dev.Sync(ctx), 0
		}
		if err != nil {
			return named("New", err)
		}
	}
	b.Wrote(b.dev, Range(0, b.size))
	return nil
}

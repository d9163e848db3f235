// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// A device of the platform reads and writes memory of the page's itself. The oracle, which stands in where there is no
// such device, cannot: it gets copies, here called mirrors.

// mirror is a copy of memory of the page's.
type mirror struct {
	object any
	bytes  []byte
	words  []int32 // the same memory, of structures of sparse matrices
	shares int     // of handles
}

// maxMirrored is how much memory mirrors may take, because running out of memory ends a program of Go's.
const maxMirrored = 1 << 30

// reaches reports whether the device reads and writes memory of the page's.
func (b *Bridge) reaches() bool { return b.dev.Handle() != nil }

// mirrored makes a mirror for memory of that size, empty yet.
func (b *Bridge) mirrored(object any, size uint32) (*mirror, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copied+uint64(size) > maxMirrored {
		return nil, fault.Fail("bridge", fault.ErrNoMemory, "copies of more than "+itoa(maxMirrored)+" bytes")
	}
	b.copied += uint64(size)
	words := make([]int32, (uint64(size)+3)/4)
	return &mirror{object: object, bytes: wordBytes(words)[:size], words: words, shares: 1}, nil
}

// drop gives up shares of mirrors.
func (b *Bridge) drop(mirrors ...*mirror) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range mirrors {
		if m == nil {
			continue
		}
		if m.shares--; m.shares == 0 {
			b.copied -= uint64(len(m.bytes))
		}
	}
}

// shared is what another handle of the same memory keeps of an entry.
func (b *Bridge) shared(e *entry) entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range []*mirror{e.mirror, e.indices, e.pointers} {
		if m != nil {
			m.shares++
		}
	}
	return entry{late: e.late, mirror: e.mirror, indices: e.indices, pointers: e.pointers}
}

// host returns memory of the page's for a device that reads it. The mirror, if there is one, is to be dropped when it
// is not needed any more.
func (b *Bridge) host(object any, size uint32) (gpu.Host, *mirror, error) {
	if b.reaches() {
		return gpu.Host{Foreign: object, Size: int(size)}, nil, nil
	}
	m, err := b.mirrored(object, size)
	if err != nil {
		return gpu.Host{}, nil, err
	}
	b.page.Load(object, 0, m.bytes)
	return gpu.HostBytes(m.bytes), m, nil
}

// write replaces all of a buffer. The page sends whole words, so the last one may go beyond the buffer's end: into memory
// that nobody uses.
func (b *Bridge) write(buf *buffer.Buffer, object any, size uint32) error {
	if int64(size) < int64(buf.Size()) || int64(size) > (int64(buf.Size())+3)/4*4 {
		return fault.Fail("bridge: Write", buffer.ErrShort, itoa(int(size)), " bytes for ", itoa(buf.Size()))
	}
	if size == 0 {
		return nil
	}
	src, mirror, err := b.host(object, size)
	if err != nil {
		return err
	}
	defer b.drop(mirror)
	mem, err := buf.Writable(buffer.Replaces)
	if err != nil {
		return err
	}
	if err := mem.Write(0, src); err != nil {
		return err
	}
	buf.Wrote(buffer.Region{Width: buf.Size(), Pitch: buf.Size(), Count: 1})
	return nil
}

// read returns a function that waits until memory of the page's holds bytes of a buffer.
func (b *Bridge) read(mem *gpu.Buffer, offset uint64, object any, size uint32, width int) (func(context.Context) error, error) {
	transfer := gpu.Transfer{
		Offset: offset, Width: width, Pitch: width, Count: 1,
		Host: gpu.Host{Foreign: object, Size: int(size)},
	}
	if b.reaches() {
		return func(ctx context.Context) error { return mem.Read(ctx, transfer) }, nil
	}
	mirror, err := b.mirrored(object, size)
	if err != nil {
		return nil, err
	}
	transfer.Host = gpu.HostBytes(mirror.bytes)
	return func(ctx context.Context) error {
		defer b.drop(mirror)
		err := mem.Read(ctx, transfer)
		if err == nil {
			b.page.Store(object, 0, mirror.bytes[:width])
		}
		return err
	}, nil
}

// wordBytes views numbers as their bytes.
func wordBytes(w []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
}

// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
)

const (
	pieceSize = 1 << 20  // what is in the cache on its way to the device
	queuedMax = 16 << 20 // what drivers may keep copies of before the device has it
)

// Filler makes buffers from a stream, one after the other, by way of one small piece of memory. It is not for several
// goroutines.
type Filler struct {
	piece  []byte
	queued int
}

// New makes a buffer on the device of what read puts into the pieces that it is given, in order. The first piece is read before
// memory is taken for all of them, so that a short stream which claims to be long takes none. It waits for the device now
// and then: beside the buffer, memory for some 20 MiB is all that it needs.
func (f *Filler) New(ctx context.Context, dev *gpu.Device, size int, read func([]byte) error) (*Buffer, error) {
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
		err := read(piece)
		if err == nil && mem == nil {
			mem, err = b.Memory(Replaces)
		}
		if err == nil {
			err = mem.Write(uint64(done), gpu.HostBytes(piece)) // the last one also zeroes the rest of its word
		}
		if f.queued += len(piece); err == nil && f.queued >= queuedMax {
			err, f.queued = b.dev.Sync(ctx), 0
		}
		if err != nil {
			return err
		}
	}
	b.Wrote(b.dev, Range(0, b.size))
	return nil
}

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

// Filler fills buffers from a stream, one after the other, by way of one small piece of memory. It is not for several
// goroutines.
type Filler struct {
	piece  []byte
	queued int
}

// Fill replaces all bytes of a buffer by what read puts into the pieces that it is given, in order. Where read fails the
// buffer's bytes are undefined. It waits for the device now and then, so that memory for some 20 MiB is all that it takes.
func (f *Filler) Fill(ctx context.Context, b *Buffer, read func([]byte) error) error {
	mem, err := b.Writable(true)
	if err != nil {
		return err
	}
	size := b.Size()
	if n := min(size, pieceSize); len(f.piece) < n {
		f.piece = make([]byte, n)
	}
	for done := 0; done < size; done += pieceSize {
		piece := f.piece[:min(pieceSize, size-done)]
		if err := read(piece); err != nil {
			return err
		}
		if err := mem.Write(uint64(done), gpu.HostBytes(piece)); err != nil { // the last one also zeroes the rest of its word
			return err
		}
		if f.queued += len(piece); f.queued >= queuedMax {
			if err := b.dev.Sync(ctx); err != nil {
				return err
			}
			f.queued = 0
		}
	}
	b.Wrote(Region{Width: size, Pitch: size, Count: 1})
	return nil
}

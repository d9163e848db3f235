// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"runtime"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// streams tells that results may be written to the host range by range, which takes waiting: they cannot in a page.
const streams = runtime.GOOS != "js"

// WrapRanged is [Wrap] of memory that a device gets ranges of only, as kernels use them, however much of it there is; all of foreign memory.
func WrapRanged(dev *gpu.Device, mem gpu.Host) (*Buffer, error) {
	b, err := Wrap(dev, mem, nil)
	if err != nil {
		return nil, named("WrapRanged", err)
	}
	b.windowed = mem.Foreign == nil
	return b, nil
}

// Windowed reports whether the device cannot hold the buffer as a whole, so that kernels use ranges of it.
func (b *Buffer) Windowed() bool { return b.orClosed().windowed }

// Same reports whether two buffers are the same memory of the device, as two wraps of one GPU buffer are. Two wraps of the
// same host memory are not: each has a replica of its own, which gets what kernels write to the other.
func (b *Buffer) Same(o *Buffer) bool {
	return b == o || b != nil && o != nil && b.imported != 0 && b.imported == o.imported && b.dev == o.dev
}

// Overlaps reports whether what is written to one buffer changes the other: they are the same, or wrap host memory that overlaps.
func (b *Buffer) Overlaps(o *Buffer) bool {
	if b.Same(o) {
		return true
	}
	space, at, ok := b.hostPlace()
	other, from, too := o.hostPlace()
	return ok && too && space == other && at < from+o.size && from < at+b.size
}

// hostPlace tells where wrapped host memory lies.
func (b *Buffer) hostPlace() (space uint64, at int, ok bool) {
	if b.Mode() != External {
		return 0, 0, false
	}
	return b.hostSide().Place()
}

// Evict gives back the device's memory for ranges of a buffer that is used in such, but those that contain a region to keep. With results,
// what the host lacks of the others is copied there before, until the context ends; without, memory with such results stays.
func (b *Buffer) Evict(ctx context.Context, results bool, keep ...Region) error {
	const op = "Evict"
	m, err := b.begin(ctx, op, Reads)
	if err != nil {
		return err
	}
	defer m.Unlock()
	if !b.windowed {
		return nil
	}
	for i := range keep {
		if keep[i], err = b.place(op, keep[i]); err != nil {
			return err
		}
	}
	return named(op, memory.Evict(ctx, m, b.back, results, keep))
}

// Try has what kernels write to a buffer that is used in ranges be apart from what it was, until Settle.
func (b *Buffer) Try(ctx context.Context) error {
	const op = "Try"
	m, err := b.begin(ctx, op, Writes)
	if err != nil {
		return err
	}
	defer m.Unlock()
	if !b.windowed {
		return nil
	}
	return named(op, memory.Try(m, b.back))
}

// Settle ends what Try began: the buffer has the results, or is what it was before. It reports whether that is so, which it is not if
// some of the results are on the host and are not wanted.
func (b *Buffer) Settle(keep bool) bool {
	b = b.orClosed()
	b.mu.Lock()
	k := b.back
	b.mu.Unlock()
	if k == nil || !b.windowed {
		return true // it is closed, or not used in ranges
	}
	m, _ := k.Lock(context.Background()) // which does not end
	defer m.Unlock()
	if !keep {
		return memory.Undo(m, k)
	}
	memory.Keep(m, k)
	return true
}

// Spoil says that a computation failed which had written a part of its result, a region: uses of the buffer are [ErrIncomplete], with
// that error's text, until Touch of the region, a Write of everything, or Spoil of nil and the region, which returns the error. What the
// device has of a buffer that is used in ranges is given up.
func (b *Buffer) Spoil(err error, r Region) (was error) {
	b = b.orClosed()
	if err != nil && b.windowed {
		if m, failed := b.begin(context.Background(), "Spoil", Reads); failed == nil {
			memory.Discard(m, b.back)
			m.Unlock()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		r = r.Joined()
		b.spoiled, b.spoil = err, &r
	} else if b.spoiled != nil && r.Joined().Contains(*b.spoil) {
		was, b.spoiled = b.spoiled, nil
	}
	return was
}

// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"errors"
	"runtime"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
)

// window is memory of the device that stands for the bytes from lo to hi-1 of a buffer. All buffers that the device can
// hold have one window, of everything. Host memory that is larger has as many as are in use: kernels ask for ranges.
//
// Windows may overlap as long as the host has the current bits of all of them. Once a kernel wrote into one, others that
// overlap it are dropped, and a range that overlaps it without lying in it is refused until the results are synced.
type window struct {
	lo, hi int
	base   int // the byte that mem begins with: lo or a few less
	mem    *gpu.Buffer
	where  Location
	dirty  []Region // what kernels wrote since the last Sync, if the host side is stale
	net    runtime.Cleanup
	netted bool
}

// maxWindows is how many ranges of one buffer the device keeps beside those that hold results. A kernel uses three at
// the most.
const maxWindows = 4

// windowStep is what the memory of windows begins at multiples of, so that bindings and vectors stay aligned.
const windowStep = 256

// Windowed reports whether the device cannot hold the buffer as a whole, so that kernels use ranges of it.
func (b *Buffer) Windowed() bool { return b.windowed }

// maxWindow is the size of the largest window.
func (b *Buffer) maxWindow() int {
	l := b.dev.Limits()
	return int(min(l.MaxBufferSize, l.MaxBindingSize))
}

// window returns the window that bytes lo to hi-1 lie in.
func (b *Buffer) window(op string, lo, hi int) (*window, error) {
	if lo < 0 || hi < lo || hi > b.size {
		return nil, fail(op, gpu.ErrInvalid, "a range beyond the buffer")
	}
	if !b.Windowed() {
		b.all.hi = b.size
		return &b.all, nil
	}
	if err := b.reviveParts(); err != nil {
		return nil, err
	}
	base := lo / windowStep * windowStep
	if hi-base > b.maxWindow() {
		return nil, fail(op, gpu.ErrLimit, strconv.Itoa(hi-base), " bytes at once, the device allows ", strconv.Itoa(b.maxWindow()))
	}
	for i, w := range slices.Backward(b.parts) {
		if w.lo <= lo && hi <= w.hi {
			b.parts = append(slices.Delete(b.parts, i, i+1), w) // the last used is dropped last
			return w, nil
		}
	}
	if err := b.synced(op, lo, hi, nil); err != nil {
		return nil, err
	}
	if err := b.shrink(maxWindows - 1); err != nil {
		return nil, err
	}
	w := &window{lo: lo, hi: hi, base: base, where: Host}
	b.parts = append(b.parts, w)
	return w, nil
}

// revive lets go of memory that was lost with the device, where the host has the bits too.
func (b *Buffer) revive(w *window) error {
	if w.mem == nil || !w.mem.Lost() {
		return nil
	}
	if w.where == Device {
		return fail("use", gpu.ErrDeviceLost, "the bits were on the device only")
	}
	if w.netted {
		w.net.Stop()
	}
	_ = w.mem.Close() // there is nothing to close any more
	w.mem, w.netted, w.where = nil, false, w.where&Host
	return nil
}

// reviveParts lets go of lost parts.
func (b *Buffer) reviveParts() error {
	for _, w := range b.parts {
		if err := b.revive(w); err != nil {
			return err
		}
	}
	return b.drop(func(w *window) bool { return w.mem == nil && w.where != Device })
}

// replaced says that everything in a window is about to be replaced: what was lost is no loss.
func (b *Buffer) replaced(w *window) {
	if w.where == Device && w.mem != nil && w.mem.Lost() && b.mode == Owned {
		w.where = None
	}
}

// synced checks that no window but the given one holds results in bytes lo to hi-1 that the host has not.
func (b *Buffer) synced(op string, lo, hi int, but *window) error {
	for _, w := range b.parts {
		if w != but && w.where == Device && w.lo < hi && lo < w.hi {
			return fail(op, ErrUnsynced, "")
		}
	}
	return nil
}

// shrink drops the windows that were used the longest ago, until n are left without counting those that hold results.
func (b *Buffer) shrink(n int) error {
	clean := 0
	for _, w := range b.parts {
		if w.where != Device {
			clean++
		}
	}
	return b.drop(func(w *window) bool {
		if w.where == Device || clean <= n {
			return false
		}
		clean--
		return true
	})
}

// drop closes the windows that are chosen.
func (b *Buffer) drop(which func(*window) bool) error {
	var errs []error
	b.parts = slices.DeleteFunc(b.parts, func(w *window) bool {
		if !which(w) {
			return false
		}
		errs = append(errs, w.close())
		return true
	})
	return errors.Join(errs...)
}

func (w *window) close() error {
	if w.netted {
		w.net.Stop()
	}
	mem := w.mem
	*w = window{}
	return mem.Close()
}

// allocate makes the device's memory exist, at the cost of windows that nobody needs at the moment.
func (b *Buffer) allocate(w *window) error {
	if err := b.revive(w); err != nil || w.mem != nil {
		return err
	}
	mem, err := b.dev.NewBuffer(uint64(w.hi - w.base))
	if errors.Is(err, gpu.ErrNoMemory) && b.Windowed() {
		if err := b.drop(func(o *window) bool { return o != w && o.where != Device }); err != nil {
			return err
		}
		mem, err = b.dev.NewBuffer(uint64(w.hi - w.base))
	}
	if err != nil {
		return err
	}
	w.mem = mem
	w.net = runtime.AddCleanup(b, func(m *gpu.Buffer) { _ = m.Close() }, mem)
	w.netted = true
	return nil
}

// current makes the device's memory hold the current bits.
func (b *Buffer) current(w *window) error {
	if err := b.allocate(w); err != nil {
		return err
	}
	if w.where&Device != 0 {
		return nil
	}
	if w.where == None {
		if err := w.mem.Clear(0, w.mem.Size()/4*4); err != nil {
			return err
		}
		w.where = Device
		return nil
	}
	src := b.host
	if b.Windowed() {
		src = gpu.HostBytes(b.host.Bytes[w.base:w.hi])
	}
	if err := w.mem.Write(0, src); err != nil {
		return err
	}
	w.where = Both
	return nil
}

// wrote notes that the device's memory was written where r says.
func (b *Buffer) wrote(w *window, r Region) {
	w.where = Device
	if !b.HasHost() {
		return
	}
	if slices.Contains(w.dirty, r) {
		return
	}
	if len(w.dirty) >= maxDirty {
		w.dirty = append(w.dirty[:0], Region{w.lo, w.hi - w.lo, w.hi - w.lo, 1})
		return
	}
	w.dirty = append(w.dirty, r)
}

// windows returns all windows.
func (b *Buffer) windows() []*window {
	if b.Windowed() {
		return b.parts
	}
	b.all.hi = b.size
	return []*window{&b.all}
}

// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/pointers"
)

// replica is memory of a device that stands for bytes lo to hi-1 of a backing. Most backings have one replica, of
// everything. Host memory larger than the device's largest buffer has as many as are in use, which may overlap: kernels
// ask for ranges.
type replica struct {
	k        *backing
	dev      *gpu.Device
	lo, hi   int
	mem      *gpu.Buffer
	valid    bool    // it has all bytes but what it is behind
	replaced bool    // kernels are about to replace everything
	behind   []write // what it lacks
}

// maxWindows is how many replicas of ranges a device keeps beside those that hold results. A kernel uses three at the most.
const maxWindows = 4

// windowStep is what replicas of ranges begin at multiples of, so that bindings and vectors stay aligned.
const windowStep = 256

// maxCopies is how many rows are copied one by one on the device, sooner than by way of the host.
const maxCopies = 4096

// lacks reports whether a replica lacks bytes of a region.
func (r *replica) lacks(w Region) bool {
	for i := range r.behind {
		if r.behind[i].overlaps(w) {
			return true
		}
	}
	return false
}

// on finds or makes the replica on a device that a region lies in.
func (m *memory) on(op string, k *backing, dev *gpu.Device, w Region) (*replica, error) {
	if dev == k.dev && !k.windowed {
		if k.whole.k == nil {
			k.whole = replica{k: k, dev: dev, lo: k.at, hi: k.end}
			k.replicas = append(k.replicas, &k.whole)
		}
		return &k.whole, nil
	}
	limits := dev.Info().Limits
	if uint64(k.end-k.at) <= limits.MaxBufferSize {
		for _, r := range k.replicas {
			if r.dev == dev {
				return r, nil
			}
		}
		r := &replica{k: k, dev: dev, lo: k.at, hi: k.end}
		k.replicas = append(k.replicas, r)
		return r, nil
	}
	lo, hi := k.at+(w.Offset-k.at)/windowStep*windowStep, w.end()
	if most := int(min(limits.MaxBufferSize, limits.MaxBindingSize)); hi-lo > most {
		return nil, fail(op, gpu.ErrLimit, strconv.Itoa(hi-lo), " bytes at once, the device allows ", strconv.Itoa(most))
	}
	for _, r := range slices.Backward(k.replicas) {
		if r.dev == dev && r.lo <= w.Offset && hi <= r.hi {
			k.replicas = append(pointers.Remove(k.replicas, r), r) // the last used is dropped last
			return r, nil
		}
	}
	if err := m.shrink(k, dev, maxWindows-1); err != nil {
		return nil, err
	}
	r := &replica{k: k, dev: dev, lo: lo, hi: hi}
	k.replicas = append(k.replicas, r)
	return r, nil
}

// shrink drops the replicas on a device that were used the longest ago, until n are left without counting those that hold results.
func (m *memory) shrink(k *backing, dev *gpu.Device, n int) error {
	var clean []*replica
	for _, r := range k.replicas {
		if r.dev == dev && m.handOver(r) {
			clean = append(clean, r)
		}
	}
	var errs []error
	for len(clean) > n {
		errs = append(errs, m.drop(clean[0]))
		clean = clean[1:]
	}
	return errors.Join(errs...)
}

// drop closes a replica that nothing is needed of.
func (m *memory) drop(r *replica) error {
	r.k.replicas = pointers.Remove(r.k.replicas, r)
	return r.close()
}

func (r *replica) close() error {
	mem := r.mem
	*r = replica{}
	return mem.Close()
}

// allocate makes the device's memory exist. What was lost with the device is made again if others have its bytes.
func (m *memory) allocate(r *replica) error {
	if r.mem != nil && r.mem.Lost() {
		if !m.handOver(r) {
			return fail("use", gpu.ErrDeviceLost, "the bits were on the device only")
		}
		_ = r.mem.Close() // there is nothing to close any more
		r.mem, r.valid, r.behind = nil, false, nil
	}
	if r.mem != nil {
		return nil
	}
	mem, err := r.dev.NewBuffer(uint64(r.hi - r.lo))
	if errors.Is(err, gpu.ErrNoMemory) && r.k.windowed {
		k, dev := r.k, r.dev
		for _, o := range slices.Backward(k.replicas) {
			if o != r && o.dev == dev && m.handOver(o) {
				if err := m.drop(o); err != nil {
					return err
				}
			}
		}
		mem, err = dev.NewBuffer(uint64(r.hi - r.lo))
	}
	r.mem = mem
	return err
}

// prepare makes a replica ready for kernels that use a region of it, or that replace everything.
func (m *memory) prepare(r *replica, w Region, replace bool) error {
	if r.replaced = replace && len(m.backings) == 1; r.replaced {
		return m.allocate(r)
	}
	return m.update(r, w)
}

// update brings what a replica lacks of a region.
func (m *memory) update(r *replica, w Region) error {
	if err := m.allocate(r); err != nil {
		return err
	}
	if !r.valid {
		if err := r.fill(); err != nil {
			return err
		}
		r.valid, r.behind = true, r.behind[:0]
		for _, o := range m.log {
			if o.Offset < r.hi && r.lo < o.end() {
				r.behind = append(r.behind, o)
			}
		}
	}
	if len(r.behind) == 0 {
		return nil
	}
	return m.catchUp(r, w)
}

// fill brings everything from the host, or makes zeros.
func (r *replica) fill() error {
	if !r.k.hosted {
		return r.mem.Clear(0, r.mem.Size()/4*4)
	}
	src := r.k.host
	if r.hi-r.lo < src.Size {
		src = src.Part(r.lo-r.k.at, r.hi-r.lo)
	}
	return r.mem.Write(0, src)
}

// catchUp takes over the writes that overlap a region, and before each of them the earlier ones that overlap it.
func (m *memory) catchUp(r *replica, w Region) error {
	due := make([]bool, len(r.behind))
	for i := len(due) - 1; i >= 0; i-- {
		o := &r.behind[i]
		due[i] = o.overlaps(w)
		for j := i + 1; !due[i] && j < len(due); j++ {
			due[i] = due[j] && o.overlaps(r.behind[j].Region)
		}
	}
	var err error
	rest := r.behind[:0]
	for i, o := range r.behind {
		if due[i] && err == nil {
			err = m.take(r, o)
		}
		if !due[i] || err != nil {
			rest = append(rest, o)
		}
	}
	r.behind = rest
	return err
}

// take copies a write to a replica.
func (m *memory) take(r *replica, w write) error {
	for part := range w.cut(r.lo, r.hi) {
		var err error
		switch {
		case w.from == nil:
			err = m.upload(r, part)
		case w.from.mem.Lost():
			err = fail("use", gpu.ErrDeviceLost, "the bits were on the device only")
		case w.from.dev == r.dev && part.Count <= maxCopies && r.inWords(part) && w.from.inWords(part):
			err = r.copyRows(part, w.from)
		case r.k.hosted && !m.lacks(part):
			err = m.upload(r, part)
		default:
			err = r.viaHost(part, w.from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inWords reports whether the rows are words of the replica's memory. The last word may end beyond the buffer.
func (r *replica) inWords(w Region) bool {
	return (w.Offset-r.lo)%4 == 0 && (w.Count == 1 || w.Pitch%4 == 0) && (w.Width%4 == 0 || w.Count == 1 && w.end() == r.k.end)
}

func (r *replica) copyRows(w Region, from *replica) error {
	n := (w.Width + 3) / 4 * 4
	for i := range w.Count {
		at := w.Offset + i*w.Pitch
		if err := r.mem.CopyFrom(uint64(at-r.lo), from.mem, uint64(at-from.lo), uint64(n)); err != nil {
			return err
		}
	}
	return nil
}

// words returns the words of a replica that a region lies in.
func (r *replica) words(w Region) Region {
	lo, hi := r.lo+(w.Offset-r.lo)&^3, w.end()
	return between(lo, min(hi+(4-(hi-r.lo)%4)%4, r.hi))
}

// upload brings a region from the host.
func (m *memory) upload(r *replica, w Region) error {
	k := r.k
	if all := r.words(w); !m.lacks(all) {
		return r.mem.Write(uint64(all.Offset-r.lo), k.host.Part(all.Offset-k.at, all.Width))
	}
	if !r.inWords(w) {
		return r.viaHost(w, nil)
	}
	for i := range w.Count {
		at := w.Offset + i*w.Pitch
		if err := r.mem.Write(uint64(at-r.lo), k.host.Part(at-k.at, w.Width)); err != nil {
			return err
		}
	}
	return nil
}

// viaHost brings a region from a replica of another device, or whose words are others, or from the host to a part of a word.
// It waits for the devices, which a page cannot do here.
func (r *replica) viaHost(w Region, from *replica) error {
	if runtime.GOOS == "js" {
		return fail("use", ErrUnsynced, "")
	}
	ctx, all := context.Background(), r.words(w)
	mem := make([]byte, all.Width)
	if w.Count > 1 || all != w {
		if err := r.mem.Read(ctx, r.transfer(all, gpu.HostBytes(mem), 0)); err != nil {
			return err
		}
	}
	if from != nil {
		if err := from.mem.Read(ctx, from.transfer(w, gpu.HostBytes(mem), w.Offset-all.Offset)); err != nil {
			return err
		}
	} else {
		host := r.k.host.Mem()
		for i := range w.Count {
			at := w.Offset + i*w.Pitch
			copy(mem[at-all.Offset:][:w.Width], host[at-r.k.at:])
		}
	}
	return r.mem.Write(uint64(all.Offset-r.lo), gpu.HostBytes(mem))
}

// transfer describes a copy of a region to host memory.
func (r *replica) transfer(w Region, dst gpu.Host, offset int) gpu.Transfer {
	return gpu.Transfer{
		Offset: uint64(w.Offset - r.lo), Host: dst, HostOffset: offset, Width: w.Width, Pitch: w.Pitch, Count: w.Count,
	}
}

// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/pointers"
)

// Replica is memory of a device that stands for bytes lo to hi-1 of a backing. Most backings have one replica, of
// everything. Host memory larger than the device's largest buffer has as many as are in use, which may overlap: kernels
// ask for ranges.
type Replica struct {
	k        *Backing
	dev      *gpu.Device
	Lo, hi   int
	Mem      *gpu.Buffer
	valid    bool    // it has all bytes but what it is behind
	replaced bool    // kernels are about to replace everything
	behind   []write // what it lacks
}

// ErrUnsynced: results are needed on the host or by way of it in a call that does not wait.
var ErrUnsynced = fault.New("ErrUnsynced", "results overlap that were not synced")

// maxWindows is how many replicas of ranges a device keeps beside those that hold results. A kernel uses three at the most.
const maxWindows = 4

// windowStep is what replicas of ranges begin at multiples of, so that bindings and vectors stay aligned.
const windowStep = 256

// maxCopies is how many rows are copied one by one on the device, sooner than by way of the host.
const maxCopies = 4096

// Lacks reports whether a replica lacks bytes of a region.
func (r *Replica) Lacks(w Region) bool {
	for i := range r.behind {
		if r.behind[i].overlaps(w) {
			return true
		}
	}
	return false
}

// On finds or makes the replica on a device that a region lies in.
func (m *Memory) On(op string, k *Backing, dev *gpu.Device, w Region) (*Replica, error) {
	if dev == k.dev && !k.windowed {
		if k.Whole.k == nil {
			k.Whole = Replica{k: k, dev: dev, Lo: k.At, hi: k.End}
			k.replicas = append(k.replicas, &k.Whole)
		}
		return &k.Whole, nil
	}
	limits := dev.Info().Limits
	if uint64(k.End-k.At) <= limits.MaxBufferSize {
		for _, r := range k.replicas {
			if r.dev == dev {
				return r, nil
			}
		}
		r := &Replica{k: k, dev: dev, Lo: k.At, hi: k.End}
		k.replicas = append(k.replicas, r)
		return r, nil
	}
	lo, hi := k.At+(w.Offset-k.At)/windowStep*windowStep, w.End()
	if most := int(min(limits.MaxBufferSize, limits.MaxBindingSize)); hi-lo > most {
		return nil, fault.Fail("buffer: "+op, gpu.ErrLimit, strconv.Itoa(hi-lo), " bytes at once, the device allows ", strconv.Itoa(most))
	}
	for _, r := range slices.Backward(k.replicas) {
		if r.dev == dev && r.Lo <= w.Offset && hi <= r.hi {
			k.replicas = append(pointers.Remove(k.replicas, r), r) // the last used is dropped last
			return r, nil
		}
	}
	if err := m.shrink(k, dev, maxWindows-1); err != nil {
		return nil, err
	}
	r := &Replica{k: k, dev: dev, Lo: lo, hi: hi}
	k.replicas = append(k.replicas, r)
	return r, nil
}

// shrink drops the replicas on a device that were used the longest ago, until n are left without counting those that hold results.
func (m *Memory) shrink(k *Backing, dev *gpu.Device, n int) error {
	var clean []*Replica
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
func (m *Memory) drop(r *Replica) error {
	r.k.replicas = pointers.Remove(r.k.replicas, r)
	return r.close()
}

// Hold gives a new backing memory of its device that has its bytes.
func (m *Memory) Hold(k *Backing, mem *gpu.Buffer) {
	k.Whole = Replica{k: k, dev: k.dev, Lo: k.At, hi: k.End, Mem: mem}
	k.replicas = append(k.replicas, &k.Whole)
	m.Wrote(&k.Whole, Between(k.At, k.End))
}

// Valid reports whether a replica has bytes.
func (r *Replica) Valid() bool { return r.valid }

// Current reports whether a replica has everything and lacks nothing.
func (r *Replica) Current() bool { return r.valid && len(r.behind) == 0 }

// All reports whether a replica stands for all of its backing.
func (r *Replica) All() bool { return r.Lo == r.k.At && r.hi == r.k.End }

func (r *Replica) close() error {
	mem := r.Mem
	*r = Replica{}
	return mem.Close()
}

// allocate makes the device's memory exist. What was lost with the device is made again if others have its bytes.
func (m *Memory) allocate(r *Replica) error {
	if r.Mem != nil && r.Mem.Lost() {
		if !m.handOver(r) {
			return fault.Fail("buffer: use", gpu.ErrDeviceLost, "the bits were on the device only")
		}
		_ = r.Mem.Close() // there is nothing to close any more
		r.Mem, r.valid, r.behind = nil, false, nil
	}
	if r.Mem != nil {
		return nil
	}
	mem, err := r.dev.NewBuffer(uint64(r.hi - r.Lo))
	if errors.Is(err, gpu.ErrNoMemory) && r.k.windowed {
		k, dev := r.k, r.dev
		for _, o := range slices.Backward(k.replicas) {
			if o != r && o.dev == dev && m.handOver(o) {
				if err := m.drop(o); err != nil {
					return err
				}
			}
		}
		mem, err = dev.NewBuffer(uint64(r.hi - r.Lo))
	}
	r.Mem = mem
	return err
}

// Prepare makes a replica ready for kernels that use a region of it, or that replace everything.
func (m *Memory) Prepare(r *Replica, w Region, replace bool) error {
	if r.replaced = replace && len(m.backings) == 1; r.replaced {
		return m.allocate(r)
	}
	return m.Update(r, w)
}

// Update brings what a replica lacks of a region.
func (m *Memory) Update(r *Replica, w Region) error {
	if err := m.allocate(r); err != nil {
		return err
	}
	if !r.valid {
		if err := r.fill(); err != nil {
			return err
		}
		r.valid, r.behind = true, r.behind[:0]
		for _, o := range m.log {
			if o.Offset < r.hi && r.Lo < o.End() {
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
func (r *Replica) fill() error {
	if !r.k.Hosted {
		return r.Mem.Clear(0, r.Mem.Size()/4*4)
	}
	src := r.k.host
	if r.hi-r.Lo < src.Size {
		src = src.Part(r.Lo-r.k.At, r.hi-r.Lo)
	}
	return r.Mem.Write(0, src)
}

// catchUp takes over the writes that overlap a region, and before each of them the earlier ones that overlap it.
func (m *Memory) catchUp(r *Replica, w Region) error {
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
func (m *Memory) take(r *Replica, w write) error {
	for _, part := range w.cut(nil, r.Lo, r.hi) {
		var err error
		switch {
		case w.from == nil:
			err = m.upload(r, part)
		case w.from.Mem.Lost():
			err = fault.Fail("buffer: use", gpu.ErrDeviceLost, "the bits were on the device only")
		case w.from.dev == r.dev && part.Count <= maxCopies && r.inWords(part) && w.from.inWords(part):
			err = r.copyRows(part, w.from)
		case r.k.Hosted && !m.Lacks(part):
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
func (r *Replica) inWords(w Region) bool {
	return (w.Offset-r.Lo)%4 == 0 && (w.Count == 1 || w.Pitch%4 == 0) && (w.Width%4 == 0 || w.Count == 1 && w.End() == r.k.End)
}

func (r *Replica) copyRows(w Region, from *Replica) error {
	n := (w.Width + 3) / 4 * 4
	for i := range w.Count {
		at := w.Offset + i*w.Pitch
		if err := r.Mem.CopyFrom(uint64(at-r.Lo), from.Mem, uint64(at-from.Lo), uint64(n)); err != nil {
			return err
		}
	}
	return nil
}

// Words returns the words of a replica that a region lies in.
func (r *Replica) Words(w Region) Region {
	lo, hi := r.Lo+(w.Offset-r.Lo)&^3, w.End()
	return Between(lo, min(hi+(4-(hi-r.Lo)%4)%4, r.hi))
}

// upload brings a region from the host.
func (m *Memory) upload(r *Replica, w Region) error {
	k := r.k
	if all := r.Words(w); !m.Lacks(all) {
		return r.Mem.Write(uint64(all.Offset-r.Lo), k.host.Part(all.Offset-k.At, all.Width))
	}
	if !r.inWords(w) {
		return r.viaHost(w, nil)
	}
	for i := range w.Count {
		at := w.Offset + i*w.Pitch
		if err := r.Mem.Write(uint64(at-r.Lo), k.host.Part(at-k.At, w.Width)); err != nil {
			return err
		}
	}
	return nil
}

// viaHost brings a region from a replica of another device, or whose words are others, or from the host to a part of a word.
// It waits for the devices, which a page cannot do here.
func (r *Replica) viaHost(w Region, from *Replica) error {
	if runtime.GOOS == "js" {
		return fault.Fail("buffer: use", ErrUnsynced, "")
	}
	ctx, all := context.Background(), r.Words(w)
	mem := make([]byte, all.Width)
	if w.Count > 1 || all != w {
		if err := r.Mem.Read(ctx, r.Transfer(all, gpu.HostBytes(mem), 0)); err != nil {
			return err
		}
	}
	if from != nil {
		if err := from.Mem.Read(ctx, from.Transfer(w, gpu.HostBytes(mem), w.Offset-all.Offset)); err != nil {
			return err
		}
	} else {
		host := r.k.host.Mem()
		for i := range w.Count {
			at := w.Offset + i*w.Pitch
			copy(mem[at-all.Offset:][:w.Width], host[at-r.k.At:])
		}
	}
	return r.Mem.Write(uint64(all.Offset-r.Lo), gpu.HostBytes(mem))
}

// Transfer describes a copy of a region to host memory.
func (r *Replica) Transfer(w Region, dst gpu.Host, offset int) gpu.Transfer {
	return gpu.Transfer{
		Offset: uint64(w.Offset - r.Lo), Host: dst, HostOffset: offset, Width: w.Width, Pitch: w.Pitch, Count: w.Count,
	}
}

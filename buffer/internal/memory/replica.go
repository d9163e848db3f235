// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Replica is memory of a device that stands for bytes lo to hi-1 of a backing. Most backings have one replica, of
// everything. Host memory larger than the device's largest buffer has as many as are in use, which may overlap: kernels
// ask for ranges.
type Replica struct {
	k        *Backing
	dev      *gpu.Device
	slot     int // of several on one device
	Lo, Hi   int
	Mem      *gpu.Buffer
	mappable bool
	near     bool       // the CPU reaches it now
	busy     sync.Mutex // while it does
	valid    bool       // it has all bytes but what it is behind
	replaced bool       // kernels are about to replace everything
	trial    bool       // it was made by the trial of the backing that goes on
	behind   []write    // what it lacks
}

// ErrUnsynced: results are needed on the host or by way of it in a call that does not wait.
var ErrUnsynced = fault.New("ErrUnsynced", "results overlap that were not synced")

const (
	maxWindows = 4    // replicas of ranges that a device keeps beside those that hold results; a kernel uses three at the most
	windowStep = 256  // what they begin at multiples of, so that bindings and vectors stay aligned
	maxCopies  = 4096 // rows that are copied one by one on the device, sooner than by way of the host
)

// On finds or makes the replica on a device that a region lies in.
func (m *Memory) On(op string, k *Backing, dev *gpu.Device, w Region) (*Replica, error) {
	if dev == k.dev && !k.windowed {
		if k.Whole.k == nil {
			k.Whole = Replica{k: k, dev: dev, Lo: k.At, Hi: k.End}
			k.replicas = append(k.replicas, &k.Whole)
		}
		return &k.Whole, nil
	}
	largest := Largest(dev)
	if dev == k.dev || w.Span() <= (k.End-k.At)/2 { // which gets what it uses
		largest = 0
	}
	lo, hi, err := k.window("buffer: "+op, dev, w, largest, windowStep)
	if err != nil {
		return nil, err
	}
	if r := k.find(Place{Device: dev}, lo, hi, 1); r != nil {
		return r, nil
	}
	if err := k.shrink(Place{Device: dev}, maxWindows-1, m.handOver, m.drop); err != nil {
		return nil, err
	}
	r := &Replica{k: k, dev: dev, Lo: lo, Hi: hi, trial: k.trial}
	k.replicas = append(k.replicas, r)
	return r, nil
}

// window returns the range that a device has for a region: everything unless that is more than largest, else one that begins at a
// multiple of so many bytes.
func (k *Backing) window(op string, dev *gpu.Device, w Region, largest uint64, step int) (lo, hi int, err error) {
	if uint64(k.End-k.At) <= largest {
		return k.At, k.End, nil
	}
	lo, hi = k.At+(w.Offset-k.At)/step*step, w.End()
	if most := Bindable(dev); uint64(hi-lo) > most {
		return 0, 0, fault.Fail(op, gpu.ErrLimit, fault.Text(hi-lo, " bytes at once, the device allows ", most))
	}
	return lo, hi, nil
}

// Largest is how many bytes of host memory a device has as a whole. Of more it has ranges.
func Largest(dev *gpu.Device) uint64 {
	largest := dev.Info().Limits.MaxBufferSize
	if waits {
		if budget := dev.Budget(); budget > 0 {
			largest = min(largest, budget/4)
		}
	}
	return largest
}

// Bindable is how many bytes a kernel of a device can use.
func Bindable(dev *gpu.Device) uint64 {
	limits := dev.Info().Limits
	return min(limits.MaxBufferSize, limits.MaxBindingSize)
}

// find returns the replica of a place that holds a range, if there is one that begins at a multiple of so many bytes. The last used is
// dropped last.
func (k *Backing) find(p Place, lo, hi, step int) *Replica {
	for _, r := range slices.Backward(k.replicas) {
		if r.in(p) && r.Lo <= lo && hi <= r.Hi && (r.Lo-k.At)%step == 0 && (!waits || r.trial == k.trial) {
			k.replicas = append(without(k.replicas, r), r)
			return r
		}
	}
	return nil
}

func (r *Replica) in(p Place) bool { return r.dev == p.Device && r.slot == p.Slot }

// shrink drops the replicas of a place that were used the longest ago, until n are left without counting those that something is needed
// of.
func (k *Backing) shrink(p Place, n int, spare func(*Replica) bool, drop func(*Replica) error) error {
	list := make([]*Replica, 0, len(k.replicas))
	for _, r := range k.replicas {
		if r.in(p) && spare(r) {
			list = append(list, r)
		}
	}
	var errs []error
	for i, r := range list {
		if i < len(list)-n && spare(r) { // still, now that others are gone
			errs = append(errs, drop(r))
		}
	}
	return errors.Join(errs...)
}

// drop closes a replica that nothing is needed of.
func (m *Memory) drop(r *Replica) error {
	r.k.replicas = without(r.k.replicas, r)
	return r.close()
}

// Hold gives a new backing memory of its device that has its bytes, which the CPU can map or not.
func (m *Memory) Hold(k *Backing, mem *gpu.Buffer, mappable bool) {
	k.Whole = Replica{k: k, dev: k.dev, Lo: k.At, Hi: k.End, Mem: mem, mappable: mappable}
	k.replicas = append(k.replicas, &k.Whole)
	m.Wrote(&k.Whole, k.All())
}

// Valid reports whether a replica has bytes.
func (r *Replica) Valid() bool { return r.valid }

// Current reports whether a replica has everything and lacks nothing.
func (r *Replica) Current() bool { return r.valid && len(r.behind) == 0 }

// All reports whether a replica stands for all of its backing.
func (r *Replica) All() bool { return r.Lo == r.k.At && r.Hi == r.k.End }

func (r *Replica) close() error {
	mem := r.Mem
	*r = Replica{}
	return mem.Close()
}

// allocate makes the device's memory exist. What was lost with the device is made again if others have its bytes.
func (m *Memory) allocate(r *Replica) error {
	if r.Mem != nil && r.Mem.Lost() {
		if !m.handOver(r) {
			return r.lost()
		}
		_ = r.Mem.Close() // there is nothing in it any more
		r.Mem, r.valid, r.behind = nil, false, nil
	}
	if r.Mem != nil {
		return nil
	}
	create := r.dev.NewBuffer
	if r.mappable {
		create = r.dev.NewMappable
	}
	mem, err := create(uint64(r.Hi - r.Lo))
	if errors.Is(err, gpu.ErrNoMemory) && r.k.windowed {
		spare := func(o *Replica) bool { return o != r && m.handOver(o) }
		if err := r.k.shrink(Place{Device: r.dev}, 2, spare, m.drop); err != nil { // the kernel in progress may use two others
			return err
		}
		mem, err = r.dev.NewBuffer(uint64(r.Hi - r.Lo))
	}
	r.Mem = mem
	return err
}

// lost is the error of bits that were only in memory that is gone.
func (r *Replica) lost() error {
	return fault.Fail("buffer: use", cmp.Or[error](r.Mem.Clear(0, 0), gpu.ErrDeviceLost), "; the bits were on the device only")
}

// Prepare makes a replica ready for kernels that use a region of it, or that replace everything. What it waits for ends with the context.
func (m *Memory) Prepare(ctx context.Context, r *Replica, w Region, replace bool) error {
	if r.replaced = replace && len(m.backings) == 1; r.replaced {
		if err := m.allocate(r); err != nil {
			return err
		}
		return r.Mem.Renew()
	}
	return m.Update(ctx, r, w)
}

// Update brings what a replica lacks of a region.
func (m *Memory) Update(ctx context.Context, r *Replica, w Region) error {
	if err := m.allocate(r); err != nil {
		return err
	}
	if !r.valid {
		if err := r.fill(); err != nil {
			return err
		}
		r.valid, r.behind = true, r.behind[:0]
		for _, o := range m.log {
			if o.Offset < r.Hi && r.Lo < o.End() {
				r.behind = append(r.behind, o)
			}
		}
	}
	if len(r.behind) == 0 {
		return nil
	}
	return m.catchUp(ctx, r, w)
}

// fill brings everything from the host, or makes zeros.
func (r *Replica) fill() error {
	if !r.k.Hosted {
		return r.Mem.Clear(0, r.Mem.Size()/4*4)
	}
	src := r.k.host
	if r.Hi-r.Lo < src.Size {
		src = src.Part(r.Lo-r.k.At, r.Hi-r.Lo)
	}
	return r.Mem.Write(0, src)
}

// catchUp takes over the writes that overlap a region, and before each of them the earlier ones that overlap it.
func (m *Memory) catchUp(ctx context.Context, r *Replica, w Region) error {
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
			err = m.take(ctx, r, o)
		}
		if !due[i] || err != nil {
			rest = append(rest, o)
		}
	}
	r.behind = rest
	return err
}

// waits tells that buffers may wait for devices, which they cannot in a page.
const waits = runtime.GOOS != "js"

// take copies a write to a replica.
func (m *Memory) take(ctx context.Context, r *Replica, w write) error {
	if waits && w.from != nil && w.from.trial && w.from.k != r.k {
		w.from.k.shown = true
	}
	for _, part := range w.cut(nil, r.Lo, r.Hi) {
		from, words := w.from, !m.Lacks(r.Words(part))
		onHost := from == nil || r.k.Hosted && !m.Lacks(part)
		var err error
		switch {
		case from != nil && from.Mem.Lost():
			err = from.lost()
		case from != nil && from.dev == r.dev && part.Count <= maxCopies && r.inWords(part) && from.inWords(part):
			err = r.copyRows(part, from)
		case onHost && (words || r.inWords(part)):
			err = r.upload(part, words)
		case !waits:
			err = fault.Fail("buffer: use", ErrUnsynced)
		case onHost:
			err = m.Wait(func() error { return r.viaHost(ctx, part, nil) })
		default:
			err = m.Wait(func() error { return r.viaHost(ctx, part, from) })
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
	return Between(lo, min(hi+(4-(hi-r.Lo)%4)%4, r.Hi))
}

// upload brings a region from the host: whole words, or the words that it lies in, of which the host has the rest, too.
func (r *Replica) upload(w Region, words bool) error {
	if words {
		w = r.Words(w)
	}
	for i := range w.Count {
		at := w.Offset + i*w.Pitch
		if err := r.Mem.Write(uint64(at-r.Lo), r.k.host.Part(at-r.k.At, w.Width)); err != nil {
			return err
		}
	}
	return nil
}

// write copies host memory to a replica, from a position on.
func (r *Replica) write(ctx context.Context, at int, host gpu.Host) error {
	if r.near && host.Foreign == nil {
		r.busy.Lock()
		defer r.busy.Unlock()
		return r.Mem.Map(ctx, uint64(at-r.Lo), uint64(host.Size), func(mem []byte) error { copy(mem, host.Mem()); return nil })
	}
	return r.Mem.Write(uint64(at-r.Lo), host)
}

// Load copies foreign memory by way of a device, as there is no other.
func Load(ctx context.Context, dev *gpu.Device, host gpu.Host) ([]byte, error) {
	stage, err := dev.NewBuffer(uint64(host.Size))
	if err != nil {
		return nil, err
	}
	mem := make([]byte, host.Size)
	if err = stage.Write(0, host); err == nil {
		err = stage.Read(ctx, gpu.Transfer{Host: gpu.HostBytes(mem), Width: host.Size, Pitch: host.Size, Count: 1})
	}
	return mem, errors.Join(err, stage.Close())
}

// viaHost brings a region from another replica, zeros, or with neither what the host has, by way of Go memory, and keeps what else is in
// the same words. It waits for the devices.
func (r *Replica) viaHost(ctx context.Context, w Region, from *Replica) error {
	all := r.Words(w)
	mem := make([]byte, all.Width)
	if w.Count > 1 || r.keeps(Between(all.Offset, w.Offset)) || r.keeps(Between(w.End(), all.End())) {
		if err := r.Read(ctx, all, gpu.HostBytes(mem), 0); err != nil {
			return err
		}
	}
	var err error
	switch part := mem[w.Offset-all.Offset:]; from {
	case nil:
		src := r.k.host.Part(w.Offset-r.k.At, w.Span())
		host := src.Mem()
		if src.Foreign != nil {
			host, err = Load(ctx, r.dev, src)
		}
		for i := 0; i < w.Count && err == nil; i++ {
			copy(part[i*w.Pitch:][:w.Width], host[i*w.Pitch:])
		}
	case &zeros:
		clear(part[:w.Width])
	default:
		err = from.Read(ctx, w, gpu.HostBytes(part), 0)
	}
	if err != nil {
		return err
	}
	return r.write(ctx, all.Offset, gpu.HostBytes(mem))
}

// keeps reports whether a replica may have something beside a region, in the same words.
func (r *Replica) keeps(beside Region) bool {
	return beside.Width > 0 && (r.k.keeps == nil || r.k.keeps(r, beside))
}

// Transfer describes a copy of a region to host memory.
func (r *Replica) Transfer(w Region, dst gpu.Host, offset int) gpu.Transfer {
	return gpu.Transfer{
		Offset: uint64(w.Offset - r.Lo), Host: dst, HostOffset: offset, Width: w.Width, Pitch: w.Pitch, Count: w.Count,
	}
}

// without removes a pointer from a list, in place. Functions of package slices are compiled for each type of a list, this one once
// for all pointers.
func without[P comparable](list []P, p P) []P {
	n := 0
	for _, q := range list {
		if q != p {
			list[n] = q
			n++
		}
	}
	clear(list[n:])
	return list[:n]
}

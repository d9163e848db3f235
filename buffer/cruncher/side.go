// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
)

// side is an array on one device: its elements lo to hi-1, which are all of them unless the device cannot bind as many.
type side struct {
	dev    *gpu.Device
	lo, hi int
	bytes  uint64      // of all its memory
	near   bool        // the CPU can reach mem
	mem    *gpu.Buffer // what kernels bind
	busy   *sync.Mutex // held while the CPU uses mem
}

func newSide(dev *gpu.Device) side { return side{dev: dev, busy: new(sync.Mutex)} }

// windowStep is what windows begin at multiples of, in elements: at words, whatever the type.
const windowStep = 4

// ensure makes device memory for the elements of need. Memory that grows or moves keeps what is valid. It does not move away from
// what is nowhere else, now or when the elements that are leaving have arrived.
func (cr *Cruncher) ensure(r *residency, d int, need span.Span, leaving *span.Set) error {
	s := &r.sides[d]
	if s.mem != nil && s.lo <= need.Lo && need.Hi <= s.hi && s.lo%r.grain == 0 {
		return nil
	}
	next := newSide(s.dev)
	var err error
	if next.lo, next.hi, err = r.window(s, d, need, leaving); err != nil {
		return err
	}
	if err = cr.obtain(r, d, &next); err == nil {
		err = r.carry(s, &next)
	}
	if err != nil {
		_ = next.close()
		return err
	}
	err = s.close()
	*s = next
	for _, gone := range []span.Span{{Lo: 0, Hi: next.lo}, {Lo: next.hi, Hi: r.array.n}} {
		r.valid[d].Remove(gone.Lo, gone.Hi)
	}
	return err
}

// window decides which elements a device is to have memory for.
func (r *residency) window(s *side, d int, need span.Span, leaving *span.Set) (lo, hi int, err error) {
	l := s.dev.Info().Limits
	most := int(min(l.MaxBufferSize, l.MaxBindingSize)) / r.array.t.Size()
	if r.array.n <= most {
		return 0, r.array.n, nil
	}
	lo, hi = need.Lo/r.grain*r.grain, need.Hi
	if s.mem != nil && (r.only(d, s.lo, min(lo, s.hi), leaving) || r.only(d, max(hi, s.lo), s.hi, leaving)) {
		lo, hi = min(lo, s.lo/r.grain*r.grain), max(hi, s.hi)
	}
	if hi-lo > most {
		return 0, 0, fail("Compute", gpu.ErrLimit, itoa(hi-lo), " elements of ", r.array.name, " on one device, which allows ", itoa(most))
	}
	return lo, hi, nil
}

// only reports whether nobody else has some of the newest values.
func (r *residency) only(d, lo, hi int, leaving *span.Set) bool {
	for s := range r.dirty.Overlap(lo, hi) {
		for m, h := range r.owner.Get(s.Lo, s.Hi) {
			if h == d && !leaving.Contains(m.Lo, m.Hi) {
				return true
			}
		}
	}
	return false
}

// allocate makes device memory of zeros.
func (r *residency) allocate(s *side) (err error) {
	if s.near = r.near && s.dev.Info().Features.Has(gpu.FeatureMappable); s.near {
		s.mem, err = s.dev.NewMappable(s.bytes)
	} else {
		s.mem, err = s.dev.NewBuffer(s.bytes)
	}
	if err != nil {
		return err
	}
	return s.mem.Clear(0, s.mem.Size())
}

// carry copies what is in both.
func (r *residency) carry(from, to *side) error {
	if from.mem == nil {
		return nil
	}
	lo, hi := max(from.lo, to.lo), min(from.hi, to.hi)
	if lo >= hi {
		return nil
	}
	size := r.array.t.Size()
	n := ((hi-lo)*size + 3) / 4 * 4
	return to.mem.CopyFrom(uint64((lo-to.lo)*size), from.mem, uint64((lo-from.lo)*size), uint64(n))
}

// release gives the memory back.
func (s *side) release() error {
	err := s.mem.Close()
	s.mem = nil
	return err
}

func (s *side) close() error {
	err := s.release()
	if s.dev.Usable() != nil {
		return nil // everything of the device's is gone
	}
	return err
}

// put brings elements of the span, which are the host memory's, to device d.
func (r *residency) put(ctx context.Context, d int, sp span.Span, host gpu.Host) error {
	s := &r.sides[d]
	if sp.Lo >= sp.Hi {
		return nil
	}
	if s.near && r.straight && host.Foreign == nil {
		s.busy.Lock()
		defer s.busy.Unlock()
		return s.mem.Map(ctx, 0, s.mem.Size(), func(b []byte) error {
			copy(b[(sp.Lo-s.lo)*r.array.t.Size():], host.Mem())
			return nil
		})
	}
	return r.putWords(ctx, s, sp, host)
}

// putWords writes elements where they are stored as they come. A span that begins or ends within a word keeps the rest of the
// word.
func (r *residency) putWords(ctx context.Context, s *side, sp span.Span, host gpu.Host) error {
	size := r.array.t.Size()
	from, to := (sp.Lo-s.lo)*size, (sp.Hi-s.lo)*size
	if from%4 == 0 && (to%4 == 0 || sp.Hi == r.array.n) {
		return s.mem.Write(uint64(from), host)
	}
	mem, err := local(ctx, s.dev, host)
	if err != nil {
		return err
	}
	lo, hi := from/4*4, (to+3)/4*4
	words := make([]byte, hi-lo)
	for _, edge := range []int{0, len(words) - 4} {
		t := gpu.Transfer{Offset: uint64(lo + edge), Host: gpu.HostBytes(words), HostOffset: edge, Width: 4, Pitch: 4, Count: 1}
		if err := s.mem.Read(ctx, t); err != nil {
			return err
		}
	}
	copy(words[from-lo:to-lo], mem)
	return s.mem.Write(uint64(lo), gpu.HostBytes(words))
}

// zero makes elements of device d zeros, as far as it has memory for them.
func (r *residency) zero(ctx context.Context, d int, sp span.Span) error {
	s := &r.sides[d]
	sp.Lo, sp.Hi = max(sp.Lo, s.lo), min(sp.Hi, s.hi)
	if s.mem == nil || sp.Lo >= sp.Hi {
		return nil
	}
	size := r.array.t.Size()
	lo, hi := ((sp.Lo-s.lo)*size+3)/4*4, (sp.Hi-s.lo)*size/4*4
	if lo < hi {
		if err := s.mem.Clear(uint64(lo), uint64(hi-lo)); err != nil {
			return err
		}
	}
	for _, edge := range []span.Span{{Lo: sp.Lo, Hi: min(s.lo+lo/size, sp.Hi)}, {Lo: max(s.lo+hi/size, sp.Lo), Hi: sp.Hi}} {
		if edge.Lo < edge.Hi {
			if err := r.put(ctx, d, edge, gpu.HostBytes(make([]byte, edge.Len()*size))); err != nil {
				return err
			}
		}
	}
	return nil
}

// local returns host memory as Go's. Foreign memory takes the way over the device, as there is no other.
func local(ctx context.Context, dev *gpu.Device, host gpu.Host) ([]byte, error) {
	if host.Foreign == nil {
		return host.Mem(), nil
	}
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

// get brings elements from device d to host memory from byte offset at on.
func (r *residency) get(ctx context.Context, d int, sp span.Span, host gpu.Host, at int) error {
	return r.getFrom(ctx, &r.sides[d], sp, host, at)
}

func (r *residency) getFrom(ctx context.Context, s *side, sp span.Span, host gpu.Host, at int) error {
	size := r.array.t.Size()
	n := sp.Len() * size
	t := gpu.Transfer{Offset: uint64((sp.Lo - s.lo) * size), Host: host, HostOffset: at, Width: n, Pitch: n, Count: 1}
	switch {
	case n == 0:
		return nil
	case s.near && r.straight && host.Foreign == nil:
		s.busy.Lock()
		defer s.busy.Unlock()
		return s.mem.Map(ctx, 0, s.mem.Size(), func(b []byte) error {
			copy(host.Mem()[at:], b[t.Offset:][:n])
			return nil
		})
	}
	return s.mem.Read(ctx, t)
}

// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
)

// write is a region that was written, with the replica that has its bytes.
type write struct {
	Region
	from *Replica // nil: the host, or zeros where there is no host
	// of are the regions that were written, if that is not all of it. What is between them may be copied to other devices, as it is the
	// same there, but neither to the host, whose caller may have changed it meanwhile, nor does it get lost with the replica.
	of map[Region]struct{}
}

// maxWrites is how many writes a place may lack before those of one replica, or of the host, are joined.
const maxWrites = 64

// note appends a write to a list, in place of those that it contains, unless it is on trial and they are not. A list that gets too long is
// made shorter if possible.
func (m *Memory) note(list []write, w write) []write {
	list = append(slices.DeleteFunc(list, func(o write) bool { return w.Contains(o.Region) && (!waits || !w.trial() || o.trial()) }), w)
	if len(list) > maxWrites {
		return m.join(list, w.from)
	}
	return list
}

func (w *write) trial() bool { return w.from != nil && w.from.trial }

// join makes one write of those in a list that are a replica's, or the host's, if that has the newest of what is between them, too.
func (m *Memory) join(list []write, from *Replica) []write {
	lo, hi, all := math.MaxInt, 0, write{from: from}
	for _, o := range list {
		if o.from == from {
			lo, hi = min(lo, o.Offset), max(hi, o.End())
		}
	}
	if from == nil && m.Lacks(Between(lo, hi)) || from != nil && len(from.behind) > 0 {
		return list
	}
	all.Region = Between(lo, hi)
	if from != nil { // the host's writes are not lost, and not copied to the host
		for _, o := range list {
			if o.from == from {
				all.add(o)
			}
		}
		m.joined = true
	}
	return append(slices.DeleteFunc(list, func(o write) bool { return o.from == from }), all)
}

// add adds what was written of another write.
func (w *write) add(o write) {
	switch {
	case w.of == nil && o.of != nil:
		w.of = o.of // which nobody else has
		return
	case w.of == nil:
		w.of = map[Region]struct{}{}
	}
	if o.of == nil {
		w.of[o.Region] = struct{}{}
	}
	for r := range o.of {
		w.of[r] = struct{}{}
	}
}

// part returns what a write is in a part of its region.
func (w *write) part(r Region) write {
	p := write{Region: r, from: w.from, of: w.of}
	if w.of != nil && r != w.Region {
		p.of = map[Region]struct{}{}
		var parts []Region
		for o := range w.of {
			parts = o.cut(parts[:0], r.Offset, r.End())
			for _, o := range parts {
				p.of[o] = struct{}{}
			}
		}
	}
	return p
}

// split undoes join for writes whose replica is lost, as what is between them is not.
func (m *Memory) split() {
	if !m.joined {
		return
	}
	m.joined = false
	m.lists(func(list []write) (split []write) {
		for _, w := range list {
			if w.of == nil || !w.from.Mem.Lost() {
				m.joined = m.joined || w.of != nil
				split = append(split, w)
				continue
			}
			for r := range w.of {
				split = append(split, write{Region: r, from: w.from})
			}
		}
		return split
	})
}

// download copies what was written of a write to the host's memory of a buffer.
func (w *write) download(ctx context.Context, k *Backing, host gpu.Host) error {
	if w.of == nil {
		return w.from.Mem.Read(ctx, w.from.Transfer(w.Region, host, w.Offset-k.At))
	}
	mem := make([]byte, w.Width)
	if err := w.from.Mem.Read(ctx, w.from.Transfer(w.Region, gpu.HostBytes(mem), 0)); err != nil {
		return err
	}
	for r := range w.of {
		for i := range r.Count {
			at := r.Offset + i*r.Pitch
			put, err := host.Part(at-k.At, r.Width).Writer()
			if err != nil {
				return err
			}
			put(mem[at-w.Offset:][:r.Width])
		}
	}
	return nil
}

// divide separates what of the writes lies in bytes lo to hi-1 from the rest. Both keep their order.
func divide(list []write, lo, hi int) (in, out []write) {
	var parts []Region
	for i := range list {
		w := &list[i]
		parts = w.cut(parts[:0], lo, hi)
		n := len(parts)
		parts = w.cut(w.cut(parts, math.MinInt, lo), hi, math.MaxInt)
		for i, p := range parts {
			if i < n {
				in = append(in, w.part(p))
			} else {
				out = append(out, w.part(p))
			}
		}
	}
	return in, out
}

// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"iter"
	"math"
)

// Region is a set of rows of bytes: Count rows of Width bytes, Pitch bytes apart, the first at Offset.
type Region struct{ Offset, Width, Pitch, Count int }

// Range returns the region of size bytes from offset on.
func Range(offset, size int) Region { return Region{offset, size, size, 1} }

// between returns the region of bytes lo to hi-1.
func between(lo, hi int) Region { return Region{lo, hi - lo, hi - lo, 1} }

// span returns how many bytes lie between the region's first and last byte, both included.
func (r Region) span() int {
	if r.Count <= 0 || r.Width <= 0 {
		return 0
	}
	return (r.Count-1)*r.Pitch + r.Width
}

// end returns the position behind the last byte.
func (r Region) end() int { return r.Offset + r.span() }

// joined returns the region with rows that touch made one.
func (r Region) joined() Region {
	if r.Count == 1 || r.Pitch == r.Width {
		return between(r.Offset, r.end())
	}
	return r
}

// contains reports whether all of o lies in r. It may say no of regions with different pitches.
func (r Region) contains(o Region) bool {
	return r == o || r.Count == 1 && r.Offset <= o.Offset && o.end() <= r.end()
}

// overlaps reports whether the regions have a byte in common. It may say yes of regions with different pitches.
func (r Region) overlaps(o Region) bool {
	if r.span() == 0 || o.span() == 0 || r.Offset >= o.end() || o.Offset >= r.end() {
		return false
	}
	if r.Count == 1 && o.Count == 1 {
		return true
	}
	pitch := r.Pitch
	if r.Count == 1 {
		pitch = o.Pitch
	}
	if o.Count != 1 && o.Pitch != pitch {
		return true
	}
	shift := (o.Offset - r.Offset) % pitch // of o's rows against r's
	if shift < 0 {
		shift += pitch
	}
	return shift < r.Width || shift+o.Width > pitch
}

// cut returns the parts of the region in bytes lo to hi-1: a part of a row, whole rows, a part of a row.
func (r Region) cut(lo, hi int) iter.Seq[Region] {
	return func(yield func(Region) bool) {
		if r.span() == 0 || lo >= r.end() || hi <= r.Offset {
			return
		}
		if lo <= r.Offset && r.end() <= hi {
			yield(r)
			return
		}
		first, last := 0, r.Count-1
		if lo > r.Offset && r.Count > 1 {
			first = (lo - r.Offset) / r.Pitch
		}
		if hi < r.end() && r.Count > 1 {
			last = (hi - r.Offset - 1) / r.Pitch
		}
		row := func(i int) Region {
			at := r.Offset + i*r.Pitch
			return between(max(at, lo), min(at+r.Width, hi))
		}
		for _, i := range [2]int{first, last} {
			part := row(i)
			if part.Width == r.Width || i < first || i > last {
				continue
			}
			if part.Width > 0 && !yield(part) {
				return
			}
			if i == first {
				first++
			} else {
				last--
			}
		}
		if first <= last {
			yield(Region{r.Offset + first*r.Pitch, r.Width, r.Pitch, last - first + 1})
		}
	}
}

// write is a region that was written, with the replica that has its bytes.
type write struct {
	Region
	from *replica // nil: the host, or zeros where there is no host
}

// divide separates what of the writes lies in bytes lo to hi-1 from the rest. Both keep their order.
func divide(list []write, lo, hi int) (in, out []write) {
	for _, w := range list {
		for part := range w.cut(lo, hi) {
			in = append(in, write{part, w.from})
		}
		for part := range w.cut(math.MinInt, lo) {
			out = append(out, write{part, w.from})
		}
		for part := range w.cut(hi, math.MaxInt) {
			out = append(out, write{part, w.from})
		}
	}
	return in, out
}

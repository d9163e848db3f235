// SPDX-License-Identifier: Apache-2.0

package memory

// Region is a set of rows of bytes: Count rows of Width bytes, Pitch bytes apart, the first at Offset.
type Region struct{ Offset, Width, Pitch, Count int }

// Between returns the region of bytes lo to hi-1.
func Between(lo, hi int) Region { return Region{lo, hi - lo, hi - lo, 1} }

// Span returns how many bytes lie between the region's first and last byte, both included.
func (r Region) Span() int {
	if r.Count <= 0 || r.Width <= 0 {
		return 0
	}
	return (r.Count-1)*r.Pitch + r.Width
}

// End returns the position behind the last byte.
func (r Region) End() int { return r.Offset + r.Span() }

// Joined returns the region with rows that touch made one.
func (r Region) Joined() Region {
	if r.Count == 1 || r.Pitch == r.Width {
		return Between(r.Offset, r.End())
	}
	return r
}

// Contains reports whether all of o lies in r. It may say no of regions with different pitches.
func (r Region) Contains(o Region) bool {
	return r == o || r.Count == 1 && r.Offset <= o.Offset && o.End() <= r.End()
}

// overlaps reports whether the regions have a byte in common. It may say yes of regions with different pitches.
func (r Region) overlaps(o Region) bool {
	if r.Span() == 0 || o.Span() == 0 || r.Offset >= o.End() || o.Offset >= r.End() {
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

// cut appends the parts of the region in bytes lo to hi-1: a part of a row at either end, and the whole rows between them.
func (r Region) cut(list []Region, lo, hi int) []Region {
	lo, hi = max(lo, r.Offset), min(hi, r.End())
	if lo >= hi {
		return list
	}
	if r.Count == 1 {
		return append(list, Between(lo, hi))
	}
	row := func(i int) Region { return Between(r.Offset+i*r.Pitch, r.Offset+i*r.Pitch+r.Width) }
	first, last := (lo-r.Offset)/r.Pitch, (hi-1-r.Offset)/r.Pitch
	if first == last {
		return row(first).cut(list, lo, hi)
	}
	if lo > row(first).Offset {
		list = row(first).cut(list, lo, hi)
		first++
	}
	if hi < row(last).End() {
		list = row(last).cut(list, lo, hi)
		last--
	}
	if first <= last {
		list = append(list, Region{r.Offset + first*r.Pitch, r.Width, r.Pitch, last - first + 1})
	}
	return list
}

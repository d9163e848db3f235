// SPDX-License-Identifier: Apache-2.0

// Package span keeps sets of integers that come in ranges, and maps from such ranges to small integers: which elements
// of an array are valid on a device, and who wrote them last.
//
// Ranges are half open: [lo, hi) is lo to hi-1, and empty where hi is not above lo. Any bounds are allowed; empty ranges
// change nothing. The zero values of [Set] and [Map] are empty and ready for use. They must not be copied, and not be
// used by several goroutines at once while one of them changes something. They may be changed while a loop ranges over
// them; the loop goes on upwards from where it is.
//
// Changes and look-ups take a time that grows with the number of spans they touch and, as the logarithm, with that of all
// of them.
package span

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

// Span is the integers from Lo to Hi-1.
type Span struct{ Lo, Hi int }

// Len returns how many integers the span has, at most math.MaxInt.
func (s Span) Len() int {
	if s.Lo >= s.Hi {
		return 0
	}
	return saturate(uint64(s.Hi) - uint64(s.Lo))
}

// String formats a span as "[3,7)".
func (s Span) String() string { return "[" + strconv.Itoa(s.Lo) + "," + strconv.Itoa(s.Hi) + ")" }

func saturate(n uint64) int { return int(min(n, math.MaxInt)) }

// Set is a set of integers.
type Set struct{ runs runs }

// Add puts [lo, hi) into the set.
func (s *Set) Add(lo, hi int) { s.runs.set(lo, hi, 0) }

// Remove takes [lo, hi) out of the set.
func (s *Set) Remove(lo, hi int) { s.runs.remove(lo, hi) }

// Contains reports whether all of [lo, hi) is in the set. Of an empty range that is true.
func (s *Set) Contains(lo, hi int) bool {
	if lo >= hi {
		return true
	}
	p := s.runs.seek(func(r run) bool { return r.Hi >= hi })
	return p.block < len(s.runs.blocks) && s.runs.at(p).Lo <= lo
}

// Assign makes the set equal to other, and independent of it.
func (s *Set) Assign(other *Set) { s.runs.assign(&other.runs) }

// Subtract takes out of the set what is in other.
func (s *Set) Subtract(other *Set) {
	for o := range other.All() {
		s.Remove(o.Lo, o.Hi)
	}
}

// Intersect takes out of the set what is not in other.
func (s *Set) Intersect(other *Set) {
	if s.runs.count == 0 {
		return
	}
	lo, hi := s.runs.bounds()
	if other == nil {
		s.Remove(lo, hi)
		return
	}
	for gap := range other.Missing(lo, hi) {
		s.Remove(gap.Lo, gap.Hi)
	}
}

// Overlap returns the parts of [lo, hi) that are in the set, in ascending order.
func (s *Set) Overlap(lo, hi int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for r := range s.runs.over(lo, hi) {
			if !yield(r.Span) {
				return
			}
		}
	}
}

// Missing returns the parts of [lo, hi) that are not in the set, in ascending order.
func (s *Set) Missing(lo, hi int) iter.Seq[Span] { return s.runs.gaps(lo, hi) }

// All returns the spans of the set, in ascending order; no two of them touch.
func (s *Set) All() iter.Seq[Span] { return s.Overlap(math.MinInt, math.MaxInt) }

// Clear empties the set.
func (s *Set) Clear() { s.runs.clear() }

// Len returns the number of spans.
func (s *Set) Len() int { return s.runs.count }

// Total returns the number of integers in the set, at most math.MaxInt.
func (s *Set) Total() int { return saturate(s.runs.total) }

// String formats a set as "[0,3) [5,7)".
func (s *Set) String() string { return s.runs.format(false) }

// Map is a map from integers to integers, one value for many keys in a row. Keys without a value are not in it.
type Map struct{ runs runs }

// Set gives the keys of [lo, hi) the value v.
func (m *Map) Set(lo, hi, v int) { m.runs.set(lo, hi, v) }

// Remove takes the keys of [lo, hi) out of the map.
func (m *Map) Remove(lo, hi int) { m.runs.remove(lo, hi) }

// Assign makes the map equal to other, and independent of it.
func (m *Map) Assign(other *Map) { m.runs.assign(&other.runs) }

// Get returns the keys of [lo, hi) that are in the map, as spans with one value, in ascending order. Spans that touch
// have different values.
func (m *Map) Get(lo, hi int) iter.Seq2[Span, int] {
	return func(yield func(Span, int) bool) {
		for r := range m.runs.over(lo, hi) {
			if !yield(r.Span, r.v) {
				return
			}
		}
	}
}

// Missing returns the keys of [lo, hi) that are not in the map, in ascending order.
func (m *Map) Missing(lo, hi int) iter.Seq[Span] { return m.runs.gaps(lo, hi) }

// All returns all of the map, as Get does.
func (m *Map) All() iter.Seq2[Span, int] { return m.Get(math.MinInt, math.MaxInt) }

// Clear empties the map.
func (m *Map) Clear() { m.runs.clear() }

// Len returns the number of spans.
func (m *Map) Len() int { return m.runs.count }

// Total returns the number of keys in the map, at most math.MaxInt.
func (m *Map) Total() int { return saturate(m.runs.total) }

// String formats a map as "[0,3)=1 [5,7)=0".
func (m *Map) String() string { return m.runs.format(true) }

func (s *runs) format(values bool) string {
	var b strings.Builder
	for r := range s.over(math.MinInt, math.MaxInt) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(r.String())
		if values {
			b.WriteByte('=')
			b.WriteString(strconv.Itoa(r.v))
		}
	}
	return b.String()
}

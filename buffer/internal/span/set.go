// SPDX-License-Identifier: Apache-2.0

package span

import (
	"iter"
	"math"
)

// Set is a set of integers.
type Set struct{ m Map } // all of the same value

// Add puts [lo, hi) into the set.
func (s *Set) Add(lo, hi int) { s.m.Set(lo, hi, 0) }

// Remove takes [lo, hi) out of the set.
func (s *Set) Remove(lo, hi int) { s.m.Remove(lo, hi) }

// Contains reports whether all of [lo, hi) is in the set. Of an empty range that is true.
func (s *Set) Contains(lo, hi int) bool {
	for range s.Missing(lo, hi) {
		return false
	}
	return true
}

// Assign makes the set equal to other, and independent of it.
func (s *Set) Assign(other *Set) { s.m.Assign(&other.m) }

// Subtract takes out of the set what is in other.
func (s *Set) Subtract(other *Set) {
	for o := range other.All() {
		s.Remove(o.Lo, o.Hi)
	}
}

// Intersect takes out of the set what is not in other.
func (s *Set) Intersect(other *Set) {
	if other == nil {
		s.Clear()
		return
	}
	for gap := range other.Missing(math.MinInt, math.MaxInt) {
		s.Remove(gap.Lo, gap.Hi)
	}
}

// Overlap returns the parts of [lo, hi) that are in the set, in ascending order.
func (s *Set) Overlap(lo, hi int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for sp := range s.m.Get(lo, hi) {
			if !yield(sp) {
				return
			}
		}
	}
}

// Missing returns the parts of [lo, hi) that are not in the set, in ascending order.
func (s *Set) Missing(lo, hi int) iter.Seq[Span] { return s.m.Missing(lo, hi) }

// All returns the spans of the set, in ascending order; no two of them touch.
func (s *Set) All() iter.Seq[Span] { return s.Overlap(math.MinInt, math.MaxInt) }

// Clear empties the set.
func (s *Set) Clear() { s.m.Clear() }

// Len returns the number of spans.
func (s *Set) Len() int { return s.m.Len() }

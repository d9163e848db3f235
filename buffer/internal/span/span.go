// SPDX-License-Identifier: Apache-2.0

// Package span keeps sets of integers that come in ranges, and maps from such ranges to small integers: which elements
// of an array are valid on a device, and who wrote them last.
//
// Ranges are half open: [lo, hi) is lo to hi-1, and empty where hi is not above lo. Any bounds are allowed; empty ranges
// change nothing. The zero values of [Set] and [Map] are empty and ready for use. They must not be copied, and not be
// used by several goroutines at once while one of them changes something. They may be changed while a loop ranges over
// them; the loop goes on upwards from where it is. Look-ups take a time that grows as the logarithm of the number of spans; a
// change moves those behind it.
package span

import (
	"iter"
	"math"
	"sort"
)

// Span is the integers from Lo to Hi-1.
type Span struct{ Lo, Hi int }

// Len returns how many integers the span has, at most math.MaxInt.
func (s Span) Len() int {
	if s.Lo >= s.Hi {
		return 0
	}
	return int(min(uint64(s.Hi)-uint64(s.Lo), math.MaxInt))
}

// Map is a map from integers to integers, one value for many keys in a row. Keys without a value are not in it.
type Map struct {
	runs []run // sorted and disjoint; those that touch have different values
}

// run is a span that has one value.
type run struct {
	Span
	v int
}

// seek returns the first run for which is holds, where it holds for all runs behind one for which it does.
func (m *Map) seek(is func(run) bool) int {
	return sort.Search(len(m.runs), func(i int) bool { return is(m.runs[i]) })
}

// Set gives the keys of [lo, hi) the value v.
func (m *Map) Set(lo, hi, v int) {
	if lo >= hi {
		return
	}
	from := m.seek(func(r run) bool { return r.Hi >= lo })
	to := m.seek(func(r run) bool { return r.Lo > hi })
	if from < to { // it joins what it touches, if that has the same value
		if first := m.runs[from]; first.v == v {
			lo = min(lo, first.Lo)
		}
		if last := m.runs[to-1]; last.v == v {
			hi = max(hi, last.Hi)
		}
	}
	m.replace(lo, hi, from, to, run{Span{lo, hi}, v})
}

// Remove takes the keys of [lo, hi) out of the map.
func (m *Map) Remove(lo, hi int) {
	if lo < hi {
		from, to := m.seek(func(r run) bool { return r.Hi > lo }), m.seek(func(r run) bool { return r.Lo >= hi })
		m.replace(lo, hi, from, to)
	}
}

// replace puts other runs into the place of [lo, hi), which only the runs from one place to another meet.
func (m *Map) replace(lo, hi, from, to int, with ...run) {
	list := make([]run, 0, 3)
	if from < to && m.runs[from].Lo < lo {
		list = append(list, run{Span{m.runs[from].Lo, lo}, m.runs[from].v})
	}
	list = append(list, with...)
	if from < to && m.runs[to-1].Hi > hi {
		list = append(list, run{Span{hi, m.runs[to-1].Hi}, m.runs[to-1].v})
	}
	// Without slices.Replace, which has several times the code.
	before, after := len(m.runs), len(m.runs)-(to-from)+len(list)
	for len(m.runs) < after {
		m.runs = append(m.runs, run{})
	}
	copy(m.runs[from+len(list):], m.runs[to:before])
	copy(m.runs[from:], list)
	m.runs = m.runs[:after]
}

// Get returns the keys of [lo, hi) that are in the map, as spans with one value, in ascending order. Spans that touch
// have different values.
func (m *Map) Get(lo, hi int) iter.Seq2[Span, int] {
	return func(yield func(Span, int) bool) {
		for lo := lo; lo < hi; {
			i := m.seek(func(r run) bool { return r.Hi > lo }) // each time, as the loop may have changed the map
			if i == len(m.runs) || m.runs[i].Lo >= hi {
				return
			}
			r := m.runs[i]
			s := Span{max(r.Lo, lo), min(r.Hi, hi)}
			if lo = s.Hi; !yield(s, r.v) {
				return
			}
		}
	}
}

// Missing returns the keys of [lo, hi) that are not in the map, in ascending order.
func (m *Map) Missing(lo, hi int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		lo := lo
		for s := range m.Get(lo, hi) {
			if lo < s.Lo && !yield(Span{lo, s.Lo}) {
				return
			}
			lo = s.Hi
		}
		if lo < hi {
			yield(Span{lo, hi})
		}
	}
}

// All returns all of the map, as Get does.
func (m *Map) All() iter.Seq2[Span, int] { return m.Get(math.MinInt, math.MaxInt) }

// Assign makes the map equal to other, and independent of it.
func (m *Map) Assign(other *Map) { m.runs = append([]run(nil), other.runs...) }

// Clear empties the map.
func (m *Map) Clear() { m.runs = nil }

// Len returns the number of spans.
func (m *Map) Len() int { return len(m.runs) }

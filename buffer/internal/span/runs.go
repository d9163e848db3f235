// SPDX-License-Identifier: Apache-2.0

package span

import (
	"iter"
	"sort"
)

// run is a span that has one value.
type run struct {
	Span
	v int
}

// most is how many runs a block holds.
const most = 128

// runs are sorted and disjoint, and those that touch have different values. They are kept in blocks, none of them empty,
// so that a change moves a block's runs at most and not all. Most sets have one block, and nothing is faster than that.
type runs struct {
	blocks  [][]run
	count   int
	total   uint64 // keys
	changes uint   // tells loops that their place is to be found again
}

// place is the position of a run, or one beyond the last block.
type place struct{ block, i int }

// seek returns the first run for which is holds, where it holds for all runs behind one for which it does.
func (s *runs) seek(is func(run) bool) place {
	b := sort.Search(len(s.blocks), func(b int) bool { return is(s.blocks[b][len(s.blocks[b])-1]) })
	if b == len(s.blocks) {
		return place{b, 0}
	}
	return place{b, sort.Search(len(s.blocks[b]), func(i int) bool { return is(s.blocks[b][i]) })}
}

func (s *runs) at(p place) run { return s.blocks[p.block][p.i] }

func (s *runs) next(p place) place {
	if p.i++; p.i == len(s.blocks[p.block]) {
		return place{p.block + 1, 0}
	}
	return p
}

func (s *runs) previous(p place) place {
	if p.i == 0 {
		p = place{p.block - 1, len(s.blocks[p.block-1])}
	}
	return place{p.block, p.i - 1}
}

// bounds returns where the first run begins and the last one ends. There must be one.
func (s *runs) bounds() (lo, hi int) {
	last := s.blocks[len(s.blocks)-1]
	return s.blocks[0][0].Lo, last[len(last)-1].Hi
}

// over returns the parts of runs that are in [lo, hi).
func (s *runs) over(lo, hi int) iter.Seq[run] {
	return func(yield func(run) bool) {
		var p place
		changes, lo := s.changes+1, lo
		for lo < hi {
			if s.changes != changes {
				changes = s.changes
				p = s.seek(func(r run) bool { return r.Hi > lo })
			}
			if p.block == len(s.blocks) || s.at(p).Lo >= hi {
				return
			}
			r := s.at(p)
			r.Lo, r.Hi = max(r.Lo, lo), min(r.Hi, hi)
			lo, p = r.Hi, s.next(p)
			if !yield(r) {
				return
			}
		}
	}
}

// gaps returns the parts of [lo, hi) that are in no run.
func (s *runs) gaps(lo, hi int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		lo := lo
		for r := range s.over(lo, hi) {
			if lo < r.Lo && !yield(Span{lo, r.Lo}) {
				return
			}
			lo = r.Hi
		}
		if lo < hi {
			yield(Span{lo, hi})
		}
	}
}

// set gives [lo, hi) the value v and joins it with what it touches.
func (s *runs) set(lo, hi, v int) {
	if lo >= hi {
		return
	}
	from := s.seek(func(r run) bool { return r.Hi >= lo })
	to := s.seek(func(r run) bool { return r.Lo > hi })
	with := make([]run, 0, 3)
	var after []run
	if from != to {
		first, last := s.at(from), s.at(s.previous(to))
		switch {
		case first.Lo >= lo: // nothing of it is left
		case first.v != v:
			with = append(with, run{Span{first.Lo, lo}, first.v})
		case first.Hi >= hi:
			return
		default:
			lo = first.Lo
		}
		switch {
		case last.Hi <= hi:
		case last.v != v:
			after = append(after, run{Span{hi, last.Hi}, last.v})
		default:
			hi = last.Hi
		}
	}
	s.replace(from, to, append(append(with, run{Span{lo, hi}, v}), after...))
}

// remove takes [lo, hi) away.
func (s *runs) remove(lo, hi int) {
	if lo >= hi {
		return
	}
	from := s.seek(func(r run) bool { return r.Hi > lo })
	to := s.seek(func(r run) bool { return r.Lo >= hi })
	if from == to {
		return
	}
	with := make([]run, 0, 2)
	if first := s.at(from); first.Lo < lo {
		with = append(with, run{Span{first.Lo, lo}, first.v})
	}
	if last := s.at(s.previous(to)); last.Hi > hi {
		with = append(with, run{Span{hi, last.Hi}, last.v})
	}
	s.replace(from, to, with)
}

// replace puts other runs into the place of those from one place to another. All changes are made here.
func (s *runs) replace(from, to place, with []run) {
	s.changes++
	for p := from; p != to; p = s.next(p) {
		s.count--
		s.total -= s.at(p).size()
	}
	for _, r := range with {
		s.count++
		s.total += r.size()
	}
	b := from.block
	switch {
	case len(s.blocks) == 0:
		s.blocks = [][]run{append([]run(nil), with...)}
	case b == len(s.blocks): // behind all of them
		b--
		s.blocks[b] = append(s.blocks[b], with...)
	case b == to.block:
		s.blocks[b] = splice(s.blocks[b], from.i, to.i, with...)
	default:
		s.blocks[b] = append(s.blocks[b][:from.i], with...)
		if to.i > 0 {
			s.blocks[to.block] = s.blocks[to.block][to.i:]
		}
		s.blocks = splice(s.blocks, b+1, to.block)
	}
	s.fit(b)
}

// fit makes blocks that are neither empty nor too large of block b and its neighbours, and one of two that are small.
func (s *runs) fit(b int) {
	switch n := len(s.blocks[b]); {
	case n == 0:
		s.blocks = splice(s.blocks, b, b+1)
	case n > most:
		tail := append([]run(nil), s.blocks[b][n/2:]...)
		s.blocks[b] = s.blocks[b][:n/2]
		s.blocks = splice(s.blocks, b+1, b+1, tail)
	}
	for k := min(b+1, len(s.blocks)-2); k >= max(b-1, 0); k-- {
		if len(s.blocks[k])+len(s.blocks[k+1]) <= most/2 {
			s.blocks[k] = append(s.blocks[k], s.blocks[k+1]...)
			s.blocks = splice(s.blocks, k+1, k+2)
		}
	}
}

// splice puts other elements into the place of list[from:to]. It is a fraction of the code of [slices.Replace].
func splice[E any](list []E, from, to int, with ...E) []E {
	before, after := len(list), len(list)-(to-from)+len(with)
	if after > before {
		list = append(list, with[:after-before]...)
	}
	copy(list[from+len(with):], list[to:before])
	copy(list[from:], with)
	clear(list[after:])
	return list[:after]
}

func (s *runs) assign(o *runs) {
	blocks := make([][]run, len(o.blocks))
	for i, b := range o.blocks {
		blocks[i] = append([]run(nil), b...)
	}
	*s = runs{blocks: blocks, count: o.count, total: o.total, changes: s.changes + 1}
}

func (s *runs) clear() { *s = runs{changes: s.changes + 1} }

func (r run) size() uint64 { return uint64(r.Hi) - uint64(r.Lo) }

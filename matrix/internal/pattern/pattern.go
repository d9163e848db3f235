// SPDX-License-Identifier: Apache-2.0

// Package pattern has where the entries of sparse matrices are, and finds where those of sums and products are. It knows no values:
// it tells of which entries of the operands each value is made.
package pattern

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Pattern is where the entries of a matrix are, row after row or column after column. A "major" is a row of the former and a column
// of the latter: the entries of major m are Ptr[m] to Ptr[m+1]-1, at the increasing columns or rows that Index has. Nothing changes
// a pattern's slices.
type Pattern struct {
	Rows, Cols int
	ByRows     bool
	Index, Ptr []int32
}

// Majors and minors are the rows and columns of a pattern by rows, the columns and rows of another.
func (p *Pattern) sizes() (majors, minors int) {
	if p.ByRows {
		return p.Rows, p.Cols
	}
	return p.Cols, p.Rows
}

// T is the pattern of the transpose.
func (p Pattern) T() Pattern { return Pattern{p.Cols, p.Rows, !p.ByRows, p.Index, p.Ptr} }

// Majors are the row of each entry of a pattern by rows, the column of each of another.
func (p *Pattern) Majors() []int32 {
	list := make([]int32, len(p.Index))
	for m := range len(p.Ptr) - 1 {
		for q := p.Ptr[m]; q < p.Ptr[m+1]; q++ {
			list[q] = int32(m)
		}
	}
	return list
}

// Across is the pattern the other way: by rows if p is by columns. places are where in p each of its entries is.
func (p *Pattern) Across() (q Pattern, places []int32) {
	_, minors := p.sizes()
	q = Pattern{p.Rows, p.Cols, !p.ByRows, make([]int32, len(p.Index)), make([]int32, minors+1)}
	for _, i := range p.Index {
		q.Ptr[i+1]++
	}
	for i := range minors {
		q.Ptr[i+1] += q.Ptr[i]
	}
	next := slices.Clone(q.Ptr)
	places = make([]int32, len(p.Index))
	for m := range len(p.Ptr) - 1 {
		for from := p.Ptr[m]; from < p.Ptr[m+1]; from++ {
			to := next[p.Index[from]]
			next[p.Index[from]]++
			q.Index[to], places[to] = int32(m), from
		}
	}
	return q, places
}

// like is the pattern by rows or by columns, as q is. places are nil where each entry is in its own place.
func (p Pattern) like(q *Pattern) (r Pattern, places []int32) {
	if p.ByRows == q.ByRows {
		return p, nil
	}
	return p.Across()
}

func at(places []int32, q int32) int32 {
	if places == nil || q < 0 {
		return q
	}
	return places[q]
}

// Union has the entries that a or b has, ordered as a is. fromA and fromB say where each is in a and in b; -1: it is not there.
func Union(a, b Pattern) (c Pattern, fromA, fromB []int32) { return merge(a, b, true) }

// Intersection has the entries that a and b have, ordered as a is. fromA and fromB say where each is.
func Intersection(a, b Pattern) (c Pattern, fromA, fromB []int32) { return merge(a, b, false) }

func merge(a, b Pattern, all bool) (c Pattern, fromA, fromB []int32) {
	b, places := b.like(&a)
	c = Pattern{Rows: a.Rows, Cols: a.Cols, ByRows: a.ByRows, Ptr: make([]int32, len(a.Ptr))}
	for m := range len(a.Ptr) - 1 {
		p, q := a.Ptr[m], b.Ptr[m]
		for p < a.Ptr[m+1] || q < b.Ptr[m+1] {
			mine := p < a.Ptr[m+1] && (q == b.Ptr[m+1] || a.Index[p] <= b.Index[q])
			theirs := q < b.Ptr[m+1] && (p == a.Ptr[m+1] || b.Index[q] <= a.Index[p])
			in, inA, inB := int32(0), int32(-1), int32(-1)
			if mine {
				in, inA = a.Index[p], p
				p++
			}
			if theirs {
				in, inB = b.Index[q], q
				q++
			}
			if all || mine && theirs {
				c.Index, fromA, fromB = append(c.Index, in), append(fromA, inA), append(fromB, at(places, inB))
			}
		}
		c.Ptr[m+1] = int32(len(c.Index))
	}
	return c, fromA, fromB
}

// MaxTerms is how many products of two entries a product may be the sums of. A list of them takes 8 bytes for each.
const MaxTerms = 1 << 27

// Terms are the products of two entries of which those of a product are sums: entry e is the sum of terms Ptr[e] to Ptr[e+1]-1.
type Terms struct{ Ptr, FromA, FromB []int32 }

// Product finds the entries of a times b, ordered as a is, and of which terms they are sums. These are ordered by the dimension that
// the product sums over (Gustavson, Two fast algorithms for sparse matrices, 1978). More terms than [MaxTerms] are an error.
func Product(a, b Pattern) (c Pattern, t Terms, err error) {
	b, places := b.like(&a)
	if !a.ByRows { // the rows of the transpose
		c, t, err = rowwise(b.T(), a.T())
		c = c.T()
		t.FromA, t.FromB = t.FromB, t.FromA
	} else {
		c, t, err = rowwise(a, b)
	}
	for i, q := range t.FromB {
		t.FromB[i] = at(places, q)
	}
	return c, t, err
}

func rowwise(a, b Pattern) (c Pattern, t Terms, err error) {
	c = Pattern{Rows: a.Rows, Cols: b.Cols, ByRows: true, Ptr: make([]int32, a.Rows+1)}
	terms := 0
	for _, k := range a.Index {
		if terms += int(b.Ptr[k+1] - b.Ptr[k]); terms > MaxTerms {
			return c, t, fault.Fail("matrix: Mul", fault.ErrLimit, "a product of sparse matrices with more than 134217728 terms")
		}
	}
	t = Terms{[]int32{0}, make([]int32, terms), make([]int32, terms)}
	next := make([]int32, b.Cols) // of each column that a row has: its terms are counted, then it is where the next one goes
	var cols []int32
	for i := range a.Rows {
		cols = cols[:0]
		each(&a, &b, i, func(_, q int32) {
			j := b.Index[q]
			if next[j]++; next[j] == 1 {
				cols = append(cols, j)
			}
		})
		slices.Sort(cols)
		for _, j := range cols {
			last := t.Ptr[len(t.Ptr)-1]
			t.Ptr = append(t.Ptr, last+next[j])
			next[j] = last
		}
		each(&a, &b, i, func(p, q int32) {
			to := next[b.Index[q]]
			next[b.Index[q]]++
			t.FromA[to], t.FromB[to] = p, q
		})
		for _, j := range cols {
			next[j] = 0
		}
		c.Index = append(c.Index, cols...)
		c.Ptr[i+1] = int32(len(c.Index))
	}
	return c, t, nil
}

// each visits the terms of row i.
func each(a, b *Pattern, i int, visit func(p, q int32)) {
	for p := a.Ptr[i]; p < a.Ptr[i+1]; p++ {
		k := a.Index[p]
		for q := b.Ptr[k]; q < b.Ptr[k+1]; q++ {
			visit(p, q)
		}
	}
}

// Blocks is the pattern by columns of a matrix of which only some whole columns are stored.
func Blocks(rows, cols int, ids []int32) Pattern {
	p := Pattern{Rows: rows, Cols: cols, Index: make([]int32, 0, rows*len(ids)), Ptr: make([]int32, cols+1)}
	k := 0
	for j := range cols {
		if k < len(ids) && int(ids[k]) == j {
			for i := range rows {
				p.Index = append(p.Index, int32(i))
			}
			k++
		}
		p.Ptr[j+1] = int32(len(p.Index))
	}
	return p
}

// Filled are the majors that have entries, and the pattern without the others.
func (p Pattern) Filled() (ids []int32, q Pattern) {
	q = Pattern{Rows: p.Rows, Cols: p.Cols, ByRows: p.ByRows, Index: p.Index, Ptr: []int32{0}}
	for m := range len(p.Ptr) - 1 {
		if p.Ptr[m+1] > p.Ptr[m] {
			ids, q.Ptr = append(ids, int32(m)), append(q.Ptr, p.Ptr[m+1])
		}
	}
	if p.ByRows {
		q.Rows = len(ids)
	} else {
		q.Cols = len(ids)
	}
	return ids, q
}

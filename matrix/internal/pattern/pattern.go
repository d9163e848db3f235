// SPDX-License-Identifier: Apache-2.0

// Package pattern has where the entries of sparse matrices are, and finds where those of sums and products are. It knows no values:
// it tells of which entries of the operands each value is made.
package pattern

import (
	"slices"
	"strconv"

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

// MaxPointers is how many pointers are made for an operation: for a dimension that no operand has pointers of. They take 512 MiB.
const MaxPointers = 1 << 27

// CheckPointers refuses more rows or columns than an operation makes pointers for.
func CheckPointers(op string, majors int) error {
	if majors >= MaxPointers {
		return fault.Fail("matrix: "+op, fault.ErrLimit, "pointers to ", strconv.Itoa(majors), " rows or columns")
	}
	return nil
}

// Across is the pattern the other way: by rows if p is by columns. places are where in p each of its entries is.
func (p *Pattern) Across(op string) (q Pattern, places []int32, err error) {
	_, minors := p.sizes()
	if err := CheckPointers(op, minors); err != nil {
		return q, nil, err
	}
	q = Pattern{p.Rows, p.Cols, !p.ByRows, make([]int32, len(p.Index)), make([]int32, minors+1)}
	next := q.Ptr[1:] // of each minor where its next entry goes, which is behind its last one in the end
	for _, i := range p.Index {
		next[i]++
	}
	sum := int32(0)
	for i, count := range next {
		next[i], sum = sum, sum+count
	}
	places = make([]int32, len(p.Index))
	for m := range len(p.Ptr) - 1 {
		for from := p.Ptr[m]; from < p.Ptr[m+1]; from++ {
			to := next[p.Index[from]]
			next[p.Index[from]]++
			q.Index[to], places[to] = int32(m), from
		}
	}
	return q, places, nil
}

// like is the pattern by rows or by columns, as q is. places are nil where each entry is in its own place.
func (p Pattern) like(op string, q *Pattern) (r Pattern, places []int32, err error) {
	if p.ByRows == q.ByRows {
		return p, nil, nil
	}
	return p.Across(op)
}

// used are the numbers that lists have, in ascending order.
func used(lists ...[]int32) []int32 {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// ranks are the places of a list's numbers among those that are used.
func ranks(list, used []int32) []int32 {
	r := make([]int32, len(list))
	for k, i := range list {
		at, _ := slices.BinarySearch(used, i)
		r[k] = int32(at)
	}
	return r
}

// vast reports whether a dimension is so large that its few numbers which are used are better sorted than counted.
func vast(size, entries int) bool { return size > 1024+8*entries }

func at(places []int32, q int32) int32 {
	if places == nil || q < 0 {
		return q
	}
	return places[q]
}

// Union has the entries that a or b has, ordered as a is. fromA and fromB say where each is in a and in b; -1: it is not there.
func Union(op string, a, b Pattern) (c Pattern, fromA, fromB []int32, err error) {
	return merge(op, a, b, true)
}

// Intersection has the entries that a and b have, ordered as a is. fromA and fromB say where each is.
func Intersection(op string, a, b Pattern) (c Pattern, fromA, fromB []int32, err error) {
	return merge(op, a, b, false)
}

func merge(op string, a, b Pattern, all bool) (c Pattern, fromA, fromB []int32, err error) {
	b, places, err := b.like(op, &a)
	if err != nil {
		return c, nil, nil, err
	}
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
	return c, fromA, fromB, nil
}

// MaxTerms is how many products of two entries a product may be the sums of. A list of them takes 8 bytes for each.
const MaxTerms = 1 << 27

// Terms are the products of two entries of which those of a product are sums: entry e is the sum of terms Ptr[e] to Ptr[e+1]-1.
type Terms struct{ Ptr, FromA, FromB []int32 }

// Product finds the entries of a times b, ordered as a is, and of which terms they are sums. These are ordered by the dimension that
// the product sums over (Gustavson, Two fast algorithms for sparse matrices, 1978). More terms than [MaxTerms] are an error.
func Product(op string, a, b Pattern) (c Pattern, t Terms, err error) {
	if a.ByRows && !b.ByRows && vast(a.Cols, len(a.Index)+len(b.Index)) {
		inner := used(a.Index, b.Index)
		a.Index, a.Cols = ranks(a.Index, inner), len(inner)
		b.Index, b.Rows = ranks(b.Index, inner), len(inner)
	}
	b, places, err := b.like(op, &a)
	switch {
	case err != nil:
		return c, t, err
	case a.ByRows:
		c, t, err = rowwise(op, a, b)
	default: // the rows of the transpose
		c, t, err = rowwise(op, b.T(), a.T())
		c = c.T()
		t.FromA, t.FromB = t.FromB, t.FromA
	}
	for i, q := range t.FromB {
		t.FromB[i] = at(places, q)
	}
	return c, t, err
}

func rowwise(op string, a, b Pattern) (c Pattern, t Terms, err error) {
	if vast(b.Cols, len(b.Index)) {
		cols, of := used(b.Index), b.Cols
		b.Index, b.Cols = ranks(b.Index, cols), len(cols)
		c, t, err = rowwise(op, a, b)
		c.Cols = of
		for k, j := range c.Index {
			c.Index[k] = cols[j]
		}
		return c, t, err
	}
	c = Pattern{Rows: a.Rows, Cols: b.Cols, ByRows: true, Ptr: make([]int32, a.Rows+1)}
	terms := 0
	for _, k := range a.Index {
		if terms += int(b.Ptr[k+1] - b.Ptr[k]); terms > MaxTerms {
			return c, t, fault.Fail("matrix: "+op, fault.ErrLimit, "a product of sparse matrices with more than 134217728 terms")
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
func Blocks(op string, rows, cols int, ids []int32) (p Pattern, err error) {
	if err := CheckPointers(op, cols); err != nil {
		return p, err
	}
	p = Pattern{Rows: rows, Cols: cols, Index: make([]int32, 0, rows*len(ids)), Ptr: make([]int32, cols+1)}
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
	return p, nil
}

// Columns is the pattern by columns without the empty ones, whose numbers are ids. places are nil where each entry is in its own place.
func (p Pattern) Columns(op string) (ids []int32, q Pattern, places []int32, err error) {
	if !p.ByRows {
		ids, q = p.Filled()
		return ids, q, nil, nil
	}
	ids = used(p.Index)
	p.Index, p.Cols = ranks(p.Index, ids), len(ids)
	q, places, err = p.Across(op)
	return ids, q, places, err
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

// SPDX-License-Identifier: Apache-2.0

package product

import (
	"encoding/binary"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

// shape is the Shape of tile, group and row.
type shape struct {
	m, n, k    int
	wide, high int // tiles in a row of tiles, and rows of tiles
	parts      int
	chunk      int    // quads of k in a part
	a, b       [2]int // offset and stride of the operands, in units of their bindings
}

const shapeBytes = 4 * 12

func (s *shape) bytes() []byte {
	return plan.Words(make([]byte, 0, shapeBytes), s.m, s.n, s.k, s.wide, s.high, s.parts, s.chunk, 0,
		s.a[0], s.a[1], s.b[0], s.b[1])
}

func readShape(b []byte) shape {
	return shape{
		word(b, 0), word(b, 1), word(b, 2), word(b, 3), word(b, 4), word(b, 5), word(b, 6),
		[2]int{word(b, 8), word(b, 9)},
		[2]int{word(b, 10), word(b, 11)},
	}
}

// The Shape of sum: m, n, vectors in a row of the parts, and how many parts.
const sumBytes = 4 * 4

func word(b []byte, i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }

// reference does what a kernel does, in Go. The three that multiply differ only in which invocation computes what.
type reference struct {
	s Spec
	f *fuse.Func
}

// Run implements [shaders.Reference].
func (t reference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	switch t.f.Type {
	case fuse.F32:
		compute[float32](t.s, t.f, params, storage)
	case fuse.I32:
		compute[int32](t.s, t.f, params, storage)
	default:
		compute[uint32](t.s, t.f, params, storage)
	}
}

func compute[N fuse.Num](s Spec, f *fuse.Func, params []byte, storage [][]byte) {
	if s.Kernel == Sum {
		sum[N](f, params, storage)
	} else {
		multiply[N](s, f, params, storage)
	}
}

// operand reads elements of A or B: line is a row of A or a column of B.
type operand[N fuse.Num] struct {
	typ             fuse.Type
	mem             []byte
	offset, line, k int // where it begins, and the steps from a line to the next and along k
}

func newOperand[N fuse.Num](c Class, mem []byte, place [2]int) operand[N] {
	unit := 4 / c.unit()
	o := operand[N]{c.Type, mem, place[0] * unit, place[1] * unit, 1}
	if !c.AlongK {
		o.line, o.k = o.k, o.line
	}
	return o
}

// alongK reads a line, across reads one k of consecutive lines.
func (o *operand[N]) alongK(line int, dst []N) {
	fuse.Read(dst, o.typ, o.mem, o.offset+line*o.line, o.k)
}
func (o *operand[N]) across(k int, dst []N) { fuse.Read(dst, o.typ, o.mem, o.offset+k*o.k, o.line) }

// multiply computes every part of the product.
func multiply[N fuse.Num](sp Spec, f *fuse.Func, params []byte, storage [][]byte) {
	s := readShape(params)
	e, ok := fuse.NewEval[N](f, params[shapeBytes:], storage[2:])
	if !ok {
		return
	}
	a, b := newOperand[N](sp.A, storage[0], s.a), newOperand[N](sp.B, storage[1], s.b)
	right := make([]N, s.k*s.n)
	for l := range s.k {
		b.across(l, right[l*s.n:][:s.n])
	}
	left, acc := make([]N, s.k), make([]N, s.n)
	for i := range s.m {
		a.alongK(i, left)
		for x := range s.parts {
			first := min(4*x*s.chunk, s.k)
			last := min(first+4*s.chunk, s.k)
			clear(acc)
			addRows(acc, left[first:last], right[first*s.n:last*s.n])
			e.Apply(i, 0, acc)
			e.Store(x*s.m+i, 0, acc)
		}
	}
}

// addRows adds the rows of y, each times its element of x, to acc.
func addRows[N fuse.Num](acc, x, y []N) {
	n := len(acc)
	for len(x) >= 4 {
		y0, y1, y2, y3 := y[:n], y[n:][:n], y[2*n:][:n], y[3*n:][:n]
		x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
		for j := range acc {
			acc[j] += x0*y0[j] + x1*y1[j] + x2*y2[j] + x3*y3[j]
		}
		x, y = x[4:], y[4*n:]
	}
	for l, v := range x {
		for j, w := range y[l*n:][:n] {
			acc[j] += v * w
		}
	}
}

// sum adds the parts that lie one below the other in scratch memory.
func sum[N fuse.Num](f *fuse.Func, params []byte, storage [][]byte) {
	m, n, quads, parts := word(params, 0), word(params, 1), word(params, 2), word(params, 3)
	e, ok := fuse.NewEval[N](f, params[sumBytes:], storage[1:])
	if !ok {
		return
	}
	acc, part := make([]N, n), make([]N, n)
	for i := range m {
		clear(acc)
		for x := range parts {
			fuse.Read(part, f.Type, storage[0], 4*quads*(x*m+i), 1)
			for j, v := range part {
				acc[j] += v
			}
		}
		e.Apply(i, 0, acc)
		e.Store(i, 0, acc)
	}
}

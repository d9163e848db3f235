// SPDX-License-Identifier: Apache-2.0

package tensor

import (
	"slices"

	"github.com/sublet-gpu/sublet/matrix"
)

// place tells where in a tensor the elements of another shape are: elements between two neighbours along each dimension, 0 where one is
// stretched, and the first one.
type place struct {
	shape, strides []int
	offset         int
}

// stridesOf are those of a tensor in its own shape.
func stridesOf(shape []int) []int {
	strides := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= max(shape[i], 1)
	}
	return strides
}

// stretched is the common shape of two, and whether there is one.
func stretched(a, b []int) (shape []int, ok bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape = slices.Clone(a)
	for i, d := range b {
		at := len(a) - len(b) + i
		switch {
		case a[at] == 1:
			shape[at] = d
		case d != 1 && d != a[at]:
			return nil, false
		}
	}
	return shape, true
}

// placed is where in the tensor the elements of a shape are that it stretches to.
func (t *Tensor[T]) placed(shape []int) place {
	strides := make([]int, len(shape)-len(t.shape), len(shape))
	for i, s := range stridesOf(t.shape) {
		if t.shape[i] == 1 {
			s = 0
		}
		strides = append(strides, s)
	}
	return place{shape, strides, 0}
}

// joined is the place with dimensions put together that lie one in the other.
func (p place) joined() place {
	q := place{offset: p.offset}
	for i, d := range p.shape {
		last := len(q.shape) - 1
		switch {
		case d == 1:
		case last >= 0 && q.strides[last] == p.strides[i]*d:
			q.shape[last] *= d
			q.strides[last] = p.strides[i]
		default:
			q.shape, q.strides = append(q.shape, d), append(q.strides, p.strides[i])
		}
	}
	return q
}

// read is the tensor of the elements at a place.
func (t *Tensor[T]) read(op string, p place) *Tensor[T] {
	q := p.joined()
	all, n := count(t.shape), count(p.shape)
	switch {
	case n == 0:
		return made(op, matrix.Slice(matrix.Reshape(t.e, 1, all), 0, 1, 0, 0), p.shape)
	case len(q.shape) == 0 || len(q.shape) == 1 && q.strides[0] == 1:
		if n == all {
			return &Tensor[T]{e: t.e, shape: p.shape}
		}
		return made(op, matrix.Slice(t.as(1, all), 0, 1, q.offset, q.offset+n), p.shape)
	case len(q.shape) == 2 && n == all && q.strides[0] == 1 && q.strides[1] == q.shape[0]:
		return made(op, matrix.Transpose(t.as(q.shape[1], q.shape[0])), p.shape)
	case len(q.shape) == 2 && q.strides[1] == 1 && q.strides[0] > 0 && all%q.strides[0] == 0 && q.offset%q.strides[0]+q.shape[1] <= q.strides[0]:
		row, col := q.offset/q.strides[0], q.offset%q.strides[0]
		rows := t.as(all/q.strides[0], q.strides[0])
		return made(op, matrix.Slice(rows, row, row+q.shape[0], col, col+q.shape[1]), p.shape)
	}
	return made(op, t.gathered(q, len(q.shape)-1), p.shape)
}

// gathered is a matrix of the elements at a place: the dimensions from k on are its columns.
func (t *Tensor[T]) gathered(p place, k int) *matrix.Expr[T] {
	rows, cols := count(p.shape[:k]), count(p.shape[k:])
	down := steps(matrix.RowIndex(rows, 1), p.shape[:k], p.strides[:k])
	along := steps(matrix.ColIndex(1, cols), p.shape[k:], p.strides[k:])
	at := matrix.Add(down, along)
	if p.offset > 0 {
		at = at.AddScalar(int32(p.offset))
	}
	return matrix.Gather(t.as(1, count(t.shape)), matrix.Fill[int32](1, 1, 0), at)
}

// steps is where numbers that count the elements of some dimensions lead.
func steps(n *matrix.Expr[int32], shape, strides []int) *matrix.Expr[int32] {
	p := place{shape, strides, 0}.joined()
	sum := matrix.Scale(0, n)
	inner := 1
	for i, d := range slices.Backward(p.shape) {
		at := n
		if inner > 1 {
			at = matrix.DivScalar(at, int32(inner))
		}
		if i > 0 {
			at = matrix.Mod(at, matrix.Fill(1, 1, int32(d)))
		}
		if s := p.strides[i]; s != 0 {
			sum = matrix.Add(sum, matrix.Scale(int32(s), at))
		}
		inner *= d
	}
	return sum
}

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// order is what a sort yields.
type order int

// The orders, as programs number them.
const (
	orderSort order = iota
	orderArgSort
	orderTopK
	orderArgTopK
	orderCumSum
	orderCumProd
)

// Ordered is a sort or the like, for programs that decode expressions: [SortRows] is number 0, then come [ArgSortRows], [TopKRows],
// [ArgTopKRows], [CumSumRows] and [CumProdRows]. Only the two of the k largest elements use k.
func Ordered[T Elem](number int, along fuse.Axis, k int, a Operand[T]) *Expr[T] {
	const op = "Ordered"
	if number < 0 || number > int(orderCumProd) || along != fuse.AxisRows && along != fuse.AxisCols {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, "no such order"))}
	}
	if what := order(number); what != orderTopK && what != orderArgTopK {
		k = -1
	}
	return &Expr[T]{sortNode(op, order(number), along, from(op, a), k)}
}

// countIn is the number of elements behind an operand of Eval, -1 if it is none.
func countIn(args []*node) int {
	v := numberIn(args)
	if v != math.Trunc(v) || v < 0 || v > math.MaxInt32 {
		return -1
	}
	return int(v)
}

// sortNode sorts along rows or columns.
func sortNode(op string, what order, axis fuse.Axis, x *node, k int) *node {
	length := x.Cols
	if axis == fuse.AxisCols {
		length = x.Rows
	}
	switch {
	case x.Err != nil:
		return x
	case what >= orderTopK && what <= orderArgTopK && k > length:
		return expr.Failed(fail(op, gpu.ErrInvalid, itoa(k), " of ", itoa(length), " elements of ", x.Shape().String()))
	case axis == fuse.AxisCols:
		return expr.NewTranspose(op, sortNode(op, what, fuse.AxisRows, expr.NewTranspose(op, x), k))
	case what == orderCumSum:
		return expr.NewScan(op, fuse.ReduceSum, x)
	case what == orderCumProd:
		return expr.NewScan(op, fuse.ReduceProd, x)
	case what >= orderTopK && k < 0:
		return expr.Failed(fail(op, gpu.ErrInvalid, "k is no number of elements"))
	}
	return expr.NewSort(op, what >= orderTopK, what == orderArgSort || what == orderArgTopK, k, x)
}

// groups are the elements of a sorted, as a row, and for each of them how many different ones there are up to it.
func (s *shaping) groups() (sorted, number *node) {
	a := s.args[0]
	sorted = expr.NewSort(s.op, false, false, -1, s.flat(a))
	if s.err != nil || sorted.Err != nil {
		return sorted, sorted
	}
	zero := s.n(0)
	_, j := s.at(1, sorted.Cols)
	before := s.gather(sorted, zero, s.plus(j, -1))
	starts := s.apply(fuse.OpNe, before, sorted)
	if sorted.Type.Compute() == fuse.F32 { // NaN differs from NaN
		both := s.apply(fuse.OpAnd, s.apply(fuse.OpIsNaN, before), s.apply(fuse.OpIsNaN, sorted))
		starts = s.apply(fuse.OpAnd, starts, s.apply(fuse.OpNot, both))
	}
	starts = s.apply(fuse.OpOr, expr.NewConversion(s.op, fuse.I32, starts), s.apply(fuse.OpEq, j, zero))
	return sorted, expr.NewScan(s.op, fuse.ReduceSum, starts)
}

func (s *shaping) countUnique() *node {
	_, number := s.groups()
	if number.Err != nil {
		return number
	}
	return s.gather(number, s.n(0), s.n(number.Cols-1))
}

func (s *shaping) unique() *node {
	sorted, number := s.groups()
	return s.gather(sorted, s.n(0), s.groupsFrom(number, 1))
}

func (s *shaping) uniqueCounts() *node {
	_, number := s.groups()
	return s.apply(fuse.OpSub, s.groupsFrom(number, 2), s.groupsFrom(number, 1))
}

// groupsFrom are the places at which groups begin, from one of them on.
func (s *shaping) groupsFrom(number *node, first int) *node {
	k := s.size(0, number.Cols)
	if s.err != nil || number.Err != nil {
		return number
	}
	_, j := s.at(1, k)
	return s.placesIn(number, s.plus(j, first))
}

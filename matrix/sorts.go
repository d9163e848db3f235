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

// countIn is the number of elements behind an operand of Eval, one that there cannot be if it is none.
func countIn(args []*node) int {
	v := numberIn(args)
	if v != math.Trunc(v) || v < 0 || v > math.MaxInt32 {
		return math.MaxInt
	}
	return int(v)
}

// sortNode sorts along rows or columns.
func sortNode(op string, what order, axis fuse.Axis, x *node, k int) *node {
	switch {
	case x.Err != nil:
		return x
	case axis == fuse.AxisCols:
		return expr.NewTranspose(op, sortNode(op, what, fuse.AxisRows, expr.NewTranspose(op, x), k))
	case what == orderCumSum:
		return expr.NewScan(op, fuse.ReduceSum, x)
	case what == orderCumProd:
		return expr.NewScan(op, fuse.ReduceProd, x)
	case what >= orderTopK && k < 0:
		return expr.Failed(fail(op, gpu.ErrInvalid, "a negative k"))
	}
	return expr.NewSort(op, what >= orderTopK, what == orderArgSort || what == orderArgTopK, k, x)
}

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// RowIndex is a rows x cols matrix of the numbers of its rows: element (i, j) is i. It takes no memory: kernels compute it.
func RowIndex(rows, cols int) *Expr[int32] {
	return &Expr[int32]{expr.NewIndex("RowIndex", rows, cols, fuse.AxisRows)}
}

// ColIndex is a rows x cols matrix of the numbers of its columns: element (i, j) is j. It takes no memory: kernels compute it.
func ColIndex(rows, cols int) *Expr[int32] {
	return &Expr[int32]{expr.NewIndex("ColIndex", rows, cols, fuse.AxisCols)}
}

// Gather is the elements of a at the given rows and columns, whose sizes stretch as those of element-wise operations do: element
// (i, j) is a(rows(i, j), cols(i, j)). Where a has no such row or column it is 0. A kernel reads them where it needs them, so
// that rows, columns and what is done with the result may be any expressions; a is evaluated first unless it is a matrix.
func Gather[T Elem](a Operand[T], rows, cols Operand[int32]) *Expr[T] {
	const op = "Gather"
	return &Expr[T]{expr.NewGather(op, from(op, a), from(op, rows), from(op, cols))}
}

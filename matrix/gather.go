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

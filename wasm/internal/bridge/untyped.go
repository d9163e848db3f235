// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"math"

	"github.com/sublet-gpu/sublet/matrix"
)

// Matrices of a page have their element types at run time.
type (
	anyDense  = matrix.Dense[matrix.Any]
	anyExpr   = *matrix.Expr[matrix.Any]
	anySparse = matrix.Sparse[matrix.Any]
	anyArg    = matrix.Operand[matrix.Any]
)

// decoded is the number with the bits: of a float32 for float16.
func decoded(t matrix.DType, bits uint32) matrix.Any {
	switch t {
	case matrix.Int32:
		return matrix.Any(int32(bits))
	case matrix.Uint32:
		return matrix.Any(bits)
	}
	return matrix.Any(math.Float32frombits(bits))
}

// constant is a matrix of one number.
func constant(t matrix.DType, bits uint32, rows, cols int) anyExpr {
	return matrix.Fill(rows, cols, decoded(t, bits)).ConvertTo(t)
}

// inRows reports whether the elements of a matrix lie row by row without gaps.
func inRows(m *anyDense) bool {
	rows, cols := m.Dims()
	if rows == 0 || cols == 0 {
		return true
	}
	if m.ColMajor() {
		return (cols == 1 || m.Stride() == 1) && (rows == 1 || cols == 1)
	}
	return rows == 1 || m.Stride() == cols
}

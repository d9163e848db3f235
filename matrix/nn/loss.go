// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// labelled reads n x classes numbers and as many labels, n x 1 or 1 x n.
func labelled(op string, x Operand, labels Labels) (e *Expr, at *whole, shape fault.Shape, err error) {
	if e, shape, err = read(op, x); err != nil {
		return nil, nil, shape, err
	}
	at, size, err := read(op, labels)
	if err != nil {
		return nil, nil, shape, err
	}
	if size[1] != 1 && size[0] == 1 {
		at, size = at.T(), fault.Shape{size[1], size[0]}
	}
	if size != (fault.Shape{shape[0], 1}) {
		err = shapeError(op, "a row or a column of "+fault.Count(shape[0], "label")+" is needed", shape, size)
	}
	return e, at, shape, err
}

// CrossEntropy is the loss -log softmax(x)(i, label i) of each row: n x 1, of n x classes logits and n labels, from 0 on. The loss of a
// row whose label is not a class, such as -1, is 0.
func CrossEntropy(x Operand, labels Labels) *Expr {
	e, at, shape, err := labelled("CrossEntropy", x, labels)
	if err != nil {
		return failed(err)
	}
	loss := e.LogSumExpRows().Sub(matrix.Gather(e, rowsOf(shape[0]), at))
	return where(below(at, shape[1]), loss)
}

// CrossEntropyGrad is the gradient of the sum of [CrossEntropy] by x: softmax(x) less 1 at each label, n x classes. Scale it by
// 1/n for the mean.
func CrossEntropyGrad(x Operand, labels Labels) *Expr {
	e, at, shape, err := labelled("CrossEntropyGrad", x, labels)
	if err != nil {
		return failed(err)
	}
	hot := matrix.Convert[float32](matrix.Equal(at, colsOf(shape[1])))
	return where(below(at, shape[1]), e.Softmax().Sub(hot))
}

// alike reads two operands of one size.
func alike(op string, a, b Operand) (x, y *Expr, n float32, err error) {
	x, shape, err := read(op, a)
	if err != nil {
		return nil, nil, 0, err
	}
	y, other, err := read(op, b)
	if err == nil && shape != other {
		err = shapeError(op, fitsEqual, shape, other)
	}
	return x, y, float32(max(shape[0]*shape[1], 1)), err
}

// MSE is the mean of (x - target)^2, 1x1, of two operands of one size. It is NaN for operands without elements.
func MSE(x, target Operand) *Expr {
	a, b, _, err := alike("MSE", x, target)
	if err != nil {
		return failed(err)
	}
	return matrix.SquaredDiff(a, b).Mean()
}

// MSEGrad is the gradient of [MSE] by x: 2/n (x - target), of their size, for n elements.
func MSEGrad(x, target Operand) *Expr {
	a, b, n, err := alike("MSEGrad", x, target)
	if err != nil {
		return failed(err)
	}
	return a.Sub(b).Scale(2 / n)
}

// Dropout is x where the mask is not 0, divided by the share that is kept, and 0 elsewhere ("inverted" dropout, after Srivastava and
// others, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014). The mask has the size of x. The gradient by x is
// the same function of the gradient by the result.
func Dropout(x, mask Operand, keep float32) *Expr {
	const op = "Dropout"
	a, m, _, err := alike(op, x, mask)
	switch {
	case err != nil:
		return failed(err)
	case !(keep > 0 && keep <= 1):
		return failed(fail(op, gpu.ErrInvalid, "what is kept is a share above 0 and up to 1"))
	}
	return matrix.CopyIf(m, a.DivScalar(keep))
}

// Embedding selects a row of a table, vocabulary x width, for each of n labels, n x 1 or 1 x n: n x width. For a label beyond the table
// the row is 0.
func Embedding(table Operand, labels Labels) *Expr {
	const op = "Embedding"
	e, _, err := read(op, table)
	if err != nil {
		return failed(err)
	}
	at, _, err := read(op, labels)
	if err != nil {
		return failed(err)
	}
	return matrix.TakeRows(e, at)
}

// EmbeddingGrad is the gradient of a loss by the table of [Embedding], vocabulary x width, given d, the one by its result, n x width,
// and the labels: each row is the sum of those of d whose label it is. Labels that the table does not have contribute nothing.
func EmbeddingGrad(d Operand, labels Labels, vocabulary int) *Expr {
	const op = "EmbeddingGrad"
	e, at, shape, err := labelled(op, d, labels)
	switch {
	case err != nil:
		return failed(err)
	case vocabulary < 0:
		return failed(fail(op, gpu.ErrInvalid, itoa(vocabulary), " rows"))
	case vocabulary > math.MaxInt32:
		return failed(fail(op, gpu.ErrLimit, itoa(vocabulary), " rows"))
	}
	return matrix.AddToRows(matrix.Fill[float32](vocabulary, shape[1], 0), at, e)
}

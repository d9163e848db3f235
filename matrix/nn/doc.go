// SPDX-License-Identifier: Apache-2.0

// Package nn has what neural networks are made of: convolutions, pooling, batch normalisation, losses, embeddings, optimisers and
// quantisation, in float32. It has no kernels of its own: it builds expressions of package matrix, which fuse with other operations as
// usual.
//
//	err := y.Assign(conv.Forward(x, weights, bias).Relu()) // queued
//	dx := matrix.ReluGrad(dy, y)                           // an expression
//	err = adam.Step(weights, conv.KernelGrad(dx, x))
//
// # Shapes
//
// A sample is a row. The columns of a row of images are channels x height x width in that order, as in NCHW: element (c, h, w) is in
// column (c*height + h)*width + w. A batch may be empty.
//
// # Errors
//
// An expression that could not be built carries its error, as in package matrix. Sizes that do not fit are [buffer.ErrShape], invalid
// settings [gpu.ErrInvalid], sizes beyond int32 [gpu.ErrLimit].
//
// # Gradients
//
// Gradients are sums in a fixed order, without atomic additions. So results are the same from run to run on one device.
package nn

import (
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Short names of the types that most functions use.
type (
	// Expr is an expression of float32.
	Expr = matrix.Expr[float32]
	// Dense is a matrix of float32.
	Dense = matrix.Dense[float32]
	// Operand is a *[Dense], a *[matrix.Sparse] or an *[Expr].
	Operand = matrix.Operand[float32]
	// Labels is a matrix or an expression of int32.
	Labels = matrix.Operand[int32]

	whole = matrix.Expr[int32]
)

func fail(op string, err error, detail ...string) error { return fault.Fail("nn: "+op, err, detail...) }

// shapeError says what would fit.
func shapeError(op, fits string, shapes ...fault.Shape) error {
	return &gpu.OpError{Op: "nn: " + op, Shapes: shapes, Detail: fits, Err: buffer.ErrShape}
}

// Texts of errors that several calls share.
const (
	fitsEqual = "sizes have to be equal"
	fitsRows  = "as many rows are needed"
)

// fitsSize is what an operand of a known size needs.
func fitsSize(rows, cols int) string { return fault.Shape{rows, cols}.String() + " is needed" }

func failed(err error) *Expr { return matrix.Failed[float32](err) }

// read returns an operand as an expression, with its error and its size.
func read[T matrix.Elem](op string, x matrix.Operand[T]) (e *matrix.Expr[T], size fault.Shape, err error) {
	switch x := x.(type) {
	case *matrix.Dense[T]:
		e = x.Expr()
	case *matrix.Expr[T]:
		e = x
	default:
		return nil, size, fail(op, buffer.ErrNil, "nil operand")
	}
	if err := e.Err(); err != nil {
		return nil, size, err
	}
	rows, cols := e.Dims()
	return e, fault.Shape{rows, cols}, nil
}

// counts checks that int32 can count the product of sizes, none of them negative.
func counts(op string, sizes ...int) error {
	n := 1
	for _, s := range sizes {
		if s > 0 && n > math.MaxInt32/s {
			return fail(op, gpu.ErrLimit, "more elements than int32 counts")
		}
		n *= s
	}
	return nil
}

// The following functions compute with the numbers of rows and columns. Callers have checked that the results fit into int32.

func number(v int) *whole { return matrix.Fill(1, 1, int32(v)) }

func plus(x *whole, v int) *whole {
	if v == 0 {
		return x
	}
	return x.Add(number(v))
}

func times(x *whole, v int) *whole {
	if v == 1 {
		return x
	}
	return x.MulElem(number(v))
}

func over(x *whole, v int) *whole {
	if v == 1 {
		return x
	}
	return x.DivElem(number(v))
}

func rest(x *whole, v int) *whole { return x.Mod(number(v)) }

// below reports whether 0 <= x < n.
func below(x *whole, n int) *whole {
	return matrix.Convert[int32](matrix.Convert[uint32](x).Less(matrix.Fill(1, 1, uint32(n))))
}

func rowsOf(n int) *whole { return matrix.RowIndex(n, 1) }
func colsOf(n int) *whole { return matrix.ColIndex(1, n) }

// where is a where cond is not 0, and 0 elsewhere.
func where(cond *whole, a Operand) *Expr { return matrix.CopyIf(matrix.Convert[float32](cond), a) }

func itoa(n int) string { return strconv.Itoa(n) }

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Element-wise operations stretch dimensions of 1 to fit, as NumPy does: a matrix plus a row, a column or a 1x1 matrix.
// Comparisons yield 1 and 0 in the operands' type. Functions of real numbers (Exp, Log, Sqrt, Tanh, ...) need float32 or
// Half elements; on integers they are [gpu.ErrUnsupported].

// ternary builds an element-wise operation of three operands.
func ternary[T Elem](name string, op fuse.Op, a, b, c Operand[T]) *Expr[T] {
	return &Expr[T]{mapNode(name, op, from(name, a), from(name, b), from(name, c))}
}

// scalarFirst builds an element-wise operation of a number and an operand.
func scalarFirst[T Elem](name string, op fuse.Op, s T, a Operand[T]) *Expr[T] {
	return &Expr[T]{mapNode(name, op, scalarNode(s), from(name, a))}
}

// limits builds an element-wise operation of an operand and two numbers.
func limits[T Elem](name string, op fuse.Op, a Operand[T], lo, hi T) *Expr[T] {
	return &Expr[T]{mapNode(name, op, from(name, a), scalarNode(lo), scalarNode(hi))}
}

func matrixProduct[T Elem](a, b Operand[T]) *Expr[T] {
	return &Expr[T]{productNode("Mul", from("Mul", a), from("Mul", b))}
}

func transposed[T Elem](a Operand[T]) *Expr[T] {
	return &Expr[T]{transpose("Transpose", from("Transpose", a))}
}

// powScalar spells out the powers that need no logarithm.
func powScalar[T Elem](a Operand[T], s T) *Expr[T] {
	const op = "PowScalar"
	x := from(op, a)
	if x.Err != nil || !fuse.OpPow.Takes(x.Type) {
		return &Expr[T]{mapNode(op, fuse.OpPow, x, scalarNode(s))}
	}
	switch math.Float32frombits(scalarBits(s)) {
	case 0.5:
		return &Expr[T]{mapNode(op, fuse.OpSqrt, x)}
	case 1:
		return &Expr[T]{x}
	case 2:
		return &Expr[T]{mapNode(op, fuse.OpSquare, x)}
	case 3:
		return &Expr[T]{mapNode(op, fuse.OpMul, mapNode(op, fuse.OpSquare, x), x)}
	case -1:
		return &Expr[T]{mapNode(op, fuse.OpRecip, x)}
	}
	return &Expr[T]{mapNode(op, fuse.OpPow, x, scalarNode(s))}
}

// Fill is a rows x cols matrix of one value.
func Fill[T Elem](rows, cols int, v T) *Expr[T] {
	if err := expr.CheckVirtual("Fill", rows, cols); err != nil {
		return &Expr[T]{errorNode(err)}
	}
	n := scalarNode(v)
	n.Rows, n.Cols = rows, cols
	return &Expr[T]{n}
}

// Convert is a with another element type, as a conversion in Go does it; floats beyond an integer type's range saturate.
func Convert[T, F Elem](a Operand[F]) *Expr[T] {
	const op = "Convert"
	x := from(op, a)
	if x.Err != nil {
		return &Expr[T]{x}
	}
	t := typeOf[T]()
	if isAny[T]() {
		t = x.Typed(fuse.F32).Type // it stays what it is
	}
	return &Expr[T]{expr.NewConversion(op, t, x)}
}

func reduced[T Elem](op string, r fuse.Reduction, ax fuse.Axis, a Operand[T]) *Expr[T] {
	return &Expr[T]{reduceNode(op, r, ax, from(op, a))}
}

// mean is a sum, divided by how many elements went into each of its results.
func mean[T Elem](op string, ax fuse.Axis, a Operand[T]) *Expr[T] {
	x := from(op, a)
	s := reduceNode(op, fuse.ReduceSum, ax, x)
	switch {
	case s.Err != nil:
		return &Expr[T]{s}
	case s.Type.Compute() != fuse.F32:
		return &Expr[T]{errorNode(fail(op, gpu.ErrUnsupported, "not defined for ", DType(s.Type).String()))}
	}
	count := float32(x.Rows*x.Cols) / float32(s.Rows*s.Cols) // NaN where there are no results
	return &Expr[T]{mapNode(op, fuse.OpMul, s, expr.Number(s.Type, 1, 1, math.Float32bits(1/count)))}
}

func softmaxOf[T Elem](op string, a Operand[T], log bool) *Expr[T] {
	return &Expr[T]{expr.NewSoftmax(op, log, from(op, a))}
}

// Value runs an expression of size 1x1 and returns its value.
func (e *Expr[T]) Value(ctx context.Context) (T, error) {
	var z T
	n := e.expr("Value")
	if n.Err != nil {
		return z, n.Err
	}
	if n.Rows != 1 || n.Cols != 1 {
		return z, shapeError("Value", n.Shape())
	}
	v, err := e.Read(ctx)
	if err != nil {
		return z, err
	}
	return v[0], nil
}

// Read runs the expression and returns the result row by row.
func (e *Expr[T]) Read(ctx context.Context) ([]T, error) {
	m, err := e.Eval()
	if err != nil {
		return nil, err
	}
	v, err := m.Read(ctx)
	if cerr := m.Close(); err == nil {
		err = cerr
	}
	return v, err
}

// Eval queues the expression and returns the result as a new owned matrix.
func (e *Expr[T]) Eval() (*Dense[T], error) {
	m := &Dense[T]{}
	if err := m.Assign(e); err != nil {
		return nil, err
	}
	return m, nil
}

// scalarBits returns the bits of the number in the type that is computed in.
func scalarBits[T Elem](v T) uint32 {
	switch v := any(v).(type) {
	case float32:
		return math.Float32bits(v)
	case Half:
		return math.Float32bits(v.Float32())
	case int32:
		return uint32(v)
	case uint32:
		return v
	case Any:
		return math.Float32bits(float32(v))
	}
	return 0
}

// On ties an expression without matrices, such as a Fill, to a device.
func (e *Expr[T]) On(dev *gpu.Device) *Expr[T] {
	n := *e.expr("On")
	switch {
	case n.Err != nil:
	case dev == nil:
		n.Err = fail("On", gpu.ErrInvalid, "nil device")
	case n.Dev != nil && n.Dev != dev:
		n.Err = fail("On", gpu.ErrForeign, "the expression is on another device")
	default:
		n.Dev = dev
	}
	return &Expr[T]{&n}
}

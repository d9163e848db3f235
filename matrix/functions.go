// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Element-wise operations stretch dimensions of 1 to fit, as NumPy does: a matrix plus a row, a column or a 1x1 matrix.
// Comparisons yield 1 and 0 in the operands' type. Functions of real numbers (Exp, Log, Sqrt, Tanh, ...) need float32 or
// Half elements; on integers they are [ErrUnsupported].

// Mul is the matrix product. An element-wise tail of the expression it stands in is computed in the same kernel.
func Mul[T Elem](a, b Operand[T]) *Expr[T] {
	return &Expr[T]{productNode("Mul", from("Mul", a), from("Mul", b))}
}

// Add is a + b.
func Add[T Elem](a, b Operand[T]) *Expr[T] { return binary("Add", fuse.OpAdd, a, b) }

// Sub is a - b.
func Sub[T Elem](a, b Operand[T]) *Expr[T] { return binary("Sub", fuse.OpSub, a, b) }

// MulElem is the element-wise product.
func MulElem[T Elem](a, b Operand[T]) *Expr[T] { return binary("MulElem", fuse.OpMul, a, b) }

// DivElem is the element-wise quotient. Integers divided by zero yield the dividend.
func DivElem[T Elem](a, b Operand[T]) *Expr[T] { return binary("DivElem", fuse.OpDiv, a, b) }

// Min is the element-wise minimum; NaN wins.
func Min[T Elem](a, b Operand[T]) *Expr[T] { return binary("Min", fuse.OpMin, a, b) }

// Max is the element-wise maximum; NaN wins.
func Max[T Elem](a, b Operand[T]) *Expr[T] { return binary("Max", fuse.OpMax, a, b) }

// Pow is a to the power b, element by element. A negative base with a whole exponent is real.
func Pow[T Elem](a, b Operand[T]) *Expr[T] { return binary("Pow", fuse.OpPow, a, b) }

// Equal is a == b.
func Equal[T Elem](a, b Operand[T]) *Expr[T] { return binary("Equal", fuse.OpEq, a, b) }

// NotEqual is a != b.
func NotEqual[T Elem](a, b Operand[T]) *Expr[T] { return binary("NotEqual", fuse.OpNe, a, b) }

// Less is a < b.
func Less[T Elem](a, b Operand[T]) *Expr[T] { return binary("Less", fuse.OpLt, a, b) }

// LessEqual is a <= b.
func LessEqual[T Elem](a, b Operand[T]) *Expr[T] { return binary("LessEqual", fuse.OpLe, a, b) }

// Greater is a > b.
func Greater[T Elem](a, b Operand[T]) *Expr[T] { return binary("Greater", fuse.OpGt, a, b) }

// GreaterEqual is a >= b.
func GreaterEqual[T Elem](a, b Operand[T]) *Expr[T] { return binary("GreaterEqual", fuse.OpGe, a, b) }

// And is 1 where both are not 0.
func And[T Elem](a, b Operand[T]) *Expr[T] { return binary("And", fuse.OpAnd, a, b) }

// Or is 1 where one is not 0.
func Or[T Elem](a, b Operand[T]) *Expr[T] { return binary("Or", fuse.OpOr, a, b) }

// Not is 1 where a is 0.
func Not[T Elem](a Operand[T]) *Expr[T] { return unary("Not", fuse.OpNot, a) }

// Where takes a where cond is not 0, and b elsewhere.
func Where[T Elem](cond, a, b Operand[T]) *Expr[T] {
	const op = "Where"
	return &Expr[T]{mapNode(op, fuse.OpWhere, from(op, cond), from(op, a), from(op, b))}
}

// Neg is -a.
func Neg[T Elem](a Operand[T]) *Expr[T] { return unary("Neg", fuse.OpNeg, a) }

// Abs is the absolute value.
func Abs[T Elem](a Operand[T]) *Expr[T] { return unary("Abs", fuse.OpAbs, a) }

// Sign is -1, 0 or 1.
func Sign[T Elem](a Operand[T]) *Expr[T] { return unary("Sign", fuse.OpSign, a) }

// Floor rounds down.
func Floor[T Elem](a Operand[T]) *Expr[T] { return unary("Floor", fuse.OpFloor, a) }

// Ceil rounds up.
func Ceil[T Elem](a Operand[T]) *Expr[T] { return unary("Ceil", fuse.OpCeil, a) }

// Round rounds to the nearest whole number, halves to even.
func Round[T Elem](a Operand[T]) *Expr[T] { return unary("Round", fuse.OpRound, a) }

// Trunc rounds towards zero.
func Trunc[T Elem](a Operand[T]) *Expr[T] { return unary("Trunc", fuse.OpTrunc, a) }

// Square is a * a, element by element.
func Square[T Elem](a Operand[T]) *Expr[T] { return unary("Square", fuse.OpSquare, a) }

// Sqrt is the square root.
func Sqrt[T Elem](a Operand[T]) *Expr[T] { return unary("Sqrt", fuse.OpSqrt, a) }

// Exp is e to the power a.
func Exp[T Elem](a Operand[T]) *Expr[T] { return unary("Exp", fuse.OpExp, a) }

// Log is the natural logarithm.
func Log[T Elem](a Operand[T]) *Expr[T] { return unary("Log", fuse.OpLog, a) }

// Sin is the sine.
func Sin[T Elem](a Operand[T]) *Expr[T] { return unary("Sin", fuse.OpSin, a) }

// Cos is the cosine.
func Cos[T Elem](a Operand[T]) *Expr[T] { return unary("Cos", fuse.OpCos, a) }

// Tanh is the hyperbolic tangent.
func Tanh[T Elem](a Operand[T]) *Expr[T] { return unary("Tanh", fuse.OpTanh, a) }

// Sigmoid is 1 / (1 + exp(-a)).
func Sigmoid[T Elem](a Operand[T]) *Expr[T] { return unary("Sigmoid", fuse.OpSigmoid, a) }

// Relu is a where it is positive and 0 elsewhere.
func Relu[T Elem](a Operand[T]) *Expr[T] { return unary("Relu", fuse.OpRelu, a) }

// Recip is 1 / a.
func Recip[T Elem](a Operand[T]) *Expr[T] { return unary("Recip", fuse.OpRecip, a) }

// Scale is s * a.
func Scale[T Elem](s T, a Operand[T]) *Expr[T] { return scalarOp("Scale", fuse.OpMul, a, s) }

// AddScalar is a + s.
func AddScalar[T Elem](a Operand[T], s T) *Expr[T] { return scalarOp("AddScalar", fuse.OpAdd, a, s) }

// MinScalar is the smaller of each element and s.
func MinScalar[T Elem](a Operand[T], s T) *Expr[T] { return scalarOp("MinScalar", fuse.OpMin, a, s) }

// MaxScalar is the larger of each element and s.
func MaxScalar[T Elem](a Operand[T], s T) *Expr[T] { return scalarOp("MaxScalar", fuse.OpMax, a, s) }

// DivScalar is a / s.
func DivScalar[T Elem](a Operand[T], s T) *Expr[T] { return scalarOp("DivScalar", fuse.OpDiv, a, s) }

// ScalarSub is s - a.
func ScalarSub[T Elem](s T, a Operand[T]) *Expr[T] {
	return &Expr[T]{mapNode("ScalarSub", fuse.OpSub, scalarNode(s), from("ScalarSub", a))}
}

// ScalarDiv is s / a.
func ScalarDiv[T Elem](s T, a Operand[T]) *Expr[T] {
	return &Expr[T]{mapNode("ScalarDiv", fuse.OpDiv, scalarNode(s), from("ScalarDiv", a))}
}

// Clamp limits a to lo..hi.
func Clamp[T Elem](a Operand[T], lo, hi T) *Expr[T] {
	return &Expr[T]{mapNode("Clamp", fuse.OpClamp, from("Clamp", a), scalarNode(lo), scalarNode(hi))}
}

// PowScalar is a to the power s. Small whole and half powers are computed without logarithms.
func PowScalar[T Elem](a Operand[T], s T) *Expr[T] {
	const op = "PowScalar"
	x := from(op, a)
	if x.err != nil || !fuse.OpPow.Takes(x.t) {
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
	if err := checkVirtual("Fill", rows, cols); err != nil {
		return &Expr[T]{errorNode(err)}
	}
	n := scalarNode(v)
	n.rows, n.cols = rows, cols
	return &Expr[T]{n}
}

// Transpose is the transpose.
func Transpose[T Elem](a Operand[T]) *Expr[T] {
	return &Expr[T]{transpose("Transpose", from("Transpose", a))}
}

// Convert is a with another element type, as a conversion in Go does it; floats beyond an integer type's range saturate.
func Convert[T, F Elem](a Operand[F]) *Expr[T] {
	const op = "Convert"
	x := from(op, a)
	if x.err != nil {
		return &Expr[T]{x}
	}
	n := join(op, x)
	n.kind, n.op, n.t = kindMap, fuse.OpAcc, typeOf[T]() // OpAcc in a tree is the identity
	return &Expr[T]{n.broadcast(op)}
}

// reduction names what a reduction computes.
type reduction uint8

const (
	reduceSum reduction = iota
	reduceMax
	reduceMin
	reduceProd
)

func reduced[T Elem](op string, r reduction, ax axis, a Operand[T]) *Expr[T] {
	return &Expr[T]{reduceNode(op, r, ax, from(op, a))}
}

// Sum is the sum of all elements, a 1x1 matrix. An element-wise head is computed in the same kernel. Of nothing it is 0.
func Sum[T Elem](a Operand[T]) *Expr[T] { return reduced("Sum", reduceSum, axisAll, a) }

// SumRows is the sum of each row, a column.
func SumRows[T Elem](a Operand[T]) *Expr[T] { return reduced("SumRows", reduceSum, axisRows, a) }

// SumCols is the sum of each column, a row.
func SumCols[T Elem](a Operand[T]) *Expr[T] { return reduced("SumCols", reduceSum, axisCols, a) }

// MaxAll is the largest element, a 1x1 matrix. NaN wins. Of nothing it is -Inf or the type's smallest value.
func MaxAll[T Elem](a Operand[T]) *Expr[T] { return reduced("MaxAll", reduceMax, axisAll, a) }

// MaxRows is the largest element of each row, a column.
func MaxRows[T Elem](a Operand[T]) *Expr[T] { return reduced("MaxRows", reduceMax, axisRows, a) }

// MaxCols is the largest element of each column, a row.
func MaxCols[T Elem](a Operand[T]) *Expr[T] { return reduced("MaxCols", reduceMax, axisCols, a) }

// MinAll is the smallest element, a 1x1 matrix. NaN wins. Of nothing it is +Inf or the type's largest value.
func MinAll[T Elem](a Operand[T]) *Expr[T] { return reduced("MinAll", reduceMin, axisAll, a) }

// MinRows is the smallest element of each row, a column.
func MinRows[T Elem](a Operand[T]) *Expr[T] { return reduced("MinRows", reduceMin, axisRows, a) }

// MinCols is the smallest element of each column, a row.
func MinCols[T Elem](a Operand[T]) *Expr[T] { return reduced("MinCols", reduceMin, axisCols, a) }

// Prod is the product of all elements, a 1x1 matrix. Of nothing it is 1.
func Prod[T Elem](a Operand[T]) *Expr[T] { return reduced("Prod", reduceProd, axisAll, a) }

// Mean is the mean of all elements, a 1x1 matrix; NaN of nothing.
func Mean[T Elem](a Operand[T]) *Expr[T] {
	const op = "Mean"
	x := from(op, a)
	s := reduceNode(op, reduceSum, axisAll, x)
	switch {
	case s.err != nil:
		return &Expr[T]{s}
	case s.t.Compute() != fuse.F32:
		return &Expr[T]{errorNode(fail(op, ErrUnsupported, "not defined for ", DType(s.t).String()))}
	}
	return &Expr[T]{mapNode(op, fuse.OpMul, s, &node{
		kind: kindScalar, t: s.t, rows: 1, cols: 1,
		bits: math.Float32bits(1 / float32(x.rows*x.cols)),
	})}
}

// Softmax is exp(a) divided by its sum, row by row, computed without overflow.
func Softmax[T Elem](a Operand[T]) *Expr[T] { return softmaxOf("Softmax", a, false) }

// LogSoftmax is the logarithm of Softmax.
func LogSoftmax[T Elem](a Operand[T]) *Expr[T] { return softmaxOf("LogSoftmax", a, true) }

func softmaxOf[T Elem](op string, a Operand[T], log bool) *Expr[T] {
	n := join(op, from(op, a))
	if n.err != nil {
		return &Expr[T]{n}
	}
	if !fuse.OpExp.Takes(n.t) {
		return &Expr[T]{errorNode(fail(op, ErrUnsupported, "not defined for ", DType(n.t).String()))}
	}
	n.kind, n.log, n.rows, n.cols = kindSoftmax, log, n.args[0].rows, n.args[0].cols
	return &Expr[T]{n}
}

// Value runs an expression of size 1x1 and returns its value.
func (e *Expr[T]) Value(ctx context.Context) (T, error) {
	var z T
	n := e.expr("Value")
	if n.err != nil {
		return z, n.err
	}
	if n.rows != 1 || n.cols != 1 {
		return z, shapeError("Value", n.shape())
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
	}
	return 0
}

// On ties an expression without matrices, such as a Fill, to a device.
func (e *Expr[T]) On(dev *gpu.Device) *Expr[T] {
	n := *e.expr("On")
	switch {
	case n.err != nil:
	case dev == nil:
		n.err = fail("On", ErrInvalid, "nil device")
	case n.dev != nil && n.dev != dev:
		n.err = fail("On", ErrForeign, "the expression is on another device")
	default:
		n.dev = dev
	}
	return &Expr[T]{&n}
}

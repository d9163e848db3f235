// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Expr is a computation that has not run yet. Building one checks shapes and costs next to nothing; [Dense.Assign] runs
// it. An expression that could not be built carries its first error and reports it when it is assigned; [Expr.Err] tells
// earlier. An Expr may be used several times.
//
// Element-wise operations stretch dimensions of 1 to fit, as NumPy does: a matrix plus a row, a column or a 1x1 matrix.
// Comparisons yield 1 and 0 in the operands' type. Functions of real numbers (Exp, Log, Sqrt, Tanh, ...) need float32 or
// Half elements; on integers they are [gpu.ErrUnsupported].
type Expr[T Elem] struct{ n *node }

// Operand is what can stand in an expression: a *[Dense] or an *[Expr].
type Operand[T Elem] interface {
	expr(op string) *node
	operand() T // ties the operand to its element type; never called
}

// node is an operation of an expression.
type node = expr.Node

func (m *Dense[T]) operand() (t T) { return t }

func (m *Dense[T]) expr(op string) *node { return m.core().operand(op) }

// Expr returns the matrix as an expression.
func (m *Dense[T]) Expr() *Expr[T] { return &Expr[T]{m.expr("Expr")} }

func (e *Expr[T]) operand() (t T) { return t }

func (e *Expr[T]) expr(op string) *node {
	if e == nil || e.n == nil {
		return expr.Failed(fail(op, buffer.ErrNil, "nil expression"))
	}
	return e.n
}

// from reads an operand; a nil one is an error.
func from[T Elem](op string, x Operand[T]) *node {
	if x == nil {
		return expr.Failed(fail(op, buffer.ErrNil, "nil operand"))
	}
	return x.expr(op)
}

// nodes reads operands.
func nodes[T Elem](op string, args []Operand[T]) []*node {
	out := make([]*node, len(args))
	for i, a := range args {
		out[i] = from(op, a)
	}
	return out
}

// Err returns the error the expression was built with, or nil.
func (e *Expr[T]) Err() error { return e.expr("Err").Err }

// Dims returns the size of the result.
func (e *Expr[T]) Dims() (rows, cols int) {
	n := e.expr("Dims")
	return n.Rows, n.Cols
}

// DType returns the element type of the result.
func (e *Expr[T]) DType() DType { return e.expr("DType").Typed(fuse.F32).Type }

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

// Eval queues the expression and returns the result as a new owned matrix.
func (e *Expr[T]) Eval() (*Dense[T], error) {
	m := &Dense[T]{}
	if err := m.Assign(e); err != nil {
		return nil, err
	}
	return m, nil
}

// Read runs the expression and returns the result row by row.
func (e *Expr[T]) Read(ctx context.Context) ([]T, error) {
	m, err := e.Eval()
	if err != nil {
		return nil, err
	}
	v, err := m.Read(ctx)
	return v, firstError(err, m.Close())
}

// Value runs an expression of size 1x1 and returns its value.
func (e *Expr[T]) Value(ctx context.Context) (v T, err error) {
	if n := e.expr("Value"); n.Err == nil && (n.Rows != 1 || n.Cols != 1) {
		return v, expr.ShapeError("Value", n.Shape())
	}
	all, err := e.Read(ctx)
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// Matrix returns the matrix that the expression is, or a view of it where that is a transpose, and nil if it is to be computed.
// Such a view does not keep the memory alive, and neither do views of that.
func (e *Expr[T]) Matrix() *Dense[T] {
	n, transposed := expr.Resolve(e.expr("Matrix"), false)
	if n.Err != nil || n.Kind != expr.Leaf {
		return nil
	}
	m := n.Source.(*core)
	if !transposed {
		return (*Dense[T])(unsafe.Pointer(m)) // all that a Dense has
	}
	return &Dense[T]{m.lentView("T", func(l expr.Layout) (expr.Layout, error) { return l.T(), nil })}
}

// numberNode is a number in the type that is computed in: rounded as an element is, but of type Any not yet.
func numberNode(t fuse.Type, v float64) *node {
	n := &node{Kind: expr.Scalar, Type: expr.Untyped, Rows: 1, Cols: 1, Value: v}
	switch t {
	case expr.Untyped:
		return n
	case fuse.F16:
		n.Value = expr.Loaded(t, expr.Stored(t, v))
	}
	return n.Typed(t)
}

func scalar[T Elem](v T) *node { return numberNode(typeOf[T](), float(v)) }

// Elementwise applies an operation of the table that a kernel can be made of: what programs that decode expressions use.
// Operands must agree in their types, [gpu.ErrInvalid] otherwise.
func Elementwise[T Elem](op fuse.Op, args ...Operand[T]) *Expr[T] {
	name := op.String()
	if op <= fuse.OpCall || op.Arity() != len(args) {
		return &Expr[T]{expr.Failed(fail(name, gpu.ErrInvalid, itoa(len(args)), " operands"))}
	}
	return &Expr[T]{expr.NewMap(name, op, nodes(name, args)...)}
}

// Reduce is a sum or the like, for programs that decode expressions.
func Reduce[T Elem](what fuse.Reduction, along fuse.Axis, a Operand[T]) *Expr[T] {
	const op = "Reduce"
	if what > fuse.ReduceProd || along > fuse.AxisCols {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, "no such reduction"))}
	}
	return &Expr[T]{expr.NewReduction(op, what, along, from(op, a))}
}

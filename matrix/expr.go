// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Expr is a computation that has not run yet. Building one checks shapes and costs next to nothing; [Dense.Assign] runs
// it. An expression that could not be built carries its first error and reports it when it is assigned; [Expr.Err] tells
// earlier. An Expr may be used several times.
type Expr[T Elem] struct{ n *node }

// Operand is what can stand in an expression: a *[Dense] or an *[Expr].
type Operand[T Elem] interface {
	expr(op string) *node
	operand() T // ties the operand to its element type; never called
}

// node is an operation of an expression.
type node = expr.Node

const (
	reduceSum  = fuse.ReduceSum
	reduceMax  = fuse.ReduceMax
	reduceMin  = fuse.ReduceMin
	reduceProd = fuse.ReduceProd

	axisAll  = fuse.AxisAll
	axisRows = fuse.AxisRows
	axisCols = fuse.AxisCols
)

func (m *Dense[T]) operand() (t T) { return t }

func (m *Dense[T]) expr(op string) *node {
	c := m.core()
	if err := c.usable(op); err != nil {
		return errorNode(err)
	}
	if c.view && c.share != nil {
		c.share.lend()
	}
	return c.node()
}

// Expr returns the matrix as an expression.
func (m *Dense[T]) Expr() *Expr[T] { return &Expr[T]{m.expr("Expr")} }

func (e *Expr[T]) operand() (t T) { return t }

func (e *Expr[T]) expr(op string) *node {
	if e == nil || e.n == nil {
		return errorNode(fail(op, ErrNil, "nil expression"))
	}
	return e.n
}

// Err returns the error the expression was built with, or nil.
func (e *Expr[T]) Err() error { return e.expr("Err").Err }

// Dims returns the size of the result.
func (e *Expr[T]) Dims() (rows, cols int) {
	n := e.expr("Dims")
	return n.Rows, n.Cols
}

// from reads an operand; a nil one is an error.
func from[T Elem](op string, x Operand[T]) *node {
	if x == nil {
		return errorNode(fail(op, ErrNil, "nil operand"))
	}
	return x.expr(op)
}

func errorNode(err error) *node { return expr.Failed(err) }

func mapNode(name string, op fuse.Op, args ...*node) *node { return expr.NewMap(name, op, args...) }

func productNode(op string, a, b *node) *node { return expr.NewProduct(op, a, b) }

func transpose(op string, a *node) *node { return expr.NewTranspose(op, a) }

func reduceNode(op string, red fuse.Reduction, ax fuse.Axis, a *node) *node {
	return expr.NewReduction(op, red, ax, a)
}

func unary[T Elem](name string, op fuse.Op, a Operand[T]) *Expr[T] {
	return &Expr[T]{mapNode(name, op, from(name, a))}
}

func binary[T Elem](name string, op fuse.Op, a, b Operand[T]) *Expr[T] {
	return &Expr[T]{mapNode(name, op, from(name, a), from(name, b))}
}

func scalarOp[T Elem](name string, op fuse.Op, a Operand[T], s T) *Expr[T] {
	return &Expr[T]{mapNode(name, op, from(name, a), scalarNode(s))}
}

// scalarNode holds a number in the type that is computed in.
func scalarNode[T Elem](s T) *node {
	if v, ok := any(s).(Any); ok {
		return &node{Kind: expr.Scalar, Type: expr.Untyped, Rows: 1, Cols: 1, Value: float64(v)}
	}
	return expr.Number(typeOf[T](), 1, 1, scalarBits(s))
}

// DType returns the element type of the result.
func (e *Expr[T]) DType() DType { return DType(e.expr("DType").Typed(fuse.F32).Type) }

// ConvertTo converts to an element type chosen at run time. Of an expression of another type than [Any] it can only be what
// that is: [gpu.ErrInvalid]; see [Convert].
func (e *Expr[T]) ConvertTo(t DType) *Expr[T] {
	const op = "ConvertTo"
	n := e.expr(op)
	switch {
	case n.Err != nil:
		return e
	case t > Float16 || !isAny[T]() && t != DType(n.Type):
		return &Expr[T]{errorNode(fail(op, gpu.ErrInvalid, "to ", t.String()))}
	}
	return &Expr[T]{expr.NewConversion(op, fuse.Type(t), n)}
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

// Elementwise applies an operation of the table that a kernel can be made of: what programs that decode expressions use.
// Operands must agree in their types, [gpu.ErrInvalid] otherwise.
func Elementwise[T Elem](op fuse.Op, args ...Operand[T]) *Expr[T] {
	name := op.String()
	if op <= fuse.OpCall || op.Arity() != len(args) {
		return &Expr[T]{errorNode(fail(name, gpu.ErrInvalid, itoa(len(args)), " operands"))}
	}
	return &Expr[T]{mapNode(name, op, nodes(name, args)...)}
}

// nodes reads operands.
func nodes[T Elem](op string, args []Operand[T]) []*node {
	out := make([]*node, len(args))
	for i, a := range args {
		out[i] = from(op, a)
	}
	return out
}

// Reduce is a sum or the like, for programs that decode expressions.
func Reduce[T Elem](what fuse.Reduction, along fuse.Axis, a Operand[T]) *Expr[T] {
	const op = "Reduce"
	if what > fuse.ReduceProd || along > fuse.AxisCols {
		return &Expr[T]{errorNode(fail(op, gpu.ErrInvalid, "no such reduction"))}
	}
	return reduced(op, what, along, a)
}

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
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

// kind tells what a node is.
type kind uint8

const (
	kindLeaf    kind = iota // a matrix
	kindScalar              // a number
	kindMap                 // an element-wise operation on args
	kindCall                // a function of the user's on args
	kindT                   // the transpose of args[0]
	kindProduct             // args[0] times args[1]
	kindReduce              // args[0] reduced along axis
	kindSoftmax             // args[0] normalised along its rows
)

// axis tells what a reduction leaves.
type axis uint8

const (
	axisAll  axis = iota // 1 x 1
	axisRows             // one value per row: rows x 1
	axisCols             // one value per column: 1 x cols
)

// node is an operation of an expression. Nodes do not change once built and may be shared.
type node struct {
	kind       kind
	op         fuse.Op // kindMap
	red        reduction
	axis       axis
	log        bool // kindSoftmax
	t          fuse.Type
	rows, cols int
	dev        *gpu.Device
	args       []*node
	argv       [3]*node // backs args of most nodes
	leaf       *Any
	bits       uint32 // kindScalar
	call       *Func
	large      bool // operands have to be used in blocks
	weight     int  // nodes below, shared ones counted each time, up to a million
	err        error
}

func (n *node) shape() gpu.Shape { return gpu.Shape{n.rows, n.cols} }

func errorNode(err error) *node { return &node{err: err} }

func (m *Dense[T]) operand() (t T) { return t }

func (m *Dense[T]) expr(op string) *node {
	if err := m.Any().usable(op); err != nil {
		return errorNode(err)
	}
	return m.a.node()
}

// node is the matrix as an operand.
func (m *Any) node() *node {
	return &node{kind: kindLeaf, t: m.t, rows: m.rows, cols: m.cols, dev: m.dev, leaf: m, large: m.large()}
}

func (e *Expr[T]) operand() (t T) { return t }

func (e *Expr[T]) expr(op string) *node {
	if e == nil || e.n == nil {
		return errorNode(fail(op, ErrNil, "nil expression"))
	}
	return e.n
}

// Err returns the error the expression was built with, or nil.
func (e *Expr[T]) Err() error { return e.expr("Err").err }

// Dims returns the size of the result.
func (e *Expr[T]) Dims() (rows, cols int) {
	n := e.expr("Dims")
	return n.rows, n.cols
}

// from reads an operand; a nil one is an error.
func from[T Elem](op string, x Operand[T]) *node {
	if x == nil {
		return errorNode(fail(op, ErrNil, "nil operand"))
	}
	return x.expr(op)
}

// join starts a node of several operands: the first error wins and the devices must agree.
func join(op string, args ...*node) *node {
	n := &node{}
	n.args = append(n.argv[:0], args...)
	for _, a := range args {
		switch {
		case a.err != nil:
			return errorNode(a.err)
		case n.dev == nil:
			n.dev = a.dev
		case a.dev != nil && a.dev != n.dev:
			return errorNode(fail(op, ErrForeign, "operands on two devices"))
		}
	}
	n.t = args[len(args)-1].t
	for _, a := range args {
		n.weight = min(n.weight+a.weight+1, 1<<20)
		n.large = n.large || a.large
	}
	return n
}

// broadcast gives n the common size of its operands: dimensions of 1 stretch, as in NumPy.
func (n *node) broadcast(op string) *node {
	if n.err != nil {
		return n
	}
	first := true
	for _, a := range n.args {
		if first {
			n.rows, n.cols, first = a.rows, a.cols, false
			continue
		}
		r, okr := stretch(n.rows, a.rows)
		c, okc := stretch(n.cols, a.cols)
		if !okr || !okc {
			return errorNode(shapeError(op, n.shape(), a.shape()))
		}
		n.rows, n.cols = r, c
	}
	if err := checkVirtual(op, n.rows, n.cols, n.args...); err != nil {
		return errorNode(err)
	}
	return n
}

func stretch(a, b int) (int, bool) {
	switch {
	case a == b || b == 1:
		return a, true
	case a == 1:
		return b, true
	}
	return 0, false
}

// mapNode builds an element-wise node.
func mapNode(name string, op fuse.Op, args ...*node) *node {
	n := join(name, args...)
	if n.err != nil {
		return n
	}
	n.kind, n.op, n.t = kindMap, op, args[0].t
	for _, a := range args {
		if a.kind != kindScalar {
			n.t = a.t
		}
	}
	if !op.Takes(n.t) {
		return errorNode(fail(name, ErrUnsupported, "not defined for ", DType(n.t).String()))
	}
	return n.broadcast(name)
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
	return &node{kind: kindScalar, t: typeOf[T](), rows: 1, cols: 1, bits: scalarBits(s)}
}

// productNode builds a matrix product.
func productNode(op string, a, b *node) *node {
	n := join(op, a, b)
	if n.err != nil {
		return n
	}
	if a.cols != b.rows {
		return errorNode(shapeError(op, a.shape(), b.shape()))
	}
	n.kind, n.rows, n.cols = kindProduct, a.rows, b.cols
	if err := checkDims(op, n.rows, n.cols); err != nil {
		return errorNode(err)
	}
	n.large = n.large || n.vast()
	return n
}

func transpose(op string, a *node) *node {
	n := join(op, a)
	if n.err != nil {
		return n
	}
	if a.kind == kindT {
		return a.args[0]
	}
	n.kind, n.rows, n.cols = kindT, a.cols, a.rows
	return n
}

func reduceNode(op string, red reduction, ax axis, a *node) *node {
	n := join(op, a)
	if n.err != nil {
		return n
	}
	n.kind, n.red, n.axis, n.rows, n.cols = kindReduce, red, ax, a.rows, a.cols
	if ax != axisCols {
		n.cols = 1
	}
	if ax != axisRows {
		n.rows = 1
	}
	return n
}

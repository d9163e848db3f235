// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Join starts a node of several operands: the first error wins, devices and element types must agree. Numbers without a type
// take that of the others.
func Join(op string, args ...*Node) *Node { return new(Node).join(op, args) }

func (n *Node) join(op string, args []*Node) *Node {
	n.Type = Untyped
	n.Args = append(n.argv[:0], args...)
	for _, a := range args {
		switch {
		case a.Err != nil:
			return Failed(a.Err)
		case n.Dev == nil:
			n.Dev = a.Dev
		case a.Dev != nil && a.Dev != n.Dev:
			return Failed(Fail(op, gpu.ErrForeign, "operands on two devices"))
		}
		switch {
		case n.Type == Untyped:
			n.Type = a.Type
		case a.Type != Untyped && a.Type != n.Type:
			return Failed(Fail(op, gpu.ErrInvalid, n.Type.String(), " with ", a.Type.String()))
		}
	}
	if n.Type == Untyped {
		n.Type = fuse.F32
	}
	for i, a := range n.Args {
		n.Args[i] = a.Typed(n.Type)
	}
	return n
}

// build completes a node, whose kind and parameters are set: it joins the operands and finds the size.
func (n *Node) build(op string, args ...*Node) *Node {
	if n = n.join(op, args); n.Err != nil {
		return n
	}
	a := n.Args[0]
	n.Rows, n.Cols = a.Rows, a.Cols
	var err error
	switch n.Kind {
	case Map, Call:
		err = n.broadcast(op)
	case Product:
		b := n.Args[1]
		if n.Cols = b.Cols; a.Cols != b.Rows {
			return Failed(ShapeError(op, a.Shape(), b.Shape()))
		}
		err = CheckDims(op, n.Rows, n.Cols)
	case Transpose:
		n.Rows, n.Cols = a.Cols, a.Rows
	case Reduce:
		if n.Axis != fuse.AxisCols {
			n.Cols = 1
		}
		if n.Axis != fuse.AxisRows {
			n.Rows = 1
		}
	}
	if err == nil && n.Kind != Call && !n.Op.Takes(n.Type) {
		err = Fail(op, gpu.ErrUnsupported, "not defined for ", n.Type.String())
	}
	if err != nil {
		return Failed(err)
	}
	return n
}

// broadcast gives n the common size of its operands: dimensions of 1 stretch, as in NumPy.
func (n *Node) broadcast(op string) error {
	for _, a := range n.Args[1:] {
		rows, ok := stretch(n.Rows, a.Rows)
		cols, fits := stretch(n.Cols, a.Cols)
		if !ok || !fits {
			return ShapeError(op, n.Shape(), a.Shape())
		}
		n.Rows, n.Cols = rows, cols
	}
	return CheckVirtual(op, n.Rows, n.Cols, n.Args...)
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

// NewMap builds an element-wise node. name is that of the function for errors.
func NewMap(name string, op fuse.Op, args ...*Node) *Node {
	return (&Node{Kind: Map, Op: op}).build(name, args...)
}

// NewConversion builds a node that converts to another element type.
func NewConversion(op string, t fuse.Type, a *Node) *Node {
	if a.Type == Untyped {
		return a.Typed(t)
	}
	n := (&Node{Kind: Map, Op: fuse.OpAcc}).build(op, a)
	n.Type = t
	return n
}

// NewCall builds the node of a function of the user's.
func NewCall(op string, call *fuse.Call, args ...*Node) *Node {
	return (&Node{Kind: Call, Op: fuse.OpCall, Call: call}).build(op, args...)
}

// NewProduct builds a matrix product.
func NewProduct(op string, a, b *Node) *Node { return (&Node{Kind: Product}).build(op, a, b) }

// NewTranspose builds a transpose; that of a transpose is what it was of.
func NewTranspose(op string, a *Node) *Node {
	if a.Kind == Transpose {
		return a.Args[0]
	}
	return (&Node{Kind: Transpose}).build(op, a)
}

// NewReduction builds a sum or the like.
func NewReduction(op string, red fuse.Reduction, axis fuse.Axis, a *Node) *Node {
	return (&Node{Kind: Reduce, Red: red, Axis: axis}).build(op, a)
}

// NewSoftmax builds a softmax of rows, or with log set its logarithm.
func NewSoftmax(op string, log bool, a *Node) *Node {
	return (&Node{Kind: Softmax, Op: fuse.OpExp, Log: log}).build(op, a)
}

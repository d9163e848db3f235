// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// typeNames are NumPy's names of the element types.
var typeNames = [...]string{fuse.F32: "float32", fuse.I32: "int32", fuse.U32: "uint32", fuse.F16: "float16"}

// TypeName returns NumPy's name of an element type.
func TypeName(t fuse.Type) string { return typeNames[t&3] }

// Join starts a node of several operands: the first error wins, devices and element types must agree. Numbers without a type
// take that of the others.
func Join(op string, args ...*Node) *Node {
	n := &Node{Type: Untyped}
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
	}
	if err := n.commonType(op); err != nil {
		return Failed(err)
	}
	for i, a := range n.Args {
		n.Args[i] = a.Typed(n.Type)
	}
	return n
}

// commonType gives n the element type of its operands.
func (n *Node) commonType(op string) error {
	for _, a := range n.Args {
		switch {
		case a.Type == Untyped:
		case n.Type == Untyped:
			n.Type = a.Type
		case a.Type != n.Type:
			return Fail(op, gpu.ErrInvalid, TypeName(n.Type), " with ", TypeName(a.Type))
		}
	}
	if n.Type == Untyped {
		n.Type = fuse.F32
	}
	return nil
}

// broadcast gives n the common size of its operands: dimensions of 1 stretch, as in NumPy.
func (n *Node) broadcast(op string) *Node {
	if n.Err != nil {
		return n
	}
	n.Rows, n.Cols = n.Args[0].Rows, n.Args[0].Cols
	for _, a := range n.Args[1:] {
		rows, ok := stretch(n.Rows, a.Rows)
		cols, fits := stretch(n.Cols, a.Cols)
		if !ok || !fits {
			return Failed(ShapeError(op, n.Shape(), a.Shape()))
		}
		n.Rows, n.Cols = rows, cols
	}
	if err := CheckVirtual(op, n.Rows, n.Cols, n.Args...); err != nil {
		return Failed(err)
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

// NewMap builds an element-wise node. name is that of the function for errors.
func NewMap(name string, op fuse.Op, args ...*Node) *Node {
	n := Join(name, args...)
	if n.Err != nil {
		return n
	}
	n.Kind, n.Op = Map, op
	if !op.Takes(n.Type) {
		return Failed(Fail(name, gpu.ErrUnsupported, "not defined for ", TypeName(n.Type)))
	}
	return n.broadcast(name)
}

// NewConversion builds a node that converts to another element type.
func NewConversion(op string, t fuse.Type, a *Node) *Node {
	if a.Type == Untyped {
		return a.Typed(t)
	}
	n := Join(op, a)
	if n.Err != nil {
		return n
	}
	n.Kind, n.Op, n.Type = Map, fuse.OpAcc, t
	return n.broadcast(op)
}

// NewCall builds the node of a function of the user's.
func NewCall(op string, call *fuse.Call, args ...*Node) *Node {
	n := Join(op, args...)
	if n.Err != nil {
		return n
	}
	n.Kind, n.Call, n.Op = Call, call, fuse.OpCall
	return n.broadcast(op)
}

// NewProduct builds a matrix product.
func NewProduct(op string, a, b *Node) *Node {
	n := Join(op, a, b)
	if n.Err != nil {
		return n
	}
	if a.Cols != b.Rows {
		return Failed(ShapeError(op, a.Shape(), b.Shape()))
	}
	n.Kind, n.Rows, n.Cols = Product, a.Rows, b.Cols
	if err := CheckDims(op, n.Rows, n.Cols); err != nil {
		return Failed(err)
	}
	return n
}

// NewTranspose builds a transpose; that of a transpose is what it was of.
func NewTranspose(op string, a *Node) *Node {
	n := Join(op, a)
	if n.Err != nil {
		return n
	}
	if a.Kind == Transpose {
		return a.Args[0]
	}
	n.Kind, n.Rows, n.Cols = Transpose, a.Cols, a.Rows
	return n
}

// NewReduction builds a sum or the like.
func NewReduction(op string, red fuse.Reduction, axis fuse.Axis, a *Node) *Node {
	n := Join(op, a)
	if n.Err != nil {
		return n
	}
	n.Kind, n.Red, n.Axis, n.Rows, n.Cols = Reduce, red, axis, a.Rows, a.Cols
	if axis != fuse.AxisCols {
		n.Cols = 1
	}
	if axis != fuse.AxisRows {
		n.Rows = 1
	}
	return n
}

// NewSoftmax builds a softmax of rows, or with log set its logarithm.
func NewSoftmax(op string, log bool, a *Node) *Node {
	n := Join(op, a)
	if n.Err != nil {
		return n
	}
	if !fuse.OpExp.Takes(n.Type) {
		return Failed(Fail(op, gpu.ErrUnsupported, "not defined for ", TypeName(n.Type)))
	}
	n.Kind, n.Log, n.Rows, n.Cols = Softmax, log, a.Rows, a.Cols
	return n
}

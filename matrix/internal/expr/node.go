// SPDX-License-Identifier: Apache-2.0

// Package expr has the tree of an expression of matrices, without element types of Go's: what is computed, of which size and
// type, on which device. Functions that build nodes check shapes, types and devices; a node that could not be built carries its
// error. Who evaluates the tree knows what its leaves are.
package expr

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Kind tells what a node is.
type Kind uint8

// The kinds.
const (
	Leaf      Kind = iota // a matrix
	Scalar                // a number
	Map                   // an element-wise operation on Args
	Call                  // a function of the user's on Args
	Transpose             // the transpose of Args[0]
	Product               // Args[0] times Args[1]
	Reduce                // Args[0] reduced along fuse.Axis
	Softmax               // Args[0] normalised along its rows
)

// Node is an operation of an expression. Nodes do not change once built and may be shared.
type Node struct {
	Kind       Kind
	Op         fuse.Op // Map: in a tree OpAcc is the identity, or a conversion
	Red        fuse.Reduction
	Axis       fuse.Axis
	Log        bool // Softmax: the logarithm
	Type       fuse.Type
	Rows, Cols int
	Dev        *gpu.Device // nil: any
	Args       []*Node
	argv       [3]*Node   // backs Args of most nodes
	Source     any        // Leaf: the matrix
	Value      float64    // Scalar
	Call       *fuse.Call // Call
	Err        error
}

// Shape returns the dimensions of the result, for errors.
func (n *Node) Shape() fault.Shape { return fault.Shape{n.Rows, n.Cols} }

// Failed is a node that could not be built.
func Failed(err error) *Node { return &Node{Err: err} }

// Number is a matrix of one number.
func Number(t fuse.Type, rows, cols int, v float64) *Node {
	return &Node{Kind: Scalar, Type: t, Rows: rows, Cols: cols, Value: v}
}

// Bits returns those of a Scalar in the type that is computed in.
func (n *Node) Bits() uint32 { return n.Type.Compute().Store(n.Value) }

// Resolve strips transposes. It returns whether what is left is to be read transposed; transposed says that n is.
func Resolve(n *Node, transposed bool) (*Node, bool) {
	for n.Kind == Transpose {
		n, transposed = n.Args[0], !transposed
	}
	return n, transposed
}

// Fail is the usual way to make an error of package matrix without shapes.
func Fail(op string, err error, detail ...string) error {
	return fault.Fail("matrix: "+op, err, detail...)
}

// ShapeError says that dimensions do not match.
func ShapeError(op string, shapes ...fault.Shape) error {
	return &gpu.OpError{Op: "matrix: " + op, Shapes: shapes, Err: buffer.ErrShape}
}

// Untyped is the type of a Scalar that takes the type of the operands it stands beside.
const Untyped = fuse.Type(0xff)

// Typed returns the node of an untyped number in a type, and any other node as it is.
func (n *Node) Typed(t fuse.Type) *Node {
	if n.Type != Untyped || n.Err != nil {
		return n
	}
	typed := *n
	typed.Type = t
	return &typed
}

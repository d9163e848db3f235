// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Errors of operands that do not fit say what would.

// Fail is the usual way to make an error of package matrix without shapes.
func Fail(op string, err error, detail ...string) error {
	return fault.Fail("matrix: "+op, err, detail...)
}

// ShapeError says that dimensions do not match, and which would.
func ShapeError(op, fits string, shapes ...fault.Shape) error {
	return &gpu.OpError{Op: "matrix: " + op, Shapes: shapes, Detail: fits, Err: buffer.ErrShape}
}

// Misfit is the failed node of a [ShapeError].
func Misfit(op, fits string, a, b *Node) *Node {
	return Failed(ShapeError(op, fits, a.Shape(), b.Shape()))
}

// What fits, in words that several operations share.
const (
	FitsEqual  = "sizes have to be equal"
	FitsSpread = FitsEqual + ", or 1"
	FitsSquare = "as many rows as columns are needed"
)

// FitsFactor is what the second factor of a product needs.
func FitsFactor(a *Node) string { return fault.Needs("the second factor", a.Cols, "row") }

// FitsSides is what the right sides of a system need.
func FitsSides(rows int) string { return fault.Needs("the right sides", rows, "row") }

// FitsElements is what another shape needs.
func FitsElements(shape fault.Shape) string {
	return fault.Needs("another shape", shape[0]*shape[1], "element")
}

// FitsStack is what count matrices below each other need.
func FitsStack(count int) string { return "a multiple of " + fault.Count(count, "row") + " is needed" }

// ErrNotSquare is that of package matrix.
var ErrNotSquare = fault.New("ErrNotSquare", "the matrix is not square")

// NotSquareError says that a matrix is not square.
func NotSquareError(op string, shape fault.Shape) error { return notSquare(op, FitsSquare, shape) }

func notSquare(op, fits string, shape fault.Shape) error {
	return &gpu.OpError{Op: "matrix: " + op, Shapes: []fault.Shape{shape}, Detail: fits, Err: ErrNotSquare}
}

// ConvertOne ends the detail of an error of operands of two types.
const ConvertOne = "; convert one"

// Mixed says that operands have different types.
func Mixed(op string, a, b fuse.Type) *Node {
	return Failed(Fail(op, gpu.ErrInvalid, a.String(), " with ", b.String(), ConvertOne))
}

// Floats reports whether a type is one of real numbers.
func Floats(t fuse.Type) bool { return t.Compute() == fuse.F32 }

// FloatsOrComplex is [Floats] of what has complex numbers, too.
func FloatsOrComplex(t fuse.Type) bool { return Floats(t) || t == fuse.C64 }

// Undefined says that an operation does not take a type, and which it takes.
func Undefined(op string, t fuse.Type, takes func(fuse.Type) bool) error {
	fits, last, count := "", "", 0
	for other := range fuse.Type(fuse.Types) {
		switch {
		case !takes(other):
			continue
		case count == 1:
			fits = last
		case count > 1:
			fits += ", " + last
		}
		last = other.String()
		count++
	}
	switch {
	case count == fuse.Types-1:
		fits, last = "all others", ""
	case count > 1:
		fits += " and "
	}
	return Fail(op, gpu.ErrUnsupported, "not defined for ", t.String(), ", but for ", fits, last)
}

// undefined is [Undefined] of a node whose kind is set.
func (n *Node) undefined(op string, t fuse.Type) *Node { return Failed(Undefined(op, t, n.takes)) }

// takes reports whether an operation is defined for a type.
func (n *Node) takes(t fuse.Type) bool {
	switch {
	case t == fuse.C64:
		return n.takesComplex()
	case n.Kind == Map, n.Kind == Softmax:
		return n.Op.Takes(t)
	case n.Kind == Reduce:
		return n.Red.Takes(t)
	case n.Kind == Factor:
		return Floats(t)
	}
	return true
}

// takesComplex tries.
func (n *Node) takesComplex() bool {
	one := Number(fuse.F32, 1, 1, 1)
	z := NewComplex("", one, one)
	switch n.Kind {
	case Map:
		return complexMap("", n.Op, []*Node{z, z, z}[:max(n.Op.Arity(), 1)]) != nil
	case Reduce:
		norm := n.Red >= fuse.ReduceNorm1 && n.Red <= fuse.ReduceNormP // of absolute values
		return norm || complexReduction("", n, z) != nil
	}
	return false
}

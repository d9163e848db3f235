// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Routine is a decomposition, or what is computed with one. Each has one matrix for a result.
type Routine uint8

// The routines. Factors are packed into one matrix, of which the functions of package matrix show the parts.
const (
	RoutineLU       Routine = iota // of a, m x n: m x (n + 1), the multipliers and U, and in the last column the pivots
	RoutineCholesky                // of a, n x n, of which the lower triangle is read: L
	RoutineLUSolve                 // packed LU of n x n, b: the solution of A x = b; with Turned of its transpose
	RoutinePermute                 // packed LU of m x n, b of m rows: b with its rows exchanged; with Turned back
	RoutineTriangle                // t, b: the solution of T x = b by Form
	RoutineQR                      // of a, m x n: the vectors of reflections below the diagonal, and R
	RoutineQMul                    // packed QR of m x n, b of m rows: Q b, with Turned the transpose of Q times b
	RoutineEigen                   // of a, n x n, of which the lower triangle is read: row i is an eigenvector and its value, ascending
	RoutineSVD                     // of a, m x n, m >= n: row i is u, v and the singular value, descending
	RoutineSolve                   // stacks of a, n x n each, and of b: the solutions of each a x = b
)

// Form says which triangle a routine solves with.
type Form struct{ Upper, Unit, Turned bool }

// Bits returns the form as a number.
func (f Form) Bits() (bits int) {
	for i, set := range [...]bool{f.Upper, f.Unit, f.Turned} {
		if set {
			bits |= 1 << i
		}
	}
	return bits
}

// NewFactor builds a routine. count is that of the matrices of a stack.
func NewFactor(op string, routine Routine, form Form, count int, args ...*Node) *Node {
	n := (&Node{Kind: Factor, Routine: routine, Form: form, Solves: routine.solves()}).join(op, args)
	if n.Err != nil {
		return n
	}
	if n.Type.Compute() != fuse.F32 {
		return n.undefined(op, n.Type)
	}
	if err := n.factored(op, count); err != nil {
		return Failed(err)
	}
	if routine.solves() {
		n.Source = &System{op, n.of()}
	}
	return n
}

// System is the Source of a routine that solves one: the operation that asks for it, and the size of its matrix, for errors.
type System struct {
	Op string
	Of fault.Shape
}

// of is the size of the matrix that a routine is of, also where that is packed with its pivots.
func (n *Node) of() fault.Shape {
	shape := n.Args[0].Shape()
	if n.Routine == RoutineLUSolve || n.Routine == RoutinePermute {
		shape[1]--
	}
	return shape
}

// solves reports whether the result is not finite where a matrix has no inverse, or no factor.
func (r Routine) solves() bool {
	return r == RoutineLUSolve || r == RoutineTriangle || r == RoutineSolve || r == RoutineCholesky
}

// Systems returns the nodes of an expression that solve something, operands before what is computed of them.
func Systems(n *Node) (list []*Node) {
	done := map[*Node]bool{}
	var visit func(n *Node)
	visit = func(n *Node) {
		if !n.Solves || done[n] {
			return
		}
		done[n] = true
		for _, a := range n.Args {
			visit(a)
		}
		if n.Kind == Factor && n.Routine.solves() {
			list = append(list, n)
		}
	}
	visit(n)
	return list
}

// factored checks the operands of a routine and finds the size of its result.
func (n *Node) factored(op string, count int) error {
	a, b := n.Args[0], n.Args[len(n.Args)-1]
	square, matches := a.Rows == a.Cols, a.Rows == b.Rows
	n.Rows, n.Cols = a.Rows, a.Cols
	switch n.Routine {
	case RoutineLU:
		n.Cols, square, matches = a.Cols+1, true, true
	case RoutineQR:
		square, matches = true, true
	case RoutineCholesky:
		matches = true
	case RoutineEigen:
		n.Cols, matches = a.Cols+1, true
	case RoutineSVD:
		n.Rows, n.Cols, square, matches = a.Cols, a.Rows+a.Cols+1, a.Rows >= a.Cols, true
	case RoutineLUSolve:
		n.Cols, square = b.Cols, a.Rows+1 == a.Cols
	case RoutineTriangle:
		n.Cols = b.Cols
	case RoutineQMul, RoutinePermute:
		n.Cols, square = b.Cols, true
	case RoutineSolve:
		n.Cols, square = b.Cols, count > 0 && a.Cols*count == a.Rows
		square = square || a.Rows == 0 // no matrices
		n.Value = float64(count)
	}
	switch {
	case !square && n.Routine == RoutineSolve:
		return notSquare(op, FitsStack(a.Cols), a.Shape())
	case !square:
		return NotSquareError(op, n.of())
	case !matches:
		return ShapeError(op, FitsSides(a.Rows), n.of(), b.Shape())
	}
	return CheckDims(op, n.Rows, n.Cols)
}

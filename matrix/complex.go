// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Operations of complex numbers alone. What others do with them, package expr says.

func (s *shaping) complex() *node { return expr.NewComplex(s.op, s.args[0], s.args[1]) }
func (s *shaping) real() *node    { return expr.NewPart(s.op, false, s.args[0]) }
func (s *shaping) imag() *node    { return expr.NewPart(s.op, true, s.args[0]) }
func (s *shaping) angle() *node   { return expr.NewAngle(s.op, s.args[0]) }
func (s *shaping) conj() *node    { return expr.NewConjugate(s.op, s.args[0]) }

func (s *shaping) conjTranspose() *node { return expr.NewTranspose(s.op, s.conj()) }

// complexSolved is the solution of a complex system, that of a real one of twice the size.
func (s *shaping) complexSolved(a, b *node) *node {
	if a.Rows != b.Rows {
		return expr.Misfit(s.op, expr.FitsSides(a.Rows), a, b)
	}
	x := systemOf(a.Shape(), s.solved(a.Solver(s.op), b.Stacked(s.op)))
	return expr.NewUnstacked(s.op, x)
}

// systemOf says of a system that what is solved in its place is of another matrix.
func systemOf(a fault.Shape, x *node) *node {
	if s, ok := x.Source.(*expr.System); ok {
		s.Of = a
	}
	return x
}

// isComplex reports whether an operand is.
func (s *shaping) isComplex() bool {
	for _, a := range s.args {
		if a.Type == fuse.C64 {
			return true
		}
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Products of elements that are not summed.

func (s *shaping) kron() *node {
	a, b := s.args[0], s.args[1]
	i, j := s.at(s.times(a.Rows, b.Rows), s.times(a.Cols, b.Cols))
	rows, cols := s.n(max(b.Rows, 1)), s.n(max(b.Cols, 1))
	outer := s.elements(a, s.apply(fuse.OpDiv, i, rows), s.apply(fuse.OpDiv, j, cols))
	return s.apply(fuse.OpMul, outer, s.elements(b, s.apply(fuse.OpMod, i, rows), s.apply(fuse.OpMod, j, cols)))
}

func (s *shaping) khatriRao() *node {
	a, b := s.args[0], s.args[1]
	if a.Cols != b.Cols {
		return s.misfit(fault.Needs("each", a.Cols, "column"), a, b)
	}
	i, j := s.at(s.times(a.Rows, b.Rows), a.Cols)
	rows := s.n(max(a.Rows, 1))
	inner := s.elements(a, s.apply(fuse.OpMod, i, rows), j)
	return s.apply(fuse.OpMul, inner, s.elements(b, s.apply(fuse.OpDiv, i, rows), j))
}

func (s *shaping) outer() *node {
	a, b := s.args[0], s.args[1]
	if a.Cols != 1 {
		a = expr.NewTranspose(s.op, a)
	}
	if b.Rows != 1 {
		b = expr.NewTranspose(s.op, b)
	}
	if a.Cols != 1 || b.Rows != 1 {
		return s.misfit("each needs to be a row or a column", s.args[0], s.args[1])
	}
	return s.apply(fuse.OpMul, a, b)
}

func (s *shaping) cross() *node {
	a, b := s.args[0], s.args[1]
	if a.Rows != b.Rows || a.Cols != 3 || b.Cols != 3 {
		return s.misfit("each needs 3 columns and as many rows", a, b)
	}
	i, j := s.at(a.Rows, 3)
	turned := func(x *node, by int) *node { return s.elements(x, i, s.turned(j, -by, 3)) }
	return s.apply(fuse.OpSub, s.apply(fuse.OpMul, turned(a, 1), turned(b, 2)), s.apply(fuse.OpMul, turned(a, 2), turned(b, 1)))
}

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/pattern"
)

// compress makes a sparse matrix of what is not zero in a dense one. This is the host's work: the matrix is read major by
// major, in one piece.
func compress(ctx context.Context, a *core, format Format) (*sparseCore, error) {
	const op = "SparseFromDense"
	if err := firstError(fault.Ended(ctx, "matrix: ", op), a.usable(op)); err != nil {
		return nil, err
	}
	s := newSparse(a.dev, a.t, format, a.Rows, a.Cols)
	if err := s.checkKind(op); err != nil {
		return nil, err
	}
	if format != BlockColumn {
		if err := pattern.CheckPointers(op, s.majors); err != nil {
			return nil, err
		}
	}
	by := a.slice(op, 0, a.Rows, 0, a.Cols)
	if format != CSR {
		by.Layout = by.T()
	}
	mem := make([]uint32, a.Rows*a.Cols)
	if err := firstError(by.read(ctx, op, hostOf(mem)), by.close()); err != nil {
		return nil, err
	}
	n := s.pack(mem)
	if n > math.MaxInt32 {
		return nil, fail(op, gpu.ErrLimit, "more than 2147483647 values")
	}
	values, err := buffer.FromHost(a.dev, hostOf(mem[:n]))
	if err != nil {
		return nil, named(op, err)
	}
	return s.with(op, values, buffer.FromHost)
}

// pack moves what is to be stored to the front of mem, and lists where it was. It returns how much that is.
func (s *sparseCore) pack(mem []uint32) (n int) {
	if s.format != BlockColumn {
		s.ptr = make([]int32, 1, s.majors+1)
	}
	for c := range s.majors {
		major := mem[c*s.minors:][:s.minors]
		if s.format == BlockColumn {
			if slices.ContainsFunc(major, func(v uint32) bool { return v != 0 }) {
				s.index = append(s.index, int32(c))
				n += copy(mem[n:], major)
			}
			continue
		}
		for i, bits := range major {
			if bits != 0 {
				mem[n] = bits
				s.index = append(s.index, int32(i))
				n++
			}
		}
		s.ptr = append(s.ptr, int32(n))
	}
	return n
}

// sparse evaluates a sparse expression.
func (e *Expr[T]) sparse(op string) (*sparseCore, error) {
	n := e.expr(op).n
	if n.Err != nil {
		return nil, n.Err
	}
	if n.Kind != expr.Sparse {
		return nil, fail(op, gpu.ErrUnsupported, "the result is not sparse; SparseFromDense stores what is not 0 of a matrix")
	}
	p, err := n.Source.(expr.Entries).Pattern()
	if err != nil {
		return nil, err
	}
	p.Index, p.Ptr = slices.Clone(p.Index), slices.Clone(p.Ptr)
	return stored(op, n, p)
}

// stored evaluates a sparse node, whose pattern becomes that of the result.
func stored(op string, n *node, p pattern.Pattern) (*sparseCore, error) {
	if count := n.Args[0].Cols; len(p.Index) != count {
		return nil, fail(op, ErrSparse, itoa(count), " values for ", itoa(len(p.Index)), " entries: the structure changed after the expression was built")
	}
	s := newSparse(n.Dev, n.Type, formatOf(&p), n.Rows, n.Cols)
	s.index, s.ptr = p.Index, p.Ptr
	return s.of(op, n.Args[0])
}

// formatOf is the format of a pattern.
func formatOf(p *pattern.Pattern) Format {
	if p.ByRows {
		return CSR
	}
	return CSC
}

// of completes a matrix, whose structure is right, by values that are computed.
func (s *sparseCore) of(op string, values *node) (*sparseCore, error) {
	if err := s.checkKind(op); err != nil {
		return nil, err
	}
	v := core{t: s.t, typed: 1, dev: s.dev, Layout: expr.Layout{ColMajor: s.format == BlockColumn}}
	if err := v.assign(context.Background(), op, values); err != nil {
		return nil, err
	}
	return s.with(op, v.buf, buffer.FromHost)
}

// ordered is a sparse node by rows or by columns, and its pattern, which nobody else has.
func ordered(op string, n *node, byRows bool) (*node, pattern.Pattern, error) {
	p, err := n.Source.(expr.Entries).Pattern()
	if err != nil {
		return n, p, err
	}
	if p.ByRows == byRows {
		p.Index, p.Ptr = slices.Clone(p.Index), slices.Clone(p.Ptr)
		return n, p, nil
	}
	q, places, err := p.Across(op)
	if err != nil {
		return n, p, err
	}
	return moved(op, n, q, places), q, nil
}

// moved is a sparse node with another pattern, and at each entry the value that is at its place now; in its own where there are no places.
func moved(op string, n *node, p pattern.Pattern, places []int32) *node {
	to, values := n.Source.(expr.Entries).Derive(p), n.Args[0]
	if places != nil {
		values = expr.NewGather(op, values, expr.Number(fuse.I32, 1, 1, 0), to.Derived(places))
	}
	return expr.NewSparse(n.Dev, p.Rows, p.Cols, to, values)
}

// filled is a sparse node without its empty columns, and the numbers of the columns that are left.
func filled(op string, n *node) (ids []int32, some *node, err error) {
	p, err := n.Source.(expr.Entries).Pattern()
	if err != nil {
		return nil, nil, err
	}
	ids, q, places, err := p.Columns(op)
	if err != nil {
		return nil, nil, err
	}
	return ids, moved(op, n, q, places), nil
}

// formatted is a sparse node in a format.
func formatted(op string, n *node, format Format) (*sparseCore, error) {
	switch {
	case n.Err != nil:
		return nil, n.Err
	case format > BlockColumn:
		return nil, fail(op, gpu.ErrInvalid, "unknown format")
	case format != BlockColumn:
		n, p, err := ordered(op, n, format == CSR)
		if err != nil {
			return nil, err
		}
		return stored(op, n, p)
	}
	ids, some, err := filled(op, n)
	if err != nil {
		return nil, err
	}
	return blockColumns(op, n.Cols, ids, some)
}

// blockColumns is a matrix of whole columns.
func blockColumns(op string, cols int, ids []int32, values *node) (*sparseCore, error) {
	if values.Err != nil {
		return nil, values.Err
	}
	s := newSparse(values.Dev, values.Type, BlockColumn, values.Rows, cols)
	s.index = ids
	return s.of(op, values)
}

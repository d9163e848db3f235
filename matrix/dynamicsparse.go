// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// AnySparse is a [Sparse] whose element type is known at run time. Everything said of Sparse holds for AnySparse. The zero
// value is an error.
type AnySparse struct{ s sparseAny }

// NewAnySparse is [NewSparse] for an element type known at run time.
func NewAnySparse(
	dev *gpu.Device, t DType, format Format, rows, cols int, values gpu.Host, indices, pointers []int32,
) (*AnySparse, error) {
	p := parts{format: format, rows: rows, cols: cols, values: values, index: indices, ptr: pointers}
	if err := p.check("NewSparse", dev, fuse.Type(t)); err != nil {
		return nil, err
	}
	return anySparse(newStorage(dev, fuse.Type(t), p.clone()))
}

// WrapAnySparse is [WrapSparse] for an element type known at run time. The values may be memory that Go does not see, in a
// page a typed array given as js.Value. release may be nil.
func WrapAnySparse(
	dev *gpu.Device, t DType, format Format, rows, cols int, values gpu.Host, indices, pointers []int32, release func(),
) (*AnySparse, error) {
	p := parts{format: format, rows: rows, cols: cols, values: values, index: indices, ptr: pointers}
	if err := p.check("WrapSparse", dev, fuse.Type(t)); err != nil {
		return nil, err
	}
	return anySparse(wrapStorage(dev, fuse.Type(t), p, release))
}

func anySparse(st *storage, err error) (*AnySparse, error) {
	if err != nil {
		return nil, err
	}
	return &AnySparse{sparseAny{st: st, count: st.majors}}, nil
}

func (s *AnySparse) core() *sparseAny {
	if s == nil {
		return nil
	}
	return &s.s
}

// DType returns the element type.
func (s *AnySparse) DType() DType {
	if s == nil || s.s.st == nil {
		return Float32
	}
	return DType(s.s.st.t)
}

// Close is [Sparse.Close].
func (s *AnySparse) Close() error { return s.core().close() }

// Sync is [Sparse.Sync].
func (s *AnySparse) Sync(ctx context.Context) error { return s.core().sync(ctx) }

// Touch is [Sparse.Touch].
func (s *AnySparse) Touch() error { return s.core().touch() }

// Append is [Sparse.Append]. bits are those of the value.
func (s *AnySparse) Append(i, j int, bits uint32) error {
	return s.core().append(i, j, bytesOf([]uint32{bits}))
}

// ColumnSlice is [Sparse.ColumnSlice]. The view has to be closed.
func (s *AnySparse) ColumnSlice(start, n int) (*AnySparse, error) {
	v := s.core().columns(start, n)
	if v.err != nil {
		return nil, v.err
	}
	return &AnySparse{v}, nil
}

// Values is [Sparse.Values]. The view has to be closed.
func (s *AnySparse) Values() (*Any, error) {
	v := s.core().valuesView()
	if v.err != nil {
		return nil, v.err
	}
	return &v, nil
}

// Structure returns copies of the indices and pointers, as [Sparse.Read] does.
func (s *AnySparse) Structure() (indices, pointers []int32, err error) {
	c := s.core()
	if err := c.usable("Structure"); err != nil {
		return nil, nil, err
	}
	c.st.mu.Lock()
	defer c.st.mu.Unlock()
	if err := c.st.settle(); err != nil {
		return nil, nil, err
	}
	indices, pointers = c.structure()
	return indices, pointers, nil
}

// Dense returns the matrix as a new dense one, row-major: [Sparse.ToDense].
func (s *AnySparse) Dense() (*Any, error) {
	return s.fresh(func(dst *Any) error { return s.core().assignTo("ToDense", dst) })
}

// Mul returns s y as a new dense matrix: [MulSparse].
func (s *AnySparse) Mul(y *AnyPart) (*Any, error) {
	return s.fresh(func(dst *Any) error { return s.mul(dst, y) })
}

func (s *AnySparse) fresh(fill func(*Any) error) (*Any, error) {
	dst := &Any{t: fuse.Type(s.DType())}
	if err := fill(dst); err != nil {
		return nil, err
	}
	return dst, nil
}

// AssignTo is [Sparse.AssignTo], to a matrix or a part of one that has the size.
func (s *AnySparse) AssignTo(dst *AnyPart) error {
	const op = "AssignTo"
	rows, cols := s.core().dims()
	if err := s.fits(op, dst, rows, cols); err != nil {
		return err
	}
	return s.core().assignTo(op, dst.m)
}

// MulTo is [MulSparse], to a matrix or a part of one that has the size of the product.
func (s *AnySparse) MulTo(dst, y *AnyPart) error {
	if y == nil {
		return fail("MulSparse", ErrNil, "nil matrix")
	}
	rows, _ := s.core().dims()
	if err := s.fits("MulSparse", dst, rows, y.m.cols); err != nil {
		return err
	}
	return s.mul(dst.m, y)
}

func (s *AnySparse) mul(dst *Any, y *AnyPart) error {
	const op = "MulSparse"
	_, inner := s.core().dims()
	if y == nil {
		return fail(op, ErrNil, "nil matrix")
	}
	if err := s.fits(op, y, inner, y.m.cols); err != nil {
		return err
	}
	return s.core().mul(op, dst, y.m)
}

// fits refuses dense matrices of another size or, which the types of Go rule out elsewhere, another element type.
func (s *AnySparse) fits(op string, m *AnyPart, rows, cols int) error {
	if err := s.core().usable(op); err != nil {
		return err
	}
	switch {
	case m == nil:
		return fail(op, ErrNil, "nil matrix")
	case m.m.t != s.s.st.t:
		return fail(op, ErrInvalid, DType(m.m.t).String(), " with ", s.DType().String())
	case m.m.rows != rows || m.m.cols != cols:
		return shapeError(op, s.s.shape(), m.m.shape())
	}
	return nil
}

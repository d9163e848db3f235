// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// arrayTypes are the names of the element types among arrays.
var arrayTypes = [...]dtype.Type{fuse.F32: dtype.Float32, fuse.I32: dtype.Int32, fuse.U32: dtype.Uint32, fuse.F16: dtype.Float16}

// FromArray makes a matrix of the memory of an array of two dimensions, or of one, which becomes a row. Nothing is copied,
// and the memory lives until both are closed. The array's type must be T's ([gpu.ErrInvalid]) and its strides those of a matrix
// stored by rows or by columns ([buffer.ErrStride]). Like a wrapped matrix it is never resized.
func FromArray[T Elem](a *ndarray.Array) (*Dense[T], error) {
	const op = "FromArray"
	if a == nil {
		return nil, fail(op, buffer.ErrNil, "nil array")
	}
	t := fuse.Type(slices.Index(arrayTypes[:], a.DType()))
	if want := typeOf[T](); int(t) >= len(arrayTypes) || !isAny[T]() && t != want {
		return nil, fail(op, gpu.ErrInvalid, a.DType().String(), " as a matrix of another type")
	}
	l, err := arrayLayout(op, a, t.Size())
	if err != nil {
		return nil, err
	}
	buf, err := a.Buffer()
	if err != nil {
		return nil, err
	}
	from := &origin{}
	held := &share{buf: buf, origin: from}
	return &Dense[T]{core{
		Layout: l, t: t, typed: true, dev: a.Device(), buf: buf, fixed: true, external: buf.Mode() == buffer.External, room: l.Span(),
		origin: from, share: held, cleanup: cleanup.New(func() { _ = held.close() }),
	}}, nil
}

// arrayLayout finds the layout with the array's strides.
func arrayLayout(op string, a *ndarray.Array, size int) (expr.Layout, error) {
	shape, strides := a.Shape(), a.Strides()
	if len(shape) == 1 {
		shape, strides = []int{1, shape[0]}, []int{0, strides[0]}
	}
	if len(shape) != 2 {
		return expr.Layout{}, fail(op, buffer.ErrShape, itoa(len(shape)), " dimensions")
	}
	if a.Offset()%size != 0 {
		return expr.Layout{}, fail(op, ErrAlignment, "byte offset ", itoa(a.Offset()))
	}
	l := expr.Layout{Rows: shape[0], Cols: shape[1], Offset: a.Offset() / size}
	down, along := strides[0], strides[1]
	switch {
	case l.Empty() || l.Rows == 1 && (l.Cols == 1 || along == 1):
		l.Stride = l.Cols
	case l.Rows > 1 && (along == 1 || l.Cols == 1) && down >= l.Cols:
		l.Stride = down
	case l.Cols > 1 && (down == 1 || l.Rows == 1) && along >= l.Rows:
		l.Order, l.Stride = expr.ColMajorOrder, along
	default:
		return expr.Layout{}, fail(op, buffer.ErrStride, "strides ", itoa(down), " and ", itoa(along), " for ", l.Shape().String())
	}
	if err := expr.CheckDims(op, l.Rows, l.Cols); err != nil {
		return expr.Layout{}, err
	}
	if uint64(l.Offset)+uint64(l.Span()) > 1<<32-1 {
		return expr.Layout{}, fail(op, gpu.ErrLimit, "more than 4294967295 elements before the last")
	}
	return l, nil
}

// Array returns the matrix as an array of two dimensions with the same memory, which lives until both are closed.
func (m *Dense[T]) Array() (*ndarray.Array, error) {
	const op = "Array"
	c := m.core()
	if err := c.usable(op); err != nil {
		return nil, err
	}
	if c.buf == nil {
		return nil, fail(op, buffer.ErrNil, "a matrix without memory")
	}
	down, along := c.Steps()
	return ndarray.New(c.buf, arrayTypes[c.t], []int{c.Rows, c.Cols}, []int{down, along}, c.Offset*c.t.Size())
}

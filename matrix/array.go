// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
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
	o, shape, err := arrayOptions(op, a, t)
	if err != nil {
		return nil, err
	}
	buf, err := a.Buffer()
	if err != nil {
		return nil, err
	}
	m, err := newCore(op, a.Device(), &o, shape[0], shape[1], &memory{buf: buf}, new(origin))
	m.external = buf.Mode() == buffer.External
	return typed[T](m, firstError(err, buf.Close()))
}

// arrayOptions finds the options with the array's strides.
func arrayOptions(op string, a *ndarray.Array, t fuse.Type) (o Options, shape []int, err error) {
	shape, strides := a.Shape(), a.Strides()
	if len(shape) == 1 {
		shape, strides = []int{1, shape[0]}, []int{0, strides[0]}
	}
	switch {
	case len(shape) != 2:
		return o, nil, fail(op, buffer.ErrShape, itoa(len(shape)), " dimensions")
	case a.Offset()%t.Size() != 0:
		return o, nil, fail(op, ErrAlignment, "byte offset ", itoa(a.Offset()))
	}
	rows, cols, down, along := shape[0], shape[1], strides[0], strides[1]
	o = Options{Type: t, Offset: a.Offset() / t.Size()}
	switch {
	case rows == 0 || cols == 0 || rows == 1 && (cols == 1 || along == 1):
	case rows > 1 && (along == 1 || cols == 1) && down >= cols:
		o.Stride = down
	case cols > 1 && (down == 1 || rows == 1) && along >= rows:
		o.ColMajor, o.Stride = true, along
	default:
		return o, nil, fail(op, buffer.ErrStride, "strides ", itoa(down), " and ", itoa(along))
	}
	return o, shape, nil
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

// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"runtime"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// arrayTypes are the names of the element types among arrays.
var arrayTypes = [...]dtype.Type{fuse.F32: dtype.Float32, fuse.I32: dtype.Int32, fuse.U32: dtype.Uint32, fuse.F16: dtype.Float16}

// FromArray makes a matrix of the memory of an array of two dimensions, or of one, which becomes a row. Nothing is copied,
// and the memory lives until both are closed. The array's type must be T's ([ErrInvalid]) and its strides those of a matrix
// stored by rows or by columns ([ErrStride]). Like a wrapped matrix it is never resized.
func FromArray[T Elem](a *ndarray.Array) (*Dense[T], error) {
	m, err := fromArray(a, typeOf[T]())
	if err != nil {
		return nil, err
	}
	d := &Dense[T]{m}
	d.a.net = runtime.AddCleanup(d, func(b *buffer.Buffer) { _ = b.Close() }, m.buf)
	return d, nil
}

func fromArray(a *ndarray.Array, t fuse.Type) (Any, error) {
	const op = "FromArray"
	if a == nil {
		return Any{}, fail(op, ErrNil, "nil array")
	}
	if a.DType() != arrayTypes[t] {
		return Any{}, fail(op, ErrInvalid, a.DType().String(), " as ", DType(t).String())
	}
	l, err := arrayLayout(op, a, t.Size())
	if err != nil {
		return Any{}, err
	}
	buf, err := a.Buffer()
	if err != nil {
		return Any{}, err
	}
	return Any{
		layout: l, t: t, dev: a.Device(), buf: buf,
		fixed: true, external: buf.Mode() == buffer.External, room: l.span(),
	}, nil
}

// arrayLayout finds the layout with the array's strides.
func arrayLayout(op string, a *ndarray.Array, size int) (layout, error) {
	shape, strides := a.Shape(), a.Strides()
	if len(shape) == 1 {
		shape, strides = []int{1, shape[0]}, []int{0, strides[0]}
	}
	if len(shape) != 2 {
		return layout{}, fail(op, ErrShape, itoa(len(shape)), " dimensions")
	}
	if a.Offset()%size != 0 {
		return layout{}, fail(op, ErrAlignment, "byte offset ", itoa(a.Offset()))
	}
	l := layout{rows: shape[0], cols: shape[1], offset: a.Offset() / size}
	down, along := strides[0], strides[1]
	switch {
	case l.empty() || l.rows == 1 && (l.cols == 1 || along == 1):
		l.stride = l.cols
	case l.rows > 1 && (along == 1 || l.cols == 1) && down >= l.cols:
		l.stride = down
	case l.cols > 1 && (down == 1 || l.rows == 1) && along >= l.rows:
		l.order, l.stride = ColMajorOrder, along
	default:
		return layout{}, fail(op, ErrStride, "strides ", itoa(down), " and ", itoa(along), " for ", l.shape().String())
	}
	if err := checkDims(op, l.rows, l.cols); err != nil {
		return layout{}, err
	}
	if uint64(l.offset)+uint64(l.span()) > 1<<32-1 {
		return layout{}, fail(op, ErrLimit, "more than 4294967295 elements before the last")
	}
	return l, nil
}

// Array returns the matrix as an array of two dimensions with the same memory, which lives until both are closed.
func (m *Dense[T]) Array() (*ndarray.Array, error) { return m.Any().Array() }

// Array returns the matrix as an array of two dimensions with the same memory, which lives until both are closed.
func (m *Any) Array() (*ndarray.Array, error) {
	const op = "Array"
	if err := m.usable(op); err != nil {
		return nil, err
	}
	if m.buf == nil {
		return nil, fail(op, ErrNil, "a matrix without memory")
	}
	down, along := m.steps()
	return ndarray.New(m.buf, arrayTypes[m.t], []int{m.rows, m.cols}, []int{down, along}, m.offset*m.t.Size())
}

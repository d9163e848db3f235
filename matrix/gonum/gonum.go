// SPDX-License-Identifier: Apache-2.0

package gonum

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// ErrValue is a number that the element type does not have: one that float32 would make infinite, a fraction as an integer.
var ErrValue = fault.New("ErrValue", "value that the element type does not have")

func fail(op string, err error, detail ...string) error {
	return fault.Fail("gonum: "+op, err, detail...)
}

// From makes a matrix with the elements of m, rounded to the nearest T; those of an integer T must be integers already.
// Options are those of [matrix.New]; without any, the transpose of a matrix becomes one that is stored by columns.
func From[T matrix.Elem](dev *gpu.Device, m mat.Matrix, opts ...matrix.Options) (*matrix.Dense[T], error) {
	d, _, err := convert[T]("From", dev, m, opts)
	return d, err
}

// Convert is From for float32, and also returns the largest relative change of a value: |float32(x) - x| / |x|. It is at
// most 2^-24 unless there are subnormal numbers.
func Convert(dev *gpu.Device, m mat.Matrix, opts ...matrix.Options) (d *matrix.Dense[float32], change float64, err error) {
	return convert[float32]("Convert", dev, m, opts)
}

func convert[T matrix.Elem](op string, dev *gpu.Device, m mat.Matrix, opts []matrix.Options) (d *matrix.Dense[T], change float64, err error) {
	if dev == nil {
		return nil, 0, fail(op, gpu.ErrInvalid, "nil device")
	}
	src, err := read[T](op, m, dev.Info().Limits.MaxBufferSize)
	if err != nil {
		return nil, 0, err
	}
	rows, cols := src.rows, src.cols
	if src.transposed {
		rows, cols = cols, rows
		if len(opts) == 0 {
			opts = []matrix.Options{{ColMajor: true}}
		}
	}
	if d, err = matrix.New[T](dev, rows, cols, opts...); err != nil {
		return nil, 0, err
	}
	view := d.Alias
	if src.transposed {
		view = d.T
	}
	v := view()
	if err = errors.Join(v.SetSlice(src.data), v.Close()); err != nil {
		return nil, 0, errors.Join(err, d.Close())
	}
	return d, src.change, nil
}

// source is what a matrix holds, or the one that it is the transpose of.
type source[T matrix.Elem] struct {
	rows, cols int
	data       []T // row by row
	transposed bool
	change     float64
}

// read takes transposes off and converts the elements. gonum and its matrices panic where others return an error, for
// example on a nil pointer in the interface. What would take more bytes than the limit is refused before memory is taken for
// it: a diagonal of a few megabytes may claim terabytes.
func read[T matrix.Elem](op string, m mat.Matrix, limit uint64) (s *source[T], err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			s, err = nil, fail(op, gpu.ErrInvalid, p.Error())
		default:
			s, err = nil, fail(op, gpu.ErrInvalid, "the matrix panics")
		}
	}()
	s = new(source[T])
	for range 64 { // transposes of transposes
		t, ok := m.(mat.Untransposer)
		if !ok {
			break
		}
		m, s.transposed = t.Untranspose(), !s.transposed
	}
	if m == nil {
		return nil, fail(op, buffer.ErrNil, "nil matrix")
	}
	s.rows, s.cols = m.Dims()
	over, n := bits.Mul64(uint64(s.rows), uint64(s.cols))
	switch {
	case s.rows < 0 || s.cols < 0:
		return nil, fail(op, buffer.ErrSize, strconv.Itoa(s.rows), "x", strconv.Itoa(s.cols))
	case over != 0 || n > limit/uint64(unsafe.Sizeof(*new(T))):
		return nil, fail(op, gpu.ErrLimit, strconv.Itoa(s.rows), "x", strconv.Itoa(s.cols))
	}
	at := m.At
	if r, dense := m.(mat.RawMatrixer); dense {
		raw := r.RawMatrix()
		at = func(i, j int) float64 { return raw.Data[i*raw.Stride+j] }
	}
	s.data = make([]T, n)
	for i := range s.rows {
		for j := range s.cols {
			x := at(i, j)
			y, back, ok := round[T](x)
			if s.data[i*s.cols+j] = y; !ok {
				return nil, fail(op, ErrValue, strconv.FormatFloat(x, 'g', -1, 64), " at ", strconv.Itoa(i), ", ", strconv.Itoa(j))
			}
			if x != back && x == x {
				s.change = max(s.change, math.Abs((back-x)/x))
			}
		}
	}
	return s, nil
}

// round returns the nearest T, the number that it is, and whether there is one.
func round[T matrix.Elem](x float64) (y T, back float64, ok bool) {
	whole := false
	switch p := any(&y).(type) {
	case *float32:
		*p = float32(x)
		back = float64(*p)
	case *matrix.Half:
		*p = dtype.ToHalf(x)
		back = float64(p.Float32())
	case *int32:
		*p, whole = int32(x), true
		back = float64(*p)
	case *uint32:
		*p, whole = uint32(x), true
		back = float64(*p)
	case *matrix.Any:
		*p, back = matrix.Any(x), x
	}
	return y, back, x == back || !whole && (x != x || !math.IsInf(back, 0))
}

// ToDense waits for what is queued and returns the elements as a matrix of gonum's. One without rows or columns becomes the
// empty matrix, since gonum has no 0 x n.
func ToDense[T matrix.Elem](ctx context.Context, m *matrix.Dense[T]) (*mat.Dense, error) {
	numbers, err := matrix.As[matrix.Any](m)
	if err != nil {
		return nil, err
	}
	data, err := numbers.Read(ctx)
	if err != nil || len(data) == 0 {
		return new(mat.Dense), err
	}
	out := make([]float64, len(data))
	for i, v := range data {
		out[i] = float64(v)
	}
	rows, cols := m.Dims()
	return mat.NewDense(rows, cols, out), nil
}

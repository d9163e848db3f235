// SPDX-License-Identifier: Apache-2.0

// Package gonum converts between gonum's matrices, of float64 on the CPU, and Sublet's.
//
//	a, err := gonum.From[float32](dev, m)      // m is any mat.Matrix
//	a, change, err := gonum.Convert(dev, m)    // and how much the values changed
//	d, err := gonum.ToDense(ctx, a)
//
// # Precision
//
// float32 has 24 bits of the 53 that gonum's numbers have. Each value is rounded to the nearest; the relative change of a normal
// number is at most 2^-24. A value that the element type cannot hold at all is an error.
//
// # Layout
//
// A transpose (the result of T) is not carried out: its matrix becomes one that is stored by columns.
package gonum

import (
	"context"
	"errors"
	"math"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer"
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
	err = safely(op, func() error {
		rows, cols, transposed, err := untransposed(op, &m)
		if err != nil {
			return err
		}
		height, width := rows, cols
		if transposed {
			height, width = cols, rows
			if len(opts) == 0 {
				opts = []matrix.Options{{ColMajor: true}}
			}
		}
		if d, err = matrix.New[T](dev, height, width, opts...); err != nil {
			return err
		}
		var data []matrix.Any
		if data, change, err = read(op, m, rows, cols, d.DType()); err != nil {
			return err
		}
		view := d.Alias
		if transposed {
			view = d.T
		}
		v, err := matrix.As[matrix.Any](view())
		return errors.Join(err, v.SetSlice(data), v.Close())
	})
	if err != nil && d != nil {
		return nil, 0, errors.Join(err, d.Close())
	}
	return d, change, err
}

// safely has a matrix of gonum's used. They panic where others return an error, for example on a nil pointer in the interface.
func safely(op string, use func() error) (err error) {
	defer func() {
		if cause := fault.Panic(recover()); cause != "" {
			err = fail(op, gpu.ErrInvalid, cause)
		}
	}()
	return use()
}

// untransposed takes transposes off a matrix, and returns the size of what is left.
func untransposed(op string, m *mat.Matrix) (rows, cols int, transposed bool, err error) {
	for range 64 { // transposes of transposes
		t, ok := (*m).(mat.Untransposer)
		if !ok {
			break
		}
		*m, transposed = t.Untranspose(), !transposed
	}
	if *m == nil {
		return 0, 0, false, fail(op, buffer.ErrNil, "nil matrix")
	}
	rows, cols = (*m).Dims()
	return rows, cols, transposed, nil
}

// read returns the elements of a matrix, row by row, and the largest relative change of one that becomes a t.
func read(op string, m mat.Matrix, rows, cols int, t matrix.DType) (data []matrix.Any, change float64, err error) {
	at := m.At
	if r, dense := m.(mat.RawMatrixer); dense {
		raw := r.RawMatrix()
		at = func(i, j int) float64 { return raw.Data[i*raw.Stride+j] }
	}
	whole := t == matrix.Int32 || t == matrix.Uint32
	data = make([]matrix.Any, rows*cols)
	for i := range min(rows, len(data)) { // without columns there may be any number of rows
		for j := range cols {
			x := at(i, j)
			data[i*cols+j] = matrix.Any(x)
			switch y := t.Load(t.Store(x)); {
			case x == y, x != x && !whole:
			case whole || math.IsInf(y, 0):
				return nil, 0, fail(op, ErrValue, strconv.FormatFloat(x, 'g', -1, 64), " at ", strconv.Itoa(i), ", ", strconv.Itoa(j))
			default:
				change = max(change, math.Abs((y-x)/x))
			}
		}
	}
	return data, change, nil
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

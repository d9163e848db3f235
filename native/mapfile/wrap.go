// SPDX-License-Identifier: Apache-2.0

package mapfile

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Wrap makes a matrix of rows x cols elements of the file: those from byte offset on, placed as the
// options say. Nothing is read now; kernels get the bits when they first need them. The matrix keeps the file mapped
// until it and its views are closed; a [matrix.Release] among the options is called, too.
//
// A matrix that fits into a buffer of the device goes there as a whole, with what [matrix.Offset] skips, so offset is the way
// to a small part far behind the start. It must be a multiple of the element's size: [matrix.ErrAlignment] otherwise.
// A matrix that reaches beyond the file is [matrix.ErrShort].
func Wrap[T matrix.Elem](
	dev *gpu.Device, f *File, offset int64, rows, cols int, opts ...matrix.Option,
) (*matrix.Dense[T], error) {
	const op = "Wrap"
	mem, release, err := f.share(op, offset)
	if err != nil {
		return nil, err
	}
	var m *matrix.Dense[T]
	if offset%int64(m.DType().Size()) != 0 {
		err = fail(op, matrix.ErrAlignment, m.DType().String(), " at byte ", num(offset), " of the file")
	} else {
		m, err = matrix.WrapHost[T](dev, rows, cols, mem, append(slices.Clip(opts), matrix.Release(release))...)
	}
	if err != nil {
		release()
		return nil, err
	}
	return m, nil
}

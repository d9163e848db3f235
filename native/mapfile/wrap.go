// SPDX-License-Identifier: Apache-2.0

package mapfile

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Wrap makes a matrix of rows x cols elements of the file: those from byte offset on, placed as the
// options say. Nothing is read now; kernels get the bits when they first need them. The matrix keeps the file mapped
// until it and its views are closed; Release among the options is called, too.
//
// A matrix that fits into a buffer of the device goes there as a whole, with what Offset among the options skips, so offset is the way
// to a small part far behind the start. It must be a multiple of the element's size: [matrix.ErrAlignment] otherwise. A matrix that
// reaches beyond the file is [buffer.ErrShort].
func Wrap[T matrix.Elem](
	dev *gpu.Device, f *File, offset int64, rows, cols int, opts ...matrix.Options,
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
		var o matrix.Options
		if len(opts) > 0 {
			o = opts[0]
		}
		theirs := o.Release
		o.Release = func() {
			release()
			if theirs != nil {
				theirs()
			}
		}
		m, err = matrix.FromBuffer[T](dev, rows, cols, mem, buffer.DontOwnBuffer, o)
	}
	if err != nil {
		release()
		return nil, err
	}
	return m, nil
}

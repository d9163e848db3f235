// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"io"

	"github.com/sublet-gpu/sublet/buffer/internal/stream"
)

// maxTransposed is how many bytes the elements of an array in Fortran order may take.
const maxTransposed = 256 << 20

// transposed reads an array in Fortran order as one in C order. It holds all elements, in memory that grows as they arrive.
func transposed(r *Reader) io.Reader {
	size := int64(r.header.Type.Size())
	strides, stride := []int64{}, size
	for _, d := range r.header.Shape {
		strides = append(strides, stride)
		stride *= d
	}
	return stream.Blocks(func() ([]byte, error) {
		data, err := stream.Grow(nil, int(r.left), func(b []byte) error {
			_, err := io.ReadFull(r, b)
			return err
		})
		return gather(make([]byte, 0, len(data)), data, r.header.Shape, strides, size), err
	})
}

// gather appends the elements in data, row by row. Distances along the dimensions are in bytes.
func gather(out, data []byte, shape, strides []int64, size int64) []byte {
	switch {
	case len(data) == 0:
	case len(shape) == 0:
		return append(out, data[:size]...)
	default:
		for i := range shape[0] {
			out = gather(out, data[i*strides[0]:], shape[1:], strides[1:], size)
		}
	}
	return out
}

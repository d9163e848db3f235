// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"io"

	"github.com/sublet-gpu/sublet/buffer/internal/stream"
)

// maxTransposed is how many bytes the elements of an array in Fortran order may take.
const maxTransposed = 256 << 20

// manyDims tells whether the order of the elements matters.
func manyDims(shape []int64) bool {
	n := 0
	for _, d := range shape {
		if d == 0 {
			return false
		}
		if d > 1 {
			n++
		}
	}
	return n > 1
}

// transposed reads an array in Fortran order as one in C order. It holds all elements, in memory that grows as they arrive.
func transposed(r *Reader) io.Reader {
	shape, size := r.header.Shape, int64(r.header.Type.Size())
	strides, index := make([]int64, len(shape)), make([]int64, len(shape)) // in bytes of the file's order; of the next element
	stride := size
	for k, d := range shape {
		strides[k] = stride
		stride *= d
	}
	var data, block []byte
	at, left := int64(0), r.header.Len()
	return stream.Blocks(func() (_ []byte, err error) {
		if data == nil {
			data, err = stream.Grow(data, int(r.left), func(b []byte) error {
				_, err := io.ReadFull(r, b)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		for block = block[:0]; left > 0 && len(block) < blockSize; left-- {
			block = append(block, data[at:][:size]...)
			for k := len(shape) - 1; k >= 0; k-- {
				index[k]++
				at += strides[k]
				if index[k] < shape[k] {
					break
				}
				at -= strides[k] * index[k]
				index[k] = 0
			}
		}
		return block, nil
	})
}
